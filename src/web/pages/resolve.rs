//! The form that closes a dead letter.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::dead_letter::Resolution;
use crate::web::known::Knowledge;
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section};
use crate::web::view::{Field, Reference};

/// `/dead-letters/{id}/resolve`
#[derive(Template, Debug)]
#[template(path = "pages/resolve.html")]
pub struct ResolvePage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click closes once.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// The chosen one.
    pub chosen: Option<Resolution>,
    /// Why none or the wrong one was chosen.
    pub chosen_error: Option<String>,
    /// The id at the destination.
    pub reference: Field,
    /// In their words.
    pub reason: Field,
    /// Why the form is closed: a missing right, an episode that is closed already.
    pub closed: Option<String>,
}

impl ResolvePage {
    /// All four: when it is the right one, and whether it is chosen.
    pub fn choices(&self) -> Vec<(Resolution, &'static str, bool)> {
        let choice = |&each: &Resolution| (each, labels::resolution(each), self.chosen == Some(each));
        Resolution::ALL.iter().map(choice).collect()
    }

    /// What is wrong, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        [
            ("resolution-1", self.chosen_error.as_deref()),
            ("reference", self.reference.error.as_deref()),
            ("reason", self.reason.error.as_deref()),
        ]
        .into_iter()
        .filter_map(|(id, error)| Some((id, error?)))
        .collect()
    }
}
