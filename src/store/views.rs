//! Filters of the list of dead letters that people keep.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// A kept filter.
#[derive(Clone, Debug)]
pub struct ViewRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Whose it is.
    pub owner: String,
    /// What they call it; unique among theirs.
    pub name: String,
    /// The list's query string.
    pub query: String,
    /// Everybody sees it.
    pub shared: bool,
    /// When it was kept.
    pub created_at: Timestamp,
}

from_row!(ViewRow { id, owner, name, query, shared, created_at });

/// Keeps a view; one of the same owner and name takes the new filter.
pub async fn save(tx: &mut Tx, view: &ViewRow) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO views (id, owner, name, query, shared, created_at) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (owner, name) DO UPDATE SET query = excluded.query, \
        shared = excluded.shared, created_at = excluded.created_at";
    on!(tx, c => sqlx::query(SQL)
        .bind(view.id)
        .bind(&view.owner)
        .bind(&view.name)
        .bind(&view.query)
        .bind(view.shared)
        .bind(view.created_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// A person's own and those that others share, by name.
pub async fn seen_by(tx: &mut Tx, reader: &str) -> Result<Vec<ViewRow>, StoreError> {
    const SQL: &str = "SELECT id, owner, name, query, shared, created_at FROM views \
        WHERE owner = $1 OR shared ORDER BY name, id";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(reader).fetch_all(c).await)?)
}

/// How many a person keeps under other names.
pub async fn others_kept_by(tx: &mut Tx, owner: &str, name: &str) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(*) FROM views WHERE owner = $1 AND name <> $2";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(owner).bind(name).fetch_one(c).await)?)
}

/// Drops a view of this owner; its name, or `None` when they have none of this id.
pub async fn delete(tx: &mut Tx, id: Uuid, owner: &str) -> Result<Option<String>, StoreError> {
    const SQL: &str = "DELETE FROM views WHERE id = $1 AND owner = $2 RETURNING name";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(id).bind(owner).fetch_optional(c).await)?)
}
