//! The settings that a start was last seen with, as keyed digests.

use std::collections::BTreeMap;

use super::{StoreError, Tx};

/// Settings by name.
pub type Digests = BTreeMap<String, Vec<u8>>;

/// What was seen last, and the secret key that the digests were made with; absent before the first
/// start.
pub async fn seen(tx: &mut Tx) -> Result<Option<(String, Digests)>, StoreError> {
    const SQL: &str = "SELECT name, digest, key_id FROM settings_seen";
    let rows: Vec<(String, Vec<u8>, String)> = on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?;
    let key_id = rows.first().map(|(_, _, key_id)| key_id.clone());
    let digests = rows.into_iter().map(|(name, digest, _)| (name, digest)).collect();
    Ok(key_id.map(|key_id| (key_id, digests)))
}

/// Takes these in the place of what was seen before. They are written in the order of their names,
/// so that two nodes that start at once wait for each other and no more.
pub async fn replace(tx: &mut Tx, key_id: &str, digests: &Digests) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO settings_seen (name, digest, key_id) VALUES ($1, $2, $3) \
        ON CONFLICT (name) DO UPDATE SET digest = excluded.digest, key_id = excluded.key_id";
    const NAMES: &str = "SELECT name FROM settings_seen ORDER BY name";
    for (name, digest) in digests {
        on!(&mut *tx, c => sqlx::query(SQL).bind(name).bind(digest).bind(key_id).execute(c).await?.rows_affected());
    }
    let names: Vec<String> = on!(&mut *tx, c => sqlx::query_scalar(NAMES).fetch_all(c).await)?;
    for name in names.iter().filter(|name| !digests.contains_key(*name)) {
        const SQL: &str = "DELETE FROM settings_seen WHERE name = $1";
        on!(&mut *tx, c => sqlx::query(SQL).bind(name).execute(c).await?.rows_affected());
    }
    Ok(())
}
