//! Passwords, as Argon2id hashes.

use std::sync::{Arc, LazyLock};

use argon2::password_hash::{PasswordHasher as _, PasswordVerifier as _, phc::PasswordHash};
use argon2::{Algorithm, Argon2, Params, Version};
use tokio::sync::Semaphore;

use super::AccountError;

/// The shortest password, in characters.
pub const MIN_PASSWORD: usize = 8;
/// The longest that is hashed: a bound on work, far above what people type.
pub const MAX_PASSWORD: usize = 1_024;

/// Hashes at once: each takes 19 MiB and a core for some 20 ms.
static HASHING: LazyLock<Arc<Semaphore>> = LazyLock::new(|| Arc::new(Semaphore::new(2)));

fn argon2() -> Result<Argon2<'static>, AccountError> {
    // OWASP's first recommendation for Argon2id: 19 MiB, two passes, one lane.
    let params = Params::new(19_456, 2, 1, None).map_err(|error| AccountError::Hash(error.to_string()))?;
    Ok(Argon2::new(Algorithm::Argon2id, Version::V0x13, params))
}

/// Whether a password may be set.
pub fn password_fits(password: &str) -> Result<(), AccountError> {
    let length = password.chars().count();
    if length < MIN_PASSWORD {
        return Err(AccountError::Password(format!("the password needs at least {MIN_PASSWORD} characters")));
    }
    if length > MAX_PASSWORD {
        return Err(AccountError::Password(format!("the password has more than {MAX_PASSWORD} characters")));
    }
    Ok(())
}

/// Hashes a password, off the runtime's threads.
pub(super) async fn hash_password(password: String) -> Result<String, AccountError> {
    password_fits(&password)?;
    off_runtime(move || {
        argon2()?
            .hash_password(password.as_bytes())
            .map(|hash| hash.to_string())
            .map_err(|error| AccountError::Hash(error.to_string()))
    })
    .await
}

/// Whether a password fits a hash. Without one the same work is done for nothing.
pub(super) async fn verify(password: String, hash: Option<String>) -> Result<bool, AccountError> {
    off_runtime(move || {
        let known = hash.is_some();
        let Some(hash) = hash.or_else(|| DUMMY.clone()) else { return Ok(false) };
        let parsed = PasswordHash::new(&hash).map_err(|error| AccountError::Hash(error.to_string()))?;
        let password: String = password.chars().take(MAX_PASSWORD).collect();
        Ok(argon2()?.verify_password(password.as_bytes(), &parsed).is_ok() && known)
    })
    .await
}

/// A hash that no password is meant to fit.
static DUMMY: LazyLock<Option<String>> =
    LazyLock::new(|| Some(argon2().ok()?.hash_password(b"nobody's password").ok()?.to_string()));

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
