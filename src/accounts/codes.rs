//! What is typed beside a password: codes of an authenticator app (RFC 6238: SHA-1, six digits, half
//! a minute), and recovery codes for the day on which the phone is lost.

use std::time::Duration;

use secrecy::ExposeSecret as _;
use totp_rs::{Algorithm, Builder, Totp};
use uuid::Uuid;

use super::record::{done, note, refused};
use super::{AccountError, By, hash_secret, known, may_manage};
use crate::domain::ambient::Ambient;
use crate::domain::envelope::Envelope;
use crate::domain::time::Timestamp;
use crate::store::accounts::UserRow;
use crate::store::factors::{self, Held, TotpRow};
use crate::store::{Commit, Db, Tx, sessions};

/// How long a secret that was shown waits for its first code.
const SET_UP_LASTS: Duration = Duration::from_mins(15);
/// How many recovery codes there are at a time.
pub const RECOVERY_CODES: usize = 10;

/// Bytes of an app's secret: what RFC 4226 recommends, the length of the hash.
const SECRET: usize = 20;
/// Seconds for which a code stands.
const STEP: u64 = 30;
/// Steps by which the two clocks may differ.
const SKEW: u16 = 1;
/// Letters and digits that nobody takes for another, 32 of them: five bits each.
const ALPHABET: &[u8; 32] = b"0123456789abcdefghjkmnpqrstvwxyz";
/// Letters of a recovery code: 80 random bits.
const CODE: usize = 16;

/// What somebody shows who they are for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Purpose {
    /// To come in.
    SignIn,
    /// To do something that needs a fresh sign-in.
    Confirm,
}

impl Purpose {
    /// What it is called in the audit.
    pub fn action(self) -> &'static str {
        match self {
            Self::SignIn => "sign_in",
            Self::Confirm => "confirm",
        }
    }
}

/// What a typed code was.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Code {
    /// The app's.
    Right,
    /// A recovery code, used up by this; so many are left.
    Recovery(i64),
    /// Not right, or used before.
    Wrong,
}

/// A secret that waits for its first code, as its owner takes it over.
#[derive(Clone)]
pub struct AppSecret {
    /// To be typed, in groups of four letters.
    pub text: String,
    /// To be scanned.
    pub url: String,
}

impl std::fmt::Debug for AppSecret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AppSecret(redacted)")
    }
}

/// What became of an app's first code.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Confirmed {
    /// It counts from now on. The recovery codes, where there were none yet.
    Done(Option<Vec<String>>),
    /// The code is not right.
    Wrong,
    /// Nothing waits for a code any more.
    Nothing,
}

/// To what the envelope of somebody's secret belongs.
fn belongs(user: Uuid) -> String {
    format!("users.totp/{user}")
}

fn totp(secret: &[u8], issuer: &str, name: &str) -> Result<Totp, AccountError> {
    Builder::new()
        .with_algorithm(Algorithm::SHA1)
        .with_digits(6)
        .with_skew(SKEW)
        .with_step_duration(STEP)
        .with_secret(secret.to_vec())
        .with_issuer(Some(issuer))
        .with_account_name(name)
        .build()
        .map_err(|error| AccountError::Defect(error.to_string()))
}

/// The step whose code this is, if it is one at this moment.
fn step_of(
    db: &Db,
    user: Uuid,
    row: TotpRow,
    code: &str,
    now: Timestamp,
) -> Result<Option<i64>, AccountError> {
    let secret = row.envelope().open(db.keyring()?, &belongs(user))?;
    let seconds = u64::try_from(now.as_micros() / 1_000_000).unwrap_or(0);
    let step = totp(secret.expose_secret(), "", "")?.check(code, seconds);
    Ok(step.and_then(|step| i64::try_from(step).ok()))
}

/// Makes a secret for somebody's app, in the place of one that never counted.
pub async fn begin_app(db: &Db, ambient: &Ambient, user: &UserRow) -> Result<(), AccountError> {
    let secret = &ambient.secret()[..SECRET];
    let envelope = Envelope::seal(db.keyring()?, ambient, &belongs(user.id), secret)?;
    let mut tx = db.begin().await?;
    if !factors::put_totp(&mut tx, user.id, &envelope, ambient.now()).await? {
        let text = "an authenticator app is set up already; turn it off before you set up another";
        return Err(AccountError::Factor(text.to_owned()));
    }
    Ok(tx.commit(Commit::Account).await?)
}

/// The secret that waits for its first code; absent when none does. `issuer` is what the app shows
/// beside the name.
pub async fn waiting_app(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    issuer: &str,
) -> Result<Option<AppSecret>, AccountError> {
    let mut tx = db.read().await?;
    let Some(row) = waits(&mut tx, user.id, ambient.now()).await? else { return Ok(None) };
    drop(tx);
    let secret = row.envelope().open(db.keyring()?, &belongs(user.id))?;
    let totp = totp(secret.expose_secret(), issuer, &user.name)?;
    let letters: Vec<char> = totp.secret().to_base32().chars().collect();
    let text = letters.chunks(4).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>().join(" ");
    let url = totp.to_url().map_err(|error| AccountError::Defect(error.to_string()))?;
    Ok(Some(AppSecret { text, url }))
}

async fn waits(tx: &mut Tx, user: Uuid, now: Timestamp) -> Result<Option<TotpRow>, AccountError> {
    let row = factors::totp(tx, user).await?;
    Ok(row.filter(|row| row.confirmed_at.is_none() && now.since(row.made_at) < SET_UP_LASTS))
}

/// Takes an app's first code, from which on it counts.
pub async fn confirm_app(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    code: &str,
    by: &By<'_>,
) -> Result<Confirmed, AccountError> {
    let now = ambient.now();
    let mut tx = db.begin().await?;
    let Some(row) = waits(&mut tx, user.id, now).await? else { return Ok(Confirmed::Nothing) };
    let Some(step) = step_of(db, user.id, row, &bare(code), now)? else { return Ok(Confirmed::Wrong) };
    if !factors::confirm_totp(&mut tx, user.id, step, now).await? {
        return Ok(Confirmed::Nothing);
    }
    note(&mut tx, ambient, by, "second_factor_on", "an authenticator app").await?;
    let codes = first_codes(&mut tx, ambient, user, by).await?;
    tx.commit(Commit::Account).await?;
    Ok(Confirmed::Done(codes))
}

/// Forgets somebody's own app.
pub async fn turn_off_app(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    by: &By<'_>,
) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    if !factors::delete_totp(&mut tx, user.id).await? {
        return Err(AccountError::Unknown("authenticator app".to_owned()));
    }
    note(&mut tx, ambient, by, "second_factor_off", "an authenticator app").await?;
    drop_codes_without_factor(&mut tx, user.id).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Recovery codes stand in for a factor: without one they open nothing and are not kept.
pub(super) async fn drop_codes_without_factor(tx: &mut Tx, user: Uuid) -> Result<(), AccountError> {
    if !factors::held(tx, user).await?.any() {
        factors::delete_codes(tx, user).await?;
    }
    Ok(())
}

/// Makes recovery codes in the place of those that there were; shown this once.
pub async fn new_codes(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    by: &By<'_>,
) -> Result<Vec<String>, AccountError> {
    let mut tx = db.begin().await?;
    if !factors::held(&mut tx, user.id).await?.any() {
        let text = "recovery codes stand in for a second factor; set one up first";
        return Err(AccountError::Factor(text.to_owned()));
    }
    let codes = make_codes(&mut tx, ambient, user, by).await?;
    tx.commit(Commit::Account).await?;
    Ok(codes)
}

/// Makes recovery codes for somebody who has none that could be used.
pub(super) async fn first_codes(
    tx: &mut Tx,
    ambient: &Ambient,
    user: &UserRow,
    by: &By<'_>,
) -> Result<Option<Vec<String>>, AccountError> {
    if factors::held(tx, user.id).await?.codes > 0 {
        return Ok(None);
    }
    make_codes(tx, ambient, user, by).await.map(Some)
}

async fn make_codes(
    tx: &mut Tx,
    ambient: &Ambient,
    user: &UserRow,
    by: &By<'_>,
) -> Result<Vec<String>, AccountError> {
    let codes: Vec<String> = (0..RECOVERY_CODES).map(|_| recovery_code(ambient)).collect();
    let hashes: Vec<[u8; 32]> = codes.iter().map(|code| recovery_hash(user.id, code)).collect();
    factors::put_codes(tx, user.id, &hashes, ambient.now()).await?;
    note(tx, ambient, by, "recovery_codes", &format!("{RECOVERY_CODES} new ones; older ones no longer work"))
        .await?;
    Ok(codes)
}

/// Sixteen letters in groups of four.
fn recovery_code(ambient: &Ambient) -> String {
    let letters: Vec<char> = ambient.secret()[..CODE]
        .iter()
        .map(|byte| char::from(ALPHABET[usize::from(*byte) % ALPHABET.len()]))
        .collect();
    letters.chunks(4).map(|part| part.iter().collect::<String>()).collect::<Vec<_>>().join("-")
}

/// What is kept of a recovery code. A fast hash is enough: there is nothing to guess from, as in a
/// password, but 2⁸⁰ equally likely codes, which no machine tries; and with the person's id in it
/// all guesses are for one person.
fn recovery_hash(user: Uuid, code: &str) -> [u8; 32] {
    let code = bare(code).to_ascii_lowercase().replace('o', "0").replace(['i', 'l'], "1");
    hash_secret(&format!("recovery code of {user}: {code}"))
}

/// A code without what people put between its parts.
fn bare(code: &str) -> String {
    code.chars().filter(|letter| !letter.is_whitespace() && *letter != '-').take(2 * CODE).collect()
}

/// Checks a code that somebody typed, uses it up, and puts on record what it was.
pub async fn check_code(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    code: &str,
    purpose: Purpose,
    origin: &str,
) -> Result<Code, AccountError> {
    let now = ambient.now();
    let code = bare(code);
    let who = (user.name.as_str(), origin);
    let mut tx = db.begin().await?;
    // The length tells the two kinds apart.
    let (code, detail) = if code.len() < CODE {
        let row = factors::totp(&mut tx, user.id).await?.filter(|row| row.confirmed_at.is_some());
        let step = match row {
            Some(row) => step_of(db, user.id, row, &code, now)?,
            None => None,
        };
        match step {
            None => (Code::Wrong, "the code was not right"),
            Some(step) if factors::take_step(&mut tx, user.id, step).await? => {
                (Code::Right, "with an authenticator app")
            }
            Some(_) => (Code::Wrong, "the code was used before"),
        }
    } else if factors::use_code(&mut tx, user.id, &recovery_hash(user.id, &code), now).await? {
        (Code::Recovery(factors::held(&mut tx, user.id).await?.codes), "with a recovery code")
    } else {
        (Code::Wrong, "the recovery code was not right, or was used before")
    };
    if code == Code::Wrong {
        refused(&mut tx, ambient, who, "second_factor_failed", detail).await?;
    } else {
        done(&mut tx, ambient, who, purpose.action(), detail).await?;
    }
    if let Code::Recovery(left) = code {
        done(&mut tx, ambient, who, "recovery_code_used", &format!("{left} are left")).await?;
    }
    tx.commit(Commit::Account).await?;
    Ok(code)
}

/// Takes all that somebody has beside their password away, as when their phone is lost; their
/// sessions end.
pub async fn remove_factors(db: &Db, ambient: &Ambient, name: &str, by: &By<'_>) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    may_manage(by, db.roles().of(&user.role).rights())?;
    if factors::held(&mut tx, user.id).await? == Held::default() {
        return Err(AccountError::Unknown(format!("second factor of {name:?}")));
    }
    factors::delete_totp(&mut tx, user.id).await?;
    factors::delete_passkeys(&mut tx, user.id).await?;
    factors::delete_codes(&mut tx, user.id).await?;
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "second_factor_remove", name).await?;
    Ok(tx.commit(Commit::Account).await?)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The appendix of RFC 6238, whose codes have eight digits: ours are their last six.
    #[test]
    fn codes_are_those_of_the_standard() {
        let totp = totp(b"12345678901234567890", "", "").unwrap();
        for (seconds, code) in [
            (59, "287082"),
            (1_111_111_109, "081804"),
            (1_111_111_111, "050471"),
            (1_234_567_890, "005924"),
            (2_000_000_000, "279037"),
            (20_000_000_000, "353130"),
        ] {
            assert_eq!(totp.check(code, seconds), Some(seconds / 30));
            assert_eq!(totp.check(code, seconds + 30), Some(seconds / 30), "one step late");
            assert_eq!(totp.check(code, seconds - 30), Some(seconds / 30), "one step early");
            assert_eq!(totp.check(code, seconds + 90), None);
        }
    }

    #[test]
    fn a_recovery_code_is_read_as_people_copy_it() {
        let user = Uuid::nil();
        let code = recovery_code(&Ambient::system());
        assert_eq!(code.len(), CODE + 3);
        let wanted = recovery_hash(user, &code);
        for copied in
            [code.to_uppercase(), code.replace('-', " "), code.replace('-', ""), code.replace('0', "O")]
        {
            assert_eq!(recovery_hash(user, &copied), wanted, "{copied}");
        }
        assert_ne!(recovery_hash(Uuid::max(), &code), wanted, "each is one person's");
        assert_ne!(recovery_code(&Ambient::system()), code);
    }
}
