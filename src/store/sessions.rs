//! Sign-in sessions, under the hash of their id.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// Adds a session; false when the id is taken.
pub async fn insert(
    tx: &mut Tx,
    hash: &[u8],
    user_id: Option<Uuid>,
    data: &str,
    expires_at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO sessions (hash, user_id, data, expires_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (hash) DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(hash)
        .bind(user_id)
        .bind(data)
        .bind(expires_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// Replaces a session's data. One that has ended meanwhile stays ended: a request that read it
/// before a sign-out or a change of the person must not bring it back.
pub async fn save(
    tx: &mut Tx,
    hash: &[u8],
    user_id: Option<Uuid>,
    data: &str,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE sessions SET user_id = $2, data = $3, expires_at = $4 WHERE hash = $1";
    on!(tx, c => sqlx::query(SQL).bind(hash).bind(user_id).bind(data).bind(expires_at).execute(c).await?.rows_affected());
    Ok(())
}

/// A session that has not lapsed: its data and its end.
pub async fn load(
    tx: &mut Tx,
    hash: &[u8],
    now: Timestamp,
) -> Result<Option<(String, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT data, expires_at FROM sessions WHERE hash = $1 AND expires_at > $2";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(hash).bind(now).fetch_optional(c).await)?)
}

/// Ends a session.
pub async fn delete(tx: &mut Tx, hash: &[u8]) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE hash = $1";
    on!(tx, c => sqlx::query(SQL).bind(hash).execute(c).await?.rows_affected());
    Ok(())
}

/// Ends all of a person's sessions.
pub async fn delete_of_user(tx: &mut Tx, user: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE user_id = $1";
    on!(tx, c => sqlx::query(SQL).bind(user).execute(c).await?.rows_affected());
    Ok(())
}

/// Drops lapsed sessions, some at a time so that no writer waits long; how many.
pub async fn delete_expired(tx: &mut Tx, now: Timestamp) -> Result<u64, StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE hash IN \
        (SELECT hash FROM sessions WHERE expires_at <= $1 LIMIT 500)";
    Ok(on!(tx, c => sqlx::query(SQL).bind(now).execute(c).await?.rows_affected()))
}
