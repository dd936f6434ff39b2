//! The ledger's writes: the only statements that change attempts, steps, the state of operations
//! and rows of work once they stand. Each is over many rows, so that one commit carries many.
//!
//! Nothing outside the gate can call them.

mod rows;

pub(super) use rows::*;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::domain::attempt::{Cause, Outcome, StoredRequest};
use crate::domain::classify::Symptom;
use crate::domain::key::DestinationKey;
use crate::domain::lookup::Task;
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
