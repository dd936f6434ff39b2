//! The chain that the audit's entries form: each link authenticates an entry's facts and the link
//! before it, with a key that the database does not hold. Whoever can write to the database can
//! change what it says, and not what a link says of it.
//!
//! What people wrote is not in a link, only a salted and keyed digest of it. The salt is stored with
//! the words and erased with them, so that not even the key tells what they were.

use ring::hmac;
use sha2::{Digest as _, Sha256};
use uuid::Uuid;

use super::keyring::SecretKey;
use super::time::Timestamp;

/// What the first link has before it.
pub const START: &[u8] = &[];

/// What a link says of its entry.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The entry's place; the first one is 1.
    pub seq: i64,
    /// The entry's id.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: &'a str,
    /// What.
    pub action: &'a str,
    /// To which operation.
    pub operation_id: Option<Uuid>,
    /// To which dead letter.
    pub dead_letter_id: Option<Uuid>,
    /// To what else.
    pub subject: Option<&'a str>,
    /// With what result.
    pub result: &'a str,
    /// From where.
    pub origin: &'a str,
    /// The digest of its words: [`ChainKey::words`].
    pub words: &'a [u8],
    /// The digest of the ids of entries whose words it erased: [`erased`].
    pub erased: Option<&'a [u8]>,
}

impl Facts<'_> {
    /// Every field behind its length, so that no two entries read the same.
    fn canonical(&self, key_id: &str) -> Vec<u8> {
        let mut text = Vec::with_capacity(256);
        let mut put = |field: Option<&[u8]>| match field {
            // No field is as long as this.
            None => text.extend(u64::MAX.to_be_bytes()),
            Some(bytes) => {
                text.extend((bytes.len() as u64).to_be_bytes());
                text.extend(bytes);
            }
        };
        put(Some(key_id.as_bytes()));
        put(Some(&self.seq.to_be_bytes()));
        put(Some(self.id.as_bytes()));
        put(Some(&self.at.as_micros().to_be_bytes()));
        put(Some(self.actor.as_bytes()));
        put(Some(self.action.as_bytes()));
        put(self.operation_id.as_ref().map(|id| &id.as_bytes()[..]));
        put(self.dead_letter_id.as_ref().map(|id| &id.as_bytes()[..]));
        put(self.subject.map(str::as_bytes));
        put(Some(self.result.as_bytes()));
        put(Some(self.origin.as_bytes()));
        put(Some(self.words));
        put(self.erased);
        text
    }
}

/// What links are made and checked with.
#[derive(Debug)]
pub struct ChainKey {
    id: String,
    links: hmac::Key,
    words: hmac::Key,
    seals: hmac::Key,
}

impl ChainKey {
    /// From a secret key.
    pub fn of(key: &SecretKey) -> Self {
        let derived = |purpose| hmac::Key::new(hmac::HMAC_SHA256, &key.derive(purpose));
        Self {
            id: key.id(),
            links: derived("audit chain"),
            words: derived("audit words"),
            seals: derived("audit export"),
        }
    }

    /// The secret key's name.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The link of an entry behind another link: `HMAC(k, previous ‖ entry)`.
    pub fn link(&self, previous: &[u8], facts: &Facts<'_>) -> Vec<u8> {
        let mut context = hmac::Context::with_key(&self.links);
        context.update(&(previous.len() as u64).to_be_bytes());
        context.update(previous);
        context.update(&facts.canonical(&self.id));
        context.sign().as_ref().to_vec()
    }

    /// The digest of an entry's words.
    pub fn words(&self, salt: &[u8], reason: Option<&str>, detail: &str) -> Vec<u8> {
        let mut context = hmac::Context::with_key(&self.words);
        for field in [Some(salt), reason.map(str::as_bytes), Some(detail.as_bytes())] {
            let length = field.map_or(u64::MAX, |field| field.len() as u64);
            context.update(&length.to_be_bytes());
            context.update(field.unwrap_or_default());
        }
        context.sign().as_ref().to_vec()
    }
}

/// What proves that a file of entries is as it was written, with none taken out and none put in.
#[derive(Clone, Debug)]
pub struct Seal(hmac::Context);

impl Seal {
    /// Over nothing yet.
    pub fn begin(key: &ChainKey) -> Self {
        Self(hmac::Context::with_key(&key.seals))
    }

    /// Over one more part.
    pub fn add(&mut self, part: &[u8]) {
        self.0.update(&(part.len() as u64).to_be_bytes());
        self.0.update(part);
    }

    /// Over all that was added.
    pub fn close(self) -> Vec<u8> {
        self.0.sign().as_ref().to_vec()
    }
}

/// The digest of a list of entries, in the order of their ids.
pub fn erased(ids: impl IntoIterator<Item = Uuid>) -> Vec<u8> {
    let mut hash = Sha256::new();
    for id in ids {
        hash.update(id.as_bytes());
    }
    hash.finalize().to_vec()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::keyring::MIN_SECRET_KEY;

    fn key(letter: &str) -> ChainKey {
        ChainKey::of(&SecretKey::new(letter.repeat(MIN_SECRET_KEY)).unwrap())
    }

    fn facts() -> Facts<'static> {
        Facts {
            seq: 7,
            id: Uuid::from_u128(1),
            at: Timestamp::from_micros(5),
            actor: "anna",
            action: "replay",
            operation_id: None,
            dead_letter_id: None,
            subject: None,
            result: "done",
            origin: "here",
            words: b"w",
            erased: None,
        }
    }

    #[test]
    fn every_field_counts_and_none_runs_into_the_next() {
        let id = Some(Uuid::from_u128(1));
        let facts = facts();
        let variants = [
            facts,
            Facts { seq: 8, ..facts },
            Facts { id: Uuid::from_u128(2), ..facts },
            Facts { at: Timestamp::from_micros(6), ..facts },
            Facts { actor: "ann", action: "areplay", ..facts },
            Facts { actor: "annar", action: "eplay", ..facts },
            Facts { operation_id: id, ..facts },
            Facts { dead_letter_id: id, ..facts },
            Facts { subject: Some(""), ..facts },
            Facts { result: "doneh", origin: "ere", ..facts },
            Facts { words: b"", ..facts },
            Facts { erased: Some(b""), ..facts },
        ];
        let mut links: Vec<Vec<u8>> = variants.iter().map(|facts| key("a").link(b"before", facts)).collect();
        links.push(key("b").link(b"before", &facts));
        links.push(key("a").link(b"after", &facts));
        links.push(key("a").link(START, &facts));
        for (n, one) in links.iter().enumerate() {
            assert!(links[n + 1..].iter().all(|other| one != other), "{n}");
        }
        assert_eq!(key("a").link(b"before", &facts), links[0]);
    }

    #[test]
    fn words_are_told_apart_by_salt_and_key() {
        let digests = [
            key("a").words(b"s", Some("r"), "d"),
            key("a").words(b"s", None, "d"),
            key("a").words(b"s", Some(""), "d"),
            key("a").words(b"s", Some("rd"), ""),
            key("a").words(b"t", Some("r"), "d"),
            key("b").words(b"s", Some("r"), "d"),
        ];
        for (n, one) in digests.iter().enumerate() {
            assert!(digests[n + 1..].iter().all(|other| one != other), "{n}");
        }
    }

    #[test]
    fn a_list_of_erased_entries_is_told_by_its_members() {
        let (one, two) = (Uuid::from_u128(1), Uuid::from_u128(2));
        assert_ne!(erased([one]), erased([one, two]));
        assert_ne!(erased([]), erased([one]));
    }
}
