//! The rows beside the attempts: steps, the state of operations, rows of work.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::domain::attempt::{Cause, Outcome};
use crate::domain::key::DestinationKey;
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationState, StepState};
use crate::domain::time::Timestamp;
use crate::store::{StoreError, Tx, on, placeholders};

/// What is known of a step now.
pub(in crate::gate) struct StepChange {
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
pub(in crate::gate) async fn change_steps(tx: &mut Tx, rows: &[StepChange]) -> Result<(), StoreError> {
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
pub(in crate::gate) struct OperationChange {
    pub id: Uuid,
    pub state: OperationState,
    pub completed_at: Option<Timestamp>,
}

/// Writes what is known of operations.
pub(in crate::gate) async fn change_operations(
    tx: &mut Tx,
    rows: &[OperationChange],
) -> Result<(), StoreError> {
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
pub(in crate::gate) struct Reschedule {
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
pub(in crate::gate) async fn reschedule(tx: &mut Tx, rows: &[Reschedule]) -> Result<(), StoreError> {
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
pub(in crate::gate) async fn remove_work(tx: &mut Tx, operations: &[Uuid]) -> Result<(), StoreError> {
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
pub(in crate::gate) async fn fail_step(
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
pub(in crate::gate) async fn replaced(tx: &mut Tx, operation: Uuid, by: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE operations SET corrected_by = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(by).execute(c).await?.rows_affected());
    Ok(())
}

/// Mints the next deliberate effect of a step: another generation under another key.
pub(in crate::gate) async fn next_generation(
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
pub(in crate::gate) async fn put_off(
    tx: &mut Tx,
    operation: Uuid,
    until: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET due_at = $2 WHERE operation_id = $1 AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(until).execute(c).await?.rows_affected());
    Ok(())
}

/// Has a destination asked about an operation before anything else is done with it: a send that is
/// waiting goes on afterwards. False when there is no row of work, or somebody is at it.
pub(in crate::gate) async fn ask_first(
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
pub(in crate::gate) async fn wait_over(
    tx: &mut Tx,
    destination: &str,
    waited: Duration,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET since = since + $2 WHERE destination = $1 AND tries + waits > 0 \
        AND leased_until IS NULL";
    let micros = i64::try_from(waited.as_micros()).unwrap_or(i64::MAX);
    on!(tx, c => sqlx::query(SQL).bind(destination).bind(micros).execute(c).await?.rows_affected());
    Ok(())
}

/// Lets the holder of an attempt have it for longer; false when it does not hold it any more.
pub(in crate::gate) async fn extend(
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
pub(in crate::gate) async fn change_lane(tx: &mut Tx, operation: Uuid, lane: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE work SET lane = $2 WHERE operation_id = $1 AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(operation).bind(lane).execute(c).await?.rows_affected());
    Ok(())
}

/// Has a destination asked before a waiting send, which goes on afterwards where it may.
pub(in crate::gate) async fn find_out(
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
