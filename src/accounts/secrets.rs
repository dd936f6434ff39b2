//! Secrets that the configuration names, stored in envelopes, and the change of the key that they
//! hang on. Nothing shows one again once it was set.

use std::collections::BTreeMap;

use secrecy::{ExposeSecret as _, SecretString};

use super::keys::Keys;
use super::record::note;
use super::{AccountError, By};
use crate::domain::ambient::Ambient;
use crate::domain::envelope::{Envelope, EnvelopeError};
use crate::domain::keyring::Keyring;
use crate::domain::name::{NAME_RULE, is_name};
use crate::store::envelopes::{self, Id, PLACES, Place};
use crate::store::secrets::{self, SecretRow};
use crate::store::{Commit, Db, StoreError};

/// The schema's version that brought stored secrets.
pub const SECRETS_SINCE: i64 = 14;

/// The largest secret, in bytes.
pub const MAX_SECRET: usize = 64 * 1024;

/// Envelopes that are wrapped anew in one transaction: few, so that nobody waits for it.
const BATCH: i64 = 100;

/// Sets a secret, new or in the place of an earlier one; whether there was one.
pub async fn set_secret(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    secret: &SecretString,
    by: &By<'_>,
) -> Result<bool, AccountError> {
    if !is_name(name) {
        return Err(AccountError::Name(NAME_RULE.to_owned()));
    }
    let secret = secret.expose_secret().as_bytes();
    if secret.is_empty() || secret.len() > MAX_SECRET {
        return Err(AccountError::Secret(format!("a secret has 1 to {MAX_SECRET} bytes")));
    }
    let mut tx = db.begin().await?;
    let before = secrets::lock(&mut tx, name).await?;
    let row = SecretRow {
        name: name.to_owned(),
        version: before.unwrap_or(0) + 1,
        key_id: db.keyring()?.current().id(),
        set_at: ambient.now(),
        set_by: by.actor.to_string(),
    };
    let belongs = secrets::belongs(name, row.version);
    let envelope = Envelope::seal(db.keyring()?, ambient, &belongs, secret)?;
    let written = match before {
        Some(_) => secrets::replace(&mut tx, &row, &envelope).await?,
        None => secrets::insert(&mut tx, &row, &envelope).await?,
    };
    if !written {
        return Err(AccountError::Secret(format!("somebody else set {name} at this moment; set it again")));
    }
    let what = if before.is_some() { "replaced" } else { "new" };
    note(&mut tx, ambient, by, "secret_set", &format!("{name}, {what}")).await?;
    tx.commit(Commit::Token).await?;
    Ok(before.is_some())
}

/// Removes a secret.
pub async fn remove_secret(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    if !secrets::delete(&mut tx, name).await? {
        return Err(AccountError::Unknown(format!("secret named {name:?}")));
    }
    note(&mut tx, ambient, by, "secret_remove", name).await?;
    Ok(tx.commit(Commit::Token).await?)
}

/// Those of these names that are stored, each opened, or why it cannot be.
pub async fn open_secrets(
    db: &Db,
    names: impl IntoIterator<Item = &str>,
) -> Result<BTreeMap<String, Result<SecretString, String>>, StoreError> {
    let mut tx = db.read().await?;
    let mut opened = BTreeMap::new();
    for name in names {
        let Some((version, envelope)) = secrets::envelope(&mut tx, name).await? else { continue };
        let secret = match db.keyring() {
            Ok(keyring) => open(keyring, &envelope, &secrets::belongs(name, version)),
            Err(error) => Err(error.to_string()),
        };
        opened.insert(name.to_owned(), secret);
    }
    Ok(opened)
}

fn open(keyring: &Keyring, envelope: &Envelope, belongs: &str) -> Result<SecretString, String> {
    let bytes = envelope.open(keyring, belongs).map_err(|error| error.to_string())?;
    let text = std::str::from_utf8(bytes.expose_secret()).map_err(|_| "it is no text".to_owned())?;
    Ok(text.into())
}

/// What came of a change of the key.
#[derive(Clone, Debug, Default)]
pub struct Rotation {
    /// Envelopes that are under the key in use now and were not before.
    pub changed: usize,
    /// Why some were not: the row, and what is wrong with it.
    pub failed: Vec<(String, EnvelopeError)>,
    /// How the keys stand afterwards.
    pub keys: Keys,
}

/// Puts every envelope under the key in use. Everything else goes on meanwhile, since both keys open;
/// what was done stays done when it is broken off.
pub async fn rotate_keys(db: &Db, ambient: &Ambient, by: &By<'_>) -> Result<Rotation, AccountError> {
    let mut rotation = Rotation::default();
    for place in PLACES {
        let mut after = None;
        while let Some(last) = rotate_some(db, ambient, by, place, after.as_ref(), &mut rotation).await? {
            after = Some(last);
        }
    }
    let mut tx = db.read().await?;
    rotation.keys = Keys::look(&mut tx, db.keyring()?).await?;
    Ok(rotation)
}

/// One batch; its last row, while there may be more.
async fn rotate_some(
    db: &Db,
    ambient: &Ambient,
    by: &By<'_>,
    place: &Place,
    after: Option<&Id>,
    rotation: &mut Rotation,
) -> Result<Option<Id>, AccountError> {
    let keyring = db.keyring()?;
    let current = keyring.current().id();
    let mut tx = db.begin().await?;
    let batch = envelopes::under_others(&mut tx, place, &current, after, BATCH).await?;
    let mut changed = 0;
    for kept in &batch {
        match kept.envelope.rewrap(keyring, ambient, &kept.belongs) {
            Ok(new) => changed += usize::from(envelopes::rewrap(&mut tx, place, kept, &new).await?),
            Err(error) => rotation.failed.push((kept.belongs.clone(), error)),
        }
    }
    if changed > 0 {
        let detail = format!("{changed} in {} to the key {current}", place.table);
        note(&mut tx, ambient, by, "key_rotate", &detail).await?;
    }
    tx.commit(Commit::Token).await?;
    rotation.changed += changed;
    Ok(batch.last().map(|kept| kept.id.clone()))
}
