//! Overrides that wait for a second person's word.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::attempt::{OverrideMode, RequestState};
use crate::domain::time::Timestamp;

/// A request as stored.
#[derive(Clone, Debug)]
pub struct OverrideRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// The episode that it is about.
    pub dead_letter_id: Uuid,
    /// What would be sent.
    pub mode: OverrideMode,
    /// Why, in the requester's words.
    pub reason: String,
    /// Who asked.
    pub requested_by: String,
    /// When.
    pub requested_at: Timestamp,
    /// What they had before them: equal texts, equal facts.
    pub facts: String,
    /// Where it stands.
    pub state: RequestState,
    /// Who decided.
    pub decided_by: Option<String>,
    /// When.
    pub decided_at: Option<Timestamp>,
    /// In their words.
    pub word: Option<String>,
}

from_row!(OverrideRow {
    id,
    operation_id,
    dead_letter_id,
    mode,
    reason,
    requested_by,
    requested_at,
    facts,
    state,
    decided_by,
    decided_at,
    word,
});

const COLUMNS: &str = "SELECT id, operation_id, dead_letter_id, mode, reason, requested_by, requested_at, facts, \
    state, decided_by, decided_at, word FROM override_requests";

/// Adds a request; false when one waits for this dead letter already.
pub async fn insert(tx: &mut Tx, row: &OverrideRow) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO override_requests (id, operation_id, dead_letter_id, mode, reason, \
        requested_by, requested_at, facts, state) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, 'waiting') \
        ON CONFLICT (dead_letter_id) WHERE state = 'waiting' DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.operation_id)
        .bind(row.dead_letter_id)
        .bind(row.mode)
        .bind(&row.reason)
        .bind(&row.requested_by)
        .bind(row.requested_at)
        .bind(&row.facts)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// What became of a request.
#[derive(Clone, Copy, Debug)]
pub struct Decision<'a> {
    /// Where it stands now.
    pub state: RequestState,
    /// Who decided.
    pub by: &'a str,
    /// When.
    pub at: Timestamp,
    /// In their words.
    pub word: Option<&'a str>,
}

/// Ends a request that waits; false when it was ended before.
pub async fn decide(tx: &mut Tx, id: Uuid, decision: Decision<'_>) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE override_requests SET state = $2, decided_by = $3, decided_at = $4, word = $5 \
        WHERE id = $1 AND state = 'waiting'";
    let decided = on!(tx, c => sqlx::query(SQL)
        .bind(id)
        .bind(decision.state)
        .bind(decision.by)
        .bind(decision.at)
        .bind(decision.word)
        .execute(c)
        .await?
        .rows_affected());
    Ok(decided == 1)
}

/// One by id.
pub async fn by_id(tx: &mut Tx, id: Uuid) -> Result<Option<OverrideRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(id).fetch_optional(c).await)?)
}

/// The one that waits for a dead letter.
pub async fn waiting_for(tx: &mut Tx, letter: Uuid) -> Result<Option<OverrideRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE dead_letter_id = $1 AND state = 'waiting'");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(letter).fetch_optional(c).await)?)
}

/// Those that wait, the oldest first: everybody's, or one person's.
pub async fn waiting(tx: &mut Tx, of: Option<&str>, most: i64) -> Result<Vec<OverrideRow>, StoreError> {
    let sql = format!(
        "{COLUMNS} WHERE state = 'waiting' AND ($1 IS NULL OR requested_by = $1) ORDER BY requested_at, id LIMIT $2"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(of).bind(most).fetch_all(c).await)?)
}

/// Those that were decided last, the newest first: everybody's, or one person's.
pub async fn decided(tx: &mut Tx, of: Option<&str>, most: i64) -> Result<Vec<OverrideRow>, StoreError> {
    let sql = format!(
        "{COLUMNS} WHERE state <> 'waiting' AND ($1 IS NULL OR requested_by = $1) \
         ORDER BY requested_at DESC, id DESC LIMIT $2"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(of).bind(most).fetch_all(c).await)?)
}

/// How many wait.
pub async fn count(tx: &mut Tx) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(*) FROM override_requests WHERE state = 'waiting'";
    let (count,): (i64,) = on!(tx, c => sqlx::query_as(SQL).fetch_one(c).await)?;
    Ok(count)
}
