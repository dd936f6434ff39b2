//! The form that waives a check.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::attempt::Waiver;
use crate::web::known::{CheckRow, Knowledge};
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section};
use crate::web::timeline::Request;
use crate::web::view::{Field, Reference};

/// `/dead-letters/{id}/override`
#[derive(Template, Debug)]
#[template(path = "pages/override.html")]
pub struct OverridePage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one override.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// The checks that would be waived, each with what it found.
    pub waives: Vec<Waived>,
    /// What a duplicate would mean: "A second ticket in the CRM for order 10443."
    pub duplicate: String,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// Every check and how it goes now.
    pub checks: Vec<CheckRow>,
    /// What will be sent.
    pub request: Request,
    /// What `same_key` would do here, in a sentence.
    pub same_key: String,
    /// What `new_effect` would do here, in a sentence.
    pub new_effect: String,
    /// The chosen mode: `same_key`, `new_effect` or nothing yet.
    pub mode: Field,
    /// What has to be typed.
    pub short_id: String,
    /// What was typed.
    pub typed: Field,
    /// In their words.
    pub reason: Field,
    /// Whether the box was ticked, and what is wrong with it.
    pub accept: Field,
    /// Why the form is closed: a right, a fresh sign-in, a finding that makes it needless.
    pub closed: Option<String>,
}

impl OverridePage {
    /// What to type, so that nobody confirms the wrong operation.
    pub fn type_this(&self) -> String {
        format!("Type {} to confirm which operation you mean", self.short_id)
    }

    /// What is wrong, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        [
            ("mode-same", &self.mode),
            ("typed", &self.typed),
            ("reason", &self.reason),
            ("accept", &self.accept),
        ]
        .into_iter()
        .filter_map(|(id, field)| Some((id, field.error.as_deref()?)))
        .collect()
    }
}

/// A check that would be waived.
#[derive(Clone, Debug)]
pub struct Waived {
    /// Which.
    pub waiver: Waiver,
    /// What it found.
    pub detail: String,
}

impl Waived {
    /// The check as the question that it answers.
    pub fn words(&self) -> &'static str {
        labels::waiver(self.waiver)
    }
}
