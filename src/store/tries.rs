//! How often somebody tried a password or a code lately.

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// What is counted under one key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TriesRow {
    /// Tries since the last pause.
    pub count: i64,
    /// The last of them.
    pub last_at: Timestamp,
}

from_row!(TriesRow { count, last_at });

/// What is counted under a key, with its row locked until the transaction ends: tries that come at
/// once, on this node or another, take turns. A count that ended before `forgotten` begins anew.
pub async fn lock(
    tx: &mut Tx,
    key: &[u8],
    now: Timestamp,
    forgotten: Timestamp,
) -> Result<TriesRow, StoreError> {
    const SQL: &str = "INSERT INTO tries (key, count, last_at) VALUES ($1, 0, $2) \
        ON CONFLICT (key) DO UPDATE SET count = CASE WHEN tries.last_at <= $3 THEN 0 ELSE tries.count END \
        RETURNING count, last_at";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(key).bind(now).bind(forgotten).fetch_one(c).await)?)
}

/// Counts a try.
pub async fn count(tx: &mut Tx, key: &[u8], now: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE tries SET count = count + 1, last_at = $2 WHERE key = $1";
    on!(tx, c => sqlx::query(SQL).bind(key).bind(now).execute(c).await?.rows_affected());
    Ok(())
}

/// Takes one try back.
pub async fn take_back(tx: &mut Tx, key: &[u8]) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE tries SET count = count - 1 WHERE key = $1 AND count > 0";
    on!(tx, c => sqlx::query(SQL).bind(key).execute(c).await?.rows_affected());
    Ok(())
}

/// Forgets all tries under a key.
pub async fn forget(tx: &mut Tx, key: &[u8]) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM tries WHERE key = $1";
    on!(tx, c => sqlx::query(SQL).bind(key).execute(c).await?.rows_affected());
    Ok(())
}

/// Drops what ended before `forgotten`, some at a time; how many.
pub async fn drop_old(tx: &mut Tx, forgotten: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM tries WHERE key IN (SELECT key FROM tries WHERE last_at <= $1 LIMIT 500)";
    Ok(on!(tx, c => sqlx::query(SQL).bind(forgotten).execute(c).await?.rows_affected()))
}
