//! What somebody should be told of: one open row a kind and subject, however often it happens.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

text_enum! {
    /// What an alert is about.
    pub enum AlertKind {
        /// A destination was paused by the engine.
        Paused = "destination_paused",
    }
}

stored_as_text!(AlertKind);

/// An alert.
#[derive(Clone, Debug)]
pub struct AlertRow {
    /// UUIDv7.
    pub id: Uuid,
    /// When it began.
    pub at: Timestamp,
    /// What it is about.
    pub kind: AlertKind,
    /// Whom or what.
    pub subject: String,
    /// For people.
    pub detail: String,
    /// When it was over.
    pub closed_at: Option<Timestamp>,
}

from_row!(AlertRow { id, at, kind, subject, detail, closed_at });

/// Opens one; false when one of its kind and subject is open already.
pub async fn open(tx: &mut Tx, row: &AlertRow) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO alerts (id, at, kind, subject, detail) VALUES ($1, $2, $3, $4, $5) \
        ON CONFLICT (kind, subject) WHERE closed_at IS NULL DO NOTHING";
    let opened = on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.at)
        .bind(row.kind)
        .bind(&row.subject)
        .bind(&row.detail)
        .execute(c)
        .await?
        .rows_affected());
    Ok(opened == 1)
}

/// Closes the open one, if any.
pub async fn close(tx: &mut Tx, kind: AlertKind, subject: &str, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str =
        "UPDATE alerts SET closed_at = $3 WHERE kind = $1 AND subject = $2 AND closed_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(kind).bind(subject).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// Those that are open, oldest first.
pub async fn open_ones(tx: &mut Tx) -> Result<Vec<AlertRow>, StoreError> {
    const SQL: &str =
        "SELECT id, at, kind, subject, detail, closed_at FROM alerts WHERE closed_at IS NULL ORDER BY at, id";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}
