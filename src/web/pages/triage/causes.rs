//! What went wrong, by cause: each number leads to the list that it counts.

use std::time::Duration;

use super::{CauseRow, Count, Spark, Split, link, shown};
use crate::config::{Config, OperationType};
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::{Age, DeadLetterFilter, Relative};
use crate::domain::words::{self, Facts};
use crate::store::causes::{self, STRETCHES};
use crate::web::tell::list;
use crate::web::view::{Seen, When};

/// A trend by cause, as the store tells it.
pub(in crate::web::pages) type Trends = [(String, [u32; STRETCHES])];

/// What happened, in words.
pub(in crate::web::pages) fn sentence(row: &causes::CauseRow, config: &Config) -> String {
    let facts = Facts {
        destination: &row.destination,
        step: &row.step,
        status: None,
        timeout: config.destinations.get(&row.destination).map(|destination| destination.timeout),
        attempts: 0,
        retry_after: None,
        reference: None,
        error: Some(row.cause_text.as_str())
            .filter(|text| !text.is_empty() && quotable(config, &row.destination)),
    };
    words::cause_sentence(row.symptom, &facts)
}

pub(in crate::web::pages) fn row(
    row: &causes::CauseRow,
    trends: &Trends,
    config: &Config,
    seen: Seen,
) -> CauseRow {
    let now = seen.now;
    let this = DeadLetterFilter { cause: Some(row.cause.clone()), ..list::waiting(now) };
    let count = |number: i64, filter: &DeadLetterFilter| Count {
        shown: shown(number),
        href: (number > 0).then(|| link(filter)),
    };
    let within = |word| DeadLetterFilter { age: Some(Relative { word, now: seen.now }), ..this.clone() };
    let sure = |certainty| DeadLetterFilter { certainty: Some(certainty), ..this.clone() };
    let split = [
        (Certainty::DefinitelyFailed, row.total - row.may_have_completed - row.completed_there),
        (Certainty::MayHaveCompleted, row.may_have_completed),
        (Certainty::CompletedAtDestination, row.completed_there),
    ];
    let trend = trends.iter().find(|(cause, _)| *cause == row.cause).map(|(_, trend)| spark(trend));
    let fresh = row.last_replay_at.map(|at| {
        // The filter's beginning is within it, and the replay itself is no news.
        let after = DeadLetterFilter { from: Some(at.plus(Duration::from_micros(1))), ..this.clone() };
        count(row.fresh, &after)
    });
    CauseRow {
        cause: sentence(row, config),
        destination: words::destination_name(&row.destination),
        step: words::step_name(&row.step),
        href: format!("/causes/{}", row.cause),
        trend,
        counts: [
            count(row.last_hour, &within(Age::Hour)),
            count(row.last_day, &within(Age::Day)),
            count(row.last_week, &within(Age::Week)),
            count(row.total, &this),
        ],
        fresh,
        split: split
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(certainty, number)| Split { certainty, count: count(number, &sure(certainty)) })
            .collect(),
        first: When::at(row.first_at, seen),
        last: When::at(row.last_at, seen),
        owner: row.assignee.clone(),
        note: row.note.clone(),
    }
}

fn spark(trend: &[u32; STRETCHES]) -> Spark {
    let sum = |stretches: &[u32]| stretches.iter().sum::<u32>();
    let (week, day) = (sum(trend), sum(&trend[STRETCHES - 4..]));
    Spark::of(trend, format!("{week} in the last 7 days, {day} of them in the last 24 hours"))
}

/// Why a destination is paused, for readers of any operation: what the engine writes is a title, a
/// colon and what the destination said.
pub(in crate::web::pages) fn why_paused<'a>(config: &Config, destination: &str, why: &'a str) -> &'a str {
    if quotable(config, destination) {
        return why;
    }
    why.split_once(": ").map_or(why, |(title, _)| title)
}

/// Whether what a destination says can be shown beside many operations at once. It may repeat what
/// it was sent, and a type's private values are known only beside each payload.
fn quotable(config: &Config, destination: &str) -> bool {
    let private = |kind: &&OperationType| !kind.mask.is_empty();
    !config
        .operations
        .values()
        .filter(private)
        .any(|kind| kind.steps.iter().any(|step| step.destination == destination))
}
