//! One try at a step: why it was made and what is known after it.

use serde::{Deserialize, Serialize};

text_enum! {
    /// Why an attempt was made.
    pub enum Cause {
        /// The engine's own schedule.
        Automatic = "automatic",
        /// A person asked for it.
        Replay = "replay",
        /// A member of a bulk action.
        Bulk = "bulk",
        /// A person waived a named check.
        Override = "override",
        /// A question to the destination.
        Lookup = "lookup",
    }
}

text_enum! {
    /// What is known after an attempt.
    pub enum Outcome {
        /// Under way: nothing is known yet.
        Running = "running",
        /// It happened.
        Done = "done",
        /// Proved: nothing can have happened.
        NotSent = "not_sent",
        /// Not processed; the destination said when to come back.
        Throttled = "throttled",
        /// The destination said no.
        Rejected = "rejected",
        /// It may have happened.
        Uncertain = "uncertain",
        /// The destination knows this key with other data.
        KeyConflict = "key_conflict",
        /// Not tried, since another worker was at it.
        Skipped = "skipped",
    }
}

text_enum! {
    /// What an override sends.
    pub enum OverrideMode {
        /// The same request under the same key: a destination that still knows it does nothing.
        SameKey = "same_key",
        /// A deliberate second effect under a new key.
        NewEffect = "new_effect",
    }
}

text_enum! {
    /// Where a request for an override stands.
    pub enum RequestState {
        /// Nobody has decided.
        Waiting = "waiting",
        /// A second person said yes, and it was asked for.
        Approved = "approved",
        /// A second person said no.
        Refused = "refused",
        /// Whoever asked took it back.
        Withdrawn = "withdrawn",
        /// What it was about is not so any more.
        Stale = "stale",
    }
}

text_enum! {
    /// A check that an override may waive. The others are never waived.
    pub enum Waiver {
        /// The destination's key window has closed.
        KeyWindow = "key_window_open",
        /// An earlier send may have happened.
        UnknownOutcome = "outcome_known",
        /// The attempts or the age are used up.
        Caps = "within_caps",
    }
}

/// The exact bytes of a step's request, made once per generation and sent by every attempt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredRequest {
    /// `POST` and the like.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// Without those that carry credentials, which are added at the moment of sending.
    pub headers: Vec<(String, String)>,
    /// UTF-8; absent for a request without a body.
    pub body: Option<String>,
}

/// What came back, as far as it is kept.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StoredAnswer {
    /// The status line's number.
    pub status: Option<u16>,
    /// Without those that carry credentials.
    pub headers: Vec<(String, String)>,
    /// Cut at the configured cap; bytes that are no UTF-8 are replaced.
    pub body: String,
    /// The body went on past what is kept, or its end never arrived.
    pub cut: bool,
}
