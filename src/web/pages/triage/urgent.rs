//! What cannot wait, most pressing first.

use std::collections::HashMap;
use std::time::Duration;

use uuid::Uuid;

use super::causes::why_paused;
use super::{HOUR, Urgent, UrgentKind, link};
use crate::config::Config;
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::{DeadLetterFilter, Page};
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::alerts::{self, AlertRow};
use crate::store::dead_letters::{self, ClosingWindow};
use crate::store::operations::SearchRow;
use crate::store::{StoreError, Tx, operations};
use crate::web::tell::mask::Mask;
use crate::web::tell::{list, sentence};
use crate::web::view::{Seen, When};

/// A key's window that closes within this needs somebody.
const SOON: Duration = Duration::from_hours(2);
/// Lines of one kind; the last one leads to the rest.
const MOST: usize = 5;

pub(super) async fn all(
    tx: &mut Tx,
    config: &Config,
    reader: &str,
    seen: Seen,
) -> Result<Vec<Urgent>, StoreError> {
    let now = seen.now;
    let mut found = paused(tx, config, seen).await?;
    found.extend(windows(tx, config, seen).await?);
    found.extend(critical(tx, config, seen).await?);
    found.extend(doubt(tx, now).await?);
    let own = DeadLetterFilter { assignee: Some(reader.into()), ..list::waiting(now) };
    let count = list::count(tx, &own).await?;
    if count > 0 {
        found.push(Urgent {
            kind: UrgentKind::Yours,
            text: format!("{} assigned to you", things(count)),
            href: link(&own),
            when: None,
        });
    }
    Ok(found)
}

/// Destinations that the engine paused: one line each, however many operations wait for them.
async fn paused(tx: &mut Tx, config: &Config, seen: Seen) -> Result<Vec<Urgent>, StoreError> {
    let alerts = alerts::open_ones(tx).await?;
    let urgent = |alert: AlertRow| Urgent {
        kind: UrgentKind::Paused,
        text: format!(
            "Nothing is sent to {} until somebody resumes it. {}",
            words::destination_name(&alert.subject),
            words::full_stop(why_paused(config, &alert.subject, &alert.detail))
        ),
        href: format!("/destinations#{}", alert.subject),
        when: Some(When::at(alert.at, seen)),
    };
    Ok(alerts.into_iter().map(urgent).collect())
}

/// Keys that a destination will forget while it is unknown whether their operations happened.
async fn windows(tx: &mut Tx, config: &Config, seen: Seen) -> Result<Vec<Urgent>, StoreError> {
    let mut closing: Vec<(Timestamp, String, ClosingWindow)> = Vec::new();
    for destination in config.destinations.values() {
        let contract = &destination.contract;
        let Some(key) = contract.key.as_ref().filter(|_| !contract.naturally_idempotent) else { continue };
        let safe = key.window.saturating_sub(contract.margin());
        let (after, until) = (seen.now.minus(safe), seen.now.minus(safe).plus(SOON));
        let most = i64::try_from(MOST).unwrap_or(i64::MAX);
        for row in dead_letters::closing_windows(tx, &destination.name, after, until, most).await? {
            closing.push((row.first_sent_at.plus(safe), destination.name.clone(), row));
        }
    }
    closing.sort_by_key(|(until, _, row)| (*until, row.id));
    closing.truncate(MOST);
    let rows: Vec<(Uuid, &str)> =
        closing.iter().map(|(_, _, row)| (row.operation_id, row.kind.as_str())).collect();
    let names = names(tx, config, &rows).await?;
    Ok(closing
        .iter()
        .map(|(until, destination, row)| Urgent {
            kind: UrgentKind::KeyWindow,
            text: format!(
                "{} will soon no longer recognise a repeat of {} for {}, which may have happened",
                words::capitalised(&words::destination_name(destination)),
                words::quoted(&words::step_name(&row.step)),
                names.get(&row.operation_id).map_or(row.kind.as_str(), String::as_str),
            ),
            href: format!("/dead-letters/{}", row.id),
            when: Some(When::at(*until, seen)),
        })
        .collect())
}

async fn critical(tx: &mut Tx, config: &Config, seen: Seen) -> Result<Vec<Urgent>, StoreError> {
    let filter = DeadLetterFilter { severity: Some(Severity::Critical), ..list::waiting(seen.now) };
    let page = Page { limit: u32::try_from(MOST).unwrap_or(u32::MAX), cursor: None };
    let listed = dead_letters::list(tx, &filter, page).await?;
    let rows: Vec<(Uuid, &str)> =
        listed.items.iter().map(|row| (row.operation_id, row.kind.as_str())).collect();
    let names = names(tx, config, &rows).await?;
    let masks = Mask::of_list(tx, config, &rows).await?;
    let none = Mask::default();
    let mut found: Vec<Urgent> = listed
        .items
        .iter()
        .map(|row| {
            let mask = masks.get(&row.operation_id).unwrap_or(&none);
            let [sentence, _] = sentence::dead_letter(config, row, mask, None);
            let name = names.get(&row.operation_id).map_or(row.kind.as_str(), String::as_str);
            Urgent {
                kind: UrgentKind::Critical,
                text: format!("{}: {sentence}", words::capitalised(name)),
                href: format!("/dead-letters/{}", row.id),
                when: Some(When::at(row.opened_at, seen)),
            }
        })
        .collect();
    if listed.older.is_some() {
        let count = list::number(list::count(tx, &filter).await?);
        found.push(Urgent {
            kind: UrgentKind::Critical,
            text: format!("All {count} that are critical"),
            href: link(&filter),
            when: None,
        });
    }
    Ok(found)
}

/// What may have completed and has waited for more than an hour.
async fn doubt(tx: &mut Tx, now: Timestamp) -> Result<Option<Urgent>, StoreError> {
    let filter = DeadLetterFilter {
        certainty: Some(Certainty::MayHaveCompleted),
        to: Some(now.minus(HOUR)),
        ..list::waiting(now)
    };
    let count = list::count(tx, &filter).await?;
    Ok((count > 0).then(|| Urgent {
        kind: UrgentKind::Doubt,
        text: format!("{} that may have completed, and nobody has found out for over an hour", things(count)),
        href: link(&filter),
        when: None,
    }))
}

fn things(count: i64) -> String {
    match count {
        1 => "One dead letter".to_owned(),
        n => format!("{} dead letters", list::number(n)),
    }
}

/// What to call operations: their business ids, or their types.
async fn names(
    tx: &mut Tx,
    config: &Config,
    rows: &[(Uuid, &str)],
) -> Result<HashMap<Uuid, String>, StoreError> {
    let ids: Vec<Uuid> = rows.iter().map(|(id, _)| *id).collect();
    let values = operations::search_values(tx, &ids).await?;
    let masks = Mask::of_list(tx, config, rows).await?;
    let name = |(id, kind): &(Uuid, &str)| {
        let own: Vec<SearchRow> = values.iter().filter(|value| value.operation_id == *id).cloned().collect();
        let ids = masks.get(id).map_or_else(String::new, |mask| list::ids(&own, mask));
        (*id, if ids.is_empty() { (*kind).to_owned() } else { ids })
    };
    Ok(rows.iter().map(name).collect())
}
