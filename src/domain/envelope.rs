//! Secrets that have to be stored, in envelopes: each is encrypted with a data key of its own, and
//! the data key with one that is derived from the secret key outside the database. A change of the
//! secret key wraps data keys anew and touches no secret.
//!
//! AES-256-GCM throughout. What an envelope belongs to, such as a table, a row and a version, is
//! authenticated with it: one that was moved elsewhere cannot be opened.

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use secrecy::SecretSlice;

use super::ambient::Ambient;
use super::keyring::Keyring;

/// What the wrapping keys are derived for.
const PURPOSE: &str = "stored secrets";

/// An encrypted secret, as it is stored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Envelope {
    /// Which secret key opens it: [`SecretKey::id`](super::keyring::SecretKey::id).
    pub key_id: String,
    /// The encrypted data key: nonce, key and tag.
    pub wrapped: Vec<u8>,
    /// The encrypted secret: nonce, text and tag.
    pub sealed: Vec<u8>,
}

/// Why an envelope could not be made or opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EnvelopeError {
    /// Its key is not here.
    #[error("it was closed with the secret key {0}, which is not here; name it in old_secret_key_files")]
    Key(String),
    /// It was changed, cut, or belongs to something else.
    #[error("it was changed since it was stored, or belongs elsewhere")]
    Broken,
}

impl Envelope {
    /// Encrypts. `belongs` says to what, and is needed to open it.
    pub fn seal(
        keyring: &Keyring,
        ambient: &Ambient,
        belongs: &str,
        secret: &[u8],
    ) -> Result<Self, EnvelopeError> {
        let data_key = ambient.secret();
        let sealed = encrypt(&data_key, ambient, belongs, secret)?;
        Self::wrap(keyring, ambient, belongs, &data_key, sealed)
    }

    /// Decrypts.
    pub fn open(&self, keyring: &Keyring, belongs: &str) -> Result<SecretSlice<u8>, EnvelopeError> {
        let data_key = self.data_key(keyring, belongs)?;
        Ok(decrypt(&data_key, belongs, &self.sealed)?.into())
    }

    /// The same secret under the key in use.
    pub fn rewrap(&self, keyring: &Keyring, ambient: &Ambient, belongs: &str) -> Result<Self, EnvelopeError> {
        let data_key = self.data_key(keyring, belongs)?;
        Self::wrap(keyring, ambient, belongs, &data_key, self.sealed.clone())
    }

    fn wrap(
        keyring: &Keyring,
        ambient: &Ambient,
        belongs: &str,
        data_key: &[u8],
        sealed: Vec<u8>,
    ) -> Result<Self, EnvelopeError> {
        let key = keyring.current();
        let wrapped = encrypt(&key.derive(PURPOSE), ambient, belongs, data_key)?;
        Ok(Self { key_id: key.id(), wrapped, sealed })
    }

    fn data_key(&self, keyring: &Keyring, belongs: &str) -> Result<Vec<u8>, EnvelopeError> {
        let key = keyring.named(&self.key_id).ok_or_else(|| EnvelopeError::Key(self.key_id.clone()))?;
        decrypt(&key.derive(PURPOSE), belongs, &self.wrapped)
    }
}

fn cipher(key: &[u8]) -> Result<LessSafeKey, EnvelopeError> {
    Ok(LessSafeKey::new(UnboundKey::new(&AES_256_GCM, key).map_err(|_| EnvelopeError::Broken)?))
}

/// Nonces are random: a data key encrypts once, and a wrapping key far less often than the 2³² times
/// that 96 random bits are good for.
fn encrypt(key: &[u8], ambient: &Ambient, belongs: &str, plain: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let mut nonce = [0; NONCE_LEN];
    nonce.copy_from_slice(&ambient.secret()[..NONCE_LEN]);
    let mut body = plain.to_vec();
    cipher(key)?
        .seal_in_place_append_tag(
            Nonce::assume_unique_for_key(nonce),
            Aad::from(belongs.as_bytes()),
            &mut body,
        )
        .map_err(|_| EnvelopeError::Broken)?;
    Ok([nonce.as_slice(), &body].concat())
}

fn decrypt(key: &[u8], belongs: &str, stored: &[u8]) -> Result<Vec<u8>, EnvelopeError> {
    let (nonce, body) = stored.split_at_checked(NONCE_LEN).ok_or(EnvelopeError::Broken)?;
    let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| EnvelopeError::Broken)?;
    let mut body = body.to_vec();
    let plain = cipher(key)?
        .open_in_place(nonce, Aad::from(belongs.as_bytes()), &mut body)
        .map_err(|_| EnvelopeError::Broken)?;
    Ok(plain.to_vec())
}

#[cfg(test)]
mod tests {
    use secrecy::ExposeSecret as _;

    use super::*;
    use crate::domain::keyring::{MIN_SECRET_KEY, SecretKey};

    fn key(letter: &str) -> SecretKey {
        SecretKey::new(letter.repeat(MIN_SECRET_KEY)).unwrap()
    }

    #[test]
    fn what_is_closed_is_opened_where_it_belongs_and_nowhere_else() {
        let (ring, ambient) = (Keyring::new(key("a"), vec![]), Ambient::system());
        let envelope = Envelope::seal(&ring, &ambient, "secrets/crm/1", b"hush").unwrap();
        assert_eq!(envelope.open(&ring, "secrets/crm/1").unwrap().expose_secret(), b"hush");
        assert_eq!(envelope.open(&ring, "secrets/crm/2").unwrap_err(), EnvelopeError::Broken);
        let other = Keyring::new(key("b"), vec![]);
        assert_eq!(envelope.open(&other, "secrets/crm/1").unwrap_err(), EnvelopeError::Key(key("a").id()));
    }

    #[test]
    fn a_changed_byte_anywhere_is_noticed() {
        let (ring, ambient) = (Keyring::new(key("a"), vec![]), Ambient::system());
        let envelope = Envelope::seal(&ring, &ambient, "x", b"hush").unwrap();
        for n in 0..envelope.wrapped.len() {
            let mut changed = envelope.clone();
            changed.wrapped[n] ^= 1;
            assert!(changed.open(&ring, "x").is_err());
        }
        for n in 0..envelope.sealed.len() {
            let mut changed = envelope.clone();
            changed.sealed[n] ^= 1;
            assert!(changed.open(&ring, "x").is_err());
            changed.sealed.truncate(n);
            assert!(changed.open(&ring, "x").is_err());
        }
    }

    #[test]
    fn a_new_key_takes_over_while_the_old_one_still_opens() {
        let ambient = Ambient::system();
        let old = Envelope::seal(&Keyring::new(key("a"), vec![]), &ambient, "x", b"hush").unwrap();
        let both = Keyring::new(key("b"), vec![key("a")]);
        assert_eq!(old.open(&both, "x").unwrap().expose_secret(), b"hush");
        let new = old.rewrap(&both, &ambient, "x").unwrap();
        assert_eq!((&new.key_id, &new.sealed), (&key("b").id(), &old.sealed));
        let alone = Keyring::new(key("b"), vec![]);
        assert_eq!(new.open(&alone, "x").unwrap().expose_secret(), b"hush");
    }

    #[test]
    fn the_same_secret_twice_reads_differently() {
        let (ring, ambient) = (Keyring::new(key("a"), vec![]), Ambient::system());
        let one = Envelope::seal(&ring, &ambient, "x", b"hush").unwrap();
        let other = Envelope::seal(&ring, &ambient, "x", b"hush").unwrap();
        assert_ne!(one.sealed, other.sealed);
        assert!(!one.sealed.windows(4).any(|part| part == b"hush"));
    }
}
