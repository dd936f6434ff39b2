//! While a browser asks its owner for a passkey: the one page of the desk that needs script.

use askama::Template;

use crate::domain::actor::Right;
use crate::web::page::{Layout, Section};
use crate::web::second::CREDENTIAL;
use crate::web::view::Reference;

/// The answer to a form that asks for a passkey.
#[derive(Template, Debug)]
#[template(path = "pages/passkey.html")]
pub struct PasskeyPage {
    /// Around it.
    pub layout: Layout,
    /// Where the form goes with the browser's answer.
    pub action: String,
    /// What else the form sends: what was typed before.
    pub carried: Vec<(String, String)>,
    /// What the script does: `get` or `create`.
    pub kind: &'static str,
    /// The options of `navigator.credentials`, as JSON.
    pub options: String,
    /// The field that takes the answer.
    pub field: &'static str,
    /// What the page is called.
    pub title: &'static str,
    /// What the button does.
    pub words: &'static str,
    /// Another way.
    pub back: Reference,
}

impl PasskeyPage {
    /// To show a passkey.
    pub fn show(
        layout: Layout,
        action: impl Into<String>,
        carried: Vec<(String, String)>,
        options: String,
        back: Reference,
    ) -> Self {
        Self {
            layout,
            action: action.into(),
            carried,
            kind: "get",
            options,
            field: CREDENTIAL,
            title: "Show your passkey",
            words: "Ask for it again",
            back,
        }
    }
}
