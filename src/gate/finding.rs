//! What a destination's answer to a question means for the step that it is about.

use super::Gate;
use super::permit::{Held, Settlement};
use super::settle::{Settled, count, results_of};
use super::wording::clean;
use crate::domain::attempt::Outcome;
use crate::domain::classify::{Action, Classified, Symptom, classify};
use crate::domain::contract::Contract;
use crate::domain::decide::{self, Asked, Next, Round};
use crate::domain::lookup::{self, Finding, Found, Task};
use crate::domain::operation::StepState;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::events::{EventKind, EventRow};
use crate::store::work::WorkRow;

/// What an answered question means, from its facts alone.
pub(super) fn think<'a>(gate: &Gate, settlement: &'a Settlement, contract: &Contract) -> Settled<'a> {
    let Settlement { held, event, at } = settlement;
    let work = &held.work;
    let counts_from = counts_from(gate, work, contract);
    let found = match &contract.lookup {
        // It had to be known when the question was put, which may have taken a while to answer.
        Some(lookup) => lookup::read(lookup, &held.expected, event, held.started_at >= counts_from),
        None => Found {
            finding: Finding::Failed,
            reference: None,
            object: None,
            detail: "it can no longer be asked".to_owned(),
        },
    };
    let health = classify(contract, event, *at);
    let classified = Classified { wait: health.wait, ..meaning(found.finding) };
    let round = Round {
        since: held.since,
        tries: count(work.tries, false),
        doubts: count(work.doubts, false),
        waits: count(work.waits, false),
        asks: count(work.asks, true),
    };
    let asked = Asked { task: work.task, finding: found.finding, counts_from, resume_at: work.resume_at };
    // An absence under the present key tells nothing of an effect under an earlier one.
    let earlier = work.generation > 1 && work.step_state == StepState::Uncertain;
    let next = if work.task == Task::Ask && work.step_state.is_over() {
        Next::Leave
    } else {
        let draw = |most| gate.ambient.up_to(most);
        decide::after_lookup(asked, &classified, round, &gate.policy(&work.kind), *at, earlier, draw)
    };
    let doubt = match found.finding {
        Finding::Found => false,
        Finding::Absent => earlier,
        _ => work.step_state == StepState::Uncertain,
    };
    let (reference, saved) = match (&next, &found.object) {
        (Next::Complete, Some(object)) => {
            let (reference, saved) = results_of(gate, work, found.reference.clone(), Some(object));
            (reference.or_else(|| work.reference.clone()), saved)
        }
        _ => (work.reference.clone(), None),
    };
    let error = (found.finding != Finding::Found).then(|| clean(&found.detail, 500));
    Settled {
        held,
        event,
        at: *at,
        lease: gate.config.engine.lease,
        healthy: health.symptom.healthy(),
        pause: health.pause,
        classified,
        doubt,
        round,
        next,
        error,
        reference,
        saved,
        found: Some(found),
    }
}

/// From when an absence counts: never too early for the last send that may have happened.
fn counts_from(gate: &Gate, work: &WorkRow, contract: &Contract) -> Timestamp {
    let sent = work.doubt_at.or(work.first_sent_at);
    match (sent, &contract.lookup) {
        (Some(sent), Some(lookup)) => {
            lookup::absence_counts_from(contract, lookup, sent, gate.config.engine.lease)
        }
        _ => Timestamp::from_micros(0),
    }
}

/// A finding in the words of the table of outcomes.
fn meaning(finding: Finding) -> Classified {
    let (outcome, symptom, action) = match finding {
        Finding::Found => (Outcome::Done, Symptom::Found, Action::Complete),
        Finding::OtherPayload => (Outcome::KeyConflict, Symptom::FoundOther, Action::DeadLetter),
        Finding::Absent => (Outcome::NotSent, Symptom::Absent, Action::Retry),
        Finding::TooEarly => (Outcome::Uncertain, Symptom::TooEarly, Action::FindOut),
        Finding::Failed => (Outcome::Uncertain, Symptom::LookupFailed, Action::FindOut),
    };
    Classified { outcome, symptom, action, pause: false, wait: None, reference: None }
}

/// A finding as an event of its operation.
pub(super) fn event(gate: &Gate, held: &Held, found: &Found, at: Timestamp) -> EventRow {
    let kind = match found.finding {
        Finding::Found => EventKind::Found,
        Finding::OtherPayload => EventKind::FoundOther,
        Finding::Absent => EventKind::FoundAbsent,
        Finding::TooEarly | Finding::Failed => EventKind::FoundNothing,
    };
    let reference = found.reference.as_ref().map(|id| format!(" as {id}")).unwrap_or_default();
    EventRow {
        id: gate.ambient.id(),
        operation_id: held.work.operation_id,
        position: Some(held.work.position),
        at,
        kind,
        actor: held.work.asked_by.clone().unwrap_or_else(|| "engine".to_owned()),
        detail: clean(
            &format!(
                "{} was asked about \u{201c}{}\u{201d}{reference}: {}.",
                words::capitalised(&words::destination_name(&held.work.destination)),
                held.work.step,
                found.detail,
            ),
            1_000,
        ),
    }
}
