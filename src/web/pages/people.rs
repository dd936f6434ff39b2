//! Who works here.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::actor::Role;
use crate::web::page::{Layout, Section};
use crate::web::view::When;

/// `/people`
#[derive(Template, Debug)]
#[template(path = "pages/people.html")]
pub struct PeoplePage {
    /// Around it.
    pub layout: Layout,
    /// By name.
    pub rows: Vec<PersonRow>,
}

/// One account.
#[derive(Clone, Debug)]
pub struct PersonRow {
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// They may sign in.
    pub active: bool,
    /// When the account was made.
    pub created: When,
    /// Their last sign-in.
    pub seen: Option<When>,
    /// It is the reader's own.
    pub own: bool,
}
