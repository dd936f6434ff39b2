//! Passwords: which may be chosen, and their Argon2id hashes.

use std::fmt;
use std::sync::{Arc, LazyLock};

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::{AccountError, guessable};

/// The shortest password, in characters.
pub const MIN_PASSWORD: usize = 8;
/// The longest that is hashed: a bound on work, far above what people type.
pub const MAX_PASSWORD: usize = 1_024;

/// Memory in KiB, passes, lanes: OWASP's first recommendation for Argon2id.
const COST: (u32, u32, u32) = (19_456, 2, 1);

/// Hashes at once: each takes 19 MiB and a core for some 20 ms.
static HASHING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

/// A password that somebody wants to have, not yet looked at, and what else a guesser would think of
/// beside their name.
#[derive(Clone)]
pub struct NewPassword {
    text: String,
    near: Vec<String>,
}

impl NewPassword {
    /// For a desk at this host, whose name is no secret.
    #[must_use]
    pub fn at(mut self, host: &str) -> Self {
        self.near.push(host.to_owned());
        self
    }

    /// Whether its length is right: what can be said without much work.
    pub fn fits(&self) -> Result<(), AccountError> {
        let length = self.text.chars().count();
        if length < MIN_PASSWORD {
            let text = format!("the password needs at least {MIN_PASSWORD} characters");
            return Err(AccountError::Password(text));
        }
        if length > MAX_PASSWORD {
            let text = format!("the password has more than {MAX_PASSWORD} characters");
            return Err(AccountError::Password(text));
        }
        Ok(())
    }

    /// Its hash for a person of this name, unless it is easy to guess. Off the runtime's threads.
    pub(super) async fn hash(mut self, name: &str) -> Result<String, AccountError> {
        self.fits()?;
        self.near.push(name.to_owned());
        off_runtime(move || {
            if let Some(why) = guessable::why(&self.text, &self.near) {
                return Err(AccountError::Password(why));
            }
            hash(&self.text)
        })
        .await
    }
}

impl From<String> for NewPassword {
    fn from(text: String) -> Self {
        Self { text, near: Vec::new() }
    }
}

impl From<&str> for NewPassword {
    fn from(text: &str) -> Self {
        text.to_owned().into()
    }
}

impl fmt::Debug for NewPassword {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("NewPassword(redacted)")
    }
}

/// What came of a password beside a hash.
#[derive(Debug)]
pub(super) struct Verified {
    /// It fits.
    pub(super) fits: bool,
    /// It fits, and this hash of it is stronger than the one it was held against.
    pub(super) stronger: Option<String>,
}

/// Whether a password fits a hash. Without one the same work is done for nothing.
pub(super) async fn verify(password: String, hash_of: Option<String>) -> Result<Verified, AccountError> {
    off_runtime(move || {
        let known = hash_of.is_some();
        let Some(stored) = hash_of.or_else(|| DUMMY.clone()) else {
            return Ok(Verified { fits: false, stronger: None });
        };
        let parsed = PasswordHash::new(&stored).map_err(|error| AccountError::Hash(error.to_string()))?;
        let password: String = password.chars().take(MAX_PASSWORD).collect();
        let fits = argon2()?.verify_password(password.as_bytes(), &parsed).is_ok() && known;
        let stronger = if fits && is_weaker(&parsed) { Some(hash(&password)?) } else { None };
        Ok(Verified { fits, stronger })
    })
    .await
}

/// A hash that no password is meant to fit.
static DUMMY: LazyLock<Option<String>> = LazyLock::new(|| hash("nobody's password").ok());

/// Whether a hash was made with less work than one is made with now.
fn is_weaker(stored: &PasswordHash) -> bool {
    let (memory, passes, _) = COST;
    let least = |params: Params| params.m_cost() >= memory && params.t_cost() >= passes;
    let is_argon2id = stored.algorithm.as_str() == Algorithm::Argon2id.ident().as_str();
    let is_newest = stored.version == Some(Version::V0x13.into());
    !(is_argon2id && is_newest && Params::try_from(stored).is_ok_and(least))
}

fn argon2() -> Result<Argon2<'static>, AccountError> {
    let (memory, passes, lanes) = COST;
    let params =
        Params::new(memory, passes, lanes, None).map_err(|error| AccountError::Hash(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

fn hash(password: &str) -> Result<String, AccountError> {
    let made = argon2()?.hash_password(password.as_bytes());
    made.map(|hash| hash.to_string()).map_err(|error| AccountError::Hash(error.to_string()))
}

async fn off_runtime<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, AccountError> + Send + 'static,
) -> Result<T, AccountError> {
    let permit =
        Arc::clone(&HASHING).acquire_owned().await.map_err(|error| AccountError::Hash(error.to_string()))?;
    tokio::task::spawn_blocking(move || {
        let answer = work();
        drop(permit);
        answer
    })
    .await
    .map_err(|error| AccountError::Hash(error.to_string()))?
}
