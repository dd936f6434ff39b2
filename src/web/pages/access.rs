//! The doors: sign-in, and the first account.

use askama::Template;

use crate::web::page::Layout;
use crate::web::view::{Field, When};

/// `/login`
#[derive(Template, Debug)]
#[template(path = "pages/login.html")]
pub struct LoginPage {
    /// Around it.
    pub layout: Layout,
    /// The name as typed. A wrong name and a wrong password read the same.
    pub name: Field,
    /// Why it failed, in words; also "You were signed out after 15 minutes".
    pub problem: Option<String>,
    /// Where to go after: a path of the desk, checked by the handler.
    pub next: Option<String>,
}

/// `/setup/{token}`
#[derive(Template, Debug)]
#[template(path = "pages/setup.html")]
pub struct SetupPage {
    /// Around it.
    pub layout: Layout,
    /// Where the form goes: this page, token included.
    pub action: String,
    /// The name as typed.
    pub name: Field,
    /// Its value is never filled.
    pub password: Field,
    /// The fewest characters of a password.
    pub shortest: usize,
    /// When the link stops working.
    pub expires: When,
}

impl SetupPage {
    /// What a password has to be.
    pub fn hint(&self) -> String {
        password_hint(self.shortest)
    }

    /// Something has to be put right.
    pub fn wrong(&self) -> bool {
        self.name.error.is_some() || self.password.error.is_some()
    }
}

/// What a new password has to be, said before it is typed.
pub(super) fn password_hint(shortest: usize) -> String {
    format!("At least {shortest} characters. A sentence is fine.")
}
