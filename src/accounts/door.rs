//! Passwords as they are asked for: at the door, and before a new one.

use super::codes::Purpose;
use super::passwords::{NewPassword, Verified, verify};
use super::record::{done, note, refused};
use super::tries::{self, Try, What};
use super::{AccountError, By, known};
use crate::domain::ambient::Ambient;
use crate::store::accounts::{self, UserRow};
use crate::store::{Commit, Db, StoreError, sessions};

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
    let known = accounts::user_by_name(&mut tx, name).await?;
    // Hashing takes its time, in which somebody may have been shut out or given another password.
    let unchanged = |user: &UserRow| {
        let now = known.as_ref().map(|now| (now.id, now.disabled_at, &now.password_hash));
        now == Some((user.id, user.disabled_at, &user.password_hash))
    };
    let user = user.filter(unchanged);
    if let Some(user) = &user {
        let weaker = user.password_hash.as_deref().unwrap_or_default();
        let detail = match stronger {
            Some(stronger) if accounts::replace_password(&mut tx, user.id, weaker, &stronger).await? => {
                "the password is hashed with more work now"
            }
            _ => "",
        };
        let action = if user.second_factor { "password_right" } else { purpose.action() };
        done(&mut tx, ambient, (&user.name, origin), action, detail).await?;
    } else {
        let (name, detail) = match known {
            Some(user) if user.disabled_at.is_some() => (user.name, "the account is disabled"),
            Some(user) => (user.name, "the password was not right"),
            None => ("unknown".to_owned(), "nobody has this name"),
        };
        refused(&mut tx, ambient, (&name, origin), "sign_in_failed", detail).await?;
    }
    tx.commit(Commit::Account).await?;
    if user.is_some() {
        tries::succeeded(db, &attempt).await?;
    }
    Ok(user)
}

/// Puts on record that somebody came in by a link, without the door and its questions.
pub async fn came_in_by_link(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    origin: &str,
) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    done(&mut tx, ambient, (&user.name, origin), "sign_in", "by a one-time link").await?;
    tx.commit(Commit::Account).await
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
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "password_change", name).await?;
    Ok(tx.commit(Commit::Account).await?)
}
