//! When a page cannot be shown.

use askama::Template;

use crate::domain::actor::Right;
use crate::web::page::{Layout, Section};
use crate::web::view::Reference;

/// Any address, with a status from 400 on.
#[derive(Clone, Template, Debug)]
#[template(path = "pages/error.html")]
pub struct ErrorPage {
    /// Around it; with the rail when somebody is signed in.
    pub layout: Layout,
    /// "404".
    pub status: u16,
    /// "This page does not exist".
    pub title: String,
    /// What happened, and what it did or did not change.
    pub happened: String,
    /// What to do now.
    pub next_step: String,
    /// Where to go.
    pub link: Option<Reference>,
    /// What was typed into the form that was refused: what its field is called, and the text.
    pub typed: Vec<(String, String)>,
    /// What to quote when asking for help.
    pub request_id: Option<String>,
}
