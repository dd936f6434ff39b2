//! API tokens.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::record::note;
use super::{AccountError, By, checked_name, hash_secret, no_more_than_theirs, permitted};
use crate::domain::actor::{Right, Scope};
use crate::domain::ambient::Ambient;
use crate::store::accounts::{self, TokenRow};
use crate::store::{Commit, Db, StoreError};

/// Begins every API token, so that a leaked one is recognised.
const TOKEN_PREFIX: &str = "dlo_";

/// Makes an API token; its secret is shown this once. Nobody makes one that may do more than they.
pub async fn create_token(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    scope: Scope,
    lasts: Option<Duration>,
    by: &By<'_>,
) -> Result<String, AccountError> {
    permitted(by, Right::ManageTokens)?;
    no_more_than_theirs(by, scope.rights(), "scope")?;
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
    tx.commit(Commit::Token).await?;
    Ok(secret)
}

/// Ends a token, at once.
pub async fn revoke_token(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    permitted(by, Right::ManageTokens)?;
    let mut tx = db.begin().await?;
    if !accounts::revoke_token(&mut tx, name, ambient.now()).await? {
        return Err(AccountError::Unknown(format!("working token named {name:?}")));
    }
    note(&mut tx, ambient, by, "token_revoke", name).await?;
    Ok(tx.commit(Commit::Token).await?)
}

/// The hashes of all tokens that work.
pub async fn working_tokens(db: &Db, ambient: &Ambient) -> Result<Vec<Vec<u8>>, StoreError> {
    let mut tx = db.read().await?;
    accounts::working_tokens(&mut tx, ambient.now()).await
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
        tx.commit(Commit::Token).await?;
    }
    Ok(Some(row))
}
