//! How the domain's values are marked on the desk: the catalogue's word, one icon and one colour
//! each, everywhere the same. The words themselves stand in [`crate::domain::words`].

use super::known::Known;
use super::pages::destinations::Stands;
use crate::domain::actor::{Right, Standing};
use crate::domain::attempt::{Cause, Outcome, RequestState, Waiver};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::filter::Age;
use crate::domain::lookup::Finding;
use crate::domain::operation::{OperationState, Severity, StepState};
use crate::domain::sign_in::SignInBy;
use crate::domain::verdict::{CheckName, VerdictKind};
use crate::domain::words;

/// How a value is marked on the desk.
pub trait Mark {
    /// What it is called, as it stands alone.
    fn word(self) -> String;
    /// The icon's name. Solid ones stand for what is known, hollow ones for what is not.
    fn icon(self) -> &'static str;
    /// `good`, `maybe`, `bad`, `info` or `mute`: the colour.
    fn tone(self) -> &'static str;
}

/// Declares the marks of an enum: where its words are, then each value's icon and colour.
macro_rules! marks {
    ($name:ident in $words:expr => { $($variant:ident: $icon:literal, $tone:literal;)+ }) => {
        impl Mark for $name {
            fn word(self) -> String {
                let words: fn(Self) -> &'static str = $words;
                words::capitalised(words(self))
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

marks!(Certainty in |value| words::certainty(value).label => {
    DefinitelyFailed: "failed", "bad";
    MayHaveCompleted: "maybe", "maybe";
    CompletedAtDestination: "done", "good";
});

marks!(Known in known => {
    DoneThere: "done", "good";
    Recorded: "person", "good";
    NotThere: "failed", "bad";
    CannotTell: "maybe", "maybe";
    NeverReached: "failed", "bad";
});

marks!(DeadLetterStatus in words::dead_letter_status => {
    Open: "open", "info";
    Replaying: "running", "info";
    Replayed: "done", "good";
    Resolved: "closed", "mute";
    Corrected: "closed", "mute";
});

marks!(OperationState in words::operation_state => {
    Pending: "wait", "mute";
    Running: "running", "info";
    Uncertain: "maybe", "maybe";
    Completed: "done", "good";
    Failed: "failed", "bad";
});

marks!(StepState in words::step_state => {
    Pending: "wait", "mute";
    Uncertain: "maybe", "maybe";
    Completed: "done", "good";
    Failed: "failed", "bad";
    Skipped: "closed", "mute";
});

marks!(Stands in stands => {
    Open: "done", "good";
    Held: "clock", "info";
    Failing: "warn", "maybe";
    Paused: "pause", "bad";
});

marks!(Finding in words::finding => {
    Found: "done", "good";
    OtherPayload: "maybe", "maybe";
    Absent: "failed", "bad";
    TooEarly: "maybe", "maybe";
    Failed: "maybe", "maybe";
});

marks!(Outcome in words::outcome => {
    Running: "running", "info";
    Done: "done", "good";
    NotSent: "failed", "bad";
    Throttled: "wait", "mute";
    Rejected: "failed", "bad";
    Uncertain: "maybe", "maybe";
    KeyConflict: "warn", "bad";
    Skipped: "wait", "mute";
});

marks!(Cause in words::cause => {
    Automatic: "clock", "mute";
    Replay: "again", "info";
    Bulk: "again", "info";
    Override: "key", "maybe";
    Lookup: "search", "info";
});

marks!(RequestState in words::request_state => {
    Waiting: "wait", "info";
    Approved: "done", "good";
    Refused: "failed", "bad";
    Withdrawn: "closed", "mute";
    Stale: "clock", "mute";
});

marks!(Severity in |value| words::severity(value).label => {
    Low: "level", "mute";
    Normal: "level", "mute";
    High: "warn", "maybe";
    Critical: "warn", "bad";
});

marks!(NextAction in |value| words::next_action(value).label => {
    CheckDestination: "search", "info";
    Replay: "again", "info";
    FixData: "edit", "info";
    FixPermission: "key", "info";
    Wait: "clock", "mute";
    Decide: "person", "info";
    Ignore: "closed", "mute";
});

marks!(Age in words::age => {
    Hour: "clock", "mute";
    Day: "clock", "mute";
    Week: "clock", "mute";
    OverHour: "clock", "mute";
    OverDay: "clock", "mute";
    OverWeek: "clock", "mute";
});

marks!(Resolution in |value| words::resolution(value).label => {
    CompletedAtDestination: "done", "good";
    FixedElsewhere: "done", "good";
    Duplicate: "closed", "mute";
    NotNeeded: "closed", "mute";
});

marks!(VerdictKind in words::verdict => {
    Accepted: "done", "good";
    InFlight: "running", "info";
    AlreadyDone: "done", "good";
    LookUpFirst: "search", "maybe";
    NeedsOverride: "key", "maybe";
    Refused: "failed", "bad";
});

/// How a destination stands, in a few words.
pub const fn stands(value: Stands) -> &'static str {
    match value {
        Stands::Open => "working",
        Stands::Held => "asked us to wait",
        Stands::Failing => "failing",
        Stands::Paused => "paused",
    }
}

/// What the destination knows, in two words.
pub const fn known(value: Known) -> &'static str {
    match value {
        Known::DoneThere => "Done there",
        Known::Recorded => "Recorded as done",
        Known::NotThere => "Not there",
        Known::CannotTell => "Cannot tell",
        Known::NeverReached => "Never reached",
    }
}

/// The question that a check answers.
pub fn check(name: CheckName) -> &'static str {
    words::check(name)
}

/// The question that a waiver leaves unanswered.
pub fn waiver(waiver: Waiver) -> &'static str {
    words::check(match waiver {
        Waiver::KeyWindow => CheckName::KeyWindowOpen,
        Waiver::UnknownOutcome => CheckName::OutcomeKnown,
        Waiver::Caps => CheckName::WithinCaps,
    })
}

/// What a right lets one do.
pub fn right(right: Right) -> String {
    words::capitalised(words::right(right))
}

/// With what somebody signed in.
pub fn signed_in_by(by: SignInBy) -> &'static str {
    match by {
        SignInBy::Password => "with a password",
        SignInBy::Oidc => "by the company\u{2019}s sign-in",
    }
}

/// When a resolution is the right one.
pub fn resolution(resolution: Resolution) -> &'static str {
    words::resolution(resolution).explanation
}

/// What a button says that needs a right which the reader's role lacks.
pub fn lacks(right: Right, role: &Standing) -> String {
    let (built_in, own) = role.roles().to_ask_for(right);
    let own = if own.is_empty() { String::new() } else { format!(" and the role {}", own.join(" or ")) };
    format!("Needs the right \u{201c}{right}\u{201d}, which {built_in}s{own} have. You are {role}.")
}
