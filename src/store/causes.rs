//! Causes of dead letters: what waits of each, and what people say of it.

use std::time::Duration;

use sqlx::AssertSqlSafe;

use super::{StoreError, Tx};
use crate::domain::attempt::Outcome;
use crate::domain::classify::Symptom;
use crate::domain::time::Timestamp;

/// A cause, and how much of it waits. What was put off is left out.
#[derive(Clone, Debug)]
pub struct CauseRow {
    /// Fingerprint.
    pub cause: String,
    /// What it was made from.
    pub cause_text: String,
    /// Where.
    pub destination: String,
    /// At which step.
    pub step: String,
    /// What the last attempts came to.
    pub outcome: Outcome,
    /// What was noticed.
    pub symptom: Symptom,
    /// How many wait.
    pub total: i64,
    /// Opened in the last hour.
    pub last_hour: i64,
    /// Opened in the last day.
    pub last_day: i64,
    /// Opened in the last seven days.
    pub last_week: i64,
    /// Opened after the last replay; zero when there was none.
    pub fresh: i64,
    /// Of all: may have completed.
    pub may_have_completed: i64,
    /// Of all: the destination has it.
    pub completed_there: i64,
    /// The first: of those that wait, or of all that ever were where one cause is asked for.
    pub first_at: Timestamp,
    /// The last of the same.
    pub last_at: Timestamp,
    /// All that ever were, where one cause is asked for; those that wait otherwise.
    pub ever: i64,
    /// Who has it.
    pub assignee: Option<String>,
    /// What somebody wrote about it.
    pub note: Option<String>,
    /// When one of it was last sent again at a person's word.
    pub last_replay_at: Option<Timestamp>,
}

from_row!(CauseRow {
    cause,
    cause_text,
    destination,
    step,
    outcome,
    symptom,
    total,
    last_hour,
    last_day,
    last_week,
    fresh,
    may_have_completed,
    completed_there,
    first_at,
    last_at,
    ever,
    assignee,
    note,
    last_replay_at,
});

/// `$1` to `$3` are an hour, a day and seven days ago, `$4` is now.
const COLUMNS: &str = "SELECT d.cause, max(d.cause_text) AS cause_text, min(d.destination) AS destination, \
    min(d.step) AS step, min(d.outcome) AS outcome, min(d.symptom) AS symptom, \
    count(*) FILTER (WHERE d.waits) AS total, \
    count(*) FILTER (WHERE d.waits AND d.opened_at >= $1) AS last_hour, \
    count(*) FILTER (WHERE d.waits AND d.opened_at >= $2) AS last_day, \
    count(*) FILTER (WHERE d.waits AND d.opened_at >= $3) AS last_week, \
    count(*) FILTER (WHERE d.waits AND d.opened_at > c.last_replay_at) AS fresh, \
    count(*) FILTER (WHERE d.waits AND d.certainty = 'may_have_completed') AS may_have_completed, \
    count(*) FILTER (WHERE d.waits AND d.certainty = 'completed_at_destination') AS completed_there, \
    min(d.opened_at) AS first_at, max(d.opened_at) AS last_at, count(*) AS ever, \
    max(c.assignee) AS assignee, max(c.note) AS note, max(c.last_replay_at) AS last_replay_at \
    FROM (SELECT *, status = 'open' AND (snoozed_until IS NULL OR snoozed_until <= $4) AS waits \
    FROM dead_letters) d LEFT JOIN causes c ON c.cause = d.cause";

/// What waits, by cause, the largest first.
pub async fn waiting(tx: &mut Tx, now: Timestamp, most: i64) -> Result<Vec<CauseRow>, StoreError> {
    let sql = format!(
        "{COLUMNS} WHERE d.status = 'open' AND d.waits GROUP BY d.cause ORDER BY count(*) DESC, d.cause LIMIT $5"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql))
        .bind(ago(now, 1))
        .bind(ago(now, 24))
        .bind(ago(now, 24 * 7))
        .bind(now)
        .bind(most)
        .fetch_all(c)
        .await)?)
}

/// How many causes there are of what waits.
pub async fn count(tx: &mut Tx, now: Timestamp) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(DISTINCT cause) FROM dead_letters \
        WHERE status = 'open' AND (snoozed_until IS NULL OR snoozed_until <= $1)";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(now).fetch_one(c).await)?)
}

/// One by its fingerprint, whether or not any of it still waits.
pub async fn by_id(tx: &mut Tx, cause: &str, now: Timestamp) -> Result<Option<CauseRow>, StoreError> {
    if cause.contains('\0') {
        return Ok(None);
    }
    let sql = format!("{COLUMNS} WHERE d.cause = $5 GROUP BY d.cause");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql))
        .bind(ago(now, 1))
        .bind(ago(now, 24))
        .bind(ago(now, 24 * 7))
        .bind(now)
        .bind(cause)
        .fetch_optional(c)
        .await)?)
}

fn ago(now: Timestamp, hours: u64) -> Timestamp {
    now.minus(Duration::from_hours(hours))
}

/// Stretches of six hours in the seven days that a trend shows.
pub const STRETCHES: usize = 28;

/// How many dead letters each of these causes opened in each stretch of six hours of the last seven
/// days, oldest first. Causes without any are left out.
pub async fn trends(
    tx: &mut Tx,
    causes: &[&str],
    now: Timestamp,
) -> Result<Vec<(String, [u32; STRETCHES])>, StoreError> {
    const STRETCH: i64 = 6 * 3_600 * 1_000_000;
    if causes.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<String> = (4..4 + causes.len()).map(|place| format!("${place}")).collect();
    let sql = format!(
        "SELECT cause, ($1 - opened_at) / $3 AS ago, count(*) FROM dead_letters \
         WHERE cause IN ({}) AND opened_at > $2 AND opened_at <= $1 GROUP BY 1, 2 ORDER BY 1",
        places.join(",")
    );
    let rows: Vec<(String, i64, i64)> = on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(now).bind(ago(now, 24 * 7)).bind(STRETCH);
        for cause in causes {
            query = query.bind(*cause);
        }
        query.fetch_all(c).await?
    });
    let mut trends: Vec<(String, [u32; STRETCHES])> = Vec::new();
    for (cause, ago, count) in rows {
        if trends.last().is_none_or(|(last, _)| *last != cause) {
            trends.push((cause, [0; STRETCHES]));
        }
        let slot = usize::try_from(ago).ok().and_then(|ago| STRETCHES.checked_sub(ago + 1));
        if let (Some((_, trend)), Some(slot)) = (trends.last_mut(), slot) {
            trend[slot] = u32::try_from(count).unwrap_or(u32::MAX);
        }
    }
    Ok(trends)
}

/// Whether any dead letter ever had this cause.
pub async fn exists(tx: &mut Tx, cause: &str) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT EXISTS (SELECT 1 FROM dead_letters WHERE cause = $1)";
    // No fingerprint holds one, and PostgreSQL cannot even compare it.
    if cause.contains('\0') {
        return Ok(false);
    }
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(cause).fetch_one(c).await)?)
}

/// Writes what is to be known of a cause; `None` takes the note away.
pub async fn set_note(tx: &mut Tx, cause: &str, note: Option<&str>, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO causes (cause, note, updated_at) VALUES ($1, $2, $3) \
        ON CONFLICT (cause) DO UPDATE SET note = excluded.note, updated_at = excluded.updated_at";
    on!(tx, c => sqlx::query(SQL).bind(cause).bind(note).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// Gives a cause to somebody, or to nobody.
pub async fn assign(tx: &mut Tx, cause: &str, to: Option<&str>, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO causes (cause, assignee, updated_at) VALUES ($1, $2, $3) \
        ON CONFLICT (cause) DO UPDATE SET assignee = excluded.assignee, updated_at = excluded.updated_at";
    on!(tx, c => sqlx::query(SQL).bind(cause).bind(to).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// The live dead letter of this operation, if any, is sent again at a person's word: its cause's
/// last replay is now.
pub async fn replayed(tx: &mut Tx, operation: uuid::Uuid, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO causes (cause, last_replay_at, updated_at) \
        SELECT cause, $2, $2 FROM dead_letters WHERE operation_id = $1 AND closed_at IS NULL \
        ON CONFLICT (cause) DO UPDATE SET last_replay_at = excluded.last_replay_at";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(at).execute(c).await?.rows_affected());
    Ok(())
}
