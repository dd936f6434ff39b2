//! The first screen: what needs a person now.

use askama::Template;

use crate::domain::actor::Right;
use crate::domain::dead_letter::Certainty;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section};
use crate::web::view::When;

/// `/`
#[derive(Template, Debug)]
#[template(path = "pages/triage.html")]
pub struct TriagePage {
    /// Around it.
    pub layout: Layout,
    /// Open, may have completed, oldest open, arrived today.
    pub figures: Vec<Figure>,
    /// What cannot wait, most pressing first.
    pub urgent: Vec<Urgent>,
    /// Most recent first.
    pub causes: Vec<CauseRow>,
    /// What was handled, in sentences: said when nothing is open.
    pub handled: Vec<String>,
    /// Operations ever accepted; none means that nothing is connected yet.
    pub unused: bool,
}

/// One number of the line on top.
#[derive(Clone, Debug)]
pub struct Figure {
    /// "Open".
    pub label: &'static str,
    /// "12", "3 d".
    pub value: String,
    /// "usual by now: 9".
    pub note: Option<String>,
    /// The list that it counts.
    pub href: Option<String>,
    /// Marks the figure that is about doubt.
    pub mark: Option<Certainty>,
    /// Its last day, hour by hour.
    pub spark: Option<Spark>,
}

/// A line of numbers, drawn.
#[derive(Clone, Debug)]
pub struct Spark {
    /// For `<polyline>`, in a box of 96 by 24.
    pub points: String,
    /// What the line shows, for those who do not see it.
    pub summary: String,
}

impl Spark {
    /// Draws `values`, oldest first, against their own maximum.
    pub fn of(values: &[u32], summary: impl Into<String>) -> Self {
        let most = values.iter().copied().max().unwrap_or(0).max(1);
        let last = values.len().saturating_sub(1).max(1);
        let point = |(index, value): (usize, &u32)| {
            let x = 1 + 94 * index / last;
            let y = 22 - u64::from(*value) * 20 / u64::from(most);
            format!("{x},{y}")
        };
        let points: Vec<String> = values.iter().enumerate().map(point).collect();
        Self { points: points.join(" "), summary: summary.into() }
    }
}

/// Why something cannot wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum UrgentKind {
    /// A key's window is about to close.
    KeyWindow,
    /// It is critical to the business.
    Critical,
    /// It is the reader's.
    Yours,
    /// A destination is paused.
    Paused,
}

impl UrgentKind {
    /// In a word or two.
    pub fn word(self) -> &'static str {
        match self {
            Self::KeyWindow => "Window closing",
            Self::Critical => "Critical",
            Self::Yours => "Yours",
            Self::Paused => "Paused",
        }
    }

    /// Its icon.
    pub fn icon(self) -> &'static str {
        match self {
            Self::KeyWindow => "clock",
            Self::Critical => "warn",
            Self::Yours => "person",
            Self::Paused => "pause",
        }
    }

    /// Its colour.
    pub fn tone(self) -> &'static str {
        match self {
            Self::KeyWindow | Self::Paused => "maybe",
            Self::Critical => "bad",
            Self::Yours => "info",
        }
    }
}

/// One thing that cannot wait.
#[derive(Clone, Debug)]
pub struct Urgent {
    /// Why.
    pub kind: UrgentKind,
    /// In a sentence.
    pub text: String,
    /// Where to settle it.
    pub href: String,
    /// Until or since when.
    pub when: Option<When>,
}

/// One cause and its dead letters.
#[derive(Clone, Debug)]
pub struct CauseRow {
    /// In words, from the catalogue.
    pub cause: String,
    /// The destination's name.
    pub destination: String,
    /// The step's name.
    pub step: String,
    /// All of its dead letters.
    pub href: String,
    /// 1 h, 24 h, 7 d, all.
    pub counts: [Count; 4],
    /// Those that came after the last replay of this cause.
    pub fresh: Option<Count>,
    /// Only what is not zero.
    pub split: Vec<Split>,
    /// When the first came.
    pub first: When,
    /// When the last came.
    pub last: When,
    /// Who has it.
    pub owner: Option<String>,
    /// What somebody wrote about it.
    pub note: Option<String>,
}

/// A number that leads to what it counts.
#[derive(Clone, Debug)]
pub struct Count {
    /// "12", "500+".
    pub shown: String,
    /// `None` for zero: there is nothing to see.
    pub href: Option<String>,
}

/// How many of a cause are how certain.
#[derive(Clone, Debug)]
pub struct Split {
    /// How certain.
    pub certainty: Certainty,
    /// How many.
    pub count: Count,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_spark_stays_in_its_box() {
        assert_eq!(Spark::of(&[0, 5, 10], "").points, "1,22 48,12 95,2");
        assert_eq!(Spark::of(&[0], "").points, "1,22");
        assert_eq!(Spark::of(&[], "").points, "");
    }
}
