//! People who sign in at an identity provider.

use super::{AccountError, By, checked_name, note};
use crate::domain::actor::Actor;
use crate::domain::ambient::Ambient;
use crate::domain::identity::Identity;
use crate::store::accounts::{self, UserRow};
use crate::store::audit::{self, AuditRow};
use crate::store::{Commit, Db, StoreError, Tx, identities, sessions};

/// What came of somebody whom a provider vouches for.
#[derive(Clone, Debug)]
pub enum Entry {
    /// They may come in.
    In(Box<UserRow>),
    /// Their account is shut.
    Disabled,
    /// Nothing that the provider says of them stands for a role.
    NoRole,
}

/// Lets somebody in whom a provider vouches for, on record. Their account is made with their first
/// sign-in; their role is what the provider says each time.
pub async fn sign_in_elsewhere(
    db: &Db,
    ambient: &Ambient,
    identity: &Identity,
    origin: &str,
) -> Result<Entry, AccountError> {
    let mut tx = db.begin().await?;
    let user = match identities::user(&mut tx, identity).await? {
        Some(id) => accounts::user_by_id(&mut tx, id).await?,
        None => None,
    };
    let known = user.as_ref().map(|user| user.name.clone());
    let entry = match (user, identity.role.as_deref()) {
        (Some(user), _) if user.disabled_at.is_some() => Entry::Disabled,
        (user, None) => {
            if let Some(user) = user {
                // What they were allowed elsewhere they are not any more.
                sessions::delete_of_user(&mut tx, user.id).await?;
            }
            Entry::NoRole
        }
        (Some(user), Some(role)) => Entry::In(Box::new(
            with_role(db, &mut tx, ambient, user, (role, identity.issuer.as_str()), origin).await?,
        )),
        (None, Some(role)) => Entry::In(Box::new(add(db, &mut tx, ambient, identity, role, origin).await?)),
    };
    let (name, result, action, detail) = match &entry {
        Entry::In(user) => (Some(user.name.clone()), "done", "sign_in", format!("at {}", identity.issuer)),
        Entry::Disabled => (known, "refused", "sign_in_failed", "the account is disabled".to_owned()),
        Entry::NoRole => {
            let Identity { issuer, subject, .. } = identity;
            let detail = format!("no role is mapped for {} of {issuer}", short(subject));
            (known, "refused", "sign_in_failed", detail)
        }
    };
    let actor = name.unwrap_or_else(|| "unknown".to_owned());
    record(&mut tx, ambient, actor, (action, result, detail), origin).await?;
    tx.commit(Commit::Account).await?;
    Ok(entry)
}

/// Puts on record that somebody was not let in by a provider, and why.
pub async fn refused_elsewhere(
    db: &Db,
    ambient: &Ambient,
    detail: &str,
    origin: &str,
) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    let said = ("sign_in_failed", "refused", short(detail));
    record(&mut tx, ambient, "unknown".to_owned(), said, origin).await?;
    tx.commit(Commit::Account).await
}

/// Puts on record that a signed-in person has signed in again at a provider, as themselves or not.
pub async fn signed_in_again(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    identity: &Identity,
    origin: &str,
) -> Result<bool, StoreError> {
    let mut tx = db.begin().await?;
    let own = identities::user(&mut tx, identity).await? == Some(user.id);
    let said = if own {
        ("sign_in", "done", format!("again, at {}", identity.issuer))
    } else {
        ("sign_in_failed", "refused", format!("somebody else signed in at {}", identity.issuer))
    };
    record(&mut tx, ambient, user.name.clone(), said, origin).await?;
    tx.commit(Commit::Account).await?;
    Ok(own)
}

/// Gives them the role that the provider's words stand for; with another one their other sessions end.
async fn with_role(
    db: &Db,
    tx: &mut Tx,
    ambient: &Ambient,
    user: UserRow,
    (role, issuer): (&str, &str),
    origin: &str,
) -> Result<UserRow, StoreError> {
    if user.role == role {
        return Ok(user);
    }
    accounts::set_role(tx, user.id, role).await?;
    sessions::delete_of_user(tx, user.id).await?;
    let actor = Actor::Person { name: user.name.clone(), role: db.roles().of(role) };
    let by = By { actor: &actor, origin };
    let detail = format!("{}: {} to {role}, as {issuer} says", user.name, user.role);
    note(tx, ambient, &by, "user_role", &detail).await?;
    Ok(UserRow { role: role.to_owned(), ..user })
}

/// Makes an account for somebody who was never here.
async fn add(
    db: &Db,
    tx: &mut Tx,
    ambient: &Ambient,
    identity: &Identity,
    role: &str,
    origin: &str,
) -> Result<UserRow, AccountError> {
    let now = ambient.now();
    let user = UserRow {
        id: ambient.id(),
        name: free_name(tx, &identity.name).await?,
        role: role.to_owned(),
        password_hash: None,
        created_at: now,
        disabled_at: None,
        zone: None,
    };
    let taken = || AccountError::Name("somebody came in under this name just now; sign in again".to_owned());
    if !accounts::insert_user(tx, &user).await? || !identities::insert(tx, identity, user.id, now).await? {
        return Err(taken());
    }
    let actor = Actor::Person { name: user.name.clone(), role: db.roles().of(role) };
    let by = By { actor: &actor, origin };
    let Identity { issuer, subject, .. } = identity;
    let detail = format!("{} as {role}, who is {} of {issuer}", user.name, short(subject));
    note(tx, ambient, &by, "user_add", &detail).await?;
    Ok(user)
}

/// A name that nobody has, however it is spelt: an account is its identity's alone, and nobody comes
/// to one by being called the same elsewhere.
async fn free_name(tx: &mut Tx, wanted: &str) -> Result<String, AccountError> {
    let clean: String = wanted
        .chars()
        .map(|letter| if letter.is_control() || letter == ':' { '-' } else { letter })
        .collect();
    let clean: String = clean.trim().chars().take(LONGEST).collect();
    let clean = if clean.is_empty() { "somebody".to_owned() } else { clean };
    let taken: Vec<String> =
        accounts::users(tx).await?.into_iter().map(|user| user.name.to_lowercase()).collect();
    let numbered = (2..).map(|number| format!("{clean} {number}"));
    let free = std::iter::once(clean.clone())
        .chain(numbered)
        .find(|name| checked_name(name).is_ok() && !taken.contains(&name.to_lowercase()));
    free.ok_or_else(|| AccountError::Name("there is no name left".to_owned()))
}

/// Leaves room for a number behind it.
const LONGEST: usize = 56;

/// What a provider says goes on record cut short, on one line.
fn short(text: &str) -> String {
    text.chars().map(|letter| if letter.is_control() { ' ' } else { letter }).take(200).collect()
}

async fn record(
    tx: &mut Tx,
    ambient: &Ambient,
    actor: String,
    (action, result, detail): (&str, &str, String),
    origin: &str,
) -> Result<(), StoreError> {
    let row = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor,
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: result.to_owned(),
        detail,
        origin: origin.to_owned(),
    };
    audit::insert(tx, &row).await
}
