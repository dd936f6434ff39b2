//! The database and the processes on it, for the page that tells how things stand.

use sqlx::AssertSqlSafe;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// The attempts whose nodes are counted.
pub const LATEST: i64 = 500;

/// A process that made attempts lately.
#[derive(Clone, Debug)]
pub struct NodeRow {
    /// Its name, made when it started.
    pub node: String,
    /// When it began its last attempt.
    pub last_at: Timestamp,
    /// How many of the latest attempts it made.
    pub attempts: i64,
    /// How many of them are under way.
    pub running: i64,
}

from_row!(NodeRow { node, last_at, attempts, running });

/// Who made the latest attempts, the busiest of this moment first.
pub async fn latest(tx: &mut Tx) -> Result<Vec<NodeRow>, StoreError> {
    // Ids sort by time, so that the latest are read from the end of their index.
    let sql = format!(
        "SELECT node, max(started_at) AS last_at, count(*) AS attempts, \
         CAST(coalesce(sum(CASE WHEN outcome = 'running' THEN 1 ELSE 0 END), 0) AS BIGINT) AS running \
         FROM (SELECT node, started_at, outcome FROM attempts ORDER BY id DESC LIMIT {LATEST}) latest \
         GROUP BY node ORDER BY max(started_at) DESC, node"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).fetch_all(c).await)?)
}

/// What waits in one lane.
#[derive(Clone, Debug)]
pub struct LaneRow {
    /// A destination's name, or `worker:` and a type.
    pub lane: String,
    /// Rows of work that wait, up to the bound that was asked for.
    pub waiting: i64,
    /// Since when the longest of those is due that are due; absent when none is.
    pub due_since: Option<Timestamp>,
    /// Rows of work under lease.
    pub leased: i64,
    /// When the first of those leases ends.
    pub lease_ends: Option<Timestamp>,
}

from_row!(LaneRow { lane, waiting, due_since, leased, lease_ends });

/// How one lane stands at `now`. Counting stops at `most`.
pub async fn lane(tx: &mut Tx, lane: &str, now: Timestamp, most: i64) -> Result<LaneRow, StoreError> {
    let sql = format!(
        "SELECT $1 AS lane, \
         (SELECT count(*) FROM (SELECT 1 FROM work WHERE lane = $1 AND leased_until IS NULL LIMIT {most}) w) AS waiting, \
         (SELECT min(due_at) FROM work WHERE lane = $1 AND leased_until IS NULL AND due_at <= $2) AS due_since, \
         (SELECT count(*) FROM work WHERE lane = $1 AND leased_until IS NOT NULL) AS leased, \
         (SELECT min(leased_until) FROM work WHERE lane = $1 AND leased_until IS NOT NULL) AS lease_ends"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(lane).bind(now).fetch_one(c).await)?)
}

/// How large the database is, in bytes.
pub async fn size(tx: &mut Tx) -> Result<i64, StoreError> {
    // Each product has its own word for it.
    let sql = if tx.is_postgres() {
        "SELECT pg_database_size(current_database())"
    } else {
        "SELECT page_count * page_size FROM pragma_page_count(), pragma_page_size()"
    };
    Ok(on!(tx, c => sqlx::query_scalar(sql).fetch_one(c).await)?)
}

/// When old data is looked through next; a past moment while that is under way.
pub async fn upkeep_due(tx: &mut Tx) -> Result<Timestamp, StoreError> {
    Ok(on!(tx, c => sqlx::query_scalar("SELECT due_at FROM upkeep").fetch_one(c).await)?)
}
