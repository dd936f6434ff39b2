//! The form that has an operation tried again.

use askama::Template;

use crate::domain::actor::Right;
use crate::web::known::{CheckRow, Knowledge};
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section};
use crate::web::timeline::Request;
use crate::web::view::{Button, Field, Reference};

/// `/dead-letters/{id}/replay`
#[derive(Template, Debug)]
#[template(path = "pages/replay.html")]
pub struct ReplayPage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one replay.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// What will be sent.
    pub request: Request,
    /// Every check and how it goes now.
    pub checks: Vec<CheckRow>,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// In their words.
    pub reason: Field,
    /// Reasons given lately, offered again.
    pub recent_reasons: Vec<String>,
    /// What the button says: it follows the card.
    pub words: String,
    /// There is no button, because of this; `None` when there is one.
    pub blocked: Option<Blocked>,
}

/// Why nothing can be sent now.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The gate's sentence.
    pub why: String,
    /// What would help.
    pub instead: Vec<Button>,
}
