//! The secret keys of an installation: the one in use, and older ones that still open what was
//! closed with them. They come from outside the database and are never stored in it.
//!
//! Nothing uses a secret key as it is. Each purpose has a key of its own, derived by HKDF-SHA-256,
//! so that what is known of one says nothing about another.

use std::fmt;

use ring::hkdf;
use sha2::{Digest, Sha256};

use super::key::hex;

/// The fewest bytes of a secret key.
pub const MIN_SECRET_KEY: usize = 32;

/// At least [`MIN_SECRET_KEY`] bytes that nothing prints.
#[derive(Clone, PartialEq, Eq)]
pub struct SecretKey(Vec<u8>);

impl SecretKey {
    /// Takes bytes that are long enough.
    pub fn new(bytes: impl Into<Vec<u8>>) -> Option<Self> {
        let bytes = bytes.into();
        (bytes.len() >= MIN_SECRET_KEY).then_some(Self(bytes))
    }

    /// Names the key in stored rows and tells nothing of it: 16 hexadecimal digits of a hash.
    pub fn id(&self) -> String {
        let hash = Sha256::new_with_prefix("dead letter office: key id").chain_update(&self.0).finalize();
        hex(&hash[..8])
    }

    /// The key for one purpose, such as `audit chain`.
    pub fn derive(&self, purpose: &'static str) -> [u8; 32] {
        let mut derived = [0; 32];
        let root = hkdf::Salt::new(hkdf::HKDF_SHA256, b"dead letter office").extract(&self.0);
        let info = [purpose.as_bytes()];
        let filled = root.expand(&info, hkdf::HKDF_SHA256).and_then(|made| made.fill(&mut derived));
        // It refuses only lengths that are not the hash's own.
        debug_assert!(filled.is_ok());
        derived
    }
}

impl fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

/// The key in use and those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Keyring {
    current: SecretKey,
    older: Vec<SecretKey>,
}

impl Keyring {
    /// A key in use, and older ones that may still be needed.
    pub fn new(current: SecretKey, older: Vec<SecretKey>) -> Self {
        Self { current, older }
    }

    /// What new things are closed with.
    pub fn current(&self) -> &SecretKey {
        &self.current
    }

    /// The key in use and then the older ones.
    pub fn all(&self) -> impl Iterator<Item = &SecretKey> {
        std::iter::once(&self.current).chain(&self.older)
    }

    /// The key of this id; absent when nobody gave it to this process.
    pub fn named(&self, id: &str) -> Option<&SecretKey> {
        self.all().find(|key| key.id() == id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(letter: &str) -> SecretKey {
        SecretKey::new(letter.repeat(MIN_SECRET_KEY)).unwrap()
    }

    #[test]
    fn each_purpose_and_each_key_has_a_key_of_its_own() {
        let derived = [
            key("a").derive("audit chain"),
            key("a").derive("stored secrets"),
            key("b").derive("audit chain"),
            [0; 32],
        ];
        for (n, one) in derived.iter().enumerate() {
            assert!(derived[n + 1..].iter().all(|other| one != other));
        }
        assert_eq!(key("a").derive("audit chain"), derived[0]);
    }

    #[test]
    fn older_keys_are_found_by_their_id() {
        let ring = Keyring::new(key("a"), vec![key("b")]);
        assert_eq!(ring.named(&key("b").id()), Some(&key("b")));
        assert_eq!(ring.named(&key("c").id()), None);
        assert_eq!(ring.current(), &key("a"));
    }

    #[test]
    fn nothing_prints_a_key() {
        let ring = Keyring::new(key("a"), vec![key("b")]);
        let shown = format!("{ring:?} {}", key("a").id());
        assert!(!shown.contains("aaaa") && !shown.contains("bbbb"), "{shown}");
    }
}
