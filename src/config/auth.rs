//! `[auth]`: who may come in, for how long, and what they may do.

use std::time::Duration;

use super::reader::{Item, Table};
use super::words::suggest;
use crate::domain::actor::Role;

/// How people sign in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Auth {
    /// A session ends this long after its last use.
    pub idle: Duration,
    /// A session ends this long after its sign-in, used or not.
    pub longest: Duration,
    /// The roles whose people must show something beside their password.
    pub second_factor: Vec<Role>,
}

impl Default for Auth {
    fn default() -> Self {
        Self { idle: Duration::from_mins(15), longest: Duration::from_hours(12), second_factor: Vec::new() }
    }
}

/// `[auth]`.
pub(super) fn read(table: Option<Table<'_>>) -> Auth {
    let defaults = Auth::default();
    let Some(table) = table else { return defaults };
    let idle = table.duration("idle").unwrap_or(defaults.idle);
    let longest = table.duration("longest").unwrap_or(defaults.longest);
    if longest < idle {
        table.mistake("longest", "must not be shorter than idle");
    }
    let second_factor = table.list("second_factor").iter().filter_map(role).collect();
    table.finish();
    Auth { idle, longest, second_factor }
}

fn role(item: &Item<'_>) -> Option<Role> {
    let name = item.text()?;
    let role = name.parse().ok();
    if role.is_none() {
        let known: Vec<&str> = Role::ALL.iter().map(|role| role.as_str()).collect();
        item.mistake(format!("is no role; {}", suggest(&name, &known)));
    }
    role
}
