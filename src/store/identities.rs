//! Who people are at an identity provider.

use std::collections::HashSet;

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::identity::Identity;
use crate::domain::time::Timestamp;

/// Whose account it is; nobody's before their first sign-in.
pub async fn user(tx: &mut Tx, identity: &Identity) -> Result<Option<Uuid>, StoreError> {
    const SQL: &str = "SELECT user_id FROM identities WHERE issuer = $1 AND subject = $2";
    Ok(on!(tx, c => sqlx::query_scalar(SQL)
        .bind(&identity.issuer)
        .bind(&identity.subject)
        .fetch_optional(c)
        .await)?)
}

/// Gives an identity to an account; false when somebody's it is already.
pub async fn insert(
    tx: &mut Tx,
    identity: &Identity,
    user: Uuid,
    now: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO identities (issuer, subject, user_id, created_at) VALUES ($1, $2, $3, $4) \
        ON CONFLICT (issuer, subject) DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(&identity.issuer)
        .bind(&identity.subject)
        .bind(user)
        .bind(now)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// Everybody who has one.
pub async fn users(tx: &mut Tx) -> Result<HashSet<Uuid>, StoreError> {
    const SQL: &str = "SELECT DISTINCT user_id FROM identities";
    let found: Vec<Uuid> = on!(tx, c => sqlx::query_scalar(SQL).fetch_all(c).await)?;
    Ok(found.into_iter().collect())
}
