//! Who did what.

use askama::Template;

use crate::domain::actor::Right;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section};
use crate::web::view::{Field, Long, Reference, When};

/// `/audit`
#[derive(Template, Debug)]
#[template(path = "pages/audit.html")]
pub struct AuditPage {
    /// Around it.
    pub layout: Layout,
    /// "The chain was verified 4 minutes ago: 18,204 entries, none altered."
    pub chain: Option<String>,
    /// Person or token, as typed.
    pub actor: Field,
    /// Operation id or key, as typed.
    pub operation: Field,
    /// From this day on, `2026-11-29`.
    pub from: Field,
    /// Up to and with this day.
    pub to: Field,
    /// The actions.
    pub action: Select,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<AuditRow>,
    /// The neighbouring pages.
    pub pager: Pager,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// When.
    pub at: When,
    /// Who: a name, `token:shop`, `cli:root`.
    pub who: String,
    /// What, in words.
    pub what: String,
    /// To what.
    pub target: Option<Reference>,
    /// In their words.
    pub why: Option<Long>,
    /// The address they came from.
    pub from: Option<String>,
    /// With what result, in words.
    pub result: String,
    /// It was refused or failed.
    pub refused: bool,
}
