//! What stands before a decision: the gate's checks, and what the destination knows.

use super::labels;
use super::view::{Button, Reference, When};
use crate::domain::verdict::CheckName;

/// A check of the gate, as shown.
#[derive(Clone, Debug)]
pub struct CheckRow {
    /// Which.
    pub name: CheckName,
    /// How it went.
    pub passed: bool,
    /// Why.
    pub detail: String,
}

impl CheckRow {
    /// The check as the question that it answers.
    pub fn question(&self) -> &'static str {
        labels::check(self.name)
    }
}

/// What is known at the destination about one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The effect is there.
    DoneThere,
    /// It was asked, and the effect is not there.
    NotThere,
    /// Nobody can say.
    CannotTell,
    /// Nothing was ever sent that could have arrived.
    NeverReached,
}

/// The card "What the destination knows".
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The destination's name as people say it.
    pub destination: String,
    /// Which of the four.
    pub state: Known,
    /// How we know, or why we do not, in a sentence or two.
    pub detail: String,
    /// The id over there.
    pub reference: Option<Reference>,
    /// When we learned it or asked.
    pub learned: Option<When>,
    /// How far its answers may lag: "up to 2 min".
    pub lag: Option<String>,
    /// To ask it now.
    pub ask: Option<Button>,
}
