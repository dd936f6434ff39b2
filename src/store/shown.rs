//! Until when a session is shown an operation's private values.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// Shows them to a session, by its hash; false when the session is gone.
pub async fn begin(
    tx: &mut Tx,
    session: &[u8],
    operation: Uuid,
    ends_at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO shown (session, operation_id, ends_at) \
        SELECT hash, $2, $3 FROM sessions WHERE hash = $1 \
        ON CONFLICT (session, operation_id) DO UPDATE SET ends_at = excluded.ends_at";
    let written = on!(tx, c => sqlx::query(SQL)
        .bind(session)
        .bind(operation)
        .bind(ends_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(written == 1)
}

/// Until when; absent when they are hidden.
pub async fn ends_at(
    tx: &mut Tx,
    session: &[u8],
    operation: Uuid,
    now: Timestamp,
) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT ends_at FROM shown WHERE session = $1 AND operation_id = $2 AND ends_at > $3";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(session).bind(operation).bind(now).fetch_optional(c).await)?)
}

/// Hides them; false when they were hidden.
pub async fn end(tx: &mut Tx, session: &[u8], operation: Uuid, now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM shown WHERE session = $1 AND operation_id = $2 AND ends_at > $3";
    Ok(
        on!(tx, c => sqlx::query(SQL).bind(session).bind(operation).bind(now).execute(c).await?.rows_affected())
            == 1,
    )
}
