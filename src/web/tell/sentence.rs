//! What happened, in the catalogue's sentences.

use std::time::Duration;

use super::mask::Mask;
use super::{Tale, card};
use crate::config::Config;
use crate::domain::attempt::Outcome;
use crate::domain::operation::OperationState;
use crate::domain::words::{self, Facts, Settles};
use crate::engine::thread::Overridden;
use crate::store::attempts::AttemptRow;
use crate::store::dead_letters::DeadLetterRow;
use crate::web::view::When;

/// What happened to a dead letter and what is known of it, and the safest next step: for lists, which
/// have not looked at what its destination can do for it now.
pub fn dead_letter(
    config: &Config,
    row: &DeadLetterRow,
    mask: &Mask,
    retry_after: Option<Duration>,
) -> [String; 2] {
    parts(config, row, mask, retry_after, None)
}

/// The same on the pages of one dead letter, whose next step is the one that their first button
/// offers.
pub fn dead_letter_now(tale: &Tale<'_>, row: &DeadLetterRow) -> [String; 2] {
    let last = tale.thread.attempts.iter().rev().find(|attempt| attempt.position == row.position);
    let step = tale.step(row.position);
    parts(tale.config, row, &tale.mask, last.and_then(told), card::settles(tale, step))
}

/// What follows for the operation where a step is recorded as done: what is left of it is sent.
pub fn recorded(tale: &Tale<'_>, position: i64, is_past: bool) -> String {
    let this = "This step is not sent again.";
    let mut later = tale.thread.steps.iter().filter(|step| step.position > position);
    let Some(next) = later.find(|step| is_past || !step.state.is_over()) else { return this.to_owned() };
    let (name, place) =
        (words::quoted(&words::step_name(&next.name)), words::destination_name(&next.destination));
    if is_past {
        return format!("{this} The operation went on with {name} at {place}.");
    }
    let steps = tale.kind().map_or(&[][..], |kind| &kind.steps);
    let depends = steps.iter().any(|known| known.name == next.name && known.when.is_some());
    let condition = if depends { ", if its condition holds" } else { "" };
    format!("{this} The operation then goes on: {name} at {place} is sent{condition}.")
}

/// That a dead letter's step was sent in spite of a check, by whom, and what that may mean.
pub fn overridden(tale: &Tale<'_>, row: &DeadLetterRow) -> Option<String> {
    let Overridden { by, twice } = tale.thread.overridden(row)?;
    Some(if twice {
        format!("Sent again by {by} in spite of a check: the first send may also have happened.")
    } else {
        format!("Sent again by {by}, as an override.")
    })
}

fn parts(
    config: &Config,
    row: &DeadLetterRow,
    mask: &Mask,
    retry_after: Option<Duration>,
    settles: Option<Settles>,
) -> [String; 2] {
    // Where the private values are not known, an error that may repeat them is not quoted.
    let error = (!mask.is_blind() && !row.error.is_empty()).then(|| mask.cut_text(&row.error));
    let reference = row.reference.as_deref().map(|text| mask.text(text));
    let facts = Facts {
        destination: &row.destination,
        step: &row.step,
        status: status(row.answer_status),
        timeout: config.destinations.get(&row.destination).map(|destination| destination.timeout),
        attempts: row.attempts,
        retry_after,
        reference: reference.as_deref(),
        error: error.as_deref(),
    };
    words::dead_letter_parts(row.why, row.symptom, row.certainty, row.next_action, settles, &facts)
}

/// One attempt's sentence, and that of the wait that follows.
pub fn attempt(tale: &Tale<'_>, row: &AttemptRow) -> (String, Option<String>) {
    let (destination, step) = tale
        .step(row.position)
        .map_or(("the destination", "the step"), |step| (step.destination.as_str(), step.name.as_str()));
    let error = error(tale, row);
    let reference = row.reference.as_deref().map(|text| tale.mask.text(text));
    let facts = Facts {
        destination,
        step,
        status: status(row.status),
        timeout: tale.destination(destination).map(|destination| destination.timeout),
        attempts: row.number,
        retry_after: told(row),
        reference: reference.as_deref(),
        error: error.as_deref(),
    };
    let sentence = match (row.symptom, row.outcome) {
        (Some(symptom), outcome) => words::attempt_sentence(symptom, outcome, &facts),
        (None, Outcome::Running) => format!(
            "{} is on its way to {}; no answer yet.",
            words::capitalised(&words::quoted(&words::step_name(step))),
            words::destination_name(destination)
        ),
        (None, outcome) => format!("{}.", words::capitalised(words::outcome(outcome))),
    };
    let wait = row
        .next_at
        .zip(row.ended_at)
        .zip(row.symptom)
        .map(|((next, ended), symptom)| words::next_wait_sentence(symptom, next.since(ended), &facts));
    (sentence, wait)
}

/// What went wrong in an attempt, as far as it may be shown.
pub fn error(tale: &Tale<'_>, row: &AttemptRow) -> Option<String> {
    row.error.as_deref().filter(|_| !tale.mask.is_blind()).map(|text| tale.mask.cut_text(text))
}

/// How long an answer asked us to wait.
pub fn told(row: &AttemptRow) -> Option<Duration> {
    row.retry_after.and_then(|micros| u64::try_from(micros).ok()).map(Duration::from_micros)
}

fn status(status: Option<i64>) -> Option<u16> {
    status.and_then(|status| u16::try_from(status).ok())
}

/// "Did we send that?", answered.
pub fn operation(tale: &Tale<'_>) -> String {
    let thread = tale.thread;
    let steps = &thread.steps;
    let current = thread.current_step();
    let destination = current.map_or_else(String::new, |step| words::destination_name(&step.destination));
    let step = current.map_or_else(String::new, |step| words::quoted(&words::step_name(&step.name)));
    let done = steps.iter().filter(|step| step.state.is_over()).count();
    let before = match done {
        0 => String::new(),
        1 => "One step is done. ".to_owned(),
        n => format!("{n} steps are done. "),
    };
    let last = thread.letters.first().filter(|letter| letter.closed_at.is_some());
    let twice = last
        .and_then(|letter| overridden(tale, letter))
        .map_or_else(String::new, |sentence| format!(" {sentence}"));
    let recorded = last
        .and_then(|letter| Some((letter.resolution?, letter.closed_by.as_deref()?)))
        .map(|(how, by)| {
            format!(" {by} closed it as \u{201c}{}\u{201d}.", words::resolution(how).label.to_lowercase())
        })
        .or_else(|| {
            thread.operation.corrected_by.map(|_| " A corrected operation took its place.".to_owned())
        })
        .unwrap_or_default();
    match thread.operation.state() {
        OperationState::Completed => {
            let at =
                thread.operation.completed_at.map_or_else(String::new, |at| When::at(at, tale.seen()).full);
            let as_reference = current
                .and_then(|step| step.reference.as_deref())
                .map(|text| format!(", as {}", tale.mask.text(text)))
                .unwrap_or_default();
            match steps.len() {
                0 | 1 => {
                    format!("Yes: {step} is done at {destination}{as_reference}, on {at}.{recorded}{twice}")
                }
                n => format!("Yes: all {n} steps are done, the last on {at}{as_reference}.{recorded}{twice}"),
            }
        }
        OperationState::Running => format!("{before}{step} is being sent to {destination} right now."),
        OperationState::Uncertain => {
            let next = match thread.live_letter() {
                Some(_) => " It waits for a person.".to_owned(),
                None => next_try(tale).unwrap_or(recorded),
            };
            format!(
                "{before}{step} was sent to {destination}, and nobody can tell yet whether it happened.{next}"
            )
        }
        OperationState::Failed => match thread.live_letter() {
            Some(_) => format!("No: {step} did not happen at {destination}, and waits for a person.{}", {
                if before.is_empty() { String::new() } else { format!(" {}", before.trim_end()) }
            }),
            None => format!("No: {step} did not happen at {destination}.{recorded}"),
        },
        OperationState::Pending => {
            let next = next_try(tale).unwrap_or_default();
            if thread.attempts.iter().any(|attempt| attempt.outcome != Outcome::Done) {
                format!("Not yet: {before}{step} has not happened at {destination} so far.{next}")
            } else {
                format!("Not yet: {before}{step} waits its turn.{next}")
            }
        }
    }
}

fn next_try(tale: &Tale<'_>) -> Option<String> {
    let due = tale.thread.operation.due_at?;
    Some(if due > tale.now {
        format!(" The next try is due {}.", words::relative(due, tale.now))
    } else {
        " The next try is due now.".to_owned()
    })
}
