//! How a destination answered lately: outcomes by the hour, and how long its answers took.

use std::time::Duration;

use crate::domain::attempt::Outcome;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::destinations::{self, SampleRow};
use crate::store::{StoreError, Tx};
use crate::web::chart::Chart;
use crate::web::view::{Seen, exact, grouped};

/// How far back it looks, in hours.
const HOURS: i64 = 48;
/// Operations that are looked at, from the newest back.
const MOST: i64 = 2_000;
const HOUR: i64 = 3_600_000_000;

/// What is drawn, from the bottom up: a name, its tone, and the outcomes that it counts.
const KINDS: [(&str, &str, &[Outcome]); 4] = [
    ("Done", "good", &[Outcome::Done]),
    ("May have happened", "maybe", &[Outcome::Uncertain]),
    ("Refused", "bad", &[Outcome::Rejected, Outcome::KeyConflict]),
    ("Put off or not sent", "mute", &[Outcome::Throttled, Outcome::NotSent]),
];

/// Its answers of the last two days.
#[derive(Clone, Debug)]
pub struct Health {
    /// What was counted, in a sentence.
    pub counted: String,
    /// What the highest column stands for.
    pub highest: String,
    /// "Half of the answers took up to 120 ms, 95 of 100 up to 2 s."
    pub times: Option<String>,
    /// Outcomes by the hour; absent when nothing was sent.
    pub chart: Option<Chart>,
    /// What the colours mean: a name and its tone.
    pub legend: [(&'static str, &'static str); 4],
    /// The same as a table, newest first, hours without attempts left out.
    pub hours: Vec<HourRow>,
}

/// One hour.
#[derive(Clone, Debug)]
pub struct HourRow {
    /// When it began: "29 Nov, 10:00".
    pub hour: String,
    /// Counts in the legend's order.
    pub counts: [String; 4],
    /// The answer that half were as fast as.
    pub p50: String,
    /// The answer that 95 of 100 were as fast as.
    pub p95: String,
}

impl Health {
    /// Of a destination.
    pub(super) async fn load(tx: &mut Tx, name: &str, seen: Seen) -> Result<Self, StoreError> {
        let first = hour(seen.now) - (HOURS - 1);
        let since = Timestamp::from_micros(first * HOUR);
        let sample = destinations::sample(tx, name, since, MOST).await?;
        let bounded = destinations::sampled_since(tx, name, MOST).await?.filter(|oldest| *oldest > since);
        Ok(Self::of(&sample, first, bounded, seen))
    }

    fn of(sample: &[SampleRow], first: i64, bounded: Option<Timestamp>, seen: Seen) -> Self {
        let within = |place: i64| {
            sample
                .iter()
                .filter(move |row| hour(row.started_at) == first + place)
                .copied()
                .collect::<Vec<_>>()
        };
        let by_hour: Vec<Vec<SampleRow>> = (0..HOURS).map(within).collect();
        let columns: Vec<Vec<(&'static str, usize)>> = by_hour
            .iter()
            .map(|rows| KINDS.iter().map(|(_, tone, outcomes)| (*tone, count(rows, outcomes))).collect())
            .collect();
        let total = grouped(sample.len());
        let counted = match (sample.len(), bounded) {
            (0, _) => "Nothing was sent there in the last 48 h.".to_owned(),
            (_, None) => format!("{total} attempts of the last 48 h, by the hour in which they were made."),
            (_, Some(oldest)) => format!(
                "{total} attempts, those of the newest {} operations: what was received before {} is not counted.",
                grouped(usize::try_from(MOST).unwrap_or(0)),
                seen.zone.moment(oldest)
            ),
        };
        let label = format!(
            "Outcomes by the hour in the last 48 h: {}.",
            KINDS
                .iter()
                .map(|(name, _, outcomes)| format!("{} {}", name.to_lowercase(), count(sample, outcomes)))
                .collect::<Vec<_>>()
                .join(", ")
        );
        let axis = ["48 h ago", "24 h ago", "now"].map(str::to_owned).to_vec();
        let hours = (0..HOURS).rev().zip(by_hour.iter().rev()).filter(|(_, rows)| !rows.is_empty());
        Self {
            counted,
            highest: format!("The highest column is {} attempts.", grouped(Chart::highest(&columns))),
            times: times(sample).map(|(p50, p95, answers)| {
                format!(
                    "Half of {} answers took up to {}; 95 of 100 took up to {}.",
                    grouped(answers),
                    exact(p50),
                    exact(p95)
                )
            }),
            chart: (!sample.is_empty()).then(|| Chart::columns(label, &columns, axis)),
            legend: KINDS.map(|(name, tone, _)| (name, tone)),
            hours: hours.map(|(place, rows)| row(first + place, rows, seen)).collect(),
        }
    }
}

fn row(hour: i64, rows: &[SampleRow], seen: Seen) -> HourRow {
    let spans = times(rows);
    let span = |pick: fn(&(Duration, Duration, usize)) -> Duration| {
        spans.as_ref().map_or_else(|| "no answer".to_owned(), |spans| exact(pick(spans)))
    };
    HourRow {
        hour: words::hour(seen.zone.clock(Timestamp::from_micros(hour * HOUR))),
        counts: KINDS.map(|(_, _, outcomes)| grouped(count(rows, outcomes))),
        p50: span(|spans| spans.0),
        p95: span(|spans| spans.1),
    }
}

/// Which hour since the epoch a moment lies in.
fn hour(at: Timestamp) -> i64 {
    at.as_micros().div_euclid(HOUR)
}

fn count(rows: &[SampleRow], outcomes: &[Outcome]) -> usize {
    rows.iter().filter(|row| outcomes.contains(&row.outcome)).count()
}

/// What half and what 95 of 100 answers took at most, and how many there were.
fn times(rows: &[SampleRow]) -> Option<(Duration, Duration, usize)> {
    let mut spans: Vec<Duration> = rows
        .iter()
        .filter(|row| row.status.is_some())
        .filter_map(|row| Some(row.ended_at?.since(row.started_at)))
        .collect();
    spans.sort_unstable();
    let at = |percent: usize| spans.get((spans.len() * percent).div_ceil(100).saturating_sub(1)).copied();
    Some((at(50)?, at(95)?, spans.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(at: &str, millis: u64, outcome: Outcome) -> SampleRow {
        let started_at = Timestamp::parse(at).unwrap();
        let ended_at = Some(started_at.plus(Duration::from_millis(millis)));
        SampleRow { started_at, ended_at, outcome, status: (outcome != Outcome::Uncertain).then_some(200) }
    }

    #[test]
    fn hours_and_percentiles_are_those_of_the_attempts() {
        let now = Timestamp::parse("2026-11-29T09:20:00Z").unwrap();
        let first = hour(now) - (HOURS - 1);
        let mut rows: Vec<SampleRow> =
            (1..=20).map(|n| sent("2026-11-29T09:01:00Z", n * 100, Outcome::Done)).collect();
        rows.push(sent("2026-11-29T08:59:59Z", 10_000, Outcome::Uncertain));
        let health = Health::of(&rows, first, None, Seen::by_nobody(now));
        assert_eq!(health.counted, "21 attempts of the last 48 h, by the hour in which they were made.");
        assert_eq!(
            health.times.as_deref(),
            Some("Half of 20 answers took up to 1 s; 95 of 100 took up to 1.9 s.")
        );
        let table: Vec<(&str, &str, &str)> = health
            .hours
            .iter()
            .map(|row| (row.hour.as_str(), row.counts[0].as_str(), row.counts[1].as_str()))
            .collect();
        assert_eq!(table, [("29 Nov, 09:00", "20", "0"), ("29 Nov, 08:00", "0", "1")]);
        assert_eq!(health.hours[1].p95, "no answer");
        assert_eq!(health.chart.unwrap().blocks.len(), 2);
    }

    #[test]
    fn what_is_not_counted_is_said() {
        let now = Timestamp::parse("2026-11-29T09:20:00Z").unwrap();
        let first = hour(now) - (HOURS - 1);
        let none = Health::of(&[], first, None, Seen::by_nobody(now));
        assert_eq!(
            (none.counted.as_str(), none.chart.is_none()),
            ("Nothing was sent there in the last 48 h.", true)
        );
        let rows = [sent("2026-11-29T09:01:00Z", 5, Outcome::Done)];
        let oldest = Timestamp::parse("2026-11-29T09:00:30Z");
        let counted = Health::of(&rows, first, oldest, Seen::by_nobody(now)).counted;
        assert!(counted.ends_with("what was received before 29 Nov 2026, 09:00:30 UTC is not counted."));
    }
}
