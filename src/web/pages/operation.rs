//! One operation: the thread of evidence.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::operation::OperationState;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section};
use crate::web::timeline::{Entry, Step, What};
use crate::web::view::{Fact, FactValue, Reference, When};

/// `/operations/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/operation.html")]
pub struct OperationPage {
    /// Around it.
    pub layout: Layout,
    /// What is known of it.
    pub state: OperationState,
    /// "Did we send that?", answered in a sentence.
    pub sentence: String,
    /// The type's name.
    pub kind: String,
    /// The operation's key.
    pub key: String,
    /// Ids, correlation, source, times, digest.
    pub facts: Vec<Fact>,
    /// In order.
    pub steps: Vec<Step>,
    /// Oldest first.
    pub timeline: Vec<Entry>,
    /// Episodes in which it waited for a person, newest first.
    pub episodes: Vec<Episode>,
    /// Corrections and operations with the same business ids.
    pub related: Vec<Reference>,
    /// Whose view it is and when it was made: printed at the foot.
    pub printed: String,
}

/// One dead letter of this operation.
#[derive(Clone, Debug)]
pub struct Episode {
    /// Its page.
    pub href: String,
    /// Where it stands.
    pub status: DeadLetterStatus,
    /// What was known of the effect.
    pub certainty: Certainty,
    /// When it was opened.
    pub opened: When,
}
