//! The thread of evidence as entries of a page, oldest first.

use uuid::Uuid;

use super::mask::Mask;
use super::{Tale, act, list, request, sentence};
use crate::domain::attempt::Cause;
use crate::domain::classify::Symptom;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::excerpt::{Excerpt, Gap};
use crate::store::attempts::AttemptRow;
use crate::store::audit::AuditRow;
use crate::store::events::{EventKind, EventRow};
use crate::store::history::{Place, rank};
use crate::web::timeline::{Answer, Attempt, Entry, Finding, Step, What};
use crate::web::view::{Long, Reference, When, coarse, exact, grouped};

/// What an excerpt shows of what happened. `path` is the page's own address, and `csrf` its
/// session's token.
pub fn entries(tale: &Tale<'_>, excerpt: &Excerpt, path: &str, csrf: &str) -> Vec<Entry> {
    let thread = tale.thread;
    let shown: Vec<&AttemptRow> =
        thread.attempts.iter().filter(|row| excerpt.shows(rank::ATTEMPT, row.id)).collect();
    let telling = Telling { tale, shown: &shown, most_body: excerpt.most_body, csrf };
    let mut found: Vec<(Place, What)> = Vec::new();
    if excerpt.begins {
        let first = Place { at: thread.operation.received_at, rank: 0, id: thread.operation.id };
        found.push((first, received(tale)));
    }
    let acted = thread.acts().filter(|row| excerpt.shows(rank::ACTION, row.id));
    found.extend(acted.map(|row| (Place { at: row.at, rank: rank::ACTION, id: row.id }, action(tale, row))));
    found.extend(
        shown
            .iter()
            .map(|row| (Place { at: row.started_at, rank: rank::ATTEMPT, id: row.id }, telling.attempt(row))),
    );
    let rows: Vec<&EventRow> =
        thread.events.iter().filter(|row| excerpt.shows(rank::EVENT, row.id)).collect();
    found.extend(events(&rows, &tale.mask));
    found.extend(letters(tale).into_iter().filter(|(place, _)| excerpt.shows(place.rank, place.id)));
    found.extend(excerpt.gaps.iter().map(|gap| left_out(gap, excerpt, path)));
    // A gap stands before the record that follows it.
    found.sort_by_key(|(place, what)| (*place, !matches!(what, What::Gap { .. })));
    (1..)
        .zip(found)
        .map(|(number, (place, what))| Entry {
            anchor: format!("e{number}"),
            at: When::at(place.at, tale.seen()),
            what,
        })
        .collect()
}

/// Records that the page leaves out, and the way to them.
fn left_out(gap: &Gap, excerpt: &Excerpt, path: &str) -> (Place, What) {
    let count = grouped(usize::try_from(gap.records).unwrap_or(0));
    let (noun, verb) = if gap.records == 1 { ("record", "is") } else { ("records", "are") };
    match gap.before {
        Some(place) => {
            let which = if excerpt.begins { "between" } else { "before these" };
            (
                place,
                What::Gap {
                    text: format!("{count} {noun} {which} {verb} not shown."),
                    act: "Show those before here",
                    href: list::address(path, &[("before", place.encode())]),
                },
            )
        }
        None => (
            Place { at: Timestamp::from_micros(i64::MAX), rank: i64::MAX, id: Uuid::max() },
            What::Gap {
                text: format!("{count} later {noun} {verb} not shown."),
                act: "Show the latest",
                href: path.to_owned(),
            },
        ),
    }
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

/// What it takes to tell the attempts on a page.
struct Telling<'t, 'a> {
    tale: &'t Tale<'a>,
    /// Oldest first.
    shown: &'t [&'a AttemptRow],
    /// Characters of an answer's body.
    most_body: usize,
    csrf: &'t str,
}

impl Telling<'_, '_> {
    fn attempt(&self, row: &AttemptRow) -> What {
        if row.cause == Cause::Lookup {
            return self.question(row);
        }
        let tale = self.tale;
        let (sentence, wait) = sentence::attempt(tale, row);
        let step = tale.step(row.position);
        let headline = match row.status.and_then(|status| u16::try_from(status).ok()) {
            Some(status) => Some(request::status_line(status)),
            None => sentence::error(tale, row),
        };
        let of_one_key = |other: &&&AttemptRow| {
            (other.position, other.generation) == (row.position, row.generation) && request::sends(other)
        };
        let first = self.shown.iter().find(of_one_key).copied();
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
            sent: request::sent(tale, row, first),
            came_back: self.came_back(row),
            wait,
        }))
    }

    /// A question to the destination, and what it said.
    fn question(&self, row: &AttemptRow) -> What {
        let tale = self.tale;
        let (sentence, wait) = sentence::attempt(tale, row);
        What::Finding(Box::new(Finding {
            finding: row.symptom.and_then(Symptom::finding),
            sentence: wait.map_or_else(|| sentence.clone(), |wait| format!("{sentence} {wait}")),
            reference: row.reference.as_deref().map(|text| Reference::new(tale.mask.text(text), None)),
            by: row.requested_by.clone(),
            sent: request::question(tale, row),
            came_back: self.came_back(row),
        }))
    }

    fn came_back(&self, row: &AttemptRow) -> Option<Answer> {
        let path = format!("/operations/{}/attempts/{}/answer", row.operation_id, row.id);
        let what = if row.cause == Cause::Lookup { "question" } else { "attempt" };
        let step = self.tale.step(row.position).map_or_else(String::new, |step| words::step_name(&step.name));
        let words = format!("Download what {what} {} of {step} brought", row.number);
        let file = self.tale.file(&words, path, self.csrf);
        // Where the right is missing, the payload's button says so, once. What cannot be told from
        // what is private stays here.
        let whole = Some(file).filter(|file| file.needs.is_none() && !self.tale.mask.is_blind());
        request::came_back(self.tale, row, self.most_body, whole)
    }
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
fn events(rows: &[&EventRow], mask: &Mask) -> Vec<(Place, What)> {
    let mut told: Vec<(Place, What)> = Vec::new();
    let mut rows = rows.iter().copied().peekable();
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
                let place = Place { at: row.at, rank: rank::EVENT, id: row.id };
                told.push((place, What::Note { by: row.actor.clone(), text }));
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
            | EventKind::Corrects
            | EventKind::Erased => row.detail.clone(),
        };
        if times > 1 {
            text = format!("{text} {times} times within {}.", coarse(last.at.since(row.at)));
        }
        let place = Place { at: row.at, rank: rank::EVENT, id: row.id };
        told.push((place, What::Event { text: mask.cut_text(&text) }));
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
fn letters(tale: &Tale<'_>) -> Vec<(Place, What)> {
    let (thread, mut told) = (tale.thread, Vec::new());
    for letter in &thread.letters {
        let place = |at, rank| Place { at, rank, id: letter.id };
        if !thread.reopened(letter) {
            let step = words::quoted(&words::step_name(&letter.step));
            let text = format!("Put before a person at {step}. {}", words::park_reason(letter.why));
            told.push((place(letter.opened_at, rank::OPENED), What::Event { text }));
        }
        if let (Some(at), DeadLetterStatus::Replayed) = (letter.closed_at, letter.status) {
            let text = match sentence::overridden(tale, letter) {
                Some(sentence) => format!("It is confirmed. {sentence}"),
                None => "It is confirmed, so that nobody has to look at it any more.".to_owned(),
            };
            told.push((place(at, rank::CLOSED), What::Event { text }));
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
