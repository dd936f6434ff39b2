//! Attempts, for reading. They are written by the gate's ledger and nowhere else.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{StoreError, Tx, more_placeholders};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::classify::Symptom;
use crate::domain::time::Timestamp;

/// An attempt as stored.
#[derive(Clone, Debug)]
pub struct AttemptRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// Counts the claims of its operation's work.
    pub fence: i64,
    /// The step's place.
    pub position: i64,
    /// Which deliberate effect it was for.
    pub generation: i64,
    /// From 1 in its step.
    pub number: i64,
    /// Why.
    pub cause: Cause,
    /// Who asked.
    pub requested_by: String,
    /// The process that made it.
    pub node: String,
    /// When it began.
    pub started_at: Timestamp,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// What is known after it.
    pub outcome: Outcome,
    /// What was noticed.
    pub symptom: Option<Symptom>,
    /// The answer's status.
    pub status: Option<i64>,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// When the next try was due.
    pub next_at: Option<Timestamp>,
    /// The destination's own word on the wait, in microseconds.
    pub retry_after: Option<i64>,
    /// The id over there.
    pub reference: Option<String>,
    /// JSON array of pairs.
    pub answer_headers: Option<String>,
    /// As far as it is kept, or as was read of it.
    pub answer_body: Option<String>,
    /// How many characters of it are kept.
    pub answer_length: Option<i64>,
    /// There was more.
    pub answer_cut: bool,
    /// The address of the question, where it was one and no send.
    pub asked: Option<String>,
}

from_row!(AttemptRow {
    id,
    operation_id,
    fence,
    position,
    generation,
    number,
    cause,
    requested_by,
    node,
    started_at,
    ended_at,
    outcome,
    symptom,
    status,
    error,
    next_at,
    retry_after,
    reference,
    answer_headers,
    answer_body,
    answer_length,
    answer_cut,
    asked,
});

/// Everything but the answer's body, which callers read as far as they need it.
const COLUMNS: &str = "id, operation_id, fence, position, generation, number, cause, requested_by, node, started_at, \
    ended_at, outcome, symptom, status, error, next_at, retry_after, reference, answer_headers, answer_cut, asked, \
    CAST(length(answer_body) AS BIGINT) AS answer_length";

/// An operation's attempts, oldest first.
pub async fn of_operation(tx: &mut Tx, operation: Uuid) -> Result<Vec<AttemptRow>, StoreError> {
    let sql = format!(
        "SELECT {COLUMNS}, answer_body FROM attempts WHERE operation_id = $1 ORDER BY started_at, id"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_all(c).await)?)
}

/// One by id.
pub async fn by_id(tx: &mut Tx, id: Uuid) -> Result<Option<AttemptRow>, StoreError> {
    let sql = format!("SELECT {COLUMNS}, answer_body FROM attempts WHERE id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(id).fetch_optional(c).await)?)
}

/// These of an operation's attempts, and of each step those that tell how it stands: the last one
/// that did it, that left it in doubt, that was answered, and that did none of this. Oldest first,
/// each with the first `most_body` characters of its answer.
pub async fn telling(
    tx: &mut Tx,
    operation: Uuid,
    ids: &[Uuid],
    most_body: i64,
) -> Result<Vec<AttemptRow>, StoreError> {
    const LAST: &str = "SELECT id FROM (SELECT id, row_number() OVER (PARTITION BY position, CASE \
        WHEN outcome = 'done' THEN 1 WHEN outcome IN ('uncertain', 'running') THEN 2 \
        WHEN status IS NOT NULL THEN 3 ELSE 4 END ORDER BY started_at DESC, id DESC) AS place \
        FROM attempts WHERE operation_id = $1) ranked WHERE place = 1";
    let wanted = more_placeholders(3, ids.len());
    // The operation's own id is no attempt's: it keeps the list from being empty.
    let sql = format!(
        "SELECT {COLUMNS}, substr(answer_body, 1, CAST($2 AS INTEGER)) AS answer_body FROM attempts \
         WHERE operation_id = $1 AND (id IN ($1{wanted}) OR id IN ({LAST})) ORDER BY started_at, id"
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(operation).bind(most_body);
        for id in ids {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    }))
}
