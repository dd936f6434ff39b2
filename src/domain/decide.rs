//! What may follow an attempt without a person: complete, try again at a moment, or park.

use std::time::Duration;

use super::attempt::Outcome;
use super::classify::{Action, Classified, Symptom};
use super::contract::{Class, Contract};
use super::dead_letter::{Certainty, NextAction};
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
        /// It may have happened, and the destination must be asked first.
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
    /// Open a dead letter.
    Park(Parked),
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
            Class::Keyed => return park(ParkReason::StillUncertain),
            Class::LookupOnly => return park(ParkReason::LookupNeeded),
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
            return park(ParkReason::WindowClosed);
        }
        latest = latest.min(until.minus(Duration::from_micros(1)));
    }
    Next::Retry { at: earliest.plus(draw(most)).min(latest.minus(TAKEN_UP)).max(earliest) }
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
        (ParkReason::Refused, _) => NextAction::FixData,
        (ParkReason::WaitTooLong, _) => NextAction::Wait,
        (_, S::TlsRefused) => NextAction::FixPermission,
        _ => NextAction::Replay,
    };
    Parked { why, certainty, next_action }
}

#[cfg(test)]
mod tests;
