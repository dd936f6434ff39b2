//! "Did we send that?"

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::operation::OperationState;
use crate::web::labels::Mark as _;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section};
use crate::web::view::{Reference, When};

/// `/operations`
#[derive(Template, Debug)]
#[template(path = "pages/operations.html")]
pub struct OperationsPage {
    /// Around it.
    pub layout: Layout,
    /// The text, as typed.
    pub search: String,
    /// State, type, destination.
    pub filters: Vec<Select>,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<OperationRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// Where it looked and how far back: said when nothing was found.
    pub looked: Vec<String>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct OperationRow {
    /// Its page.
    pub href: String,
    /// What is known of it.
    pub state: OperationState,
    /// The type's name.
    pub kind: String,
    /// Business ids: "order 10443 · customer 77".
    pub ids: String,
    /// The operation's key.
    pub key: String,
    /// "2 of 3 steps done".
    pub progress: String,
    /// Ids over there.
    pub references: Vec<Reference>,
    /// When it was accepted.
    pub received: When,
}
