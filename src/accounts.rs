//! People, tokens and secrets: passwords, one-time links, API tokens, of which only hashes are stored
//! and which leave this module once, when they are made; and what the configuration keeps in the
//! database, in envelopes.

mod codes;
mod elsewhere;
mod guessable;
mod keys;
mod links;
pub mod passkeys;
mod passwords;
mod secrets;
mod sessions;
mod tokens;
pub mod tries;

use std::time::Duration;

use sha2::{Digest, Sha256};
use uuid::Uuid;

pub use codes::{
    AppSecret, Code, Confirmed, Purpose, RECOVERY_CODES, begin_app, check_code, confirm_app, new_codes,
    remove_factors, turn_off_app, waiting_app,
};
pub use elsewhere::{Entry, refused_elsewhere, sign_in_elsewhere, signed_in_again};
pub use keys::Keys;
pub use links::{LINK_LASTS, LinkFor, first_link, link_details, link_for, make_link, use_link};
pub use passwords::{MAX_PASSWORD, MIN_PASSWORD, NewPassword};
pub use secrets::{
    MAX_SECRET, Rotation, SECRETS_SINCE, open_secrets, remove_secret, rotate_keys, set_secret,
};
pub use sessions::{end_session, sessions, sign_out, sign_out_everywhere};
pub use tokens::{create_token, revoke_token, token_holder, working_tokens};

use crate::domain::actor::{Actor, Right, Rights};
use crate::domain::ambient::Ambient;
use crate::domain::envelope::EnvelopeError;
use crate::domain::filter::RESERVED_NAMES;
use crate::domain::words::listed;
use crate::domain::zone::Zone;
use crate::store::accounts::{self, UserRow};
use crate::store::audit::{self, AuditRow};
use crate::store::{Commit, Db, StoreError, Tx, factors, sessions as stored_sessions};
use passwords::{Verified, verify};
use tries::{Try, What};

/// Why something about an account was refused.
#[derive(Debug, thiserror::Error)]
pub enum AccountError {
    /// The name is taken, or no name.
    #[error("{0}")]
    Name(String),
    /// Whoever asked may not; the text says what they would need.
    #[error("{0}")]
    Forbidden(String),
    /// Too many were tried: how long to wait before the next try.
    #[error("there were too many tries; wait, then try again")]
    Later(Duration),
    /// The password is too short, too long or easy to guess.
    #[error("{0}")]
    Password(String),
    /// The present password, which is needed for a new one, is another.
    #[error("the present password is not right")]
    Present,
    /// No secret can be stored so.
    #[error("{0}")]
    Secret(String),
    /// There is no such person, token or secret.
    #[error("there is no {0}")]
    Unknown(String),
    /// There is no such role.
    #[error("{0}")]
    Role(String),
    /// Nobody could manage people any more.
    #[error("{0} is the last who can sign in and manage people; give somebody else that right first")]
    LastAdmin(String),
    /// A second factor cannot be changed like that as things stand.
    #[error("{0}")]
    Factor(String),
    /// A link would let nobody in.
    #[error("{0} is disabled; let them in again first")]
    ShutOut(String),
    /// The link was used, lapsed or never existed.
    #[error("this link is no longer valid; ask for a new one")]
    Link,
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// A stored secret could not be opened or closed.
    #[error(transparent)]
    Envelope(#[from] EnvelopeError),
    /// A hash could not be made or read.
    #[error("password hashing failed: {0}")]
    Hash(String),
    /// A library refused what it should take.
    #[error("second factor: {0}")]
    Defect(String),
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
    Ok(checked(db, name, password).await?.0)
}

/// The same, with a stronger hash of the password where there is one.
async fn checked(
    db: &Db,
    name: &str,
    password: String,
) -> Result<(Option<UserRow>, Option<String>), AccountError> {
    let mut tx = db.read().await?;
    let user = accounts::user_by_name(&mut tx, name).await?;
    drop(tx);
    let hash = user.as_ref().and_then(|user| user.password_hash.clone());
    let Verified { fits, stronger } = verify(password, hash).await?;
    let user = user.filter(|user| fits && user.disabled_at.is_none());
    Ok((user, stronger))
}

/// Checks a password at a door: not too often ([`AccountError::Later`]), and on record that it was
/// tried, and that somebody came in by it where nothing more is asked. A name that nobody has is not
/// written down: it may be a password, typed into the wrong field. A password that was hashed with
/// less work than is usual now is hashed again.
pub async fn sign_in_from(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    password: String,
    purpose: Purpose,
    origin: &str,
) -> Result<Option<UserRow>, AccountError> {
    let attempt = Try { what: What::Password, purpose, name, address: origin };
    tries::begin(db, ambient, &attempt).await?;
    let (user, stronger) = checked(db, name, password).await?;
    let mut tx = db.begin().await?;
    let known = match &user {
        Some(user) => Some(user.clone()),
        None => accounts::user_by_name(&mut tx, name).await?,
    };
    let action = match &user {
        None => "sign_in_failed",
        Some(user) if factors::held(&mut tx, user.id).await?.any() => "password_right",
        Some(_) => purpose.action(),
    };
    let mut rehashed = false;
    if let (Some(user), Some(stronger)) = (&user, stronger) {
        let weaker = user.password_hash.as_deref().unwrap_or_default();
        rehashed = accounts::replace_password(&mut tx, user.id, weaker, &stronger).await?;
    }
    let row = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: known.as_ref().map_or_else(|| "unknown".to_owned(), |known| known.name.clone()),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: if user.is_some() { "done" } else { "refused" }.to_owned(),
        detail: match (&user, &known) {
            (Some(_), _) if rehashed => "the password is hashed with more work now".to_owned(),
            (Some(_), _) => String::new(),
            (None, Some(known)) if known.disabled_at.is_some() => "the account is disabled".to_owned(),
            (None, Some(_)) => "the password was not right".to_owned(),
            (None, None) => "nobody has this name".to_owned(),
        },
        origin: origin.to_owned(),
    };
    audit::insert(&mut tx, &row).await?;
    tx.commit(Commit::Account).await?;
    if user.is_some() {
        tries::succeeded(db, &attempt).await?;
    }
    Ok(user)
}

/// Adds a person. Without a password they need a link to set one.
pub async fn add_user(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    role: impl AsRef<str>,
    password: Option<NewPassword>,
    by: &By<'_>,
) -> Result<UserRow, AccountError> {
    let role = known_role(db, role.as_ref())?;
    may_manage(by, db.roles().of(&role).rights())?;
    let name = checked_name(name)?;
    let password_hash = match password {
        Some(password) => Some(password.hash(&name).await?),
        None => None,
    };
    let now = ambient.now();
    let user = UserRow {
        id: ambient.id(),
        name: name.clone(),
        role: role.clone(),
        password_hash,
        created_at: now,
        disabled_at: None,
        zone: None,
    };
    let mut tx = db.begin().await?;
    if !accounts::insert_user(&mut tx, &user).await? {
        return Err(AccountError::Name(format!("the name {name:?} is taken")));
    }
    note(&mut tx, ambient, by, "user_add", &format!("{name} as {role}")).await?;
    tx.commit(Commit::Account).await?;
    Ok(user)
}

/// Changes what a person may do; their sessions end, so that it holds at once.
pub async fn set_role(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    role: impl AsRef<str>,
    by: &By<'_>,
) -> Result<(), AccountError> {
    let role = known_role(db, role.as_ref())?;
    may_manage(by, db.roles().of(&role).rights())?;
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    may_manage(by, db.roles().of(&user.role).rights())?;
    if !db.roles().of(&role).may(Right::ManagePeople) {
        keep_an_admin(db, &mut tx, &user).await?;
    }
    accounts::set_role(&mut tx, user.id, &role).await?;
    stored_sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "user_role", &format!("{name}: {} to {role}", user.role)).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Shuts a person out, at once.
pub async fn disable(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    permitted(by, Right::ManagePeople)?;
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    may_manage(by, db.roles().of(&user.role).rights())?;
    keep_an_admin(db, &mut tx, &user).await?;
    accounts::disable(&mut tx, user.id, ambient.now()).await?;
    accounts::void_links(&mut tx, user.id).await?;
    stored_sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "user_disable", name).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Lets a person in again who was shut out, with the role and the password that they had.
pub async fn enable(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    permitted(by, Right::ManagePeople)?;
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    may_manage(by, db.roles().of(&user.role).rights())?;
    accounts::enable(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "user_enable", name).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Refuses what would leave nobody who can manage people. The rows of all who can sign in stay
/// locked, so that two of them cannot shut each other out at the same time.
async fn keep_an_admin(db: &Db, tx: &mut Tx, user: &UserRow) -> Result<(), AccountError> {
    let able = accounts::lock_able(tx).await?;
    let manages = |role: &str| db.roles().of(role).may(Right::ManagePeople);
    let is_one = manages(&user.role) && user.disabled_at.is_none();
    if is_one && able.iter().all(|(id, role)| *id == user.id || !manages(role)) {
        return Err(AccountError::LastAdmin(user.name.clone()));
    }
    Ok(())
}

/// Refuses whoever may not manage people, and whoever would get hold of more than they have: giving
/// a right, or touching the account of somebody with it, takes the right itself.
fn may_manage(by: &By<'_>, rights: Rights) -> Result<(), AccountError> {
    permitted(by, Right::ManagePeople)?;
    let Actor::Person { role, .. } = by.actor else { return Ok(()) };
    let beyond = rights.beyond(role.rights());
    if beyond.is_empty() {
        return Ok(());
    }
    Err(AccountError::Forbidden(format!(
        "you lack rights that this role has ({beyond}); ask somebody who has them"
    )))
}

/// Refuses whoever lacks a right, whatever page or command they came by.
fn permitted(by: &By<'_>, right: Right) -> Result<(), AccountError> {
    let refused = || AccountError::Forbidden(format!("you need {}", by.actor.needs(right)));
    by.actor.may(right).then_some(()).ok_or_else(refused)
}

/// The name of a role that there is.
fn known_role(db: &Db, name: &str) -> Result<String, AccountError> {
    if db.roles().knows(name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = db.roles().names().collect();
    Err(AccountError::Role(format!("there is no role {name:?}; there are {}", listed(&names))))
}

/// Changes a person's own password, given the present one; their other sessions end.
pub async fn change_password(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    present: String,
    new: NewPassword,
    by: &By<'_>,
) -> Result<(), AccountError> {
    if sign_in(db, name, present).await?.is_none() {
        return Err(AccountError::Present);
    }
    let hash = new.hash(name).await?;
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::set_password(&mut tx, user.id, &hash).await?;
    accounts::void_links(&mut tx, user.id).await?;
    stored_sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "password_change", name).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Sets the zone in which a person reads moments. Theirs alone: it changes nothing for anybody else
/// and is not on record.
pub async fn set_zone(db: &Db, name: &str, zone: Zone) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::set_zone(&mut tx, user.id, zone.name()).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Adds an entry about accounts to the audit.
pub async fn note(
    tx: &mut Tx,
    ambient: &Ambient,
    by: &By<'_>,
    action: &str,
    detail: &str,
) -> Result<(), StoreError> {
    note_as(tx, ambient, by, action, "done", detail).await
}

/// The same with a result of its own.
async fn note_as(
    tx: &mut Tx,
    ambient: &Ambient,
    by: &By<'_>,
    action: &str,
    result: &str,
    detail: &str,
) -> Result<(), StoreError> {
    let row = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: by.actor.to_string(),
        action: action.to_owned(),
        operation_id: None::<Uuid>,
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: result.to_owned(),
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
    if RESERVED_NAMES.iter().any(|word| word.eq_ignore_ascii_case(name)) {
        return Err(AccountError::Name(format!("nobody is called {name}: filters use that word")));
    }
    Ok(name.to_owned())
}

/// SHA-256 of a secret that we made: it has 256 random bits, so nothing slower is needed.
pub fn hash_secret(secret: &str) -> [u8; 32] {
    Sha256::digest(secret.as_bytes()).into()
}
