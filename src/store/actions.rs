//! A person's action and its answer: the same action id again returns the first answer.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// What was answered to an action.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answered {
    /// What was asked, of what; nothing once it was erased, with the answer, since it quoted somebody.
    pub subject: String,
    /// The answer, as stored.
    pub answer: String,
    /// When it was taken, or told last how far it is.
    pub at: Timestamp,
}

from_row!(Answered { subject, answer, at });

/// Takes an action id for a subject; the earlier answer when it was taken before. A second caller
/// waits here until the first one's transaction ends.
pub async fn take(
    tx: &mut Tx,
    actor: &str,
    action_id: &str,
    subject: &str,
    at: Timestamp,
) -> Result<Option<Answered>, StoreError> {
    const INSERT: &str = "INSERT INTO actions (actor, action_id, at, subject, answer) VALUES ($1, $2, $3, $4, '') \
        ON CONFLICT (actor, action_id) DO NOTHING";
    let taken = on!(&mut *tx, c => sqlx::query(INSERT)
        .bind(actor)
        .bind(action_id)
        .bind(at)
        .bind(subject)
        .execute(c)
        .await?
        .rows_affected());
    if taken == 1 {
        return Ok(None);
    }
    find(tx, actor, action_id).await
}

/// What was answered to an action, if it was ever taken.
pub async fn find(tx: &mut Tx, actor: &str, action_id: &str) -> Result<Option<Answered>, StoreError> {
    const SQL: &str = "SELECT subject, answer, at FROM actions WHERE actor = $1 AND action_id = $2";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(actor).bind(action_id).fetch_optional(c).await)?)
}

/// Stores the answer of an action that was taken in this transaction, and the operation that it was
/// about, if any: the answer goes when that is erased.
pub async fn answer(
    tx: &mut Tx,
    actor: &str,
    action_id: &str,
    operation: impl Into<Option<Uuid>>,
    answer: &str,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE actions SET answer = $4, operation_id = $3 WHERE actor = $1 AND action_id = $2";
    on!(tx, c => sqlx::query(SQL)
        .bind(actor)
        .bind(action_id)
        .bind(operation.into())
        .bind(answer)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// Stores how far an action is that takes many transactions.
pub async fn progress(
    tx: &mut Tx,
    (actor, action_id): (&str, &str),
    answer: &str,
    at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE actions SET answer = $3, at = $4 WHERE actor = $1 AND action_id = $2";
    on!(tx, c => sqlx::query(SQL)
        .bind(actor)
        .bind(action_id)
        .bind(answer)
        .bind(at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// An actor's last actions whose subject begins so, newest first.
pub async fn lately(tx: &mut Tx, actor: &str, subject: &str, most: i64) -> Result<Vec<Answered>, StoreError> {
    const SQL: &str = "SELECT subject, answer, at FROM actions WHERE actor = $1 \
        AND substr(subject, 1, length($2)) = $2 ORDER BY at DESC, action_id DESC LIMIT $3";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(actor).bind(subject).bind(most).fetch_all(c).await)?)
}
