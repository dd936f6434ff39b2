//! The line of figures: each counts a list that it leads to.

use std::time::Duration;

use super::{DAY, Figure, Spark, link, open, shown};
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::store::dead_letters::{self, Figures};
use crate::store::{StoreError, Tx};
use crate::web::view::coarse;

pub(super) async fn all(
    tx: &mut Tx,
    stored: &Figures,
    first: Option<Timestamp>,
    now: Timestamp,
) -> Result<Vec<Figure>, StoreError> {
    let counted = |label, count: i64, filter: &DeadLetterFilter, mark| Figure {
        label,
        value: shown(count),
        note: None,
        href: (count > 0).then(|| link(filter)),
        mark,
        spark: None,
    };
    let doubt = DeadLetterFilter { certainty: Some(Certainty::MayHaveCompleted), ..open() };
    let arrived = DeadLetterFilter { from: Some(now.minus(DAY)), ..DeadLetterFilter::default() };
    let hours = dead_letters::arrivals_by_hour(tx, now).await?;
    let arrivals = Figure {
        note: usual(tx, first, now).await?,
        spark: (stored.arrived > 0).then(|| spark(&hours)),
        ..counted("Arrived in 24 h", stored.arrived, &arrived, None)
    };
    let oldest = stored.oldest.map(|oldest| {
        // The list is newest first: what was opened before the second after it is the oldest alone.
        let filter = DeadLetterFilter { to: Some(oldest.plus(Duration::from_micros(1))), ..open() };
        Figure {
            label: "Oldest open",
            value: coarse(now.since(oldest)),
            note: None,
            href: Some(link(&filter)),
            mark: None,
            spark: None,
        }
    });
    let none = Figure {
        label: "Oldest open",
        value: "none".to_owned(),
        note: None,
        href: None,
        mark: None,
        spark: None,
    };
    Ok(vec![
        counted("Open", stored.open, &open(), None),
        counted("May have completed", stored.may_have_completed, &doubt, Some(Certainty::MayHaveCompleted)),
        oldest.unwrap_or(none),
        arrivals,
    ])
}

/// What a usual day brings, once there was a week of days.
async fn usual(tx: &mut Tx, first: Option<Timestamp>, now: Timestamp) -> Result<Option<String>, StoreError> {
    const WEEK: i64 = 7;
    let (from, to) = (now.minus(DAY * 8), now.minus(DAY));
    if first.is_none_or(|first| first > from) {
        return Ok(None);
    }
    let filter = DeadLetterFilter { from: Some(from), to: Some(to), ..DeadLetterFilter::default() };
    // Beyond this the average says nothing that the figure itself does not.
    let count = dead_letters::count(tx, &filter, 100_000).await?;
    let a_day = (count + WEEK / 2) / WEEK;
    Ok(Some(match (a_day, count) {
        (0, 0) => "usually none".to_owned(),
        (0, _) => "usually less than one".to_owned(),
        (n, _) => format!("usually about {}", shown(n)),
    }))
}

fn spark(hours: &[(i64, i64)]) -> Spark {
    let mut values = [0_u32; 24];
    for (ago, count) in hours {
        if let Some(slot) = usize::try_from(*ago).ok().and_then(|ago| values.iter_mut().rev().nth(ago)) {
            *slot = u32::try_from(*count).unwrap_or(u32::MAX);
        }
    }
    let most = values.iter().max().copied().unwrap_or(0);
    Spark::of(&values, format!("The last 24 hours, hour by hour: from 0 to {most} an hour"))
}
