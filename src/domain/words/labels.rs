//! Words and short explanations for the domain's enums.

use crate::domain::actor::{Right, Role, Scope};
use crate::domain::attempt::{Cause, Outcome, OverrideMode, RequestState, Waiver};
use crate::domain::bulk::{BulkAction, BulkState, MemberState};
use crate::domain::contract::Class;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::decide::ParkReason;
use crate::domain::filter::Age;
use crate::domain::lookup::Finding;
use crate::domain::operation::{OperationState, Severity, StepState};
use crate::domain::verdict::{CheckName, VerdictKind};
use crate::domain::webhook::HookOutcome;

/// A label and the sentence that explains it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Label {
    /// A few words.
    pub label: &'static str,
    /// One sentence.
    pub explanation: &'static str,
}

/// A certainty as it is shown: always the word and the icon together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Mark {
    /// A few words.
    pub label: &'static str,
    /// One sentence.
    pub explanation: &'static str,
    /// An icon's name: solid for what is known, hollow for what is not.
    pub icon: &'static str,
}

const fn label(label: &'static str, explanation: &'static str) -> Label {
    Label { label, explanation }
}

/// What is known of the effect.
pub const fn certainty(value: Certainty) -> Mark {
    let (label, explanation, icon) = match value {
        Certainty::DefinitelyFailed => {
            ("Definitely failed", "It is proved that nothing happened at the destination.", "cross-solid")
        }
        Certainty::MayHaveCompleted => (
            "May have completed",
            "It was sent, and nobody knows yet whether it happened: find out before sending again.",
            "question-hollow",
        ),
        Certainty::CompletedAtDestination => {
            ("Completed there", "The destination has it: nothing needs to be sent.", "check-solid")
        }
    };
    Mark { label, explanation, icon }
}

/// Where a request for an override stands.
pub const fn request_state(value: RequestState) -> &'static str {
    match value {
        RequestState::Waiting => "waits for a second person",
        RequestState::Approved => "approved",
        RequestState::Refused => "refused",
        RequestState::Withdrawn => "taken back",
        RequestState::Stale => "out of date",
    }
}

/// Under which key an override sends.
pub const fn override_mode(value: OverrideMode) -> &'static str {
    match value {
        OverrideMode::SameKey => "the same key again",
        OverrideMode::NewEffect => "a new key, for a second effect",
    }
}

/// What is known after an attempt.
pub const fn outcome(value: Outcome) -> &'static str {
    match value {
        Outcome::Running => "not yet answered",
        Outcome::Done => "done",
        Outcome::NotSent => "not sent",
        Outcome::Throttled => "asked to wait",
        Outcome::Rejected => "refused",
        Outcome::Uncertain => "may have happened",
        Outcome::KeyConflict => "key known with other data",
        Outcome::Skipped => "skipped: another worker had it",
    }
}

/// Where an operation stands.
pub const fn operation_state(value: OperationState) -> &'static str {
    match value {
        OperationState::Pending => "waiting",
        OperationState::Running => "under way",
        OperationState::Uncertain => "may have completed",
        OperationState::Completed => "completed",
        OperationState::Failed => "failed",
    }
}

/// Where a step stands.
pub const fn finding(value: Finding) -> &'static str {
    match value {
        Finding::Found => "it is there",
        Finding::OtherPayload => "something else is there",
        Finding::Absent => "it is not there",
        Finding::TooEarly => "not there yet",
        Finding::Failed => "no answer to that",
    }
}

/// A step's state.
pub const fn step_state(value: StepState) -> &'static str {
    match value {
        StepState::Pending => "not done yet",
        StepState::Uncertain => "may have completed",
        StepState::Completed => "done",
        StepState::Failed => "failed",
        StepState::Skipped => "passed over",
    }
}

/// Where a dead letter stands.
pub const fn dead_letter_status(value: DeadLetterStatus) -> &'static str {
    match value {
        DeadLetterStatus::Open => "open",
        DeadLetterStatus::Replaying => "being tried again",
        DeadLetterStatus::Replayed => "replayed and confirmed",
        DeadLetterStatus::Resolved => "resolved",
        DeadLetterStatus::Corrected => "corrected",
    }
}

/// How long ago something was opened.
pub const fn age(value: Age) -> &'static str {
    match value {
        Age::Hour => "in the last hour",
        Age::Day => "in the last 24 hours",
        Age::Week => "in the last 7 days",
        Age::OverHour => "over an hour ago",
        Age::OverDay => "over 24 hours ago",
        Age::OverWeek => "over 7 days ago",
    }
}

/// What to do first.
pub const fn next_action(value: NextAction) -> Label {
    match value {
        NextAction::CheckDestination => {
            label("Check the destination", "Find out whether it happened before anything is sent again.")
        }
        NextAction::Replay => {
            label("Replay", "Nothing happened there, and trying again with the same data can help.")
        }
        NextAction::FixData => {
            label("Correct the data", "The destination refuses it as it stands; a correction can pass.")
        }
        NextAction::FixPermission => label(
            "Fix access",
            "A sign-in, a permission, an address or a certificate has to change before a replay can pass.",
        ),
        NextAction::Wait => label("Wait", "The destination asked for time; replay when it is over."),
        NextAction::Decide => label("Decide", "No rule can choose here: somebody who knows the case has to."),
        NextAction::Ignore => label("Nothing to do", "It is settled, or nobody needs it any more."),
    }
}

/// Why an operation was put before a person.
pub const fn park_reason(value: ParkReason) -> &'static str {
    match value {
        ParkReason::Refused => "It was refused, and repeating it cannot help.",
        ParkReason::KeyConflict => "The destination knows its key with other data.",
        ParkReason::NoWayToKnow => {
            "It may have happened, and the destination can neither recognise a repeat nor be asked."
        }
        ParkReason::LookupNeeded => "It may have happened, and asking the destination did not settle it.",
        ParkReason::WindowClosed => {
            "It may have happened, and the time in which the destination recognises a repeat is over."
        }
        ParkReason::StillUncertain => "It may have happened, and sending it again did not clear it up.",
        ParkReason::AttemptsUsed => "Every attempt that is allowed without a person was used.",
        ParkReason::TooOld => "The time for trying without a person is over.",
        ParkReason::WaitTooLong => "The destination asked for a longer wait than we keep trying.",
        ParkReason::Corrected => "A person corrected it before its next try.",
    }
}

/// A check as the question it answers.
pub const fn check(value: CheckName) -> &'static str {
    match value {
        CheckName::PayloadUnchanged => "Is the data what was first accepted under this key?",
        CheckName::StepNotCompleted => "Is it still to be done?",
        CheckName::NothingInFlight => "Is nothing else sending it right now?",
        CheckName::DestinationOpen => "Does the destination take requests?",
        CheckName::KeyWindowOpen => "Does the destination still recognise a repeat, where that matters?",
        CheckName::OutcomeKnown => {
            "Is it known what became of everything sent so far, or is a repeat harmless?"
        }
        CheckName::WithinCaps => "Are attempts and time left?",
        CheckName::Allowed => "May this person do it?",
    }
}

/// What an override waives.
pub const fn waiver(value: Waiver) -> Label {
    match value {
        Waiver::KeyWindow => label(
            "The destination no longer recognises a repeat",
            "If it happened before, sending again makes it happen twice.",
        ),
        Waiver::UnknownOutcome => {
            label("An earlier send may have happened", "If it did, sending again makes it happen twice.")
        }
        Waiver::Caps => label(
            "Attempts or time are used up",
            "It is tried more often or longer than its type allows without a person.",
        ),
    }
}

/// The gate's answer as a heading.
pub const fn verdict(value: VerdictKind) -> &'static str {
    match value {
        VerdictKind::Accepted => "Accepted: it will be sent",
        VerdictKind::InFlight => "Already under way",
        VerdictKind::AlreadyDone => "Already done: nothing is sent",
        VerdictKind::LookUpFirst => "Ask the destination first",
        VerdictKind::NeedsOverride => "Only an override can send this",
        VerdictKind::Refused => "Refused: nothing is sent",
    }
}

/// How a person closes a dead letter.
pub const fn resolution(value: Resolution) -> Label {
    match value {
        Resolution::CompletedAtDestination => label(
            "Completed at the destination",
            "The effect is there. Give its reference, or say in the reason why there is none.",
        ),
        Resolution::FixedElsewhere => label(
            "Done by other means",
            "Somebody did it by hand or in another system, so it must not be sent again.",
        ),
        Resolution::Duplicate => label("Duplicate", "Another operation did the same. Name it in the reason."),
        Resolution::NotNeeded => {
            label("Not needed", "Nobody needs the effect any more. It is discarded; its history stays.")
        }
    }
}

/// How much a failure matters.
pub const fn severity(value: Severity) -> Label {
    match value {
        Severity::Low => label("Low", "Can wait for days."),
        Severity::Normal => label("Normal", "In the usual course of work."),
        Severity::High => label("High", "Today."),
        Severity::Critical => label("Critical", "Now."),
    }
}

/// Why an attempt was made.
pub const fn cause(value: Cause) -> &'static str {
    match value {
        Cause::Automatic => "by itself",
        Cause::Replay => "replay",
        Cause::Bulk => "bulk replay",
        Cause::Override => "override",
        Cause::Lookup => "question to the destination",
    }
}

/// A person's role.
pub const fn role(value: Role) -> Label {
    match value {
        Role::Viewer => label("Viewer", "Sees operations, dead letters and who did what."),
        Role::Operator => label("Operator", "Also replays, corrects and resolves, and sees full data."),
        Role::Approver => label("Approver", "Also overrides a named check."),
        Role::Admin => label("Admin", "Also manages people and access tokens."),
    }
}

/// What an access token is for.
pub const fn scope(value: Scope) -> Label {
    match value {
        Scope::Submit => label("Submit", "Hands in operations and reads their answers."),
        Scope::Read => label("Read", "Reads everything but people."),
        Scope::Operate => label("Operate", "Reads, replays, corrects, resolves and overrides."),
        Scope::Work => label("Work", "Takes steps that are left to programs, and settles them."),
    }
}

/// One thing that somebody may do.
pub const fn right(value: Right) -> &'static str {
    match value {
        Right::View => "see operations and dead letters",
        Right::ViewPayload => "see full data, requests and answers",
        Right::Submit => "hand in operations",
        Right::Replay => "replay",
        Right::Correct => "correct",
        Right::Resolve => "resolve, assign, snooze and note",
        Right::Bulk => "act on many at once",
        Right::PauseDestination => "pause and resume destinations",
        Right::Work => "carry out steps left to programs",
        Right::Override => "override a named check",
        Right::Approve => "be the second person for an override",
        Right::Audit => "see who did what",
        Right::Export => "take lists and evidence out as files",
        Right::ManagePeople => "manage people",
        Right::ManageTokens => "manage access tokens",
        Right::Erase => "erase what is known of somebody",
    }
}

/// What a destination promises about repeats.
pub const fn class(value: Class) -> Label {
    match value {
        Class::Keyed => {
            label("Recognises a repeat", "A repeat under the same key is answered, not done again.")
        }
        Class::Idempotent => label("Repeats are harmless", "Doing it again changes nothing."),
        Class::LookupOnly => {
            label("Can be asked", "It does not recognise a repeat; it can be asked what it has.")
        }
        Class::Neither => label("Cannot tell", "It neither recognises a repeat nor can be asked."),
    }
}

/// What became of a webhook's delivery.
pub const fn hook_outcome(value: HookOutcome) -> &'static str {
    match value {
        HookOutcome::Accepted => "accepted",
        HookOutcome::Duplicate => "came again",
        HookOutcome::Ignored => "for no mapping, passed over",
        HookOutcome::Unmatched => "for no mapping",
        HookOutcome::Unsigned => "without a readable signature",
        HookOutcome::BadSignature => "with a signature that no secret matches",
        HookOutcome::Stale => "signed too long ago or in the future",
        HookOutcome::Malformed => "signed, and not readable as an event",
        HookOutcome::KeyReused => "with other data under a known key",
        HookOutcome::TooLarge => "too large",
    }
}

/// What is done to many at once.
pub const fn bulk_action(value: BulkAction) -> Label {
    match value {
        BulkAction::Replay => label(
            "Replay",
            "Each is tried again with its own key, through the same checks as a replay of one.",
        ),
        BulkAction::Resolve => label(
            "Resolve",
            "Each is closed, and nothing is deleted. Recorded as completed, an operation goes on with its next step; \
             otherwise nothing is sent.",
        ),
        BulkAction::Assign => {
            label("Assign", "Each is assigned to one person, or to nobody. Nothing is sent.")
        }
        BulkAction::Lookup => {
            label("Ask", "The destination of each is asked what it knows. Nothing is sent again by it.")
        }
    }
}

/// Where a bulk action stands.
pub const fn bulk_state(value: BulkState) -> &'static str {
    match value {
        BulkState::Preview => "not started",
        BulkState::Canary => "trying the first ones",
        BulkState::Confirm => "waiting for confirmation",
        BulkState::Running => "running",
        BulkState::Ended => "ended",
        BulkState::Cancelled => "cancelled",
    }
}

/// What became of a member of a bulk action.
pub const fn bulk_member(action: BulkAction, value: MemberState) -> &'static str {
    match (action, value) {
        (_, MemberState::Waiting) => "waiting",
        (BulkAction::Lookup, MemberState::Sent) => "asked, not yet answered",
        (_, MemberState::Sent) => "sent, not yet answered",
        (_, MemberState::Confirmed) => "confirmed",
        (BulkAction::Lookup, MemberState::Failed) => "never asked after all",
        (_, MemberState::Failed) => "failed again",
        (_, MemberState::Closed) => "closed by a person meanwhile",
        (BulkAction::Lookup, MemberState::Done) => "answered",
        (BulkAction::Assign, MemberState::Done) => "assigned",
        (_, MemberState::Done) => "closed",
        (_, MemberState::AlreadyDone) => "already done",
        (_, MemberState::Refused) => "refused",
    }
}
