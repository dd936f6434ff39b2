//! The ledger's writes: the only statements that change attempts, steps, the state of operations
//! and rows of work once they stand. Each is over many rows, so that one commit carries many.
//!
//! Nothing outside the gate can call them.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::domain::attempt::{Cause, Outcome, StoredRequest};
use crate::domain::classify::Symptom;
use crate::domain::key::DestinationKey;
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationState, StepState};
use crate::domain::time::Timestamp;
use crate::store::{StoreError, Tx, on, placeholders};

/// An attempt that begins, or one that is passed over.
pub(super) struct Begin<'a> {
    pub id: Uuid,
    pub operation_id: Uuid,
    pub position: i64,
    pub generation: i64,
    pub number: i64,
    pub cause: Cause,
    pub requested_by: &'a str,
    pub fence: i64,
    pub node: &'a str,
    pub at: Timestamp,
    /// The address of a question, where it is one.
    pub asked: Option<&'a str>,
}

/// Marks attempts as sending; the ids of those that may. A step whose generation has a live
/// attempt already is passed over: that is the second wall.
pub(super) async fn begin(tx: &mut Tx, rows: &[Begin<'_>]) -> Result<Vec<Uuid>, StoreError> {
    let sql = format!(
        "INSERT INTO attempts (id, operation_id, position, generation, number, cause, requested_by, fence, \
         node, started_at, asked, outcome) VALUES {} \
         ON CONFLICT (operation_id, position, generation) WHERE outcome = 'running' DO NOTHING RETURNING id",
        placeholders(rows.len(), 12)
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.id)
                .bind(row.operation_id)
                .bind(row.position)
                .bind(row.generation)
                .bind(row.number)
                .bind(row.cause)
                .bind(row.requested_by)
                .bind(row.fence)
                .bind(row.node)
                .bind(row.at)
                .bind(row.asked)
                .bind(Outcome::Running);
        }
        query.fetch_all(c).await?
    }))
}

/// Records that a worker passed a step over, and why.
pub(super) async fn skip(tx: &mut Tx, row: &Begin<'_>, why: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO attempts (id, operation_id, position, generation, number, cause, requested_by, \
        fence, node, started_at, ended_at, outcome, error) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $10, $11, $12)";
    on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.operation_id)
        .bind(row.position)
        .bind(row.generation)
        .bind(row.number)
        .bind(row.cause)
        .bind(row.requested_by)
        .bind(row.fence)
        .bind(row.node)
        .bind(row.at)
        .bind(Outcome::Skipped)
        .bind(why)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// A step's request, kept with its first attempt.
pub(super) struct Keep<'a> {
    pub operation_id: Uuid,
    pub position: i64,
    pub generation: i64,
    pub key: DestinationKey,
    pub at: Timestamp,
    pub request: &'a StoredRequest,
    pub headers: String,
    pub body_is_payload: bool,
}

/// Keeps the bytes that every attempt of a step sends.
pub(super) async fn keep_requests(tx: &mut Tx, rows: &[Keep<'_>]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO requests (operation_id, position, generation, key, first_sent_at, method, url, headers, \
         body_is_payload, body) VALUES {}",
        placeholders(rows.len(), 10)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in rows {
            let body = if row.body_is_payload { None } else { row.request.body.as_deref() };
            query = query
                .bind(row.operation_id)
                .bind(row.position)
                .bind(row.generation)
                .bind(row.key)
                .bind(row.at)
                .bind(&row.request.method)
                .bind(&row.request.url)
                .bind(&row.headers)
                .bind(row.body_is_payload)
                .bind(body);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// Who holds a row of work, and until when.
pub(super) struct Lease {
    pub operation_id: Uuid,
    pub attempt_id: Uuid,
    pub fence: i64,
    pub since: Timestamp,
    pub until: Timestamp,
    pub task: Task,
}

/// Hands rows of work to attempts.
pub(super) async fn lease(tx: &mut Tx, rows: &[Lease]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "WITH v (operation, attempt, new_fence, begun, held, does) AS (VALUES {}) \
         UPDATE work SET attempt_id = v.attempt, fence = v.new_fence, since = v.begun, leased_until = v.held, \
         task = v.does FROM v WHERE operation_id = v.operation",
        placeholders(rows.len(), 6)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.operation_id)
                .bind(row.attempt_id)
                .bind(row.fence)
                .bind(row.since)
                .bind(row.until)
                .bind(row.task);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// How an attempt ended.
pub(super) struct Finish {
    pub id: Uuid,
    pub fence: i64,
    pub ended_at: Timestamp,
    pub outcome: Outcome,
    pub symptom: Symptom,
    pub status: Option<i64>,
    pub error: Option<String>,
    pub next_at: Option<Timestamp>,
    pub retry_after: Option<i64>,
    pub reference: Option<String>,
    pub answer_headers: Option<String>,
    pub answer_body: Option<String>,
    pub answer_cut: bool,
}

/// Ends attempts; the ids of those that were still running under their fence. The others were
/// settled by somebody else when their lease ran out.
pub(super) async fn finish(tx: &mut Tx, rows: &[Finish]) -> Result<Vec<Uuid>, StoreError> {
    let sql = format!(
        "WITH v (attempt, held, at, came_to, noticed, code, failure, due, told, known_as, heads, answer, cut) \
         AS (VALUES {}) UPDATE attempts SET ended_at = v.at, outcome = v.came_to, symptom = v.noticed, \
         status = v.code, error = v.failure, next_at = v.due, retry_after = v.told, reference = v.known_as, \
         answer_headers = v.heads, answer_body = v.answer, answer_cut = v.cut \
         FROM v WHERE id = v.attempt AND fence = v.held AND outcome = 'running' RETURNING id",
        placeholders(rows.len(), 13)
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.id)
                .bind(row.fence)
                .bind(row.ended_at)
                .bind(row.outcome)
                .bind(row.symptom)
                .bind(row.status)
                .bind(&row.error)
                .bind(row.next_at)
                .bind(row.retry_after)
                .bind(&row.reference)
                .bind(&row.answer_headers)
                .bind(&row.answer_body)
                .bind(row.answer_cut);
        }
        query.fetch_all(c).await?
    }))
}

/// What is known of a step now.
pub(super) struct StepChange {
    pub operation_id: Uuid,
    pub position: i64,
    pub state: StepState,
    pub attempts: i64,
    pub last_outcome: Option<Outcome>,
    pub doubt_at: Option<Timestamp>,
    pub saved: Option<String>,
    pub reference: Option<String>,
    pub completed_at: Option<Timestamp>,
}

/// Writes what is known of steps.
pub(super) async fn change_steps(tx: &mut Tx, rows: &[StepChange]) -> Result<(), StoreError> {
    let sql = format!(
        "WITH v (operation, place, now_is, made, came_to, unsure, kept, known_as, at) AS (VALUES {}) \
         UPDATE steps SET state = v.now_is, attempts = v.made, last_outcome = v.came_to, doubt_at = v.unsure, \
         saved = v.kept, reference = v.known_as, completed_at = coalesce(steps.completed_at, v.at) FROM v \
         WHERE operation_id = v.operation AND position = v.place",
        placeholders(rows.len(), 9)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.operation_id)
                .bind(row.position)
                .bind(row.state)
                .bind(row.attempts)
                .bind(row.last_outcome)
                .bind(row.doubt_at)
                .bind(&row.saved)
                .bind(&row.reference)
                .bind(row.completed_at);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// What is known of an operation now.
pub(super) struct OperationChange {
    pub id: Uuid,
    pub state: OperationState,
    pub completed_at: Option<Timestamp>,
}

/// Writes what is known of operations.
pub(super) async fn change_operations(tx: &mut Tx, rows: &[OperationChange]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "WITH v (operation, now_is, at) AS (VALUES {}) UPDATE operations SET state = v.now_is, \
         completed_at = v.at FROM v WHERE id = v.operation",
        placeholders(rows.len(), 3)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in rows {
            query = query.bind(row.id).bind(row.state).bind(row.completed_at);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// When a row of work is due again, and for what.
pub(super) struct Reschedule {
    pub operation_id: Uuid,
    pub position: i64,
    pub destination: String,
    pub lane: String,
    pub task: Task,
    pub cause: Cause,
    pub requested_by: String,
    pub waived: String,
    pub due_at: Timestamp,
    pub since: Timestamp,
    pub tries: i64,
    pub doubts: i64,
    pub waits: i64,
    pub asks: i64,
    pub lost: bool,
}

/// Puts rows of work back in the queue.
pub(super) async fn reschedule(tx: &mut Tx, rows: &[Reschedule]) -> Result<(), StoreError> {
    if rows.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "WITH v (operation, place, goes_to, why, who, free_of, due, begun, made, unsure, put_off, \
         taken_by, does, asked, cut_off) AS (VALUES {}) \
         UPDATE work SET position = v.place, destination = v.goes_to, cause = v.why, requested_by = v.who, \
         waived = v.free_of, due_at = v.due, since = v.begun, tries = v.made, doubts = v.unsure, waits = v.put_off, \
         lane = v.taken_by, task = v.does, asks = v.asked, lost = v.cut_off, asked_by = NULL, resume_at = NULL, \
         leased_until = NULL, attempt_id = NULL FROM v WHERE operation_id = v.operation",
        placeholders(rows.len(), 15)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in rows {
            query = query
                .bind(row.operation_id)
                .bind(row.position)
                .bind(&row.destination)
                .bind(row.cause)
                .bind(&row.requested_by)
                .bind(&row.waived)
                .bind(row.due_at)
                .bind(row.since)
                .bind(row.tries)
                .bind(row.doubts)
                .bind(row.waits)
                .bind(&row.lane)
                .bind(row.task)
                .bind(row.asks)
                .bind(row.lost);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// Takes rows of work away: there is nothing left to do without a person.
pub(super) async fn remove_work(tx: &mut Tx, operations: &[Uuid]) -> Result<(), StoreError> {
    if operations.is_empty() {
        return Ok(());
    }
    let sql = format!("DELETE FROM work WHERE operation_id IN {}", placeholders(1, operations.len()));
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for operation in operations {
            query = query.bind(*operation);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// Marks a step that waited for its next try as one that will not be tried again.
pub(super) async fn fail_step(
    tx: &mut Tx,
    operation: Uuid,
    position: i64,
    state: StepState,
) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE steps SET state = $3 WHERE operation_id = $1 AND position = $2 AND state = 'pending'";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(position).bind(state).execute(c).await?.rows_affected());
    Ok(())
}

/// Names the operation that took another's place.
pub(super) async fn replaced(tx: &mut Tx, operation: Uuid, by: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE operations SET corrected_by = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(by).execute(c).await?.rows_affected());
    Ok(())
}

/// Mints the next deliberate effect of a step: another generation under another key.
pub(super) async fn next_generation(
    tx: &mut Tx,
    operation: Uuid,
    position: i64,
    key: DestinationKey,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE steps SET generation = generation + 1, key = $3 \
        WHERE operation_id = $1 AND position = $2 AND state <> 'completed'";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(position).bind(key).execute(c).await?.rows_affected());
    Ok(())
}

/// Puts a row that was claimed and not held back to a later time.
pub(super) async fn put_off(tx: &mut Tx, operation: Uuid, until: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET due_at = $2 WHERE operation_id = $1 AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(until).execute(c).await?.rows_affected());
    Ok(())
}

/// Has a destination asked about an operation before anything else is done with it: a send that is
/// waiting goes on afterwards. False when there is no row of work, or somebody is at it.
pub(super) async fn ask_first(
    tx: &mut Tx,
    operation: Uuid,
    lane: &str,
    by: &str,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE work SET resume_at = CASE WHEN task = 'send' THEN due_at ELSE resume_at END, \
        task = CASE WHEN task = 'send' THEN 'ask' ELSE task END, lane = $2, asked_by = $3, due_at = $4 \
        WHERE operation_id = $1 AND leased_until IS NULL";
    let asked = on!(tx, c => sqlx::query(SQL)
        .bind(operation)
        .bind(lane)
        .bind(by)
        .bind(now)
        .execute(c)
        .await?
        .rows_affected());
    Ok(asked == 1)
}

/// What waited for a destination was not being tried meanwhile: its rounds grow no older by that.
pub(super) async fn wait_over(tx: &mut Tx, destination: &str, waited: Duration) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET since = since + $2 WHERE destination = $1 AND tries + waits > 0 \
        AND leased_until IS NULL";
    let micros = i64::try_from(waited.as_micros()).unwrap_or(i64::MAX);
    on!(tx, c => sqlx::query(SQL).bind(destination).bind(micros).execute(c).await?.rows_affected());
    Ok(())
}

/// Lets the holder of an attempt have it for longer; false when it does not hold it any more.
pub(super) async fn extend(
    tx: &mut Tx,
    attempt: Uuid,
    fence: i64,
    until: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE work SET leased_until = $3 WHERE attempt_id = $1 AND fence = $2 \
        AND leased_until IS NOT NULL";
    let held = on!(tx, c => sqlx::query(SQL)
        .bind(attempt)
        .bind(fence)
        .bind(until)
        .execute(c)
        .await?
        .rows_affected());
    Ok(held == 1)
}

/// Hands a waiting row of work to another lane.
pub(super) async fn change_lane(tx: &mut Tx, operation: Uuid, lane: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET lane = $2 WHERE operation_id = $1 AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(lane).execute(c).await?.rows_affected());
    Ok(())
}

/// Has a destination asked before a waiting send, which goes on afterwards where it may.
pub(super) async fn find_out(
    tx: &mut Tx,
    operation: Uuid,
    lane: &str,
    now: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET task = 'find_out', lane = $2, due_at = $3 WHERE operation_id = $1 \
        AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(lane).bind(now).execute(c).await?.rows_affected());
    Ok(())
}
