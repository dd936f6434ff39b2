//! What may follow an attempt without a person: complete, try again or ask at a moment, or park.

use std::time::Duration;

use super::attempt::Outcome;
use super::classify::{Action, Classified, Symptom};
use super::contract::{Class, Contract};
use super::dead_letter::{Certainty, NextAction};
use super::lookup::{Finding, Task};
use super::retry::RetryPolicy;
use super::time::Timestamp;

/// Resends that a keyed destination gets on uncertain outcomes in one round.
pub const RESENDS_IN_DOUBT: u32 = 3;

/// A worker takes up what is due a moment later, and the gate looks at the time again.
const TAKEN_UP: Duration = Duration::from_secs(5);

text_enum! {
    /// Why an operation was put before a person.
    pub enum ParkReason {
        /// Repeating cannot help.
        Refused = "refused",
        /// The key is known there with other data.
        KeyConflict = "key_conflict",
        /// It may have happened, and the destination can neither recognise a repeat nor be asked.
        NoWayToKnow = "no_way_to_know",
        /// It may have happened, and asking the destination did not settle it.
        LookupNeeded = "lookup_needed",
        /// It may have happened, and the key's window closes before the next try.
        WindowClosed = "window_closed",
        /// It stayed uncertain through every allowed resend.
        StillUncertain = "still_uncertain",
        /// Every allowed attempt was used.
        AttemptsUsed = "attempts_used",
        /// The policy's age is reached before the next try.
        TooOld = "too_old",
        /// The destination asked for a wait longer than the policy's age.
        WaitTooLong = "wait_too_long",
        /// A person corrected it while it waited for its next try.
        Corrected = "corrected",
    }
}

/// The tries since the operation was accepted or a person last had it tried.
#[derive(Clone, Copy, Debug)]
pub struct Round {
    /// When it began.
    pub since: Timestamp,
    /// Attempts it has used, the present one included when it counts.
    pub tries: u32,
    /// Uncertain outcomes in it, the present one included.
    pub doubts: u32,
    /// Times that it was put off without using up an attempt, the present one included.
    pub waits: u32,
    /// Questions asked in it, the present one included.
    pub asks: u32,
}

/// What follows.
#[derive(Clone, Debug, PartialEq)]
pub enum Next {
    /// The step is done.
    Complete,
    /// Try again.
    Retry {
        /// Not before this.
        at: Timestamp,
    },
    /// Ask the destination.
    LookUp {
        /// Not before this.
        at: Timestamp,
        /// What for.
        task: Task,
    },
    /// Open a dead letter.
    Park(Parked),
    /// The step is optional and came to nothing: go on without it.
    PassOver(Parked),
    /// A person's question was answered and changes nothing about what is to be done.
    Leave,
}

/// What a dead letter says of its operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parked {
    /// Why it waits for a person.
    pub why: ParkReason,
    /// Whether it may have happened.
    pub certainty: Certainty,
    /// What to do first.
    pub next_action: NextAction,
}

/// Whether an attempt with this meaning uses up one of the policy's attempts.
pub fn counts(classified: &Classified) -> bool {
    classified.action != Action::Wait
}

/// Decides what follows. `doubt` says whether this or an earlier send may have happened; `draw`
/// picks a span from zero to its argument.
#[allow(clippy::too_many_arguments, reason = "each is a separate fact, and a struct would only rename them")]
pub fn decide(
    classified: &Classified,
    contract: &Contract,
    first_sent_at: Timestamp,
    doubt: bool,
    round: Round,
    policy: &RetryPolicy,
    now: Timestamp,
    draw: impl FnOnce(Duration) -> Duration,
) -> Next {
    let done = classified.action == Action::Complete;
    if done && classified.symptom == Symptom::ResultLost && contract.lookup.is_some() {
        return Next::LookUp { at: now, task: Task::FetchResult };
    }
    // Whoever forgets to say so must not cause a second effect.
    let doubt = doubt || classified.outcome == Outcome::Uncertain;
    let park = |why| Next::Park(parked(why, classified, doubt));
    match classified.action {
        Action::Complete => return Next::Complete,
        Action::DeadLetter if classified.outcome == Outcome::KeyConflict => {
            return park(ParkReason::KeyConflict);
        }
        Action::DeadLetter => return park(ParkReason::Refused),
        Action::Retry | Action::RetrySlow | Action::Wait | Action::FindOut => {}
    }
    let class = contract.class_at(Some(first_sent_at), now);
    if doubt {
        match class {
            Class::Idempotent => {}
            Class::Keyed if round.doubts <= RESENDS_IN_DOUBT => {}
            Class::Keyed if contract.lookup.is_none() => return park(ParkReason::StillUncertain),
            Class::Keyed | Class::LookupOnly => {
                let at = now.plus(draw(policy.ceiling(1)));
                return Next::LookUp { at, task: Task::FindOut };
            }
            Class::Neither if contract.key.as_ref().is_some_and(|key| key.window > contract.margin()) => {
                return park(ParkReason::WindowClosed);
            }
            Class::Neither => return park(ParkReason::NoWayToKnow),
        }
    }
    if round.tries >= policy.attempts {
        return park(ParkReason::AttemptsUsed);
    }
    let told = classified.wait.unwrap_or(Duration::ZERO);
    if told > policy.max_age {
        return park(ParkReason::WaitTooLong);
    }
    let most = match classified.action {
        Action::RetrySlow => policy.max_delay,
        // A destination that keeps putting us off is asked less and less often, too.
        _ => policy.ceiling(round.tries.saturating_add(round.waits).max(1)),
    };
    let earliest = now.plus(told);
    let ends = policy.ends(round.since);
    if earliest > ends {
        return park(ParkReason::TooOld);
    }
    // A long draw must not park what a shorter one would have tried once more.
    let mut latest = ends;
    if doubt
        && class == Class::Keyed
        && let Some(until) = contract.resend_until(first_sent_at)
    {
        if earliest >= until {
            return match contract.lookup {
                Some(_) => Next::LookUp { at: earliest, task: Task::FindOut },
                None => park(ParkReason::WindowClosed),
            };
        }
        latest = latest.min(until.minus(Duration::from_micros(1)));
    }
    Next::Retry { at: earliest.plus(draw(most)).min(latest.minus(TAKEN_UP)).max(earliest) }
}

/// What was asked and what the answer is worth.
#[derive(Clone, Copy, Debug)]
pub struct Asked {
    /// Why it was asked.
    pub task: Task,
    /// What was found.
    pub finding: Finding,
    /// From when an absence counts.
    pub counts_from: Timestamp,
    /// When the send is due that the question came before.
    pub resume_at: Option<Timestamp>,
}

/// Decides what follows an answered question. `classified` is what the finding says of the step;
/// `earlier` says that something sent under an earlier key is unaccounted for.
pub fn after_lookup(
    asked: Asked,
    classified: &Classified,
    round: Round,
    policy: &RetryPolicy,
    now: Timestamp,
    earlier: bool,
    draw: impl FnOnce(Duration) -> Duration,
) -> Next {
    let park = |why, doubt| Next::Park(parked(why, classified, doubt));
    let ends = policy.ends(round.since).max(asked.counts_from.plus(policy.max_delay));
    let told = classified.wait.unwrap_or(Duration::ZERO);
    let later = now.plus(told).plus(draw(policy.ceiling(round.asks.max(1))));
    // Too early is answered again the moment that an absence counts.
    let again = match asked.finding {
        Finding::TooEarly => later.min(asked.counts_from).max(now.plus(told)),
        _ => later,
    };
    match (asked.task, asked.finding, asked.resume_at) {
        (Task::FetchResult, Finding::Found | Finding::OtherPayload, _)
        | (Task::FindOut | Task::Ask, Finding::Found, _) => Next::Complete,
        // It was done, and no more than its details are missing.
        (Task::FetchResult, _, _) if again > ends => Next::Complete,
        (Task::FetchResult, _, _) => Next::LookUp { at: again, task: Task::FetchResult },
        (Task::FindOut, Finding::OtherPayload, _) | (Task::Ask, Finding::OtherPayload, Some(_)) => {
            park(ParkReason::KeyConflict, true)
        }
        // What the earlier key brought about is as unknown as before.
        (Task::FindOut, Finding::Absent, _) if earlier => park(ParkReason::LookupNeeded, true),
        (Task::FindOut, Finding::Absent, _) if round.tries >= policy.attempts => {
            park(ParkReason::AttemptsUsed, false)
        }
        (Task::FindOut, Finding::Absent, _) if now > policy.ends(round.since) => {
            park(ParkReason::TooOld, false)
        }
        (Task::FindOut, Finding::Absent, _) => Next::Retry { at: now },
        (Task::FindOut, _, _) if again > ends => park(ParkReason::LookupNeeded, true),
        (Task::FindOut, _, _) => Next::LookUp { at: again, task: Task::FindOut },
        (Task::Ask, _, Some(at)) => Next::Retry { at },
        (Task::Ask | Task::Send, _, _) => Next::Leave,
    }
}

/// A dead letter's certainty and first step.
pub fn parked(why: ParkReason, classified: &Classified, doubt: bool) -> Parked {
    use Symptom as S;
    let certainty = if doubt { Certainty::MayHaveCompleted } else { Certainty::DefinitelyFailed };
    let next_action = match (why, classified.symptom) {
        (ParkReason::KeyConflict, _) => NextAction::Decide,
        _ if doubt => NextAction::CheckDestination,
        (ParkReason::Refused, S::Credential | S::Forbidden | S::AddressRefused | S::ProxyCredential) => {
            NextAction::FixPermission
        }
        (ParkReason::Refused, S::Gone | S::Redirect | S::Unsupported | S::Business) => NextAction::Decide,
        (ParkReason::Refused | ParkReason::Corrected, _) => NextAction::FixData,
        (ParkReason::WaitTooLong, _) => NextAction::Wait,
        (_, S::TlsRefused) => NextAction::FixPermission,
        _ => NextAction::Replay,
    };
    Parked { why, certainty, next_action }
}

#[cfg(test)]
mod tests;
