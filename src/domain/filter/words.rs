//! Words of a filter that mean something only to somebody, or at a moment.

use std::time::Duration;

use crate::domain::time::Timestamp;

text_enum! {
    /// Whether somebody put a dead letter off.
    pub enum Snooze {
        /// It is to be seen.
        Awake = "awake",
        /// It is out of sight until its time has come.
        Asleep = "asleep",
    }
}

text_enum! {
    /// How long ago a dead letter was opened.
    pub enum Age {
        /// In the last hour.
        Hour = "1h",
        /// In the last day.
        Day = "24h",
        /// In the last seven days.
        Week = "7d",
        /// Longer ago than an hour.
        OverHour = "over_1h",
        /// Longer ago than a day.
        OverDay = "over_24h",
        /// Longer ago than seven days.
        OverWeek = "over_7d",
    }
}

impl Age {
    /// The span, and whether it is the shortest and not the longest one.
    pub fn span(self) -> (Duration, bool) {
        match self {
            Self::Hour => (Duration::from_hours(1), false),
            Self::Day => (Duration::from_hours(24), false),
            Self::Week => (Duration::from_hours(24 * 7), false),
            Self::OverHour => (Duration::from_hours(1), true),
            Self::OverDay => (Duration::from_hours(24), true),
            Self::OverWeek => (Duration::from_hours(24 * 7), true),
        }
    }
}

/// A word that means something at a moment only. In an address it stays the word, so that a kept
/// link means the same tomorrow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Relative<T> {
    /// The word.
    pub word: T,
    /// The moment.
    pub now: Timestamp,
}

/// Who has something. No person may be called by the word that stands for nobody, nor by the one
/// that stands for the reader: see [`RESERVED_NAMES`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Assignee {
    /// No one.
    Nobody,
    /// The person of this name.
    Named(String),
}

/// Words that stand for somebody in a filter, and so are nobody's name: `nobody` for no one, `me`
/// for whoever reads the page.
pub const RESERVED_NAMES: [&str; 2] = [NOBODY, ME];
/// In a filter: no one.
pub const NOBODY: &str = "nobody";
/// In a page's address: whoever reads it.
pub const ME: &str = "me";

impl From<&str> for Assignee {
    fn from(text: &str) -> Self {
        if text == NOBODY { Self::Nobody } else { Self::Named(text.to_owned()) }
    }
}

impl Assignee {
    /// As in an address.
    pub fn as_str(&self) -> &str {
        match self {
            Self::Nobody => NOBODY,
            Self::Named(name) => name,
        }
    }
}
