//! What went wrong, by cause: each number leads to the list that it counts.

use std::time::Duration;

use super::{CauseRow, Count, DAY, HOUR, Split, link, open, shown};
use crate::config::{Config, OperationType};
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::domain::words::{self, Facts};
use crate::store::dead_letters;
use crate::web::view::When;

pub(super) fn row(row: &dead_letters::CauseRow, config: &Config, now: Timestamp) -> CauseRow {
    let this = DeadLetterFilter { cause: Some(row.cause.clone()), ..open() };
    let count = |number: i64, filter: &DeadLetterFilter| Count {
        shown: shown(number),
        href: (number > 0).then(|| link(filter)),
    };
    let since = |span: Duration| DeadLetterFilter { from: Some(now.minus(span)), ..this.clone() };
    let sure = |certainty| DeadLetterFilter { certainty: Some(certainty), ..this.clone() };
    let split = [
        (Certainty::DefinitelyFailed, row.total - row.may_have_completed - row.completed_there),
        (Certainty::MayHaveCompleted, row.may_have_completed),
        (Certainty::CompletedAtDestination, row.completed_there),
    ];
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
    CauseRow {
        cause: words::cause_sentence(row.symptom, &facts),
        destination: words::destination_name(&row.destination),
        step: words::step_name(&row.step),
        href: link(&this),
        counts: [
            count(row.last_hour, &since(HOUR)),
            count(row.last_day, &since(DAY)),
            count(row.last_week, &since(DAY * 7)),
            count(row.total, &this),
        ],
        fresh: None,
        split: split
            .into_iter()
            .filter(|(_, number)| *number > 0)
            .map(|(certainty, number)| Split { certainty, count: count(number, &sure(certainty)) })
            .collect(),
        first: When::at(row.first_at, now),
        last: When::at(row.last_at, now),
        owner: None,
        note: None,
    }
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
