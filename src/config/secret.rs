//! The key that sessions, the audit chain and stored secrets hang on. It is never in the database.

use std::path::Path;

use super::reader::{Notes, Table};

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

    /// The bytes, to derive keys from; never to be stored or shown.
    pub fn bytes(&self) -> &[u8] {
        &self.0
    }
}

impl std::fmt::Debug for SecretKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("SecretKey(redacted)")
    }
}

/// From the environment, or else from the file that `[server]` names; absent when neither does.
pub(super) fn read(notes: &Notes<'_>, server: Option<&Table<'_>>, directory: &Path) -> Option<SecretKey> {
    // Asked for in any case: the key is known even where the environment wins.
    let named = server.and_then(|server| server.get("secret_key_file"));
    let short = format!("holds fewer than {MIN_SECRET_KEY} bytes");
    if let Some(text) = notes.env("DLO_SECRET_KEY") {
        let key = SecretKey::new(text.trim());
        if key.is_none() {
            notes.mistake_in_env("DLO_SECRET_KEY", short);
        }
        return key;
    }
    let (path, wrong): (_, Box<dyn Fn(String) + '_>) = match (notes.env("DLO_SECRET_KEY_FILE"), named) {
        (Some(path), _) => {
            (path.into(), Box::new(|problem| notes.mistake_in_env("DLO_SECRET_KEY_FILE", problem)))
        }
        (None, Some(item)) => (directory.join(item.text()?), Box::new(move |problem| item.mistake(problem))),
        (None, None) => return None,
    };
    match std::fs::read(&path) {
        Ok(bytes) => {
            let key = SecretKey::new(bytes.trim_ascii());
            if key.is_none() {
                wrong(format!("{} {short}", path.display()));
            }
            key
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            wrong(format!("there is no file {}; `dlo init` makes one", path.display()));
            None
        }
        Err(error) => {
            wrong(format!("{} cannot be read: {error}", path.display()));
            None
        }
    }
}
