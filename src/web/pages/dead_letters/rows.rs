//! Rows of dead letters, as the list and a cause's page show them.

use std::collections::HashMap;

use uuid::Uuid;

use crate::config::Config;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;
use crate::domain::words::Settles;
use crate::store::operations::{self, SearchRow};
use crate::store::{StoreError, Tx, dead_letters};
use crate::web::tell::mask::Mask;
use crate::web::tell::{list, sentence};
use crate::web::view::{Seen, When};

/// A row's sentence, in characters: a page of fifty stays light whatever its rows say.
const MOST_SENTENCE: usize = 144;
/// A row's business ids together, in characters.
const MOST_IDS: usize = 60;
/// A name, in characters.
const MOST_NAME: usize = 28;

/// One row.
#[derive(Clone, Debug)]
pub struct DeadLetterRow {
    /// What a ticked row sends.
    pub id: String,
    /// Its page.
    pub href: String,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// What happened, in at most 144 characters.
    pub sentence: String,
    /// The operation's type.
    pub kind: String,
    /// Business ids: "order 10443 · customer 77".
    pub ids: String,
    /// The destination's name.
    pub destination: String,
    /// "5 tries".
    pub attempts: String,
    /// When it was opened.
    pub opened: When,
    /// The person who has it.
    pub assignee: Option<String>,
    /// Whose the type is, where no person has it.
    pub team: Option<String>,
    /// Until when it is put off.
    pub snoozed: Option<When>,
    /// What to do first.
    pub next: NextAction,
    /// Shown from `High` on.
    pub severity: Severity,
    /// Shown unless open.
    pub status: DeadLetterStatus,
}

impl DeadLetterRow {
    /// Severe enough to be said in a list.
    pub fn loud(&self) -> bool {
        self.severity >= Severity::High
    }

    /// No longer open.
    pub fn past(&self) -> bool {
        self.status != DeadLetterStatus::Open
    }
}

/// Rows as stored, shaped to be shown, with what is private hidden.
pub(in crate::web::pages) async fn present(
    tx: &mut Tx,
    config: &Config,
    rows: &[dead_letters::DeadLetterRow],
    seen: Seen,
) -> Result<Vec<DeadLetterRow>, StoreError> {
    let ids: Vec<Uuid> = rows.iter().map(|row| row.operation_id).collect();
    let mut values: HashMap<Uuid, Vec<SearchRow>> = HashMap::new();
    for value in operations::search_values(tx, &ids).await? {
        values.entry(value.operation_id).or_default().push(value);
    }
    let kinds: Vec<(Uuid, &str)> = rows.iter().map(|row| (row.operation_id, row.kind.as_str())).collect();
    let masks = Mask::of_list(tx, config, &kinds).await?;
    let doubtful = |row: &&dead_letters::DeadLetterRow| row.next_action == NextAction::CheckDestination;
    let doubtful: Vec<Uuid> = rows.iter().filter(doubtful).map(|row| row.operation_id).collect();
    let sent: HashMap<(Uuid, i64), Timestamp> = operations::first_sends(tx, &doubtful)
        .await?
        .into_iter()
        .map(|first| ((first.operation_id, first.position), first.at))
        .collect();
    let next = |row: &dead_letters::DeadLetterRow| {
        let first = sent.get(&(row.operation_id, row.position)).copied();
        let contract = config.destinations.get(&row.destination).map(|known| &known.contract);
        let class = contract.map(|contract| contract.class_at(first, seen.now));
        Settles::of(false, class).first(row.next_action)
    };
    let none = Mask::default();
    let one = |row: &dead_letters::DeadLetterRow| {
        let mask = masks.get(&row.operation_id).unwrap_or(&none);
        let own = values.get(&row.operation_id).map_or(&[][..], Vec::as_slice);
        shaped(row, config, mask, own, next(row), seen)
    };
    Ok(rows.iter().map(one).collect())
}

fn shaped(
    row: &dead_letters::DeadLetterRow,
    config: &Config,
    mask: &Mask,
    values: &[SearchRow],
    next: NextAction,
    seen: Seen,
) -> DeadLetterRow {
    let [sentence, _] = sentence::dead_letter(config, row, mask, None);
    let team = || config.operations.get(&row.kind).and_then(|kind| kind.owner.as_deref());
    let name = |text: &str| shortened(text, MOST_NAME);
    DeadLetterRow {
        id: row.id.to_string(),
        href: format!("/dead-letters/{}", row.id),
        certainty: row.certainty,
        sentence: shortened(&sentence, MOST_SENTENCE),
        kind: name(&row.kind),
        ids: shortened(&list::ids(values, mask), MOST_IDS),
        destination: name(&list::place(&row.destination)),
        attempts: match row.attempts {
            1 => "1 try".to_owned(),
            n => format!("{n} tries"),
        },
        opened: When::at(row.opened_at, seen),
        assignee: row.assignee.as_deref().map(name),
        team: if row.assignee.is_none() { team().map(name) } else { None },
        snoozed: row
            .snoozed_until
            .filter(|until| *until > seen.now && row.closed_at.is_none())
            .map(|until| When::at(until, seen)),
        next,
        severity: row.severity,
        status: row.status,
    }
}

fn shortened(text: &str, most: usize) -> String {
    match text.char_indices().nth(most - 1) {
        Some((end, _)) if text[end..].chars().nth(1).is_some() => {
            format!("{}\u{2026}", text[..end].trim_end())
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::shortened;

    #[test]
    fn what_is_cut_says_so_and_stays_within_its_length() {
        assert_eq!(shortened("abcd", 4), "abcd");
        assert_eq!(shortened("abcde", 4), "abc\u{2026}");
        assert_eq!(shortened("ééééé", 4), "ééé\u{2026}");
        assert_eq!(shortened("", 4), "");
    }
}
