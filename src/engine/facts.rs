//! What a person decides on, in a text that tells whether it has changed since they saw it, and in
//! what, and nothing else.

use std::fmt;

use sha2::{Digest, Sha256};

use super::thread::Thread;
use crate::domain::attempt::{StoredRequest, Waiver};
use crate::store::dead_letters::DeadLetterRow;

/// What each part is, said of one that is different now.
const PARTS: [&str; 5] = [
    "it was tried again",
    "something else is known of its effect",
    "something else is to be done first",
    "other checks stand in the way",
    "what would be sent is different",
];

/// The facts of a dead letter at one moment: of each part a digest.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Facts([String; PARTS.len()]);

impl Facts {
    /// Attempts, what is known of the effect, what is to be done first (a question may have found other
    /// data there), the checks that an override would waive, and the request.
    pub(super) fn of(
        letter: &DeadLetterRow,
        thread: &Thread,
        waivable: &[Waiver],
        request: &Result<StoredRequest, String>,
    ) -> Self {
        let known = thread.known_result().map_or_else(String::new, |known| known.how);
        let parts = [
            format!("{} {}", letter.attempts, letter.last_failed_at.as_micros()),
            format!("{} {known}", letter.certainty),
            letter.next_action.to_string(),
            format!("{waivable:?}"),
            format!("{request:?}"),
        ];
        Self(parts.map(|part| {
            let mut first = [0; 8];
            first.copy_from_slice(&Sha256::digest(part.as_bytes())[..8]);
            format!("{:016x}", u64::from_be_bytes(first))
        }))
    }

    /// What is different from the facts of an earlier text; absent when nothing is.
    pub fn changed_since(&self, earlier: &str) -> Option<String> {
        if earlier == self.to_string() {
            return None;
        }
        let earlier: Vec<&str> = earlier.split('-').collect();
        if earlier.len() != PARTS.len() {
            return Some("it is not known what was shown".to_owned());
        }
        let pairs = self.0.iter().zip(earlier).zip(PARTS);
        let different: Vec<&str> =
            pairs.filter(|((now, then), _)| now.as_str() != *then).map(|(_, words)| words).collect();
        Some(different.join("; "))
    }
}

impl fmt::Display for Facts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0.join("-"))
    }
}
