//! `[auth]`: who may come in, for how long, and what they may do.

use std::str::FromStr as _;
use std::time::Duration;

use super::oidc::{self, Oidc};
use super::reader::{Item, Table};
use super::words::{NAME_RULE, is_name, suggest};
use crate::domain::actor::{Right, Rights, Role, Roles};

/// Sessions that end sooner are of no use.
const SHORTEST: Duration = Duration::from_mins(1);

/// How people sign in, and what they may do.
#[derive(Clone, Debug)]
pub struct Auth {
    /// A session ends this long after its last use.
    pub idle: Duration,
    /// A session ends this long after its sign-in, used or not.
    pub longest: Duration,
    /// The names of the roles whose people must show something beside their password.
    pub second_factor: Vec<String>,
    /// What people can be: the built-in roles and those of `[auth.roles.NAME]`.
    pub roles: Roles,
    /// Where people sign in elsewhere.
    pub oidc: Option<Oidc>,
    /// Whether they sign in here too, with a password.
    pub local: bool,
}

impl Default for Auth {
    fn default() -> Self {
        Self {
            idle: Duration::from_mins(15),
            longest: Duration::from_hours(12),
            second_factor: Vec::new(),
            roles: Roles::default(),
            oidc: None,
            local: true,
        }
    }
}

/// `[auth]`; `allow_private` says whether a provider may be reached by plain http.
pub(super) fn read(table: Option<Table<'_>>, allow_private: bool) -> Auth {
    let defaults = Auth::default();
    let Some(table) = table else { return defaults };
    let idle = table.duration("idle").unwrap_or(defaults.idle);
    let longest = table.duration("longest").unwrap_or(defaults.longest);
    if idle < SHORTEST {
        table.mistake("idle", "must be at least 1m");
    }
    if longest < idle {
        table.mistake("longest", "must not be shorter than idle");
    }
    let roles = read_roles(table.table("roles"));
    let second_factor =
        table.list("second_factor").into_iter().filter_map(|item| role(&item, &roles)).collect();
    let elsewhere = table.table("oidc");
    let oidc = elsewhere.as_ref().and_then(|table| oidc::read(table, &roles, allow_private));
    let local = table.flag("local_sign_in").unwrap_or(defaults.local);
    if !local && elsewhere.is_none() {
        table.mistake("local_sign_in", "nobody could sign in: there is no [auth.oidc]");
    }
    table.finish();
    Auth { idle, longest, second_factor, roles, oidc, local }
}

fn role(item: &Item<'_>, roles: &Roles) -> Option<String> {
    let name = item.text()?;
    if roles.knows(&name) {
        return Some(name);
    }
    let known: Vec<&str> = roles.names().collect();
    item.mistake(format!("is no role; {}", suggest(&name, &known)));
    None
}

/// `[auth.roles.NAME]`: each a set of rights of its own.
fn read_roles(table: Option<Table<'_>>) -> Roles {
    let entries = table.map(|table| table.entries()).unwrap_or_default();
    let own = entries.into_iter().filter_map(|(name, item)| {
        if !is_name(&name) {
            item.mistake(NAME_RULE);
        } else if Role::from_str(&name).is_ok() {
            item.mistake("this role is built in and cannot be changed; give yours another name");
        }
        let table = item.table()?;
        let items = table.list("rights");
        if items.is_empty() {
            table.mistake("rights", "is missing; write rights = [\"view\", \"replay\"]");
        }
        let rights: Rights = items.iter().filter_map(read_right).collect();
        table.finish();
        Some((name, rights))
    });
    Roles::with(own.collect::<Vec<_>>())
}

fn read_right(item: &Item<'_>) -> Option<Right> {
    let word = item.text()?;
    let right = word.parse().ok();
    if right.is_none() {
        let known: Vec<&str> = Right::ALL.iter().map(|right| right.as_str()).collect();
        item.mistake(format!("there is no right {word:?}; {}", suggest(&word, &known)));
    }
    right
}
