//! Which secret keys are needed, and for what. Envelopes can be put under another key; the audit's
//! links and the digests of erased keys cannot, so that a key which made one stays needed as long as
//! that is there.

use std::collections::{BTreeMap, BTreeSet};

use crate::domain::keyring::{Keyring, SecretKey};
use crate::domain::words::listed;
use crate::store::envelopes::{self, PLACES};
use crate::store::{StoreError, Tx, chain, erasure};

/// What needs one key.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
struct Needs {
    /// Envelopes that it opens.
    envelopes: i64,
    /// The first and the last of the audit's links that it verifies.
    links: Option<(i64, i64)>,
    /// Keys of erased operations that it recognises.
    erased: i64,
}

impl Needs {
    /// In words, behind "it is needed:".
    fn words(&self) -> String {
        let mut words = Vec::new();
        match self.envelopes {
            0 => {}
            1 => words.push("1 stored secret is under it (dlo rotate-keys changes that)".to_owned()),
            n => words.push(format!("{n} stored secrets are under it (dlo rotate-keys changes that)")),
        }
        match self.links {
            Some((first, last)) if first == last => {
                words.push(format!("No. {first} of the audit is verified with it"));
            }
            Some((first, last)) => {
                words.push(format!("No. {first} to {last} of the audit are verified with it"));
            }
            None => {}
        }
        match self.erased {
            0 => {}
            1 => {
                words.push("1 erased operation is recognised by it, and else would be done again".to_owned());
            }
            n => words
                .push(format!("{n} erased operations are recognised by it, and else would be done again")),
        }
        listed(&words.iter().map(String::as_str).collect::<Vec<_>>())
    }
}

/// How the secret keys stand to what is stored.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Keys {
    current: String,
    older: BTreeSet<String>,
    needs: BTreeMap<String, Needs>,
    /// Erased operations that do not say which key they are recognised by.
    untold: i64,
}

impl Keys {
    /// Looks through everything that a key can be needed for.
    pub async fn look(tx: &mut Tx, keyring: &Keyring) -> Result<Self, StoreError> {
        let current = keyring.current().id();
        let older = keyring.all().skip(1).map(SecretKey::id).filter(|id| *id != current).collect();
        let mut keys = Self { current, older, ..Self::default() };
        for place in PLACES {
            for (id, count) in envelopes::counts(tx, place).await? {
                keys.needs.entry(id).or_default().envelopes += count;
            }
        }
        for (id, first, last) in chain::keys(tx).await? {
            keys.needs.entry(id).or_default().links = Some((first, last));
        }
        for (id, count) in erasure::keys(tx).await? {
            match id {
                Some(id) => keys.needs.entry(id).or_default().erased += count,
                None => keys.untold += count,
            }
        }
        Ok(keys)
    }

    /// What is to be known of them, in sentences: what the one in use opens, which others have to
    /// stay and for what, and which are needed no more.
    pub fn told(&self) -> Vec<String> {
        let mut told = vec![match self.needs.get(&self.current).map_or(0, |needs| needs.envelopes) {
            1 => format!("1 stored secret is under the key in use, {}.", self.current),
            n => format!("{n} stored secrets are under the key in use, {}.", self.current),
        }];
        let stay = self.others().filter(|(id, _)| self.older.contains(*id));
        told.extend(stay.map(|(id, needs)| {
            format!("The key {id} has to stay in old_secret_key_files: {}.", needs.words())
        }));
        told.extend(self.missing());
        if self.untold > 0 && !self.older.is_empty() {
            told.push(format!(
                "Operations that were erased before version 17 of the schema do not say which key they are \
                 recognised by ({}): keep every key that was in use by then.",
                self.untold
            ));
        } else {
            let spare = self.older.iter().filter(|id| !self.needs.contains_key(*id));
            told.extend(spare.map(|id| {
                format!("Nothing needs the key {id} any more: take it out of old_secret_key_files.")
            }));
        }
        if told.len() == 1 {
            told.push("Nothing stored needs another key.".to_owned());
        }
        told
    }

    /// Those that something needs and that nobody gave to this process, in sentences.
    pub fn missing(&self) -> Vec<String> {
        let missing = self.others().filter(|(id, _)| !self.older.contains(*id));
        missing
            .map(|(id, needs)| {
                format!(
                    "The secret key {id} is not here, and it is needed: {}. Name its file in old_secret_key_files.",
                    needs.words()
                )
            })
            .collect()
    }

    fn others(&self) -> impl Iterator<Item = (&String, &Needs)> {
        self.needs.iter().filter(|(id, _)| **id != self.current)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keys(older: &[&str], needs: &[(&str, Needs)]) -> Keys {
        Keys {
            current: "new".to_owned(),
            older: older.iter().map(|id| (*id).to_owned()).collect(),
            needs: needs.iter().map(|(id, needs)| ((*id).to_owned(), needs.clone())).collect(),
            untold: 0,
        }
    }

    #[test]
    fn each_key_is_said_to_stay_or_to_go_and_what_for() {
        let of = |envelopes, links, erased| Needs { envelopes, links, erased };
        let mut it = keys(
            &["old", "spare"],
            &[
                ("new", of(3, Some((8, 9)), 1)),
                ("old", of(1, Some((1, 7)), 2)),
                ("gone", of(0, Some((5, 5)), 0)),
            ],
        );
        assert_eq!(
            it.told(),
            [
                "3 stored secrets are under the key in use, new.",
                "The key old has to stay in old_secret_key_files: 1 stored secret is under it (dlo rotate-keys changes \
                 that), No. 1 to 7 of the audit are verified with it and 2 erased operations are recognised by it, and \
                 else would be done again.",
                "The secret key gone is not here, and it is needed: No. 5 of the audit is verified with it. Name its file \
                 in old_secret_key_files.",
                "Nothing needs the key spare any more: take it out of old_secret_key_files.",
            ]
        );
        assert_eq!(it.missing(), it.told()[2..3]);
        it.untold = 4;
        let told = it.told();
        assert!(
            told[3].contains("(4): keep every key") && told.len() == 4,
            "none is said to be needless: {told:?}"
        );
        let alone = keys(&[], &[("new", of(1, None, 0))]);
        let nothing = ["1 stored secret is under the key in use, new.", "Nothing stored needs another key."];
        assert_eq!(alone.told(), nothing);
    }
}
