//! The list of dead letters.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::operation::Severity;
use crate::web::labels::Mark as _;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section};
use crate::web::view::When;

/// `/dead-letters`
#[derive(Template, Debug)]
#[template(path = "pages/dead_letters.html")]
pub struct DeadLettersPage {
    /// Around it.
    pub layout: Layout,
    /// "12 open", "500+ match this filter".
    pub count: String,
    /// The text, as typed.
    pub search: String,
    /// Always in view: status, certainty, next action.
    pub first: Vec<Select>,
    /// Behind "More filters": type, destination, cause, severity, assignee.
    pub rest: Vec<Select>,
    /// How many of `rest` are set; opens the box when some are.
    pub rest_set: usize,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<DeadLetterRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// "41 were closed in the last 7 days": said when there is nothing at all.
    pub handled: Option<String>,
}

impl DeadLettersPage {
    /// Some filter of the second row is set.
    pub fn more_set(&self) -> bool {
        self.rest_set > 0
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct DeadLetterRow {
    /// Its page.
    pub href: String,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// What happened, in at most 200 characters.
    pub sentence: String,
    /// The operation's type.
    pub kind: String,
    /// Business ids: "order 10443 · customer 77".
    pub ids: String,
    /// The destination's name.
    pub destination: String,
    /// "5 tries".
    pub attempts: String,
    /// When it was opened.
    pub opened: When,
    /// Whose it is.
    pub owner: Option<String>,
    /// What to do first.
    pub next: NextAction,
    /// Shown from `High` on.
    pub severity: Severity,
    /// Shown unless open.
    pub status: DeadLetterStatus,
}

impl DeadLetterRow {
    /// Severe enough to be said in a list.
    pub fn loud(&self) -> bool {
        self.severity >= Severity::High
    }

    /// No longer open.
    pub fn past(&self) -> bool {
        self.status != DeadLetterStatus::Open
    }
}
