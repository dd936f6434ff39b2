//! The line of figures: each counts a list that it leads to.

use std::time::Duration;

use super::{DAY, Figure, Spark, link, shown};
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::{Age, DeadLetterFilter, Relative};
use crate::domain::time::Timestamp;
use crate::store::dead_letters::{self, Figures, HourRow};
use crate::store::{StoreError, Tx};
use crate::web::tell::list::waiting;
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
    let open = waiting(now);
    let doubt = DeadLetterFilter { certainty: Some(Certainty::MayHaveCompleted), ..open.clone() };
    let arrived =
        DeadLetterFilter { age: Some(Relative { word: Age::Day, now }), ..DeadLetterFilter::default() };
    let hours = dead_letters::by_hour(tx, now).await?;
    let arrivals = Figure {
        note: usual(tx, first, now).await?,
        spark: (stored.arrived > 0).then(|| {
            let values = by_hour(&hours, |hour| hour.opened);
            let most = values.iter().max().copied().unwrap_or(0);
            Spark::of(&values, format!("The last 24 hours, hour by hour: from 0 to {most} an hour"))
        }),
        ..counted("Arrived in 24 h", stored.arrived, &arrived, None)
    };
    let oldest = stored.oldest.map(|oldest| {
        // The list is newest first: what was opened before the second after it is the oldest alone.
        let filter = DeadLetterFilter { to: Some(oldest.plus(Duration::from_micros(1))), ..open.clone() };
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
        Figure {
            spark: (stored.open > 0).then(|| levels(stored.open, &hours)),
            ..counted("Open", stored.open, &open, None)
        },
        Figure {
            spark: hours.iter().any(|hour| hour.in_doubt > 0).then(|| {
                let values = by_hour(&hours, |hour| hour.in_doubt);
                let sum: u32 = values.iter().sum();
                Spark::of(&values, format!("{sum} of them came in the last 24 hours, hour by hour"))
            }),
            ..counted(
                "May have completed",
                stored.may_have_completed,
                &doubt,
                Some(Certainty::MayHaveCompleted),
            )
        },
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

/// One number of each of the last 24 hours, oldest first.
fn by_hour(hours: &[HourRow], number: impl Fn(&HourRow) -> i64) -> [u32; 24] {
    let mut values = [0; 24];
    for hour in hours {
        if let Some(slot) = usize::try_from(hour.ago).ok().and_then(|ago| values.iter_mut().rev().nth(ago)) {
            *slot = u32::try_from(number(hour)).unwrap_or(u32::MAX);
        }
    }
    values
}

/// How many were open at the end of each hour: from those that are open now, backwards through what
/// came and went.
fn levels(open: i64, hours: &[HourRow]) -> Spark {
    let mut level = open;
    let mut values = vec![open];
    for ago in 0..23 {
        let hour = hours.iter().find(|hour| hour.ago == ago);
        level = (level - hour.map_or(0, |hour| hour.opened - hour.closed)).max(0);
        values.push(level);
    }
    values.reverse();
    let values: Vec<u32> = values.into_iter().map(|level| u32::try_from(level).unwrap_or(0)).collect();
    let (least, most) = (values.iter().min().copied(), values.iter().max().copied());
    let summary =
        format!("The last 24 hours, hour by hour: from {} to {} open", least.unwrap_or(0), most.unwrap_or(0));
    Spark::of(&values, summary)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_level_is_reckoned_back_from_now() {
        let hour = |ago, opened, closed| HourRow { ago, opened, in_doubt: 0, closed };
        let spark = levels(5, &[hour(0, 3, 1), hour(2, 1, 4)]);
        assert_eq!(spark.summary, "The last 24 hours, hour by hour: from 3 to 6 open");
        assert_eq!(levels(0, &[hour(0, 3, 0)]).summary, "The last 24 hours, hour by hour: from 0 to 0 open");
    }
}
