//! How the domain's words read on the desk: one word, one icon and one colour each, everywhere
//! the same. Sentences are not made here.

use super::known::Known;
use crate::domain::actor::{Right, Role};
use crate::domain::attempt::{Cause, Outcome, Waiver};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::operation::{OperationState, Severity, StepState};
use crate::domain::verdict::{CheckName, VerdictKind};

/// How a value is marked on the desk.
pub trait Mark {
    /// What it is called.
    fn word(self) -> &'static str;
    /// The icon's name. Solid ones stand for what is known, hollow ones for what is not.
    fn icon(self) -> &'static str;
    /// `good`, `maybe`, `bad`, `info` or `mute`: the colour.
    fn tone(self) -> &'static str;
}

/// Declares the marks of an enum: value, word, icon, colour.
macro_rules! marks {
    ($name:ident { $($variant:ident: $word:literal, $icon:literal, $tone:literal;)+ }) => {
        impl Mark for $name {
            fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),+ }
            }
            fn icon(self) -> &'static str {
                match self { $(Self::$variant => $icon),+ }
            }
            fn tone(self) -> &'static str {
                match self { $(Self::$variant => $tone),+ }
            }
        }
    };
}

marks!(Certainty {
    DefinitelyFailed: "Definitely failed", "failed", "bad";
    MayHaveCompleted: "May have completed", "maybe", "maybe";
    CompletedAtDestination: "Completed there", "done", "good";
});

marks!(Known {
    DoneThere: "Done there", "done", "good";
    NotThere: "Not there", "failed", "bad";
    CannotTell: "Cannot tell", "maybe", "maybe";
    NeverReached: "Never reached", "failed", "bad";
});

marks!(DeadLetterStatus {
    Open: "Open", "open", "info";
    Replaying: "Being replayed", "running", "info";
    Replayed: "Replayed and confirmed", "done", "good";
    Resolved: "Resolved", "closed", "mute";
    Corrected: "Replaced by a correction", "closed", "mute";
});

marks!(OperationState {
    Pending: "Waiting its turn", "wait", "mute";
    Running: "Being sent", "running", "info";
    Uncertain: "May have completed", "maybe", "maybe";
    Completed: "Completed", "done", "good";
    Failed: "Failed", "failed", "bad";
});

marks!(StepState {
    Pending: "Not done yet", "wait", "mute";
    Uncertain: "May have completed", "maybe", "maybe";
    Completed: "Completed", "done", "good";
    Failed: "Failed", "failed", "bad";
});

marks!(Outcome {
    Running: "Not yet answered", "running", "info";
    Done: "Done", "done", "good";
    NotSent: "Never sent", "failed", "bad";
    Throttled: "Told to wait", "wait", "mute";
    Rejected: "Refused there", "failed", "bad";
    Uncertain: "May have happened", "maybe", "maybe";
    KeyConflict: "Key known with other data", "warn", "bad";
    Skipped: "Not tried", "wait", "mute";
});

marks!(Cause {
    Automatic: "by itself", "clock", "mute";
    Replay: "replay", "again", "info";
    Bulk: "bulk replay", "again", "info";
    Override: "override", "key", "maybe";
    Lookup: "lookup", "search", "info";
});

marks!(Severity {
    Low: "Low", "level", "mute";
    Normal: "Normal", "level", "mute";
    High: "High", "warn", "maybe";
    Critical: "Critical", "warn", "bad";
});

marks!(NextAction {
    CheckDestination: "Ask the destination", "search", "info";
    Replay: "Replay", "again", "info";
    FixData: "Fix the data", "edit", "info";
    FixPermission: "Fix access", "key", "info";
    Wait: "Come back later", "clock", "mute";
    Decide: "Decide", "person", "info";
    Ignore: "Nothing to do", "closed", "mute";
});

marks!(Resolution {
    CompletedAtDestination: "Completed at the destination", "done", "good";
    FixedElsewhere: "Fixed elsewhere", "done", "good";
    Duplicate: "Duplicate", "closed", "mute";
    NotNeeded: "Not needed", "closed", "mute";
});

marks!(VerdictKind {
    Accepted: "Accepted: it will be sent", "done", "good";
    InFlight: "Already being sent", "running", "info";
    AlreadyDone: "Already done", "done", "good";
    LookUpFirst: "The destination has to be asked first", "search", "maybe";
    NeedsOverride: "Not sent: this needs an override", "key", "maybe";
    Refused: "Not sent: refused", "failed", "bad";
});

/// The question that a check answers.
pub fn check(name: CheckName) -> &'static str {
    match name {
        CheckName::PayloadUnchanged => "Is it the same data as was accepted under this key?",
        CheckName::StepNotCompleted => "Is the step still to be done?",
        CheckName::NothingInFlight => "Is nobody else sending it now?",
        CheckName::DestinationOpen => "Does the destination take requests?",
        CheckName::KeyWindowOpen => "Does the destination still recognise our key?",
        CheckName::OutcomeKnown => "Is everything that was sent accounted for?",
        CheckName::WithinCaps => "Are attempts and time left?",
        CheckName::Allowed => "May you do this?",
    }
}

/// What a waiver switches off.
pub fn waiver(waiver: Waiver) -> &'static str {
    match waiver {
        Waiver::KeyWindow => "Does the destination still recognise our key?",
        Waiver::UnknownOutcome => "Is everything that was sent accounted for?",
        Waiver::Caps => "Are attempts and time left?",
    }
}

/// What a right lets one do.
pub fn right(right: Right) -> &'static str {
    match right {
        Right::View => "See operations and dead letters",
        Right::ViewPayload => "See payloads, requests and answers unmasked",
        Right::Submit => "Hand in operations",
        Right::Replay => "Replay a dead letter through all checks",
        Right::Resolve => "Close a dead letter",
        Right::Override => "Waive a named check",
        Right::Audit => "See who did what",
        Right::ManagePeople => "Add people and change what they may do",
        Right::ManageTokens => "Make and revoke API tokens",
    }
}

/// When a resolution is the right one.
pub fn resolution(resolution: Resolution) -> &'static str {
    match resolution {
        Resolution::CompletedAtDestination => {
            "The effect is there. Give its reference, or say in the reason why there is none."
        }
        Resolution::FixedElsewhere => "Somebody did it by other means, so it must not be sent again.",
        Resolution::Duplicate => "Another operation did the same. Name it in the reason.",
        Resolution::NotNeeded => "Nobody needs the effect any more. It is discarded; its history stays.",
    }
}

/// What the replay button says. Its words follow what the destination knows.
pub fn replay_button(state: Known, destination: &str, reference: Option<&str>) -> String {
    match (state, reference) {
        (Known::NotThere | Known::NeverReached, _) => format!("Replay: {destination} never saw it"),
        (Known::CannotTell, _) => format!("Ask {destination} first"),
        (Known::DoneThere, Some(reference)) => format!("Record as completed ({reference})"),
        (Known::DoneThere, None) => "Record as completed".to_owned(),
    }
}

/// What a button says that needs a right which the reader's role lacks.
pub fn lacks(right: Right, role: Role) -> String {
    format!("Needs the right \u{201c}{right}\u{201d}, which {}s have. You are {role}.", Role::least(right))
}
