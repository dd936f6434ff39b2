//! What all nodes know of the destinations' health: pauses, circuits, limits.

use sqlx::AssertSqlSafe;

use super::{StoreError, Tx, placeholders};
use crate::domain::attempt::Outcome;
use crate::domain::time::Timestamp;

/// A destination's health as stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthRow {
    /// As configured.
    pub name: String,
    /// Since when nothing is sent.
    pub paused_at: Option<Timestamp>,
    /// Who said so.
    pub paused_by: Option<String>,
    /// Why.
    pub pause_reason: Option<String>,
    /// Failures in a row.
    pub failures: i64,
    /// How often its circuit opened since it was last closed; zero when it is closed.
    pub opened: i64,
    /// Until when it stays open.
    pub open_until: Option<Timestamp>,
    /// Its own word: nothing before this.
    pub held_until: Option<Timestamp>,
    /// When the next request fits under its limit a second.
    pub next_at: Timestamp,
}

from_row!(HealthRow {
    name,
    paused_at,
    paused_by,
    pause_reason,
    failures,
    opened,
    open_until,
    held_until,
    next_at,
});

impl HealthRow {
    /// Of a destination of which nothing is known.
    pub fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            paused_at: None,
            paused_by: None,
            pause_reason: None,
            failures: 0,
            opened: 0,
            open_until: None,
            held_until: None,
            next_at: Timestamp::from_micros(0),
        }
    }
}

const COLUMNS: &str = "SELECT name, paused_at, paused_by, pause_reason, failures, opened, open_until, \
    held_until, next_at FROM destinations";

/// Of every destination of which something is known.
pub async fn all(tx: &mut Tx) -> Result<Vec<HealthRow>, StoreError> {
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(COLUMNS)).fetch_all(c).await)?)
}

/// Makes the rows of destinations of which nothing was known.
pub async fn add(tx: &mut Tx, names: &[&str]) -> Result<(), StoreError> {
    if names.is_empty() {
        return Ok(());
    }
    let sql = format!(
        "INSERT INTO destinations (name) VALUES {} ON CONFLICT (name) DO NOTHING",
        placeholders(names.len(), 1)
    );
    on!(&mut *tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for name in names {
            query = query.bind(*name);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// Reads these and keeps them as they are until the transaction ends: what is decided on them is
/// decided by one node at a time.
pub async fn lock(tx: &mut Tx, names: &[&str]) -> Result<Vec<HealthRow>, StoreError> {
    if names.is_empty() {
        return Ok(Vec::new());
    }
    // In one order on all nodes, which would wait for each other otherwise.
    let lock = if tx.is_postgres() { " ORDER BY name FOR UPDATE" } else { "" };
    let sql = format!("{COLUMNS} WHERE name IN {}{lock}", placeholders(1, names.len()));
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for name in names {
            query = query.bind(*name);
        }
        query.fetch_all(c).await?
    }))
}

/// Writes what is known now; the row was locked.
pub async fn write(tx: &mut Tx, row: &HealthRow) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE destinations SET paused_at = $2, paused_by = $3, pause_reason = $4, failures = $5, \
        opened = $6, open_until = $7, held_until = $8, next_at = $9 WHERE name = $1";
    on!(tx, c => sqlx::query(SQL)
        .bind(&row.name)
        .bind(row.paused_at)
        .bind(&row.paused_by)
        .bind(&row.pause_reason)
        .bind(row.failures)
        .bind(row.opened)
        .bind(row.open_until)
        .bind(row.held_until)
        .bind(row.next_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// One attempt, as far as it tells of its destination.
#[derive(Clone, Copy, Debug)]
pub struct SampleRow {
    /// When it was sent.
    pub started_at: Timestamp,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// What is known after it.
    pub outcome: Outcome,
    /// The answer's status, where one came.
    pub status: Option<i64>,
}

from_row!(SampleRow { started_at, ended_at, outcome, status });

/// The sends since a moment among a destination's newest operations, `most` of them, in no order.
///
/// Ids sort by time, so that both loops follow an index and the cost is that of the sample, however
/// much was ever sent. A count of all sends by the hour would cost every attempt another write.
pub async fn sample(
    tx: &mut Tx,
    name: &str,
    since: Timestamp,
    most: i64,
) -> Result<Vec<SampleRow>, StoreError> {
    let sql = format!(
        "SELECT a.started_at, a.ended_at, a.outcome, a.status FROM \
         (SELECT operation_id, position FROM steps WHERE destination = $1 \
          ORDER BY operation_id DESC LIMIT {most}) s \
         JOIN attempts a ON a.operation_id = s.operation_id AND a.position = s.position \
         WHERE a.started_at >= $2 AND a.asked IS NULL LIMIT {}",
        most * 5
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(name).bind(since).fetch_all(c).await)?)
}

/// When the oldest of a destination's newest operations was received, where there are more than
/// `most`: what was received before it is not in the sample.
pub async fn sampled_since(tx: &mut Tx, name: &str, most: i64) -> Result<Option<Timestamp>, StoreError> {
    let sql = format!(
        "SELECT received_at FROM operations WHERE id = (SELECT operation_id FROM steps \
         WHERE destination = $1 ORDER BY operation_id DESC LIMIT 1 OFFSET {most})"
    );
    Ok(on!(tx, c => sqlx::query_scalar(AssertSqlSafe(sql)).bind(name).fetch_optional(c).await)?)
}
