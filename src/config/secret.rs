//! The keys that the audit chain and stored secrets hang on. They are never in the database.

use std::path::Path;

use super::reader::{Notes, Table};
use crate::domain::keyring::{Keyring, MIN_SECRET_KEY, SecretKey};

/// The key in use and the older ones that `[server]` names; absent when there is none in use.
pub(super) fn read(notes: &Notes<'_>, server: Option<&Table<'_>>, directory: &Path) -> Option<Keyring> {
    let older = server.map(|server| server.list("old_secret_key_files")).unwrap_or_default();
    let older = older
        .into_iter()
        .filter_map(|item| key_in(&directory.join(item.text()?), |problem| item.mistake(problem)))
        .collect();
    Some(Keyring::new(in_use(notes, server, directory)?, older))
}

/// From the environment, or else from the file that `[server]` names.
fn in_use(notes: &Notes<'_>, server: Option<&Table<'_>>, directory: &Path) -> Option<SecretKey> {
    // Asked for in any case: the key is known even where the environment wins.
    let named = server.and_then(|server| server.get("secret_key_file"));
    if let Some(text) = notes.env("DLO_SECRET_KEY") {
        let key = SecretKey::new(text.trim());
        if key.is_none() {
            notes.mistake_in_env("DLO_SECRET_KEY", format!("holds fewer than {MIN_SECRET_KEY} bytes"));
        }
        return key;
    }
    if let Some(path) = notes.env("DLO_SECRET_KEY_FILE") {
        return key_in(path.as_ref(), |problem| notes.mistake_in_env("DLO_SECRET_KEY_FILE", problem));
    }
    let item = named?;
    key_in(&directory.join(item.text()?), |problem| item.mistake(problem))
}

fn key_in(path: &Path, mistake: impl Fn(String)) -> Option<SecretKey> {
    let shown = path.display();
    match std::fs::read(path) {
        Ok(bytes) => {
            let key = SecretKey::new(bytes.trim_ascii());
            if key.is_none() {
                mistake(format!("{shown} holds fewer than {MIN_SECRET_KEY} bytes"));
            }
            key
        }
        Err(error) if error.kind() == std::io::ErrorKind::NotFound => {
            mistake(format!("there is no file {shown}: put it back, or make a first one with `dlo init`"));
            None
        }
        Err(error) => {
            mistake(format!("{shown} cannot be read: {error}"));
            None
        }
    }
}
