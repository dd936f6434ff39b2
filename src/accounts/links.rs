//! One-time links: for the first account, and to set a password.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::people::new_user;
use super::record::{done, note};
use super::{AccountError, By, NewPassword, checked_name, hash_secret, known, may_manage, permitted};
use crate::domain::actor::{Right, Role};
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::store::accounts;
use crate::store::{Commit, Db, Tx, sessions};

/// How long a one-time link works.
pub const LINK_LASTS: Duration = Duration::from_mins(30);

/// Makes a one-time link's secret: for a person's password, or for the first account. It takes the
/// place of a person's earlier link.
pub async fn make_link(
    db: &Db,
    ambient: &Ambient,
    user: Option<&str>,
    by: &By<'_>,
) -> Result<String, AccountError> {
    permitted(by, Right::ManagePeople)?;
    let now = ambient.now();
    let secret = URL_SAFE_NO_PAD.encode(ambient.secret());
    let mut tx = db.begin().await?;
    let user_id = match user {
        Some(name) => {
            let user = known(&mut tx, name).await?;
            may_manage(by, db.roles().of(&user.role).rights())?;
            if user.disabled_at.is_some() {
                return Err(AccountError::ShutOut(user.name));
            }
            accounts::void_links(&mut tx, user.id).await?;
            Some(user.id)
        }
        None => None,
    };
    accounts::insert_link(&mut tx, &hash_secret(&secret), user_id, now, now.plus(LINK_LASTS)).await?;
    note(&mut tx, ambient, by, "link", user.unwrap_or("first account")).await?;
    tx.commit(Commit::Link).await?;
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
    Ok(link_details(db, ambient, secret).await?.0)
}

/// What a link is for and until when, while it can be used.
pub async fn link_details(
    db: &Db,
    ambient: &Ambient,
    secret: &str,
) -> Result<(LinkFor, Timestamp), AccountError> {
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
    password: NewPassword,
    origin: &str,
) -> Result<String, AccountError> {
    let hash = match link_for(db, ambient, secret).await? {
        LinkFor::FirstAdmin => password.hash(name).await?,
        LinkFor::Password(name) => password.hash(&name).await?,
    };
    let mut tx = db.begin().await?;
    let (purpose, _) = link(&mut tx, ambient, secret).await?;
    if !accounts::use_link(&mut tx, &hash_secret(secret), ambient.now()).await? {
        return Err(AccountError::Link);
    }
    let (name, action) = match purpose {
        LinkFor::FirstAdmin => {
            let name = checked_name(name)?;
            let user = new_user(ambient, &name, Role::Admin.as_str(), Some(hash));
            if !accounts::insert_user(&mut tx, &user).await? {
                return Err(AccountError::Name(format!("the name {name:?} is taken")));
            }
            (name, "user_add")
        }
        LinkFor::Password(name) => {
            let user = known(&mut tx, &name).await?;
            accounts::set_password(&mut tx, user.id, &hash).await?;
            accounts::void_links(&mut tx, user.id).await?;
            sessions::delete_of_user(&mut tx, user.id).await?;
            (name, "password_set")
        }
    };
    done(&mut tx, ambient, (&name, origin), action, "by a one-time link").await?;
    tx.commit(Commit::Account).await?;
    Ok(name)
}

async fn link(tx: &mut Tx, ambient: &Ambient, secret: &str) -> Result<(LinkFor, Timestamp), AccountError> {
    let row = accounts::link(tx, &hash_secret(secret), ambient.now()).await?.ok_or(AccountError::Link)?;
    match row.user_id {
        Some(id) => {
            let user = accounts::user_by_id(tx, id).await?.filter(|user| user.disabled_at.is_none());
            let user = user.ok_or(AccountError::Link)?;
            Ok((LinkFor::Password(user.name), row.expires_at))
        }
        // Somebody else was first.
        None if !accounts::users(tx).await?.is_empty() => Err(AccountError::Link),
        None => Ok((LinkFor::FirstAdmin, row.expires_at)),
    }
}
