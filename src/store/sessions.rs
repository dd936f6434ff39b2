//! Sign-in sessions, under the hash of their token.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;

/// A person's session, as people see it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionRow {
    /// What it is called in lists; of no use to a browser.
    pub id: Uuid,
    /// Whose it is.
    pub user_id: Uuid,
    /// When they signed in.
    pub began_at: Timestamp,
    /// Its last use, to the minute.
    pub seen_at: Timestamp,
    /// From where they signed in.
    pub address: String,
    /// Their browser, in words.
    pub agent: String,
    /// With what they signed in.
    pub signed_in_by: SignInBy,
}

from_row!(SessionRow { id, user_id, began_at, seen_at, address, agent, signed_in_by });

/// Adds a session of `owner`, or of nobody; false when its token is taken. It is in nobody's list
/// without `listed`, and takes the place of one that is listed under the same id: the one that goes on
/// under a new token, of which two clicks at once make two.
pub async fn insert(
    tx: &mut Tx,
    hash: &[u8],
    data: &str,
    expires_at: Timestamp,
    owner: Option<Uuid>,
    listed: Option<&SessionRow>,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO sessions \
        (hash, data, expires_at, user_id, id, began_at, seen_at, address, agent, signed_in_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10) ON CONFLICT (hash) DO NOTHING";
    if let Some(SessionRow { user_id, id, .. }) = listed {
        delete_one(tx, *user_id, *id).await?;
    }
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(hash)
        .bind(data)
        .bind(expires_at)
        .bind(owner)
        .bind(listed.map(|row| row.id))
        .bind(listed.map(|row| row.began_at))
        .bind(listed.map(|row| row.seen_at))
        .bind(listed.map(|row| row.address.as_str()))
        .bind(listed.map(|row| row.agent.as_str()))
        .bind(listed.map(|row| row.signed_in_by))
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
    data: &str,
    expires_at: Timestamp,
    seen_at: Option<Timestamp>,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE sessions SET data = $2, expires_at = $3, seen_at = $4 WHERE hash = $1";
    on!(tx, c => sqlx::query(SQL).bind(hash).bind(data).bind(expires_at).bind(seen_at).execute(c).await?.rows_affected());
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

/// A person's sessions that have not lapsed, the last used first.
pub async fn of_user(tx: &mut Tx, user: Uuid, now: Timestamp) -> Result<Vec<SessionRow>, StoreError> {
    const SQL: &str = "SELECT id, user_id, began_at, seen_at, address, agent, signed_in_by FROM sessions \
        WHERE user_id = $1 AND id IS NOT NULL AND expires_at > $2 ORDER BY seen_at DESC, id";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(user).bind(now).fetch_all(c).await)?)
}

/// Ends a session.
pub async fn delete(tx: &mut Tx, hash: &[u8]) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE hash = $1";
    on!(tx, c => sqlx::query(SQL).bind(hash).execute(c).await?.rows_affected());
    Ok(())
}

/// Ends a person's session of this id, and returns it; absent when it is not theirs or has ended.
pub async fn delete_one(tx: &mut Tx, user: Uuid, id: Uuid) -> Result<Option<SessionRow>, StoreError> {
    const SQL: &str = "DELETE FROM sessions WHERE user_id = $1 AND id = $2 \
        RETURNING id, user_id, began_at, seen_at, address, agent, signed_in_by";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(user).bind(id).fetch_optional(c).await)?)
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
