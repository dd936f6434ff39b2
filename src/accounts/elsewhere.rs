//! People who sign in at an identity provider.

use super::people::new_user;
use super::record::{done, refused};
use super::{AccountError, checked_name};
use crate::domain::ambient::Ambient;
use crate::domain::identity::Identity;
use crate::domain::words::one_line;
use crate::store::accounts::{self, UserRow};
use crate::store::{Commit, Db, StoreError, Tx, identities, sessions};

/// The longest name that is taken over, in characters: it leaves room for a number behind it.
const LONGEST: usize = 56;

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
            with_role(&mut tx, ambient, user, (role, identity.issuer.as_str()), origin).await?,
        )),
        (None, Some(role)) => Entry::In(Box::new(add(&mut tx, ambient, identity, role, origin).await?)),
    };
    let who = (known.as_deref().unwrap_or("unknown"), origin);
    match &entry {
        Entry::In(user) => {
            let detail = format!("at {}", identity.issuer);
            done(&mut tx, ambient, (&user.name, origin), "sign_in", &detail).await?;
        }
        Entry::Disabled => {
            refused(&mut tx, ambient, who, "sign_in_failed", "the account is disabled").await?;
        }
        Entry::NoRole => {
            let Identity { issuer, subject, .. } = identity;
            let detail = format!("no role is mapped for {} of {issuer}", one_line(subject));
            refused(&mut tx, ambient, who, "sign_in_failed", &detail).await?;
        }
    }
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
    refused(&mut tx, ambient, ("unknown", origin), "sign_in_failed", &one_line(detail)).await?;
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
    let who = (user.name.as_str(), origin);
    if own {
        done(&mut tx, ambient, who, "sign_in", &format!("again, at {}", identity.issuer)).await?;
    } else {
        let detail = format!("somebody else signed in at {}", identity.issuer);
        refused(&mut tx, ambient, who, "sign_in_failed", &detail).await?;
    }
    tx.commit(Commit::Account).await?;
    Ok(own)
}

/// Gives them the role that the provider's words stand for; with another one their other sessions end.
async fn with_role(
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
    let detail = format!("{}: {} to {role}, as {issuer} says", user.name, user.role);
    done(tx, ambient, (&user.name, origin), "user_role", &detail).await?;
    Ok(UserRow { role: role.to_owned(), ..user })
}

/// Makes an account for somebody who was never here.
async fn add(
    tx: &mut Tx,
    ambient: &Ambient,
    identity: &Identity,
    role: &str,
    origin: &str,
) -> Result<UserRow, AccountError> {
    let user = new_user(ambient, &free_name(tx, &identity.name).await?, role, None);
    if !accounts::insert_user(tx, &user).await?
        || !identities::insert(tx, identity, user.id, user.created_at).await?
    {
        let text = "somebody came in under this name just now; sign in again";
        return Err(AccountError::Name(text.to_owned()));
    }
    let Identity { issuer, subject, .. } = identity;
    let detail = format!("{} as {role}, who is {} of {issuer}", user.name, one_line(subject));
    done(tx, ambient, (&user.name, origin), "user_add", &detail).await?;
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
