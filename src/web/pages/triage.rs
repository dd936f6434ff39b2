//! The first screen: what needs a person now.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;

use super::dead_letters::link;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::filter::{DeadLetterFilter, Relative, Snooze};
use crate::domain::time::Timestamp;
use crate::store::{causes as store, dead_letters, operations};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::page::{LETTERS, Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{When, grouped};

pub(super) mod causes;
mod figures;
mod urgent;

const HOUR: Duration = Duration::from_hours(1);
const DAY: Duration = Duration::from_hours(24);
/// Rows of the table of causes, and those of it at its longest: it says how many more there are.
const MOST_CAUSES: i64 = 50;
const ALL_CAUSES: i64 = 1_000;

/// The first screen.
pub fn routes() -> Router<Web> {
    Router::new().route("/", get(index))
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let most = match query.as_deref() {
        Some("causes=all") => ALL_CAUSES,
        _ => MOST_CAUSES,
    };
    let seen = who.seen(web.engine.ambient().now());
    let (config, now) = (web.engine.config(), seen.now);
    let layout = who.layout("Triage", Section::Triage).await.listening(LETTERS);
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let stored = dead_letters::figures(&mut tx, now).await?;
    let first = operations::first_received(&mut tx).await?;
    let figures = figures::all(&mut tx, &stored, first, now).await?;
    let urgent = urgent::all(&mut tx, config, &who.user.name, seen).await?;
    let waiting = store::waiting(&mut tx, now, most).await?;
    let names: Vec<&str> = waiting.iter().map(|row| row.cause.as_str()).collect();
    let trends = store::trends(&mut tx, &names, now).await?;
    let full = usize::try_from(most).is_ok_and(|most| waiting.len() == most);
    let known = if full { store::count(&mut tx, now).await? } else { 0 };
    let replaying =
        DeadLetterFilter { status: Some(DeadLetterStatus::Replaying), ..DeadLetterFilter::default() };
    let replaying = list::count(&mut tx, &replaying).await?;
    drop(tx);
    Ok(render(&TriagePage {
        layout,
        figures,
        urgent,
        causes: waiting.iter().map(|row| causes::row(row, &trends, config, seen)).collect(),
        more_causes: (known > most).then(|| MoreCauses {
            words: format!("The {} largest of {} causes.", shown(most), shown(known)),
            all: (most < ALL_CAUSES).then_some("/?causes=all"),
        }),
        snoozed: snoozed(stored.snoozed, now),
        handled: handled(stored.handled, replaying),
        unused: first.is_none(),
    }))
}

fn snoozed(count: i64, now: Timestamp) -> Option<Count> {
    let asleep =
        DeadLetterFilter { snoozed: Some(Relative { word: Snooze::Asleep, now }), ..list::waiting(now) };
    (count > 0).then(|| Count { shown: shown(count), href: Some(link(&asleep)) })
}

pub(super) fn shown(count: i64) -> String {
    grouped(usize::try_from(count).unwrap_or(0))
}

fn handled(closed: i64, replaying: i64) -> Vec<String> {
    let mut lines = Vec::new();
    match closed {
        0 => {}
        1 => lines.push("One dead letter was closed in the last 24 hours.".to_owned()),
        n => lines.push(format!("{} dead letters were closed in the last 24 hours.", shown(n))),
    }
    match replaying {
        0 => {}
        1 => lines.push("One is being tried again now.".to_owned()),
        n => lines.push(format!("{} are being tried again now.", list::number(n))),
    }
    lines
}

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
    /// The largest first.
    pub causes: Vec<CauseRow>,
    /// That there are more causes than rows; absent when these are all.
    pub more_causes: Option<MoreCauses>,
    /// How many were put off; absent when none was.
    pub snoozed: Option<Count>,
    /// What was handled, in sentences: said when nothing is open.
    pub handled: Vec<String>,
    /// Operations ever accepted; none means that nothing is connected yet.
    pub unused: bool,
}

/// That there are more causes than rows.
#[derive(Clone, Debug)]
pub struct MoreCauses {
    /// "The 50 largest of 81 causes."
    pub words: String,
    /// The page with all of them; absent where it is this one, at its longest.
    pub all: Option<&'static str>,
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
    /// It may have happened, and nobody has found out for a while.
    Doubt,
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
            Self::Doubt => "Unclear",
            Self::Yours => "Yours",
            Self::Paused => "Paused",
        }
    }

    /// Its icon.
    pub fn icon(self) -> &'static str {
        match self {
            Self::KeyWindow => "clock",
            Self::Critical => "warn",
            Self::Doubt => "maybe",
            Self::Yours => "person",
            Self::Paused => "pause",
        }
    }

    /// Its colour.
    pub fn tone(self) -> &'static str {
        match self {
            Self::KeyWindow | Self::Doubt => "maybe",
            Self::Critical | Self::Paused => "bad",
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
    /// Its own page.
    pub href: String,
    /// What came in the last seven days.
    pub trend: Option<Spark>,
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
