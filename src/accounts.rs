//! People and tokens: passwords, one-time links, API tokens. Secrets leave this module once, when
//! they are made; only their hashes are stored.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use sha2::{Digest, Sha256};
use std::time::Duration;
use tokio::sync::Semaphore;
use uuid::Uuid;

use crate::domain::actor::{Actor, Role, Scope};
use crate::domain::ambient::Ambient;
use crate::store::accounts::{self, TokenRow, UserRow};
use crate::store::audit::{self, AuditRow};
use crate::store::{Db, StoreError, Tx, sessions};

/// The shortest password, in characters.
pub const MIN_PASSWORD: usize = 8;
/// The longest that is hashed: a bound on work, far above what people type.
pub const MAX_PASSWORD: usize = 1_024;
/// How long a one-time link works.
pub const LINK_LASTS: Duration = Duration::from_mins(30);
/// Begins every API token, so that a leaked one is recognised.
const TOKEN_PREFIX: &str = "dlo_";

/// Hashes at once: each takes 19 MiB and a core for some 20 ms.
static HASHING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

/// Why something about an account was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is taken, or no name.
    #[error("{0}")]
    Name(String),
    /// The password is too short or too long.
    #[error("{0}")]
    Password(String),
    /// There is no such person or token.
    #[error("there is no {0}")]
    Unknown(String),
    /// The link was used, lapsed or never existed.
    #[error("this link is no longer valid; ask for a new one")]
    Link,
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A hash could not be made or read.
    #[error("password hashing failed: {0}")]
    Hash(String),
}

/// Who changes an account, and from where, for the audit.
#[derive(Clone, Debug)]
pub struct By<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// An address, or the command line.
    pub origin: &'a str,
}

/// Checks a sign-in. The same work and the same answer for a wrong password, an unknown name and a
/// disabled account, so that none can be told from the others.
pub async fn sign_in(db: &Db, name: &str, password: String) -> Result<Option<UserRow>, AccountError> {
    let mut tx = db.read().await?;
    let user = accounts::user_by_name(&mut tx, &name.replace('\0', "")).await?;
    drop(tx);
    let hash = user.as_ref().and_then(|user| user.password_hash.clone());
    let matches = verify(password, hash).await?;
    Ok(user.filter(|user| matches && user.disabled_at.is_none()))
}

/// Adds a person. Without a password they need a link to set one.
pub async fn add_user(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    role: Role,
    password: Option<String>,
    by: &By<'_>,
) -> Result<UserRow, AccountError> {
    let name = checked_name(name)?;
    let password_hash = match password {
        Some(password) => Some(hash_password(password).await?),
        None => None,
    };
    let now = ambient.now();
    let user = UserRow {
        id: ambient.id(),
        name: name.clone(),
        role,
        password_hash,
        created_at: now,
        disabled_at: None,
    };
    let mut tx = db.begin().await?;
    if !accounts::insert_user(&mut tx, &user).await? {
        return Err(AccountError::Name(format!("the name {name:?} is taken")));
    }
    note(&mut tx, ambient, by, "user_add", &format!("{name} as {role}")).await?;
    tx.commit().await?;
    Ok(user)
}

/// Changes what a person may do; their sessions end, so that it holds at once.
pub async fn set_role(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    role: Role,
    by: &By<'_>,
) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::set_role(&mut tx, user.id, role).await?;
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "user_role", &format!("{name}: {} to {role}", user.role)).await?;
    Ok(tx.commit().await?)
}

/// Shuts a person out, at once.
pub async fn disable(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::disable(&mut tx, user.id, ambient.now()).await?;
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "user_disable", name).await?;
    Ok(tx.commit().await?)
}

/// Changes a person's own password, given the present one; their other sessions end.
pub async fn change_password(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    present: String,
    new: String,
    by: &By<'_>,
) -> Result<(), AccountError> {
    if sign_in(db, name, present).await?.is_none() {
        return Err(AccountError::Password("the present password is not right".to_owned()));
    }
    let hash = hash_password(new).await?;
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::set_password(&mut tx, user.id, &hash).await?;
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "password_change", name).await?;
    Ok(tx.commit().await?)
}

/// Makes a one-time link's secret: for a person's password, or for the first account.
pub async fn make_link(
    db: &Db,
    ambient: &Ambient,
    user: Option<&str>,
    by: &By<'_>,
) -> Result<String, AccountError> {
    let now = ambient.now();
    let secret = URL_SAFE_NO_PAD.encode(ambient.secret());
    let mut tx = db.begin().await?;
    let user_id = match user {
        Some(name) => Some(known(&mut tx, name).await?.id),
        None => None,
    };
    accounts::insert_link(&mut tx, &hash_secret(&secret), user_id, now, now.plus(LINK_LASTS)).await?;
    note(&mut tx, ambient, by, "link", user.unwrap_or("first account")).await?;
    tx.commit().await?;
    Ok(secret)
}

/// A secret for the first account; absent when there are people already.
pub async fn first_link(db: &Db, ambient: &Ambient, by: &By<'_>) -> Result<Option<String>, AccountError> {
    let mut tx = db.read().await?;
    let people = accounts::users(&mut tx).await?;
    drop(tx);
    if people.is_empty() { make_link(db, ambient, None, by).await.map(Some) } else { Ok(None) }
}

/// What a link is for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkFor {
    /// The first account, an admin.
    FirstAdmin,
    /// This person's password.
    Password(String),
}

/// What a link is for, while it can be used.
pub async fn link_for(db: &Db, ambient: &Ambient, secret: &str) -> Result<LinkFor, AccountError> {
    let mut tx = db.read().await?;
    link(&mut tx, ambient, secret).await
}

/// Uses a link: makes the first account under `name`, or sets the person's password. Returns the
/// account's name.
pub async fn use_link(
    db: &Db,
    ambient: &Ambient,
    secret: &str,
    name: &str,
    password: String,
    origin: &str,
) -> Result<String, AccountError> {
    link_for(db, ambient, secret).await?;
    let hash = hash_password(password).await?;
    let now = ambient.now();
    let mut tx = db.begin().await?;
    let purpose = link(&mut tx, ambient, secret).await?;
    if !accounts::use_link(&mut tx, &hash_secret(secret), now).await? {
        return Err(AccountError::Link);
    }
    let (name, action) = match purpose {
        LinkFor::FirstAdmin => {
            let name = checked_name(name)?;
            let role = Role::Admin;
            let user = UserRow {
                id: ambient.id(),
                name: name.clone(),
                role,
                password_hash: Some(hash),
                created_at: now,
                disabled_at: None,
            };
            if !accounts::insert_user(&mut tx, &user).await? {
                return Err(AccountError::Name(format!("the name {name:?} is taken")));
            }
            (name, "user_add")
        }
        LinkFor::Password(name) => {
            let user = known(&mut tx, &name).await?;
            accounts::set_password(&mut tx, user.id, &hash).await?;
            sessions::delete_of_user(&mut tx, user.id).await?;
            (name, "password_set")
        }
    };
    let actor = Actor::Person { name: name.clone(), role: Role::Viewer };
    note(&mut tx, ambient, &By { actor: &actor, origin }, action, "by a one-time link").await?;
    tx.commit().await?;
    Ok(name)
}

async fn link(tx: &mut Tx, ambient: &Ambient, secret: &str) -> Result<LinkFor, AccountError> {
    let row = accounts::link(tx, &hash_secret(secret), ambient.now()).await?.ok_or(AccountError::Link)?;
    match row.user_id {
        Some(id) => {
            let user = accounts::user_by_id(tx, id).await?.ok_or(AccountError::Link)?;
            Ok(LinkFor::Password(user.name))
        }
        // Somebody else was first.
        None if !accounts::users(tx).await?.is_empty() => Err(AccountError::Link),
        None => Ok(LinkFor::FirstAdmin),
    }
}

/// Makes an API token; its secret is shown this once.
pub async fn create_token(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    scope: Scope,
    lasts: Option<Duration>,
    by: &By<'_>,
) -> Result<String, AccountError> {
    let name = checked_name(name)?;
    let secret = format!("{TOKEN_PREFIX}{}", URL_SAFE_NO_PAD.encode(ambient.secret()));
    let now = ambient.now();
    let row = TokenRow {
        id: ambient.id(),
        name: name.clone(),
        scope,
        created_by: by.actor.to_string(),
        created_at: now,
        expires_at: lasts.map(|lasts| now.plus(lasts)),
        revoked_at: None,
        last_used_at: None,
    };
    let mut tx = db.begin().await?;
    if !accounts::insert_token(&mut tx, &row, &hash_secret(&secret)).await? {
        return Err(AccountError::Name(format!("a token named {name:?} exists already")));
    }
    note(&mut tx, ambient, by, "token_create", &format!("{name} for {scope}")).await?;
    tx.commit().await?;
    Ok(secret)
}

/// Ends a token, at once.
pub async fn revoke_token(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    if !accounts::revoke_token(&mut tx, name, ambient.now()).await? {
        return Err(AccountError::Unknown(format!("working token named {name:?}")));
    }
    note(&mut tx, ambient, by, "token_revoke", name).await?;
    Ok(tx.commit().await?)
}

/// Whoever holds a token's secret; absent when it does not work.
pub async fn token_holder(db: &Db, ambient: &Ambient, secret: &str) -> Result<Option<TokenRow>, StoreError> {
    if !secret.starts_with(TOKEN_PREFIX) {
        return Ok(None);
    }
    let now = ambient.now();
    let mut tx = db.read().await?;
    let row = accounts::token_by_hash(&mut tx, &hash_secret(secret)).await?;
    drop(tx);
    let works = |row: &TokenRow| row.revoked_at.is_none() && row.expires_at.is_none_or(|end| end > now);
    let Some(row) = row.filter(works) else { return Ok(None) };
    // To the minute: a busy token must not write a row with every call.
    if row.last_used_at.is_none_or(|last| now.since(last) > Duration::from_mins(1)) {
        let mut tx = db.begin().await?;
        accounts::touch_token(&mut tx, row.id, now).await?;
        tx.commit().await?;
    }
    Ok(Some(row))
}

/// Adds an entry about accounts to the audit.
pub async fn note(
    tx: &mut Tx,
    ambient: &Ambient,
    by: &By<'_>,
    action: &str,
    detail: &str,
) -> Result<(), StoreError> {
    let row = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: by.actor.to_string(),
        action: action.to_owned(),
        operation_id: None::<Uuid>,
        dead_letter_id: None,
        reason: None,
        result: "done".to_owned(),
        detail: detail.to_owned(),
        origin: by.origin.to_owned(),
    };
    audit::insert(tx, &row).await
}

async fn known(tx: &mut Tx, name: &str) -> Result<UserRow, AccountError> {
    accounts::user_by_name(tx, name)
        .await?
        .ok_or_else(|| AccountError::Unknown(format!("person named {name:?}")))
}

fn checked_name(name: &str) -> Result<String, AccountError> {
    let name = name.trim();
    let fits = (1..=64).contains(&name.chars().count());
    // A colon would let a name pose as a token's or the command line's.
    if !fits || name.chars().any(|letter| letter.is_control() || letter == ':') {
        return Err(AccountError::Name(
            "a name has 1 to 64 characters, without colons and control characters".to_owned(),
        ));
    }
    Ok(name.to_owned())
}

fn argon2() -> Result<Argon2<'static>, AccountError> {
    // OWASP's first recommendation for Argon2id: 19 MiB, two passes, one lane.
    let params = Params::new(19_456, 2, 1, None).map_err(|error| AccountError::Hash(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Hashes a password, off the runtime's threads.
async fn hash_password(password: String) -> Result<String, AccountError> {
    let length = password.chars().count();
    if length < MIN_PASSWORD {
        return Err(AccountError::Password(format!("the password needs at least {MIN_PASSWORD} characters")));
    }
    if length > MAX_PASSWORD {
        return Err(AccountError::Password(format!("the password has more than {MAX_PASSWORD} characters")));
    }
    off_runtime(move || {
        argon2()?
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
            .map_err(|error| AccountError::Hash(error.to_string()))
    })
    .await
}

/// Whether a password fits a hash. Without one the same work is done for nothing.
async fn verify(password: String, hash: Option<String>) -> Result<bool, AccountError> {
    off_runtime(move || {
        let known = hash.is_some();
        let Some(hash) = hash.or_else(|| DUMMY.clone()) else { return Ok(false) };
        let parsed = PasswordHash::new(&hash).map_err(|error| AccountError::Hash(error.to_string()))?;
        let password: String = password.chars().take(MAX_PASSWORD).collect();
        Ok(argon2()?.verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

/// A hash that no password is meant to fit.
static DUMMY: LazyLock<Option<String>> =
    LazyLock::new(|| Some(argon2().ok()?.hash_password(b"nobody's password").ok()?.to_string()));

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AccountError> + Send + 'static,
) -> Result<T, AccountError> {
    let permit =
        Arc::clone(&HASHING).acquire_owned().await.map_err(|error| AccountError::Hash(error.to_string()))?;
    tokio::task::spawn_blocking(move || {
        let answer = work();
        drop(permit);
        answer
    })
    .await
    .map_err(|error| AccountError::Hash(error.to_string()))?
}

/// SHA-256 of a secret that we made: it has 256 random bits, so nothing slower is needed.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
