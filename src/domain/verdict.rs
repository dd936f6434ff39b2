//! The gate's answer to whoever asks for a send, in the shape that every door publishes.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::time::Timestamp;

text_enum! {
    /// The answer in a word.
    pub enum VerdictKind {
        /// It will be sent.
        Accepted = "accepted",
        /// It is being sent already.
        InFlight = "in_flight",
        /// It was done already; nothing is sent.
        AlreadyDone = "already_done",
        /// The destination must be asked before anything is sent.
        LookUpFirst = "look_up_first",
        /// Only a person with the right can have it sent, by waiving a named check.
        NeedsOverride = "needs_override",
        /// It is not sent.
        Refused = "refused",
    }
}

text_enum! {
    /// The gate's checks, in the order in which they are made.
    pub enum CheckName {
        /// The payload is the one that was first accepted under this key.
        PayloadUnchanged = "payload_unchanged",
        /// The step has not been done.
        StepNotCompleted = "step_not_completed",
        /// Nothing else is sending it.
        NothingInFlight = "nothing_in_flight",
        /// The destination takes requests.
        DestinationOpen = "destination_open",
        /// The destination still recognises our key, where that matters.
        KeyWindowOpen = "key_window_open",
        /// Nothing that was sent is unaccounted for, or a repeat is harmless.
        OutcomeKnown = "outcome_known",
        /// Attempts and age are left; for the engine's own retries only.
        WithinCaps = "within_caps",
        /// This person may.
        Allowed = "allowed",
    }
}

/// One check and how it went.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Check {
    /// Which.
    pub name: CheckName,
    /// How it went.
    pub passed: bool,
    /// Why, for people.
    pub detail: String,
}

/// What is known of the effect from earlier attempts, findings or people.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct KnownResult {
    /// When we learned it.
    pub at: Timestamp,
    /// How we learned it, for people.
    pub how: String,
    /// What the destination answered, as far as it is kept.
    pub answer: Option<String>,
    /// The id over there.
    pub reference: Option<String>,
}

/// Whoever is at it already.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Run {
    /// Who asked for it.
    pub by: String,
    /// Since when.
    pub since: Timestamp,
    /// Where to watch it.
    pub url: String,
}

/// The gate's answer.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Verdict {
    /// In a word.
    pub verdict: VerdictKind,
    /// In a sentence that names what would help.
    pub reason: String,
    /// Every check that was made.
    pub checks: Vec<Check>,
    /// What is known of the effect.
    pub known_result: Option<KnownResult>,
    /// The attempt that is meant: the one under way, or the one that did it.
    pub attempt: Option<Uuid>,
    /// Whoever is at it already.
    pub run: Option<Run>,
}
