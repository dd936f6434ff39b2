//! The gate's answer to whoever pressed a button.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::verdict::VerdictKind;
use crate::web::known::CheckRow;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section};
use crate::web::view::{Button, Long, Reference, When};

/// The answer, as a banner on a page or as a page of its own.
#[derive(Clone, Debug)]
pub struct VerdictView {
    /// In a word.
    pub kind: VerdictKind,
    /// In a sentence that names what would help.
    pub reason: String,
    /// Every check that was made.
    pub checks: Vec<CheckRow>,
    /// Whoever is at it already.
    pub run: Option<RunView>,
    /// What is known of the effect.
    pub known: Option<KnownView>,
    /// What would help, as buttons.
    pub helps: Vec<Button>,
}

impl VerdictView {
    /// Those that did not pass: shown without a click.
    pub fn failed(&self) -> impl Iterator<Item = &CheckRow> {
        self.checks.iter().filter(|check| !check.passed)
    }
}

/// Whoever is at it already.
#[derive(Clone, Debug)]
pub struct RunView {
    /// Who.
    pub by: String,
    /// Since when.
    pub since: When,
    /// Where to watch.
    pub href: String,
}

/// What is known of the effect.
#[derive(Clone, Debug)]
pub struct KnownView {
    /// When we learned it.
    pub at: When,
    /// How.
    pub how: String,
    /// The id over there.
    pub reference: Option<Reference>,
    /// What was answered.
    pub answer: Option<Long>,
}

/// The answer to a post, when the page it came from can no longer show it.
#[derive(Template, Debug)]
#[template(path = "pages/verdict.html")]
pub struct VerdictPage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// The answer.
    pub verdict: VerdictView,
}
