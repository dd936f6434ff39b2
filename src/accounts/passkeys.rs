//! Passkeys (WebAuthn): a device shows that it is there and that its owner unlocked it.

use serde_json::Value;
use url::{Host, Url};
use uuid::Uuid;
use webauthn_rs::prelude::{
    Passkey, PasskeyAuthentication, PasskeyRegistration, PublicKeyCredential, RegisterPublicKeyCredential,
    WebauthnError,
};
use webauthn_rs::{Webauthn, WebauthnBuilder};

use super::codes::{Purpose, drop_codes_without_factor, first_codes};
use super::record::{done, note, refused};
use super::{AccountError, By};
use crate::domain::ambient::Ambient;
use crate::store::accounts::UserRow;
use crate::store::factors::{self, PasskeyRow};
use crate::store::{Commit, Db, StoreError};

/// Passkeys of one person at most: what is tried at each sign-in stays small.
pub const MOST_PASSKEYS: usize = 20;

/// Why no passkey can be used where the desk is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NoPasskeys {
    /// Browsers tie passkeys to names.
    #[error("Passkeys need a name in the desk\u{2019}s address, and it is reached by a number.")]
    Number,
    /// Browsers offer them to pages that nobody could have changed on their way.
    #[error("Passkeys need https, and the desk is reached over plain http.")]
    Plain,
}

/// The place that passkeys belong to: the name by which people reach the desk.
#[derive(Debug)]
pub struct Site(Webauthn);

impl Site {
    /// Of the desk's public address.
    pub fn at(public_url: &Url) -> Result<Self, NoPasskeys> {
        let Some(Host::Domain(name)) = public_url.host() else { return Err(NoPasskeys::Number) };
        let local = name == "localhost" || name.ends_with(".localhost");
        if public_url.scheme() != "https" && !local {
            return Err(NoPasskeys::Plain);
        }
        let built =
            WebauthnBuilder::new(name, public_url).and_then(|it| it.rp_name("Dead Letter Office").build());
        built.map(Self).map_err(|_| NoPasskeys::Number)
    }
}

/// What a browser is asked, and what has to be kept of it, on the server, until it answers.
#[derive(Debug)]
pub struct Asked<S> {
    /// The options of `navigator.credentials`, as JSON.
    pub options: String,
    /// Goes with the answer.
    pub state: S,
}

impl<S> Asked<S> {
    /// The library puts the options under a name of its own.
    fn new(challenge: &impl serde::Serialize, state: S) -> Result<Self, AccountError> {
        let challenge = serde_json::to_value(challenge).map_err(defect)?;
        let options = challenge.get("publicKey").unwrap_or(&Value::Null).to_string();
        Ok(Self { options, state })
    }
}

fn defect(error: impl std::fmt::Display) -> AccountError {
    AccountError::Defect(error.to_string())
}

fn passkey(row: &PasskeyRow) -> Result<Passkey, AccountError> {
    Ok(serde_json::from_str(&row.data)
        .map_err(|error| StoreError::Corrupt(format!("passkey {}: {error}", row.id)))?)
}

/// Asks for a new passkey.
pub async fn ask_new(
    db: &Db,
    site: &Site,
    user: &UserRow,
) -> Result<Asked<PasskeyRegistration>, AccountError> {
    let mut tx = db.read().await?;
    let rows = factors::passkeys(&mut tx, user.id, false).await?;
    drop(tx);
    if rows.len() >= MOST_PASSKEYS {
        return Err(AccountError::Factor(format!(
            "you have {MOST_PASSKEYS} passkeys, and more are not kept; remove one first"
        )));
    }
    let known: Vec<_> = rows.iter().map(passkey).collect::<Result<_, _>>()?;
    let known = known.iter().map(|key| key.cred_id().clone()).collect();
    let (challenge, state) =
        site.0.start_passkey_registration(user.id, &user.name, &user.name, Some(known)).map_err(defect)?;
    Asked::new(&challenge, state)
}

/// What became of a new passkey.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Added {
    /// It counts from now on. The recovery codes, where there were none yet.
    Done(Option<Vec<String>>),
    /// The browser's answer does not fit what it was asked.
    Wrong,
}

/// Adds a passkey that a browser made.
pub async fn add(
    db: &Db,
    ambient: &Ambient,
    site: &Site,
    user: &UserRow,
    name: &str,
    answer: (&str, &PasskeyRegistration),
    by: &By<'_>,
) -> Result<Added, AccountError> {
    let name = checked_label(name)?;
    let (answer, state) = answer;
    let Ok(answer) = serde_json::from_str::<RegisterPublicKeyCredential>(answer) else {
        return Ok(Added::Wrong);
    };
    let key = match site.0.finish_passkey_registration(&answer, state) {
        Ok(key) => key,
        Err(error) => {
            tracing::warn!(%error, "a new passkey does not fit what was asked");
            return Ok(Added::Wrong);
        }
    };
    let row = PasskeyRow {
        id: ambient.id(),
        name: name.clone(),
        data: serde_json::to_string(&key).map_err(defect)?,
        made_at: ambient.now(),
        used_at: None,
    };
    let mut tx = db.begin().await?;
    if !factors::insert_passkey(&mut tx, user.id, key.cred_id().as_slice(), &row).await? {
        return Err(AccountError::Factor("this passkey is known already".to_owned()));
    }
    note(&mut tx, ambient, by, "second_factor_on", &format!("the passkey {name}")).await?;
    let codes = first_codes(&mut tx, ambient, user, by).await?;
    tx.commit(Commit::Account).await?;
    Ok(Added::Done(codes))
}

/// Whether a passkey can be called so.
pub fn checked_label(name: &str) -> Result<String, AccountError> {
    let name = name.trim();
    if (1..=64).contains(&name.chars().count()) && !name.chars().any(char::is_control) {
        return Ok(name.to_owned());
    }
    Err(AccountError::Name("a passkey\u{2019}s name has 1 to 64 characters".to_owned()))
}

/// Asks for one of somebody's passkeys; absent when they have none.
pub async fn ask(
    db: &Db,
    site: &Site,
    user: &UserRow,
) -> Result<Option<Asked<PasskeyAuthentication>>, AccountError> {
    let mut tx = db.read().await?;
    let rows = factors::passkeys(&mut tx, user.id, false).await?;
    drop(tx);
    if rows.is_empty() {
        return Ok(None);
    }
    let keys: Vec<_> = rows.iter().map(passkey).collect::<Result<_, _>>()?;
    let (challenge, state) = site.0.start_passkey_authentication(&keys).map_err(defect)?;
    Asked::new(&challenge, state).map(Some)
}

/// Whether a browser's answer shows one of somebody's passkeys; puts on record what it was.
///
/// The counter is compared with the one that stands in the database now, not with the one that was
/// there when the browser was asked: a copy of a device cannot be used beside it, not even at the
/// same moment.
pub async fn check(
    db: &Db,
    ambient: &Ambient,
    site: &Site,
    user: &UserRow,
    answer: (&str, &PasskeyAuthentication),
    purpose: Purpose,
    origin: &str,
) -> Result<bool, AccountError> {
    let (answer, state) = answer;
    let who = (user.name.as_str(), origin);
    let mut tx = db.begin().await?;
    let rows = factors::passkeys(&mut tx, user.id, true).await?;
    let shown = serde_json::from_str::<PublicKeyCredential>(answer)
        .map_err(WebauthnError::from)
        .and_then(|answer| site.0.finish_passkey_authentication(&answer, state));
    let mut why = "the passkey was not right";
    match shown {
        Ok(shown) => {
            for row in &rows {
                let mut key = passkey(row)?;
                if key.cred_id() != shown.cred_id() {
                    continue;
                }
                let moved = key.update_credential(&shown).unwrap_or(false);
                if shown.counter() > 0 && !moved {
                    why = "the passkey\u{2019}s counter went back: there may be a copy of it";
                    break;
                }
                let data = serde_json::to_string(&key).map_err(defect)?;
                factors::use_passkey(&mut tx, row.id, &data, ambient.now()).await?;
                let detail = format!("with the passkey {}", row.name);
                done(&mut tx, ambient, who, purpose.action(), &detail).await?;
                tx.commit(Commit::Account).await?;
                return Ok(true);
            }
        }
        Err(WebauthnError::CredentialPossibleCompromise) => {
            why = "the passkey\u{2019}s counter went back: there may be a copy of it";
        }
        Err(error) => tracing::warn!(%error, "a passkey was refused"),
    }
    refused(&mut tx, ambient, who, "second_factor_failed", why).await?;
    tx.commit(Commit::Account).await?;
    Ok(false)
}

/// Forgets one of somebody's own passkeys.
pub async fn remove(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    id: Uuid,
    by: &By<'_>,
) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let rows = factors::passkeys(&mut tx, user.id, false).await?;
    let unknown = || AccountError::Unknown("passkey".to_owned());
    let row = rows.iter().find(|row| row.id == id).ok_or_else(unknown)?;
    if !factors::delete_passkey(&mut tx, user.id, id).await? {
        return Err(unknown());
    }
    note(&mut tx, ambient, by, "second_factor_off", &format!("the passkey {}", row.name)).await?;
    drop_codes_without_factor(&mut tx, user.id).await?;
    Ok(tx.commit(Commit::Account).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn passkeys_belong_to_names_over_https() {
        let at = |url: &str| Site::at(&url.parse().unwrap()).map(|_| ());
        for url in ["https://desk.example.com", "https://desk.example.com:8443", "http://localhost:8080"] {
            assert_eq!(at(url), Ok(()), "{url}");
        }
        for url in ["http://127.0.0.1:8080", "https://10.0.0.7", "https://[::1]:8080"] {
            assert_eq!(at(url), Err(NoPasskeys::Number), "{url}");
        }
        assert_eq!(at("http://desk.example.com"), Err(NoPasskeys::Plain));
    }
}
