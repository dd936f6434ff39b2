//! People, one-time links and API tokens. Secrets are stored as hashes only.

use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::actor::Scope;
use crate::domain::time::Timestamp;

/// A person.
#[derive(Clone, Debug)]
pub struct UserRow {
    /// UUIDv7.
    pub id: Uuid,
    /// What they sign in with.
    pub name: String,
    /// Their role's name; what it holds, the configuration says.
    pub role: String,
    /// Argon2id in PHC form; absent until they set a password.
    pub password_hash: Option<String>,
    /// When they were added.
    pub created_at: Timestamp,
    /// Since when they may no longer sign in.
    pub disabled_at: Option<Timestamp>,
    /// In which zone they read moments, by its IANA name; absent for UTC.
    pub zone: Option<String>,
    /// Whether they have a second factor, see [`Held::any`](super::factors::Held::any).
    pub second_factor: bool,
}

from_row!(UserRow { id, name, role, password_hash, created_at, disabled_at, zone, second_factor });

const USER: &str = "SELECT id, name, role, password_hash, created_at, disabled_at, zone, \
    EXISTS (SELECT 1 FROM totps t WHERE t.user_id = users.id AND t.confirmed_at IS NOT NULL) \
    OR EXISTS (SELECT 1 FROM passkeys p WHERE p.user_id = users.id) AS second_factor FROM users";

/// Adds a person; false when the name is taken.
pub async fn insert_user(tx: &mut Tx, user: &UserRow) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO users (id, name, role, password_hash, created_at) \
        VALUES ($1, $2, $3, $4, $5) ON CONFLICT (name) DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(user.id)
        .bind(&user.name)
        .bind(&user.role)
        .bind(&user.password_hash)
        .bind(user.created_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// One by sign-in name.
pub async fn user_by_name(tx: &mut Tx, name: &str) -> Result<Option<UserRow>, StoreError> {
    // No name holds one, and PostgreSQL cannot even compare it.
    if name.contains('\0') {
        return Ok(None);
    }
    let sql = sqlx::AssertSqlSafe(format!("{USER} WHERE name = $1"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(name).fetch_optional(c).await)?)
}

/// One by id.
pub async fn user_by_id(tx: &mut Tx, id: Uuid) -> Result<Option<UserRow>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{USER} WHERE id = $1"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(id).fetch_optional(c).await)?)
}

/// Everybody, by name.
pub async fn users(tx: &mut Tx) -> Result<Vec<UserRow>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{USER} ORDER BY name"));
    Ok(on!(tx, c => sqlx::query_as(sql).fetch_all(c).await)?)
}

/// Changes what a person may do.
pub async fn set_role(tx: &mut Tx, id: Uuid, role: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET role = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(role).execute(c).await?.rows_affected());
    Ok(())
}

/// Sets a password's hash.
pub async fn set_password(tx: &mut Tx, id: Uuid, hash: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET password_hash = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(hash).execute(c).await?.rows_affected());
    Ok(())
}

/// Replaces a password's hash by another of the same password; false when it was changed meanwhile.
pub async fn replace_password(tx: &mut Tx, id: Uuid, from: &str, to: &str) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE users SET password_hash = $3 WHERE id = $1 AND password_hash = $2";
    Ok(on!(tx, c => sqlx::query(SQL).bind(id).bind(from).bind(to).execute(c).await?.rows_affected()) == 1)
}

/// Sets in which zone a person reads moments.
pub async fn set_zone(tx: &mut Tx, id: Uuid, zone: &str) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET zone = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(zone).execute(c).await?.rows_affected());
    Ok(())
}

/// Shuts a person out.
pub async fn disable(tx: &mut Tx, id: Uuid, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET disabled_at = $2 WHERE id = $1 AND disabled_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// Lets a person in again.
pub async fn enable(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE users SET disabled_at = NULL WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).execute(c).await?.rows_affected());
    Ok(())
}

/// Everybody who can sign in, here or at an identity provider, with their role's name. Their rows
/// stay locked until the transaction ends.
pub async fn lock_able(tx: &mut Tx) -> Result<Vec<(Uuid, String)>, StoreError> {
    const SQL: &str = "SELECT id, role FROM users WHERE disabled_at IS NULL \
        AND (password_hash IS NOT NULL OR id IN (SELECT user_id FROM identities)) ORDER BY id";
    let lock = if tx.is_postgres() { " FOR UPDATE" } else { "" };
    let sql = sqlx::AssertSqlSafe(format!("{SQL}{lock}"));
    Ok(on!(tx, c => sqlx::query_as(sql).fetch_all(c).await)?)
}

/// Adds a one-time link; `user_id` is absent for the one that makes the first account.
pub async fn insert_link(
    tx: &mut Tx,
    hash: &[u8],
    user_id: Option<Uuid>,
    now: Timestamp,
    expires_at: Timestamp,
) -> Result<(), StoreError> {
    const SQL: &str =
        "INSERT INTO setup_links (hash, user_id, created_at, expires_at) VALUES ($1, $2, $3, $4)";
    on!(tx, c => sqlx::query(SQL).bind(hash).bind(user_id).bind(now).bind(expires_at).execute(c).await?.rows_affected());
    Ok(())
}

/// Ends a person's links that were not used.
pub async fn void_links(tx: &mut Tx, user: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM setup_links WHERE user_id = $1 AND used_at IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(user).execute(c).await?.rows_affected());
    Ok(())
}

/// A one-time link.
#[derive(Clone, Copy, Debug)]
pub struct LinkRow {
    /// Whose password it sets; absent for the first account.
    pub user_id: Option<Uuid>,
    /// Until when it works.
    pub expires_at: Timestamp,
}

from_row!(LinkRow { user_id, expires_at });

/// A link that can still be used.
pub async fn link(tx: &mut Tx, hash: &[u8], now: Timestamp) -> Result<Option<LinkRow>, StoreError> {
    const SQL: &str =
        "SELECT user_id, expires_at FROM setup_links WHERE hash = $1 AND used_at IS NULL AND expires_at > $2";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(hash).bind(now).fetch_optional(c).await)?)
}

/// Uses a link up; false when somebody else did, or it lapsed.
pub async fn use_link(tx: &mut Tx, hash: &[u8], now: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str =
        "UPDATE setup_links SET used_at = $2 WHERE hash = $1 AND used_at IS NULL AND expires_at > $2";
    Ok(on!(tx, c => sqlx::query(SQL).bind(hash).bind(now).execute(c).await?.rows_affected()) == 1)
}

/// An API token.
#[derive(Clone, Debug)]
pub struct TokenRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Unique; the actor's name in the audit.
    pub name: String,
    /// What it is for.
    pub scope: Scope,
    /// Who made it.
    pub created_by: String,
    /// When.
    pub created_at: Timestamp,
    /// Until when it works.
    pub expires_at: Option<Timestamp>,
    /// Since when it does not.
    pub revoked_at: Option<Timestamp>,
    /// To the minute.
    pub last_used_at: Option<Timestamp>,
}

from_row!(TokenRow { id, name, scope, created_by, created_at, expires_at, revoked_at, last_used_at });

const TOKEN: &str = "SELECT id, name, scope, created_by, created_at, expires_at, revoked_at, last_used_at \
    FROM tokens";

/// Adds a token; false when the name is taken.
pub async fn insert_token(tx: &mut Tx, token: &TokenRow, hash: &[u8]) -> Result<bool, StoreError> {
    const SQL: &str = "INSERT INTO tokens (id, name, hash, scope, created_by, created_at, expires_at) \
        VALUES ($1, $2, $3, $4, $5, $6, $7) ON CONFLICT (name) DO NOTHING";
    let added = on!(tx, c => sqlx::query(SQL)
        .bind(token.id)
        .bind(&token.name)
        .bind(hash)
        .bind(token.scope)
        .bind(&token.created_by)
        .bind(token.created_at)
        .bind(token.expires_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(added == 1)
}

/// One by the hash of its secret, whether or not it still works.
pub async fn token_by_hash(tx: &mut Tx, hash: &[u8]) -> Result<Option<TokenRow>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{TOKEN} WHERE hash = $1"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(hash).fetch_optional(c).await)?)
}

/// The hashes of all that work.
pub async fn working_tokens(tx: &mut Tx, now: Timestamp) -> Result<Vec<Vec<u8>>, StoreError> {
    const SQL: &str =
        "SELECT hash FROM tokens WHERE revoked_at IS NULL AND (expires_at IS NULL OR expires_at > $1)";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(now).fetch_all(c).await)?)
}

/// One by name, whether or not it still works.
pub async fn token_by_name(tx: &mut Tx, name: &str) -> Result<Option<TokenRow>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{TOKEN} WHERE name = $1"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(name).fetch_optional(c).await)?)
}

/// All tokens, by name.
pub async fn tokens(tx: &mut Tx) -> Result<Vec<TokenRow>, StoreError> {
    let sql = sqlx::AssertSqlSafe(format!("{TOKEN} ORDER BY name"));
    Ok(on!(tx, c => sqlx::query_as(sql).fetch_all(c).await)?)
}

/// Ends a token; false when none of that name works.
pub async fn revoke_token(tx: &mut Tx, name: &str, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE tokens SET revoked_at = $2 WHERE name = $1 AND revoked_at IS NULL";
    Ok(on!(tx, c => sqlx::query(SQL).bind(name).bind(at).execute(c).await?.rows_affected()) == 1)
}

/// Notes that a token was used.
pub async fn touch_token(tx: &mut Tx, id: Uuid, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE tokens SET last_used_at = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(at).execute(c).await?.rows_affected());
    Ok(())
}
