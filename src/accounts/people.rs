//! Who is here: adding people, what they may do, shutting them out.

use super::record::note;
use super::{AccountError, By, NewPassword, checked_name, known, may_manage, permitted};
use crate::domain::actor::Right;
use crate::domain::ambient::Ambient;
use crate::domain::words::listed;
use crate::domain::zone::Zone;
use crate::store::accounts::{self, UserRow};
use crate::store::{Commit, Db, Tx, sessions};

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
    let user = new_user(ambient, &name, &role, password_hash);
    let mut tx = db.begin().await?;
    // Anna and anna would be told apart by nobody who reads the audit.
    let spelt = |other: &UserRow| other.name.to_lowercase() == name.to_lowercase();
    if accounts::users(&mut tx).await?.iter().any(spelt) || !accounts::insert_user(&mut tx, &user).await? {
        return Err(AccountError::Name(format!("the name {name:?} is taken")));
    }
    note(&mut tx, ambient, by, "user_add", &format!("{name} as {role}")).await?;
    tx.commit(Commit::Account).await?;
    Ok(user)
}

/// Somebody who comes now.
pub(super) fn new_user(ambient: &Ambient, name: &str, role: &str, password_hash: Option<String>) -> UserRow {
    UserRow {
        id: ambient.id(),
        name: name.to_owned(),
        role: role.to_owned(),
        password_hash,
        created_at: ambient.now(),
        disabled_at: None,
        zone: None,
        second_factor: false,
    }
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
    sessions::delete_of_user(&mut tx, user.id).await?;
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
    sessions::delete_of_user(&mut tx, user.id).await?;
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

/// Sets the zone in which a person reads moments. Theirs alone: it changes nothing for anybody else
/// and is not on record.
pub async fn set_zone(db: &Db, name: &str, zone: Zone) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    accounts::set_zone(&mut tx, user.id, zone.name()).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// The name of a role that there is.
fn known_role(db: &Db, name: &str) -> Result<String, AccountError> {
    if db.roles().knows(name) {
        return Ok(name.to_owned());
    }
    let names: Vec<&str> = db.roles().names().collect();
    Err(AccountError::Role(format!("there is no role {name:?}; there are {}", listed(&names))))
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
