//! One dead letter: what happened, and the safest next step.

use askama::Template;

use super::verdict::VerdictView;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use crate::domain::operation::Severity;
use crate::web::known::Knowledge;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section};
use crate::web::timeline::{Entry, Step, What};
use crate::web::view::{Button, Fact, FactValue, Long, Reference, When};

/// `/dead-letters/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/dead_letter.html")]
pub struct DeadLetterPage {
    /// Around it.
    pub layout: Layout,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// Where the episode stands.
    pub status: DeadLetterStatus,
    /// How much it matters.
    pub severity: Severity,
    /// When it was opened.
    pub opened: When,
    /// What happened, from the catalogue.
    pub sentence: Long,
    /// The safest next step, from the catalogue.
    pub next_step: String,
    /// Why no wait or retry of ours follows, from the catalogue.
    pub parked_because: Option<String>,
    /// The answer to what was just asked for.
    pub verdict: Option<VerdictView>,
    /// How it was closed; absent while it is open.
    pub closed: Option<Closed>,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// The first one is what the card advises. Empty when nothing is left to do.
    pub buttons: Vec<Button>,
    /// Under "More": override and what else is rare.
    pub more: Vec<Button>,
    /// In order.
    pub steps: Vec<Step>,
    /// Oldest first.
    pub timeline: Vec<Entry>,
    /// Business ids, key, correlation id, references, owner, runbook.
    pub facts: Vec<Fact>,
    /// What the destination promises, and when its key window closes.
    pub promise: Vec<Fact>,
    /// Masked where the type says so.
    pub payload: Payload,
    /// Same order, same customer, corrections, earlier episodes.
    pub related: Vec<Reference>,
    /// The operation's own page.
    pub operation: Reference,
}

impl DeadLetterPage {
    /// Severe enough to be said.
    pub fn loud(&self) -> bool {
        self.severity >= Severity::High
    }
}

/// How an episode ended.
#[derive(Clone, Debug)]
pub struct Closed {
    /// In what way.
    pub resolution: Option<Resolution>,
    /// By whom.
    pub by: String,
    /// When.
    pub at: When,
    /// In their words.
    pub reason: Option<Long>,
}

/// The payload as far as the reader may see it.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Pretty-printed; `None` when it was erased.
    pub text: Option<Long>,
    /// "2 fields are masked."; or why it is gone.
    pub note: Option<String>,
    /// To see it unmasked, which is audited.
    pub unmask: Option<Button>,
}
