//! The catalogue: every fact of the domain in the language of the people who settle dead letters.
//! They know the business and no terminal, so no sentence here holds a code.
//!
//! Everything returned is plain text; whoever shows it escapes it.

mod labels;
mod names;
mod spans;
mod symptoms;

use std::time::Duration;

pub use labels::*;
pub use names::{destination_name, grouped, one_line, quoted, step_name};
pub use spans::{hour, moment, relative, span, wall};
pub use symptoms::title;

use super::attempt::Outcome;
use super::classify::Symptom;
use super::contract::Class;
use super::dead_letter::{Certainty, NextAction};
use super::decide::ParkReason;
use symptoms::{happened, leaves_doubt};

/// What stands in a hidden value's place. It tells nothing of the value, not even its length.
pub const HIDDEN: &str = "\u{2022}\u{2022}\u{2022}";

/// What a sentence is made from. Names are as configured.
#[derive(Clone, Copy, Debug)]
pub struct Facts<'a> {
    /// The destination's name.
    pub destination: &'a str,
    /// The step's name.
    pub step: &'a str,
    /// The status line's number, when there was one.
    pub status: Option<u16>,
    /// How long we wait for an answer.
    pub timeout: Option<Duration>,
    /// Attempts that were made.
    pub attempts: i64,
    /// How long the destination asked us to stay away.
    pub retry_after: Option<Duration>,
    /// The id over there.
    pub reference: Option<&'a str>,
    /// What the destination or the system said; shown as a quotation.
    pub error: Option<&'a str>,
}

impl Facts<'_> {
    fn destination(&self) -> String {
        destination_name(self.destination)
    }

    fn step(&self) -> String {
        quoted(&step_name(self.step))
    }

    fn as_reference(&self) -> String {
        self.reference.map(|id| format!(", as {}", one_line(id))).unwrap_or_default()
    }
}

/// How the doubt about an effect is settled at its destination now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Settles {
    /// The destination has it: no more than the record is missing.
    Record,
    /// It recognises a repeat under the same key.
    SameKey,
    /// Repeating it is harmless.
    Repeat,
    /// It can be asked.
    Ask,
    /// It can neither recognise a repeat nor be asked.
    OtherMeans,
}

impl Settles {
    /// From whether the effect is known to be there, and what the destination's promise is worth
    /// now; absent where it is no longer configured.
    pub const fn of(done: bool, class: Option<Class>) -> Self {
        match class {
            _ if done => Self::Record,
            Some(Class::Keyed) => Self::SameKey,
            Some(Class::Idempotent) => Self::Repeat,
            Some(Class::LookupOnly) => Self::Ask,
            Some(Class::Neither) | None => Self::OtherMeans,
        }
    }

    /// What to do first, where a dead letter says what it was when it was opened: what may have
    /// happened is replayed as long as its destination recognises a repeat.
    pub const fn first(self, action: NextAction) -> NextAction {
        match (action, self) {
            (NextAction::CheckDestination, Self::SameKey | Self::Repeat) => NextAction::Replay,
            _ => action,
        }
    }
}

/// What happened in one attempt, and what is known after it.
pub fn attempt_sentence(symptom: Symptom, outcome: Outcome, facts: &Facts<'_>) -> String {
    let (destination, step) = (facts.destination(), facts.step());
    let known = match outcome {
        Outcome::Running => return format!("{step} is on its way to {destination}; no answer yet."),
        Outcome::Skipped => {
            return format!("Another worker was already at {step}; this attempt sent nothing.");
        }
        Outcome::Done if symptom == Symptom::Accepted => format!("it counts as done{}", facts.as_reference()),
        Outcome::Done => format!("it is done{}", facts.as_reference()),
        Outcome::NotSent | Outcome::Throttled | Outcome::Rejected => "it did not happen".to_owned(),
        Outcome::Uncertain => "it may have happened".to_owned(),
        Outcome::KeyConflict => "nothing new happened".to_owned(),
    };
    capitalised(&format!("{}; {known}.", happened(symptom, facts)))
}

/// What happened, what is certain and what is not, and the safest next step.
pub fn dead_letter_sentence(
    why: ParkReason,
    symptom: Symptom,
    certainty: Certainty,
    next_action: NextAction,
    settles: Option<Settles>,
    facts: &Facts<'_>,
) -> String {
    let [what, next] = dead_letter_parts(why, symptom, certainty, next_action, settles, facts);
    format!("{what} {next}")
}

/// The same in two parts: what happened and what is known of it, and the safest next step. That
/// follows `settles` where something is in doubt, as the buttons do; a list, which has not looked
/// that far, leaves it out.
pub fn dead_letter_parts(
    why: ParkReason,
    symptom: Symptom,
    certainty: Certainty,
    next_action: NextAction,
    settles: Option<Settles>,
    facts: &Facts<'_>,
) -> [String; 2] {
    let mut text = capitalised(&happened(symptom, facts));
    text.push('.');
    for part in [ended(why, symptom, facts), Some(known(symptom, certainty, facts))].into_iter().flatten() {
        text.push(' ');
        text.push_str(&part);
    }
    [text, format!("Safest next step: {}.", step_to_take(next_action, why, symptom, settles, facts))]
}

/// What many failures have in common, as a heading: what happened, and nothing on its effect.
pub fn cause_sentence(symptom: Symptom, facts: &Facts<'_>) -> String {
    capitalised(&happened(symptom, facts))
}

/// Why the wait that follows an attempt is as long as it is.
pub fn next_wait_sentence(symptom: Symptom, wait: Duration, facts: &Facts<'_>) -> String {
    let (destination, wait) = (facts.destination(), span(wait));
    match (facts.retry_after, symptom) {
        (Some(told), _) if !told.is_zero() => format!(
            "Next try in {wait}: {destination} asked for {}, and a little is added so that not everything \
             returns at once.",
            span(told)
        ),
        (_, Symptom::HeldBack) => {
            format!("Next try in {wait}: our own limit for {destination} is expected to let it through then.")
        }
        (_, Symptom::TlsRefused) => {
            format!(
                "Next try in {wait}, late on purpose: until the certificate is put right, no try can succeed."
            )
        }
        _ => format!(
            "Next try in {wait}: drawn at random, up to a limit that grows with every attempt, so that \
             {destination} is not overrun."
        ),
    }
}

/// Why trying by itself came to an end, where what happened does not say so already.
fn ended(why: ParkReason, symptom: Symptom, facts: &Facts<'_>) -> Option<String> {
    match why {
        ParkReason::Refused
        | ParkReason::KeyConflict
        | ParkReason::NoWayToKnow
        | ParkReason::LookupNeeded => None,
        ParkReason::WindowClosed => {
            Some(format!("The time in which {} recognises a repeat is over.", facts.destination()))
        }
        ParkReason::StillUncertain => Some("Sending it again under the same key did not clear it up.".into()),
        ParkReason::AttemptsUsed => Some(match facts.attempts {
            ..=0 => "Every allowed attempt is used up.".into(),
            1 => "It was tried once, which is all that is allowed without a person.".into(),
            tries => format!("It was tried {tries} times, which is all that is allowed without a person."),
        }),
        ParkReason::TooOld => Some("The time for trying without a person is over.".into()),
        ParkReason::Corrected => Some("A person corrected it before its next try.".into()),
        ParkReason::WaitTooLong => Some(match facts.retry_after {
            Some(told) if symptom != Symptom::Throttled => {
                format!("It asked for {}, longer than we keep trying without a person.", span(told))
            }
            Some(_) => "That is longer than we keep trying without a person.".into(),
            None => "It asked for longer than we keep trying without a person.".into(),
        }),
    }
}

/// What is known of the effect.
fn known(symptom: Symptom, certainty: Certainty, facts: &Facts<'_>) -> String {
    let effect = names::Effect::of(facts.step);
    match certainty {
        Certainty::DefinitelyFailed => format!("{}.", effect.absent()),
        Certainty::CompletedAtDestination => format!("{}{}.", effect.present(), facts.as_reference()),
        Certainty::MayHaveCompleted if leaves_doubt(symptom) => format!("{}.", effect.possible()),
        // This attempt alone would be clear: the doubt is an earlier one's.
        Certainty::MayHaveCompleted => {
            format!("An earlier attempt may have got through. {}.", effect.possible())
        }
    }
}

fn step_to_take(
    action: NextAction,
    why: ParkReason,
    symptom: Symptom,
    settles: Option<Settles>,
    facts: &Facts<'_>,
) -> String {
    let destination = facts.destination();
    match action {
        _ if settles == Some(Settles::Record) => "record it as completed".into(),
        // To say that a destination can be asked which cannot sends a person to a door that is not
        // there.
        NextAction::CheckDestination => match settles {
            Some(Settles::SameKey) => {
                format!("replay it with the same key, which {destination} recognises")
            }
            Some(Settles::Repeat) => "replay it; repeating it is harmless".into(),
            Some(Settles::Ask) => format!("ask {destination}"),
            _ if why == ParkReason::LookupNeeded => format!("ask {destination}"),
            _ => "find out by other means whether it happened".into(),
        },
        NextAction::Replay => "replay it".into(),
        NextAction::FixData => "correct the data and send the correction".into(),
        NextAction::FixPermission => match symptom {
            Symptom::TlsRefused | Symptom::TlsAlert => {
                format!("have the secure connection to {destination} put right, then replay it")
            }
            Symptom::AddressRefused => format!("have the address of {destination} put right, then replay it"),
            Symptom::ProxyCredential => "have the sign-in at our proxy put right, then replay it".into(),
            _ => format!("have our access to {destination} put right, then replay it"),
        },
        NextAction::Wait => match facts.retry_after {
            Some(told) => format!("wait {}, then replay it", span(told)),
            None => "wait a while, then replay it".into(),
        },
        NextAction::Decide if why == ParkReason::KeyConflict => {
            format!("compare what was sent with what {destination} has, then decide")
        }
        NextAction::Decide => "let somebody who knows the case decide".into(),
        NextAction::Ignore => "none is needed".into(),
    }
}

/// A text that ends as a sentence does.
pub fn full_stop(text: &str) -> String {
    let text = text.trim_end();
    if text.is_empty() || text.ends_with(['.', '!', '?']) { text.to_owned() } else { format!("{text}.") }
}

/// A text with a capital at its beginning.
pub fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}

/// `a`, `a and b`, `a, b and c`
pub fn listed(words: &[&str]) -> String {
    match words {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [first @ .., last] => format!("{} and {last}", first.join(", ")),
    }
}

#[cfg(test)]
mod tests;
