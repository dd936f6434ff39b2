//! The thread of evidence as entries of a page, oldest first.

use super::mask::Mask;
use super::{Tale, act, request, sentence};
use crate::domain::attempt::Cause;
use crate::domain::classify::Symptom;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::thread::Thread;
use crate::store::attempts::AttemptRow;
use crate::store::audit::AuditRow;
use crate::store::events::{EventKind, EventRow};
use crate::web::timeline::{Attempt, Entry, Finding, Step, What};
use crate::web::view::{Long, Reference, When, coarse, exact};

/// Everything that happened.
pub fn entries(tale: &Tale<'_>) -> Vec<Entry> {
    let thread = tale.thread;
    // Where moments are equal, what causes stands before what follows from it.
    let mut found: Vec<(Timestamp, u8, What)> = vec![(thread.operation.received_at, 0, received(tale))];
    found.extend(thread.acts().map(|row| (row.at, 1, action(tale, row))));
    found.extend(thread.attempts.iter().map(|row| (row.started_at, 2, attempt(tale, row))));
    found.extend(events(thread, &tale.mask).into_iter().map(|(at, what)| (at, 3, what)));
    found.extend(letters(thread).into_iter().map(|(at, what)| (at, 4, what)));
    found.sort_by_key(|(at, rank, _)| (*at, *rank));
    (1..)
        .zip(found)
        .map(|(number, (at, _, what))| Entry {
            anchor: format!("e{number}"),
            at: When::at(at, tale.now),
            what,
        })
        .collect()
}

fn received(tale: &Tale<'_>) -> What {
    let operation = &tale.thread.operation;
    let source = operation
        .source
        .as_deref()
        .map(|text| format!(", from {}", tale.mask.text(text)))
        .unwrap_or_default();
    let key = tale.mask.text(&operation.key);
    What::Received { text: format!("Handed in by {}{source}, under the key {key}.", operation.submitted_by) }
}

fn attempt(tale: &Tale<'_>, row: &AttemptRow) -> What {
    if row.cause == Cause::Lookup {
        return question(tale, row);
    }
    let (sentence, wait) = sentence::attempt(tale, row);
    let step = tale.step(row.position);
    let headline = match row.status.and_then(|status| u16::try_from(status).ok()) {
        Some(status) => Some(request::status_line(status)),
        None => sentence::error(tale, row),
    };
    What::Attempt(Box::new(Attempt {
        number: row.number.to_string(),
        step: step.map_or_else(String::new, |step| words::step_name(&step.name)),
        destination: step.map_or_else(String::new, |step| words::destination_name(&step.destination)),
        cause: row.cause,
        by: row.requested_by.clone(),
        outcome: row.outcome,
        sentence,
        took: row.ended_at.map(|ended| exact(ended.since(row.started_at))),
        headline: headline.map(Long::line),
        reference: row.reference.as_deref().map(|text| Reference::new(tale.mask.text(text), None)),
        generation: (row.generation > 1).then(|| format!("key number {} of this step", row.generation)),
        sent: request::sent(tale, row),
        came_back: request::came_back(tale, row),
        wait,
    }))
}

/// A question to the destination, and what it said.
fn question(tale: &Tale<'_>, row: &AttemptRow) -> What {
    let (sentence, wait) = sentence::attempt(tale, row);
    What::Finding(Box::new(Finding {
        finding: row.symptom.and_then(Symptom::finding),
        sentence: wait.map_or_else(|| sentence.clone(), |wait| format!("{sentence} {wait}")),
        reference: row.reference.as_deref().map(|text| Reference::new(tale.mask.text(text), None)),
        by: row.requested_by.clone(),
        sent: request::question(tale, row),
        came_back: request::came_back(tale, row),
    }))
}

fn action(tale: &Tale<'_>, row: &AuditRow) -> What {
    let (result, _) = act::result(row);
    let mut text = format!("{}: {result}", act::what(&row.action));
    if let Some(detail) = act::detail(row, &tale.mask) {
        text = format!("{text} ({})", detail.trim_end_matches('.'));
    }
    What::Action {
        by: row.actor.clone(),
        text,
        reason: row.reason.as_deref().map(|text| Long::line(tale.mask.text(text))),
    }
}

/// Events in words. The same submission that comes a hundred times in a row is one line.
fn events(thread: &Thread, mask: &Mask) -> Vec<(Timestamp, What)> {
    let mut told: Vec<(Timestamp, What)> = Vec::new();
    let mut rows = thread.events.iter().peekable();
    while let Some(row) = rows.next() {
        let mut times = 1_u32;
        let mut last = row;
        while let Some(next) = rows.next_if(|next| same(row, next)) {
            times += 1;
            last = next;
        }
        let mut text = match row.kind {
            EventKind::Note => {
                let text = Long::block(mask.text(&row.detail));
                told.push((row.at, What::Note { by: row.actor.clone(), text }));
                continue;
            }
            EventKind::Duplicate => format!("{} It came from {}.", row.detail, row.actor),
            // Told by the question that brought it.
            EventKind::Found | EventKind::FoundOther | EventKind::FoundAbsent | EventKind::FoundNothing => {
                continue;
            }
            // Told by the action of the person who made the correction.
            EventKind::Corrected => continue,
            EventKind::NotSent => format!("What was asked for was not sent: {}", row.detail),
            EventKind::LeaseLost | EventKind::LateAnswer | EventKind::LateDone if mask.is_blind() => {
                "An answer came late. It is not shown, since the payload that tells what is private was erased."
                    .to_owned()
            }
            EventKind::LeaseLost
            | EventKind::LateAnswer
            | EventKind::LateDone
            | EventKind::OtherFence
            | EventKind::PassedOver
            | EventKind::Corrects => row.detail.clone(),
        };
        if times > 1 {
            text = format!("{text} {times} times within {}.", coarse(last.at.since(row.at)));
        }
        told.push((row.at, What::Event { text: mask.cut_text(&text) }));
    }
    told
}

fn same(row: &EventRow, next: &EventRow) -> bool {
    row.kind == EventKind::Duplicate
        && next.kind == row.kind
        && next.actor == row.actor
        && next.detail == row.detail
}

/// Episodes that began, and those that a confirmed replay ended. Those that people opened again or
/// ended are told by the audit.
fn letters(thread: &Thread) -> Vec<(Timestamp, What)> {
    let mut told = Vec::new();
    for letter in &thread.letters {
        if !thread.reopened(letter) {
            let step = words::quoted(&words::step_name(&letter.step));
            let text = format!("Put before a person at {step}. {}", words::park_reason(letter.why));
            told.push((letter.opened_at, What::Event { text }));
        }
        if let (Some(at), DeadLetterStatus::Replayed) = (letter.closed_at, letter.status) {
            let text = "It is confirmed, so that nobody has to look at it any more.".to_owned();
            told.push((at, What::Event { text }));
        }
    }
    told
}

/// The steps as a row of boxes; `here` is the place of the one that this is about.
pub fn steps(tale: &Tale<'_>, here: Option<i64>) -> Vec<Step> {
    let tries = |n: i64| match n {
        0 => "not tried yet".to_owned(),
        1 => "1 attempt".to_owned(),
        n => format!("{n} attempts"),
    };
    tale.thread
        .steps
        .iter()
        .map(|step| Step {
            name: words::step_name(&step.name),
            destination: words::destination_name(&step.destination),
            state: step.state,
            reference: step.reference.as_deref().map(|text| Reference::new(tale.mask.text(text), None)),
            attempts: tries(step.attempts),
            here: here == Some(step.position) && !step.state.is_over(),
        })
        .collect()
}
