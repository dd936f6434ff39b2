//! What the file and the environment state, key by key, so that a change can be named and need not be
//! shown.

use std::collections::BTreeMap;
use std::fmt;

use ring::hmac;
use toml::de::{DeTable, DeValue};

use super::reader::{Notes, Table};
use crate::domain::keyring::SecretKey;

/// The variables that take the place of keys of `[server]`. The secret key has an id of its own.
const OVERRIDES: [(&str, &str); 3] = [
    ("DLO_DATABASE_URL", "server.database_url"),
    ("DLO_LISTEN", "server.listen"),
    ("DLO_PUBLIC_URL", "server.public_url"),
];

/// Every setting by its dotted name, as it is written: a `${VARIABLE}` stands for itself.
#[derive(Clone, Default)]
pub struct Stated(BTreeMap<String, String>);

impl fmt::Debug for Stated {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Stated({} settings)", self.0.len())
    }
}

impl Stated {
    pub(super) fn read(notes: &Notes<'_>, root: &Table<'_>) -> Self {
        let mut found = BTreeMap::new();
        table(root.keys(), "", &mut found);
        for (variable, name) in OVERRIDES {
            if let Some(text) = notes.env(variable) {
                found.insert(name.to_owned(), text);
            }
        }
        Self(found)
    }

    /// A digest of each setting, which tells nothing to whoever has not the key.
    pub fn digests(&self, key: &SecretKey) -> BTreeMap<String, Vec<u8>> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &key.derive("settings"));
        let digest = |(name, value): (&String, &String)| {
            let mut context = hmac::Context::with_key(&key);
            context.update(&(name.len() as u64).to_be_bytes());
            context.update(name.as_bytes());
            context.update(value.as_bytes());
            (name.clone(), context.sign().as_ref().to_vec())
        };
        self.0.iter().map(digest).collect()
    }
}

fn table(keys: &DeTable<'_>, path: &str, found: &mut BTreeMap<String, String>) {
    for (name, item) in keys {
        let name = name.get_ref();
        let path = if path.is_empty() { name.to_string() } else { format!("{path}.{name}") };
        value(item.get_ref(), path, found);
    }
}

fn value(item: &DeValue<'_>, path: String, found: &mut BTreeMap<String, String>) {
    let text = match item {
        DeValue::Table(keys) => return table(keys, &path, found),
        DeValue::Array(items) => {
            for (index, item) in items.iter().enumerate() {
                value(item.get_ref(), format!("{path}[{index}]"), found);
            }
            return;
        }
        DeValue::String(text) => text.to_string(),
        DeValue::Integer(number) => number.as_str().to_owned(),
        DeValue::Float(number) => number.as_str().to_owned(),
        DeValue::Boolean(flag) => flag.to_string(),
        DeValue::Datetime(moment) => moment.to_string(),
    };
    found.insert(path, text);
}
