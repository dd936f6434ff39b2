//! What people show beside their password: an authenticator app, passkeys, recovery codes.

use uuid::Uuid;

use super::{StoreError, Tx, placeholders};
use crate::domain::envelope::Envelope;
use crate::domain::time::Timestamp;

/// What somebody has beside their password, and could show at this moment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// An authenticator app whose first code was right.
    pub app: bool,
    /// Passkeys.
    pub passkeys: i64,
    /// Recovery codes that were not used.
    pub codes: i64,
}

from_row!(Held { app, passkeys, codes });

impl Held {
    /// Whether there is a second factor. Recovery codes stand in for one that is lost and are none.
    pub fn any(self) -> bool {
        self.app || self.passkeys > 0
    }

    /// Whether a typed code could be right.
    pub fn takes_codes(self) -> bool {
        self.app || self.codes > 0
    }
}

/// What a person has.
pub async fn held(tx: &mut Tx, user: Uuid) -> Result<Held, StoreError> {
    const SQL: &str = "SELECT \
        EXISTS (SELECT 1 FROM totps WHERE user_id = $1 AND confirmed_at IS NOT NULL) AS app, \
        (SELECT count(*) FROM passkeys WHERE user_id = $1) AS passkeys, \
        (SELECT count(*) FROM recovery_codes WHERE user_id = $1 AND used_at IS NULL) AS codes";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(user).fetch_one(c).await)?)
}

/// Somebody's authenticator app.
#[derive(Clone, Debug)]
pub struct TotpRow {
    /// Which secret key opens it.
    pub key_id: String,
    /// The encrypted data key.
    pub wrapped: Vec<u8>,
    /// The encrypted secret.
    pub sealed: Vec<u8>,
    /// When the secret was made.
    pub made_at: Timestamp,
    /// When a first code was right; until then it counts for nothing.
    pub confirmed_at: Option<Timestamp>,
}

from_row!(TotpRow { key_id, wrapped, sealed, made_at, confirmed_at });

impl TotpRow {
    /// Its secret, still closed.
    pub fn envelope(self) -> Envelope {
        Envelope { key_id: self.key_id, wrapped: self.wrapped, sealed: self.sealed }
    }
}

/// Somebody's authenticator app, confirmed or not.
pub async fn totp(tx: &mut Tx, user: Uuid) -> Result<Option<TotpRow>, StoreError> {
    const SQL: &str = "SELECT key_id, wrapped, sealed, made_at, confirmed_at FROM totps WHERE user_id = $1";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(user).fetch_optional(c).await)?)
}

/// Stores a new secret in the place of one that was never confirmed; false when a confirmed one is
/// there.
pub async fn put_totp(tx: &mut Tx, user: Uuid, secret: &Envelope, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO totps (user_id, key_id, wrapped, sealed, made_at, last_step) \
        VALUES ($1, $2, $3, $4, $5, 0) ON CONFLICT (user_id) DO UPDATE SET key_id = excluded.key_id, \
        wrapped = excluded.wrapped, sealed = excluded.sealed, made_at = excluded.made_at \
        WHERE totps.confirmed_at IS NULL";
    let put = on!(tx, c => sqlx::query(SQL)
        .bind(user)
        .bind(&secret.key_id)
        .bind(&secret.wrapped)
        .bind(&secret.sealed)
        .bind(at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(put == 1)
}

/// Makes an app count, and uses up the step of its first code; false when it counts already.
pub async fn confirm_totp(tx: &mut Tx, user: Uuid, step: i64, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE totps SET confirmed_at = $3, last_step = $2 \
        WHERE user_id = $1 AND confirmed_at IS NULL";
    Ok(on!(tx, c => sqlx::query(SQL).bind(user).bind(step).bind(at).execute(c).await?.rows_affected()) == 1)
}

/// Uses up a step and those before it; false when it was used up already.
pub async fn take_step(tx: &mut Tx, user: Uuid, step: i64) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE totps SET last_step = $2 WHERE user_id = $1 AND last_step < $2";
    Ok(on!(tx, c => sqlx::query(SQL).bind(user).bind(step).execute(c).await?.rows_affected()) == 1)
}

/// Forgets an app; false when there is none.
pub async fn delete_totp(tx: &mut Tx, user: Uuid) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM totps WHERE user_id = $1";
    Ok(on!(tx, c => sqlx::query(SQL).bind(user).execute(c).await?.rows_affected()) == 1)
}

/// Puts new recovery codes in the place of all that there were.
pub async fn put_codes(
    tx: &mut Tx,
    user: Uuid,
    hashes: &[[u8; 32]],
    at: Timestamp,
) -> Result<(), StoreError> {
    delete_codes(tx, user).await?;
    let sql = format!(
        "INSERT INTO recovery_codes (user_id, hash, made_at) VALUES {}",
        placeholders(hashes.len(), 3)
    );
    on!(tx, c => {
        let mut query = sqlx::query(sqlx::AssertSqlSafe(sql));
        for hash in hashes {
            query = query.bind(user).bind(hash.as_slice()).bind(at);
        }
        query.execute(c).await?.rows_affected()
    });
    Ok(())
}

/// Uses a recovery code up; false when there is none like it, or it was used.
pub async fn use_code(tx: &mut Tx, user: Uuid, hash: &[u8], at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE recovery_codes SET used_at = $3 \
        WHERE user_id = $1 AND hash = $2 AND used_at IS NULL";
    Ok(on!(tx, c => sqlx::query(SQL).bind(user).bind(hash).bind(at).execute(c).await?.rows_affected()) == 1)
}

/// Forgets somebody's recovery codes, used or not.
pub async fn delete_codes(tx: &mut Tx, user: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM recovery_codes WHERE user_id = $1";
    on!(tx, c => sqlx::query(SQL).bind(user).execute(c).await?.rows_affected());
    Ok(())
}

/// A passkey.
#[derive(Clone, Debug)]
pub struct PasskeyRow {
    /// UUIDv7.
    pub id: Uuid,
    /// What its owner calls it.
    pub name: String,
    /// Public key and counter, as JSON.
    pub data: String,
    /// When it was added.
    pub made_at: Timestamp,
    /// When it was used last.
    pub used_at: Option<Timestamp>,
}

from_row!(PasskeyRow { id, name, data, made_at, used_at });

/// Somebody's passkeys, the oldest first. Their rows stay locked until the transaction ends, where
/// it may write: of two uses at a time the second sees the counter that the first one left.
pub async fn passkeys(tx: &mut Tx, user: Uuid, lock: bool) -> Result<Vec<PasskeyRow>, StoreError> {
    const SQL: &str =
        "SELECT id, name, data, made_at, used_at FROM passkeys WHERE user_id = $1 ORDER BY made_at, id";
    let lock = if lock && tx.is_postgres() { " FOR UPDATE" } else { "" };
    let sql = sqlx::AssertSqlSafe(format!("{SQL}{lock}"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(user).fetch_all(c).await)?)
}

/// Adds a passkey; false when it is somebody's already.
pub async fn insert_passkey(
    tx: &mut Tx,
    user: Uuid,
    credential: &[u8],
    row: &PasskeyRow,
) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO passkeys (id, user_id, credential, name, data, made_at) \
        VALUES ($1, $2, $3, $4, $5, $6) ON CONFLICT (credential) DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(user)
        .bind(credential)
        .bind(&row.name)
        .bind(&row.data)
        .bind(row.made_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// Notes a use, with the counter that came with it.
pub async fn use_passkey(tx: &mut Tx, id: Uuid, data: &str, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE passkeys SET data = $2, used_at = $3 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(data).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// Forgets one of somebody's passkeys; false when they have none of this id.
pub async fn delete_passkey(tx: &mut Tx, user: Uuid, id: Uuid) -> Result<bool, StoreError> {
    const SQL: &str = "DELETE FROM passkeys WHERE user_id = $1 AND id = $2";
    Ok(on!(tx, c => sqlx::query(SQL).bind(user).bind(id).execute(c).await?.rows_affected()) == 1)
}

/// Forgets all of somebody's passkeys.
pub async fn delete_passkeys(tx: &mut Tx, user: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM passkeys WHERE user_id = $1";
    on!(tx, c => sqlx::query(SQL).bind(user).execute(c).await?.rows_affected());
    Ok(())
}
