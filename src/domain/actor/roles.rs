//! Roles: named sets of rights, built in or from the file.

use std::fmt;
use std::sync::{Arc, LazyLock};

use super::Right;

text_enum! {
    /// The roles that are there without a word in the file. Each holds the rights of those before it.
    pub enum Role {
        /// Looks.
        Viewer = "viewer",
        /// Also replays, corrects and resolves.
        Operator = "operator",
        /// Also overrides.
        Approver = "approver",
        /// Also manages people and tokens.
        Admin = "admin",
    }
}

impl Role {
    /// What it holds.
    pub fn rights(self) -> Rights {
        Right::ALL.iter().copied().filter(|right| self >= Self::least(*right)).collect()
    }

    /// The first that holds a right.
    fn least(right: Right) -> Self {
        match right {
            Right::View | Right::Audit => Self::Viewer,
            Right::Replay
            | Right::Correct
            | Right::Resolve
            | Right::Bulk
            | Right::Export
            | Right::ViewPayload
            | Right::PauseDestination => Self::Operator,
            Right::Override | Right::Approve => Self::Approver,
            Right::Submit | Right::Work | Right::ManagePeople | Right::ManageTokens | Right::Erase => {
                Self::Admin
            }
        }
    }
}

impl AsRef<str> for Role {
    fn as_ref(&self) -> &str {
        self.as_str()
    }
}

/// A set of rights.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Rights(u32);

impl Rights {
    /// Nothing at all.
    pub const NONE: Self = Self(0);

    /// Whether a right is among them.
    pub fn hold(self, right: Right) -> bool {
        self.0 & Self::bit(right) != 0
    }

    /// Those that the others are not.
    #[must_use]
    pub fn beyond(self, others: Self) -> Self {
        Self(self.0 & !others.0)
    }

    /// How many there are.
    pub fn count(self) -> u32 {
        self.0.count_ones()
    }

    /// Whether there is none.
    pub fn is_empty(self) -> bool {
        self == Self::NONE
    }

    fn bit(right: Right) -> u32 {
        1 << right as u32
    }
}

impl FromIterator<Right> for Rights {
    fn from_iter<T: IntoIterator<Item = Right>>(rights: T) -> Self {
        Self(rights.into_iter().fold(0, |bits, right| bits | Self::bit(right)))
    }
}

/// `view, replay`
impl fmt::Display for Rights {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let held: Vec<&str> =
            Right::ALL.iter().filter(|right| self.hold(**right)).map(|right| right.as_str()).collect();
        f.write_str(&held.join(", "))
    }
}

/// Every role that there is: those built in, and those of the file. Cheap to clone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Roles(Arc<[(Arc<str>, Rights)]>);

static BUILT_IN: LazyLock<Roles> = LazyLock::new(|| Roles::with([]));

impl Default for Roles {
    fn default() -> Self {
        BUILT_IN.clone()
    }
}

impl Roles {
    /// Those built in, and these. A name that is there twice means its first.
    pub fn with(own: impl IntoIterator<Item = (String, Rights)>) -> Self {
        let built_in = Role::ALL.iter().map(|role| (Arc::from(role.as_str()), role.rights()));
        Self(built_in.chain(own.into_iter().map(|(name, rights)| (Arc::from(name), rights))).collect())
    }

    /// What somebody may do whose role has this name: nothing when there is no such role.
    pub fn of(&self, name: &str) -> Standing {
        let found = self.0.iter().find(|(known, _)| &**known == name);
        let (name, rights) =
            found.map_or_else(|| (Arc::from(name), None), |(n, r)| (Arc::clone(n), Some(*r)));
        Standing { name, rights, roles: self.clone() }
    }

    /// Their names: those built in by what they may do, then the file's.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        self.0.iter().map(|(name, _)| &**name)
    }

    /// Whether there is a role of this name.
    pub fn knows(&self, name: &str) -> bool {
        self.names().any(|known| known == name)
    }

    /// The roles to ask for when one lacks a right: the least of those built in, and the file's.
    pub fn to_ask_for(&self, right: Right) -> (Role, Vec<&str>) {
        let own = self.0.iter().skip(Role::ALL.len());
        let own = own.filter(|(_, rights)| rights.hold(right)).map(|(name, _)| &**name);
        (Role::least(right), own.collect())
    }
}

/// What a person may do at this moment: their role, as the file has it now.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Standing {
    name: Arc<str>,
    /// Absent when there is no such role any more.
    rights: Option<Rights>,
    roles: Roles,
}

impl Standing {
    /// The role's name.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Whether the role holds a right.
    pub fn may(&self, right: Right) -> bool {
        self.rights().hold(right)
    }

    /// All that it holds: nothing when the file no longer has the role.
    pub fn rights(&self) -> Rights {
        self.rights.unwrap_or_default()
    }

    /// Whether there is such a role.
    pub fn is_known(&self) -> bool {
        self.rights.is_some()
    }

    /// The roles among which it is one.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }
}

impl From<Role> for Standing {
    fn from(role: Role) -> Self {
        Roles::default().of(role.as_str())
    }
}

/// The role's name, and that it means nothing where it does not.
impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rights {
            Some(_) => f.pad(&self.name),
            None => write!(f, "{} (a role that the configuration does not have, so no rights)", self.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::actor::Actor;

    #[test]
    fn each_built_in_role_holds_what_those_before_it_hold_and_the_last_holds_all() {
        for pair in Role::ALL.windows(2) {
            assert!(pair[0].rights().beyond(pair[1].rights()).is_empty(), "{pair:?}");
            assert!(!pair[1].rights().beyond(pair[0].rights()).is_empty(), "{pair:?}");
        }
        assert_eq!(Role::Admin.rights(), Right::ALL.iter().copied().collect());
        assert_eq!(Role::Viewer.rights().to_string(), "view, audit");
    }

    #[test]
    fn a_role_of_the_file_holds_what_it_names_and_nothing_else() {
        let roles = Roles::with([("night".to_owned(), Rights::from_iter([Right::View, Right::Replay]))]);
        let night = roles.of("night");
        for right in Right::ALL {
            assert_eq!(night.may(*right), matches!(right, Right::View | Right::Replay), "{right}");
        }
        assert_eq!(roles.to_ask_for(Right::Replay), (Role::Operator, vec!["night"]));
        assert_eq!(roles.to_ask_for(Right::Approve), (Role::Approver, vec![]));
        assert_eq!(roles.names().last(), Some("night"));
        let vera = Actor::Person { name: "vera".to_owned(), role: roles.of("viewer") };
        assert_eq!(
            vera.needs(Right::Replay),
            "the right \u{201c}replay\u{201d}, which the roles operator and night have; yours is viewer"
        );
    }

    #[test]
    fn a_role_that_nobody_knows_holds_nothing_and_says_so() {
        let gone = Roles::default().of("night");
        assert!(Right::ALL.iter().all(|right| !gone.may(*right)) && !gone.is_known());
        assert!(gone.to_string().starts_with("night (a role that"));
        assert!(!Roles::default().knows("night") && !Roles::default().knows(""));
    }
}
