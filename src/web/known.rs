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

    /// Nothing was checked: it is for the engine's own tries.
    pub fn is_moot(&self) -> bool {
        self.name == CheckName::WithinCaps && self.passed
    }
}

/// What is known at the destination about one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Known {
    /// The effect is there.
    DoneThere,
    /// A person says that the effect is there.
    Recorded,
    /// It was asked, and the effect is not there.
    NotThere,
    /// Nobody can say.
    CannotTell,
    /// Nothing was ever sent that could have arrived.
    NeverReached,
}

impl Known {
    /// The effect counts as being there.
    pub fn is_done(self) -> bool {
        matches!(self, Self::DoneThere | Self::Recorded)
    }
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

impl Knowledge {
    /// Whose knowledge it is: a person's word is theirs.
    pub fn heading(&self) -> String {
        match self.state {
            Known::Recorded => "What is known of it".to_owned(),
            _ => format!("What {} knows", self.destination),
        }
    }
}
