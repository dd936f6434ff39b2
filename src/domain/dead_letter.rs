//! An episode in which an operation waits for a person.

mod fingerprint;

pub use fingerprint::{CauseFingerprint, normalise};

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
