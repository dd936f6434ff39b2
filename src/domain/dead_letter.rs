//! An episode in which an operation waits for a person.

use std::sync::LazyLock;

use regex::Regex;
use sha2::{Digest, Sha256};

use super::attempt::Outcome;
use super::key::hex;

text_enum! {
    /// Where an episode stands.
    pub enum DeadLetterStatus {
        /// Waits for a person.
        Open = "open",
        /// Being tried again at a person's word.
        Replaying = "replaying",
        /// The replay was confirmed.
        Replayed = "replayed",
        /// Closed with a reason.
        Resolved = "resolved",
        /// Replaced by a corrected operation.
        Corrected = "corrected",
    }
}

text_enum! {
    /// What is known of the effect.
    pub enum Certainty {
        /// It did not happen.
        DefinitelyFailed = "definitely_failed",
        /// It may have happened.
        MayHaveCompleted = "may_have_completed",
        /// The destination has it.
        CompletedAtDestination = "completed_at_destination",
    }
}

text_enum! {
    /// What to do first.
    pub enum NextAction {
        /// Find out whether it happened.
        CheckDestination = "check_destination",
        /// Try it again.
        Replay = "replay",
        /// The data must change.
        FixData = "fix_data",
        /// A permission, credential or address must change.
        FixPermission = "fix_permission",
        /// Come back later.
        Wait = "wait",
        /// A person has to choose.
        Decide = "decide",
        /// Nothing needs to be done.
        Ignore = "ignore",
    }
}

text_enum! {
    /// How a person closed it.
    pub enum Resolution {
        /// The destination has the effect.
        CompletedAtDestination = "completed_at_destination",
        /// Done by other means.
        FixedElsewhere = "fixed_elsewhere",
        /// Another operation did the same.
        Duplicate = "duplicate",
        /// Discarded: nobody needs it.
        NotNeeded = "not_needed",
    }
}

/// What groups dead letters that have one cause: a stored, exact fingerprint and the text it was
/// made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseFingerprint {
    /// 16 hexadecimal digits.
    pub id: String,
    /// The error without what differs from one operation to the next.
    pub text: String,
}

impl CauseFingerprint {
    /// From the four facts that make two failures one cause.
    pub fn of(destination: &str, step: &str, outcome: Outcome, error: &str) -> Self {
        let text = normalise(error);
        let mut hash = Sha256::new();
        for part in [destination, step, outcome.as_str(), &text] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        Self { id: hex(&hash.finalize()[..8]), text }
    }
}

/// Drops what differs between two failures of one cause: ids, times, addresses, numbers, quoted
/// values. A three-digit HTTP status at the beginning stays.
pub fn normalise(error: &str) -> String {
    static PARTS: LazyLock<Vec<(Regex, &str)>> = LazyLock::new(|| {
        [
            (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", "<id>"),
            (r"\b\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d(\.\d+)?)?(Z|[+-]\d\d:?\d\d)?", "<time>"),
            (r"\b[\w.+-]+@[\w-]+(\.[\w-]+)+\b", "<email>"),
            (r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b", "<address>"),
            (r"(?i)\b[0-9a-f]{16,}\b", "<id>"),
            (r"(?i)\b[a-z]+[-_][a-z0-9]*\d[a-z0-9_-]*", "<id>"),
            (r"\d+([.,]\d+)*", "<n>"),
        ]
        .into_iter()
        .filter_map(|(pattern, name)| Some((Regex::new(pattern).ok()?, name)))
        .collect()
    });
    let (head, rest) = match error.split_at_checked(3) {
        Some((head, rest))
            if head.bytes().all(|b| b.is_ascii_digit())
                && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            (head, rest)
        }
        _ => ("", error),
    };
    let mut text = rest.to_owned();
    for (pattern, name) in PARTS.iter() {
        text = pattern.replace_all(&text, *name).into_owned();
    }
    let mut text = format!(
        "{head}{}",
        text.split_whitespace().fold(String::new(), |mut line, word| {
            if !line.is_empty() || !head.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
            line
        })
    );
    if let Some((end, _)) = text.char_indices().nth(200) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_differs_between_operations_is_dropped() {
        let a = "422 order ORD-10443 of anna@example.com: amount 12.50 at 2026-11-29T09:00:00Z";
        let b = "422 order ORD-9 of bob.b@example.org: amount 1,300 at 2026-11-28 23:59:59.5Z";
        assert_eq!(normalise(a), "422 order <id> of <email>: amount <n> at <time>");
        assert_eq!(normalise(a), normalise(b));
        let fingerprint = |text| CauseFingerprint::of("crm", "create", Outcome::Rejected, text);
        assert_eq!(fingerprint(a), fingerprint(b));
        assert_eq!(fingerprint(a).id.len(), 16);
    }

    #[test]
    fn what_makes_a_cause_is_kept() {
        assert_ne!(normalise("422 no such customer"), normalise("404 no such customer"));
        assert_eq!(normalise("503"), "503");
        assert_eq!(normalise("5031 units"), "<n> units");
        let of = |destination, step, outcome| CauseFingerprint::of(destination, step, outcome, "x").id;
        let one = of("crm", "create", Outcome::Rejected);
        assert_ne!(one, of("pay", "create", Outcome::Rejected));
        assert_ne!(one, of("crm", "update", Outcome::Rejected));
        assert_ne!(one, of("crm", "create", Outcome::Uncertain));
        // A boundary that moves is another cause.
        assert_ne!(of("ab", "c", Outcome::Rejected), of("a", "bc", Outcome::Rejected));
    }

    #[test]
    fn long_and_foreign_text_is_cut_between_letters() {
        assert_eq!(normalise(&"é".repeat(500)).chars().count(), 200);
        assert_eq!(normalise("é"), "é");
    }
}
