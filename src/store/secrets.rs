//! Secrets that the configuration names, in envelopes.

use super::{StoreError, Tx};
use crate::domain::envelope::Envelope;
use crate::domain::time::Timestamp;

/// What is known of a secret without opening it.
#[derive(Clone, Debug)]
pub struct SecretRow {
    /// As the configuration calls it.
    pub name: String,
    /// How often it was set, from 1.
    pub version: i64,
    /// The secret key that opens it.
    pub key_id: String,
    /// When it was last set.
    pub set_at: Timestamp,
    /// By whom.
    pub set_by: String,
}

from_row!(SecretRow { name, version, key_id, set_at, set_by });

/// What an envelope of this table belongs to.
pub fn belongs(name: &str, version: i64) -> String {
    format!("secrets/{name}/{version}")
}

/// All of them, by name.
pub async fn list(tx: &mut Tx) -> Result<Vec<SecretRow>, StoreError> {
    const SQL: &str = "SELECT name, version, key_id, set_at, set_by FROM secrets ORDER BY name";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}

/// One's version and envelope.
pub async fn envelope(tx: &mut Tx, name: &str) -> Result<Option<(i64, Envelope)>, StoreError> {
    const SQL: &str = "SELECT version, key_id, wrapped, sealed FROM secrets WHERE name = $1";
    let row: Option<(i64, String, Vec<u8>, Vec<u8>)> =
        on!(tx, c => sqlx::query_as(SQL).bind(name).fetch_optional(c).await)?;
    Ok(row.map(|(version, key_id, wrapped, sealed)| (version, Envelope { key_id, wrapped, sealed })))
}

/// One's version, which stays the same until the transaction ends.
pub async fn lock(tx: &mut Tx, name: &str) -> Result<Option<i64>, StoreError> {
    // On SQLite whoever writes is alone already, and there is no such clause.
    const POSTGRES: &str = "SELECT version FROM secrets WHERE name = $1 FOR UPDATE";
    const SQLITE: &str = "SELECT version FROM secrets WHERE name = $1";
    let sql = if tx.is_postgres() { POSTGRES } else { SQLITE };
    Ok(on!(tx, c => sqlx::query_scalar(sql).bind(name).fetch_optional(c).await)?)
}

/// Adds one; false when somebody else added it first.
pub async fn insert(tx: &mut Tx, row: &SecretRow, envelope: &Envelope) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO secrets (name, version, key_id, wrapped, sealed, set_at, set_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING";
    write(tx, SQL, row, envelope).await
}

/// Replaces one; false when it is not there.
pub async fn replace(tx: &mut Tx, row: &SecretRow, envelope: &Envelope) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE secrets SET version = $2, key_id = $3, wrapped = $4, sealed = $5, set_at = $6, \
        set_by = $7 WHERE name = $1";
    write(tx, SQL, row, envelope).await
}

async fn write(
    tx: &mut Tx,
    sql: &'static str,
    row: &SecretRow,
    envelope: &Envelope,
) -> Result<bool, StoreError> {
    let written = on!(tx, c => sqlx::query(sql)
        .bind(&row.name)
        .bind(row.version)
        .bind(&row.key_id)
        .bind(&envelope.wrapped)
        .bind(&envelope.sealed)
        .bind(row.set_at)
        .bind(&row.set_by)
        .execute(c)
        .await?
        .rows_affected());
    Ok(written == 1)
}

/// Removes one; false when it is not there.
pub async fn delete(tx: &mut Tx, name: &str) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM secrets WHERE name = $1";
    Ok(on!(tx, c => sqlx::query(SQL).bind(name).execute(c).await?.rows_affected()) == 1)
}
