//! The reader's own account.

use askama::Template;

use crate::domain::actor::{Right, Role};
use crate::web::labels;
use crate::web::page::{Layout, Section};
use crate::web::view::{Field, When};

/// `/account`
#[derive(Template, Debug)]
#[template(path = "pages/account.html")]
pub struct AccountPage {
    /// Around it.
    pub layout: Layout,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Role,
    /// All rights, held or not.
    pub rights: Vec<RightRow>,
    /// When they signed in.
    pub signed_in_at: Option<When>,
    /// Its value is never filled.
    pub old_password: Field,
    /// Its value is never filled.
    pub new_password: Field,
    /// The fewest characters of a password.
    pub shortest: usize,
    /// For the password form.
    pub action_id: String,
}

impl AccountPage {
    /// What a password has to be.
    pub fn hint(&self) -> String {
        super::access::password_hint(self.shortest)
    }

    /// Something has to be put right.
    pub fn wrong(&self) -> bool {
        self.old_password.error.is_some() || self.new_password.error.is_some()
    }
}

/// One right and who has it.
#[derive(Clone, Debug)]
pub struct RightRow {
    /// What it lets one do.
    pub words: String,
    /// Its published name.
    pub right: Right,
    /// The reader has it.
    pub held: bool,
    /// The least role that has it.
    pub from: Role,
}

/// The table of all rights as `role` has them.
pub fn rights_of(role: Role) -> Vec<RightRow> {
    let row = |&right: &Right| RightRow {
        words: labels::right(right),
        right,
        held: role.may(right),
        from: Role::least(right),
    };
    Right::ALL.iter().map(row).collect()
}
