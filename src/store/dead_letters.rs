//! Episodes in which operations wait for a person. What they add up to stands in `figures`.

mod figures;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::filters::{self, bind_all};
use super::{StoreError, Tx, more_placeholders};
use crate::domain::attempt::Outcome;
use crate::domain::classify::Symptom;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::decide::ParkReason;
use crate::domain::filter::{DeadLetterFilter, Listed, Page};
use crate::domain::lookup::Finding;
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;
pub use figures::{ClosingWindow, Figures, HourRow, by_hour, closing_windows, figures};

/// An episode as stored.
#[derive(Clone, Debug)]
pub struct DeadLetterRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// The failing step's place.
    pub position: i64,
    /// The failing step's name.
    pub step: String,
    /// The operation's type.
    pub kind: String,
    /// The failing step's destination.
    pub destination: String,
    /// Where it stands.
    pub status: DeadLetterStatus,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// Why it waits.
    pub why: ParkReason,
    /// What the last attempt came to.
    pub outcome: Outcome,
    /// What was noticed.
    pub symptom: Symptom,
    /// The last answer's status.
    pub answer_status: Option<i64>,
    /// What went wrong, for people.
    pub error: String,
    /// Fingerprint.
    pub cause: String,
    /// What it was made from.
    pub cause_text: String,
    /// What to do first.
    pub next_action: NextAction,
    /// How much it matters.
    pub severity: Severity,
    /// Who has it.
    pub assignee: Option<String>,
    /// Out of sight until then.
    pub snoozed_until: Option<Timestamp>,
    /// Made at the step so far.
    pub attempts: i64,
    /// The episode's first failure.
    pub first_failed_at: Timestamp,
    /// Its last.
    pub last_failed_at: Timestamp,
    /// When it began.
    pub opened_at: Timestamp,
    /// When it ended.
    pub closed_at: Option<Timestamp>,
    /// Who ended it.
    pub closed_by: Option<String>,
    /// How.
    pub resolution: Option<Resolution>,
    /// Why, in their words.
    pub reason: Option<String>,
    /// The id over there, as a person recorded it.
    pub reference: Option<String>,
}

from_row!(DeadLetterRow {
    id,
    operation_id,
    position,
    step,
    kind,
    destination,
    status,
    certainty,
    why,
    outcome,
    symptom,
    answer_status,
    error,
    cause,
    cause_text,
    next_action,
    severity,
    assignee,
    snoozed_until,
    attempts,
    first_failed_at,
    last_failed_at,
    opened_at,
    closed_at,
    closed_by,
    resolution,
    reason,
    reference,
});

const COLUMNS: &str = "SELECT d.id, d.operation_id, d.position, d.step, d.kind, d.destination, d.status, \
    d.certainty, d.why, d.outcome, d.symptom, d.answer_status, d.error, d.cause, d.cause_text, \
    d.next_action, d.severity, d.assignee, d.snoozed_until, d.attempts, d.first_failed_at, \
    d.last_failed_at, d.opened_at, d.closed_at, d.closed_by, d.resolution, d.reason, d.reference \
    FROM dead_letters d";

/// Opens an episode, or takes a replayed one back to open with what is known now. Whoever had it put
/// off did not know that yet: it is awake again.
pub async fn open(tx: &mut Tx, row: &DeadLetterRow) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO dead_letters (id, operation_id, position, step, kind, destination, status, \
        certainty, why, outcome, symptom, answer_status, error, cause, cause_text, next_action, severity, \
        attempts, first_failed_at, last_failed_at, opened_at) \
        VALUES ($1, $2, $3, $4, $5, $6, 'open', $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20) \
        ON CONFLICT (operation_id) WHERE closed_at IS NULL DO UPDATE SET position = excluded.position, \
        step = excluded.step, destination = excluded.destination, status = 'open', \
        certainty = excluded.certainty, why = excluded.why, outcome = excluded.outcome, \
        symptom = excluded.symptom, answer_status = excluded.answer_status, error = excluded.error, \
        cause = excluded.cause, cause_text = excluded.cause_text, next_action = excluded.next_action, \
        snoozed_until = NULL, attempts = excluded.attempts, last_failed_at = excluded.last_failed_at";
    on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.operation_id)
        .bind(row.position)
        .bind(&row.step)
        .bind(&row.kind)
        .bind(&row.destination)
        .bind(row.certainty)
        .bind(row.why)
        .bind(row.outcome)
        .bind(row.symptom)
        .bind(row.answer_status)
        .bind(&row.error)
        .bind(&row.cause)
        .bind(&row.cause_text)
        .bind(row.next_action)
        .bind(row.severity)
        .bind(row.attempts)
        .bind(row.first_failed_at)
        .bind(row.last_failed_at)
        .bind(row.opened_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// An open episode is being tried again.
pub async fn replaying(tx: &mut Tx, operation: Uuid) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE dead_letters SET status = 'replaying' WHERE operation_id = $1 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).execute(c).await?.rows_affected());
    Ok(())
}

/// The effect was confirmed: the live episode, if any, ends as replayed.
pub async fn replayed(
    tx: &mut Tx,
    operation: Uuid,
    by: &str,
    reference: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE dead_letters SET status = 'replayed', certainty = 'completed_at_destination', \
        closed_at = $2, closed_by = $3, reference = $4 WHERE operation_id = $1 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(at).bind(by).bind(reference).execute(c).await?.rows_affected());
    Ok(())
}

/// The step that an episode is about was passed over: it ends with that, and its certainty stays.
pub async fn passed_over(
    tx: &mut Tx,
    operation: Uuid,
    by: &str,
    why: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE dead_letters SET status = 'resolved', resolution = 'not_needed', reason = $3, \
        closed_by = $2, closed_at = $4 WHERE operation_id = $1 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(by).bind(why).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// The destination was asked and has the effect: the live episode, if any, ends with that.
pub async fn found(
    tx: &mut Tx,
    operation: Uuid,
    by: &str,
    why: &str,
    reference: Option<&str>,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE dead_letters SET status = 'resolved', resolution = 'completed_at_destination', \
        certainty = 'completed_at_destination', reason = $3, reference = $4, closed_by = $2, closed_at = $5 \
        WHERE operation_id = $1 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL)
        .bind(operation)
        .bind(by)
        .bind(why)
        .bind(reference)
        .bind(at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// The destination was asked: what a live episode says of its certainty and of what to do first may
/// be out of date. What was known for certain stays.
pub async fn learned(tx: &mut Tx, operation: Uuid, finding: Finding) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE dead_letters SET certainty = $2, next_action = $3 WHERE operation_id = $1 \
        AND closed_at IS NULL AND certainty = 'may_have_completed'";
    let (certainty, next) = match finding {
        Finding::Absent => (Certainty::DefinitelyFailed, NextAction::Replay),
        Finding::OtherPayload => (Certainty::MayHaveCompleted, NextAction::Decide),
        Finding::Found | Finding::TooEarly | Finding::Failed => return Ok(()),
    };
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(certainty).bind(next).execute(c).await?.rows_affected());
    Ok(())
}

/// Hands a live episode to somebody, or to nobody; false when it is closed.
pub async fn assign(tx: &mut Tx, id: Uuid, to: Option<&str>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE dead_letters SET assignee = $2 WHERE id = $1 AND closed_at IS NULL";
    Ok(on!(tx, c => sqlx::query(SQL).bind(id).bind(to).execute(c).await?.rows_affected()) == 1)
}

/// Puts a live episode off until a moment, or wakes it up; false when it is closed.
pub async fn snooze(tx: &mut Tx, id: Uuid, until: Option<Timestamp>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE dead_letters SET snoozed_until = $2 WHERE id = $1 AND closed_at IS NULL";
    Ok(on!(tx, c => sqlx::query(SQL).bind(id).bind(until).execute(c).await?.rows_affected()) == 1)
}

/// A person's word that ends an episode.
#[derive(Clone, Debug)]
pub struct Closing<'a> {
    /// The episode.
    pub id: Uuid,
    /// How.
    pub resolution: Resolution,
    /// Why.
    pub reason: &'a str,
    /// The id over there.
    pub reference: Option<&'a str>,
    /// Who.
    pub by: &'a str,
    /// When.
    pub at: Timestamp,
}

/// Ends an open episode; false when it is not open.
pub async fn resolve(tx: &mut Tx, closing: &Closing<'_>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE dead_letters SET status = 'resolved', resolution = $2, reason = $3, \
        reference = $4, closed_by = $5, closed_at = $6, certainty = CASE WHEN $2 = 'completed_at_destination' \
        THEN 'completed_at_destination' ELSE certainty END WHERE id = $1 AND status = 'open'";
    let closed = on!(tx, c => sqlx::query(SQL)
        .bind(closing.id)
        .bind(closing.resolution)
        .bind(closing.reason)
        .bind(closing.reference)
        .bind(closing.by)
        .bind(closing.at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(closed == 1)
}

/// Another operation took its operation's place: the live episode, if any, ends as corrected.
pub async fn corrected(
    tx: &mut Tx,
    operation: Uuid,
    by: &str,
    reason: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE dead_letters SET status = 'corrected', closed_at = $2, closed_by = $3, reason = $4 \
        WHERE operation_id = $1 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(at).bind(by).bind(reason).execute(c).await?.rows_affected());
    Ok(())
}

/// One by id.
pub async fn by_id(tx: &mut Tx, id: Uuid) -> Result<Option<DeadLetterRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE d.id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(id).fetch_optional(c).await)?)
}

/// An operation's episodes, newest first.
pub async fn of_operation(tx: &mut Tx, operation: Uuid) -> Result<Vec<DeadLetterRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE d.operation_id = $1 ORDER BY d.opened_at DESC, d.id DESC");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_all(c).await)?)
}

/// Episodes that tell how an operation stands, the newest and those that found it done, and these;
/// newest first.
pub async fn telling(tx: &mut Tx, operation: Uuid, ids: &[Uuid]) -> Result<Vec<DeadLetterRow>, StoreError> {
    let wanted = more_placeholders(2, ids.len());
    // The operation's own id is no episode's: it keeps the list from being empty.
    let sql = format!(
        "{COLUMNS} WHERE d.operation_id = $1 AND (d.id IN ($1{wanted}) \
         OR d.resolution = 'completed_at_destination' OR d.id IN (SELECT id FROM dead_letters \
         WHERE operation_id = $1 ORDER BY opened_at DESC, id DESC LIMIT 20)) \
         ORDER BY d.opened_at DESC, d.id DESC"
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(operation);
        for id in ids {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    }))
}

/// A stretch of those that the filter means.
pub async fn list(
    tx: &mut Tx,
    filter: &DeadLetterFilter,
    page: Page,
) -> Result<Listed<DeadLetterRow>, StoreError> {
    let mut conditions = filters::dead_letters(filter);
    let sql = format!("{COLUMNS}{}", conditions.page("d.opened_at", "d.id", page));
    let rows: Vec<DeadLetterRow> = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_all(c).await?
    });
    Ok(Listed::new(rows, page, |row| (row.opened_at, row.id)))
}

/// How many the filter means, counted up to `most`: a list beside it is never out of step, and a
/// huge one does not make its page wait.
pub async fn count(tx: &mut Tx, filter: &DeadLetterFilter, most: i64) -> Result<i64, StoreError> {
    let conditions = filters::dead_letters(filter);
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM dead_letters d{} LIMIT {most}) counted",
        conditions.clause()
    );
    let (count,): (i64,) = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_one(c).await?
    });
    Ok(count)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Db;

    /// How SQLite would go about a list, line by line.
    async fn plan(db: &Db, filter: &DeadLetterFilter) -> Vec<String> {
        let mut conditions = filters::dead_letters(filter);
        let list = format!("{COLUMNS}{}", conditions.page("d.opened_at", "d.id", Page::default()));
        let mut tx = db.read().await.unwrap();
        let rows: Vec<(i64, i64, i64, String)> = on!(&mut tx, c => {
            let explained = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {list}"));
            bind_all(sqlx::query_as(explained), conditions.values()).fetch_all(c).await.unwrap()
        });
        rows.into_iter().map(|(_, _, _, line)| line).collect()
    }

    #[tokio::test]
    async fn a_search_reads_no_table_from_end_to_end() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite:{}", folder.path().join("desk.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let id = "0191d3c0-7a3e-7c1c-8f61-0c6a55b0a111";
        for text in ["ORD-1", id] {
            let filter = DeadLetterFilter {
                status: Some(DeadLetterStatus::Open),
                search: Some(text.to_owned()),
                ..DeadLetterFilter::default()
            };
            let plan = plan(&db, &filter).await;
            assert!(plan.iter().any(|line| line.contains("search_value")), "{plan:#?}");
            assert!(!plan.iter().any(|line| line.starts_with("SCAN ")), "{plan:#?}");
        }
        db.close().await;
    }
}
