//! Who acts, and what they may do.

use super::words::listed;

mod roles;

pub use roles::{Rights, Role, Roles, Standing};

text_enum! {
    /// What an API token may be used for.
    pub enum Scope {
        /// Submit operations and read their own answers.
        Submit = "submit",
        /// Read everything but people.
        Read = "read",
        /// Read, replay, correct, resolve and override.
        Operate = "operate",
        /// Take steps that programs carry out, and say what became of them.
        Work = "work",
    }
}

text_enum! {
    /// One thing that somebody may do.
    pub enum Right {
        /// See operations and dead letters.
        View = "view",
        /// See payloads, requests and answers unmasked.
        ViewPayload = "view_payload",
        /// Hand in operations.
        Submit = "submit",
        /// Have a dead letter tried again through all checks.
        Replay = "replay",
        /// Hand in changed data in a failed operation's place.
        Correct = "correct",
        /// Close a dead letter, open it again, hand it to somebody, put it off, write a note.
        Resolve = "resolve",
        /// Act on many dead letters at once.
        Bulk = "bulk",
        /// Waive a named check.
        Override = "override",
        /// Be the second person whose word an override waits for.
        Approve = "approve",
        /// Stop sending to a destination, and send to it again.
        PauseDestination = "pause_destination",
        /// Carry steps out that the file leaves to programs.
        Work = "work",
        /// See who did what.
        Audit = "audit",
        /// Take lists and evidence out of the desk as files.
        Export = "export",
        /// Add people and change what they may do.
        ManagePeople = "manage_people",
        /// Make and revoke API tokens.
        ManageTokens = "manage_tokens",
        /// Erase what is known of somebody.
        Erase = "erase",
    }
}

impl Scope {
    /// All that it holds.
    pub fn rights(self) -> Rights {
        Right::ALL.iter().copied().filter(|right| self.may(*right)).collect()
    }

    /// Whether the scope holds a right.
    pub fn may(self, right: Right) -> bool {
        match right {
            Right::Submit => self == Self::Submit,
            Right::Work => self == Self::Work,
            Right::View | Right::ViewPayload | Right::Audit | Right::Export => {
                matches!(self, Self::Read | Self::Operate)
            }
            Right::Replay
            | Right::Correct
            | Right::Resolve
            | Right::Bulk
            | Right::Override
            | Right::PauseDestination => self == Self::Operate,
            // A second person is a person.
            Right::Approve | Right::ManagePeople | Right::ManageTokens | Right::Erase => false,
        }
    }
}

/// Whoever acts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Actor {
    /// A signed-in person.
    Person {
        /// Their sign-in name.
        name: String,
        /// Their role, with what it holds at this moment.
        role: Standing,
    },
    /// A holder of an API token.
    Token {
        /// The token's name.
        name: String,
        /// What it is for.
        scope: Scope,
    },
    /// Somebody at the command line, who can read the database anyway.
    Cli {
        /// The operating system's name for them.
        user: String,
    },
}

impl Actor {
    /// Whether they may.
    pub fn may(&self, right: Right) -> bool {
        match self {
            Self::Person { role, .. } => role.may(right),
            Self::Token { scope, .. } => scope.may(right),
            Self::Cli { .. } => true,
        }
    }

    /// What a refused actor would need, in words.
    pub fn needs(&self, right: Right) -> String {
        match self {
            Self::Person { role, .. } => {
                let (built_in, own) = role.roles().to_ask_for(right);
                let having = if own.is_empty() {
                    format!("the role {built_in} has")
                } else {
                    format!("the roles {} have", listed(&[&[built_in.as_str()], own.as_slice()].concat()))
                };
                format!("the right \u{201c}{right}\u{201d}, which {having}; yours is {role}")
            }
            Self::Token { scope, .. } => {
                format!("the right \u{201c}{right}\u{201d}; this token's scope is {scope}")
            }
            Self::Cli { .. } => format!("the right \u{201c}{right}\u{201d}"),
        }
    }
}

impl std::fmt::Display for Actor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Person { name, .. } => f.write_str(name),
            Self::Token { name, .. } => write!(f, "token:{name}"),
            Self::Cli { user } => write!(f, "cli:{user}"),
        }
    }
}
