//! Acting on many dead letters at once. A bulk action is an object: its members are frozen when a
//! person looks at them, it survives every restart, and each member goes through the very function
//! of the engine that a single action uses, under an action id of its own, so that nothing is done
//! twice however often it is tried.

mod act;
mod advance;
pub mod chosen;
mod create;
mod follow;
mod preview;
pub mod report;
mod runner;
mod stretch;
mod who;
mod word;

use uuid::Uuid;

pub use create::{Act, Members, New, again, create};
pub use preview::{LOOKED_AT, verdicts};
pub use runner::{run, turn};
pub use word::{cancel, pause, set_going};

/// The most dead letters that may be chosen one by one.
pub const MOST_CHOSEN: usize = 1_000;
/// The longest name, in characters.
pub const MAX_NAME: usize = 120;
/// The highest speed, in members a minute.
pub const MOST_PER_MINUTE: i64 = 60_000;

/// What audit entries about it are about.
pub fn subject(id: Uuid) -> String {
    format!("bulk:{id}")
}
