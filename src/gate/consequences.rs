//! What follows from settled attempts: operations and their rows of work move, dead letters open,
//! close or learn.

use uuid::Uuid;

use super::ledger::{self, OperationChange, Reschedule};
use super::park::letter;
use super::settle::Settled;
use super::{Gate, GateError, finding, steps};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::classify::{Event, Symptom};
use crate::domain::decide::{Next, Parked};
use crate::domain::lookup::{Finding, Task};
use crate::domain::operation::{OperationEvent, OperationState};
use crate::domain::time::Timestamp;
use crate::store::events;
use crate::store::operations::{self, StepRow};
use crate::store::{Tx, dead_letters};

/// What is to be written for all of them.
#[derive(Default)]
struct Writing {
    changes: Vec<OperationChange>,
    again: Vec<Reschedule>,
    finished: Vec<Uuid>,
    notes: Vec<events::EventRow>,
}

/// Moves operations and their rows of work, and opens or closes dead letters.
pub(super) async fn write(gate: &Gate, tx: &mut Tx, ours: &[Settled<'_>]) -> Result<(), GateError> {
    let more_steps: Vec<Uuid> = ours
        .iter()
        .filter(|settled| matches!(settled.next, Next::Complete | Next::PassOver(_)))
        .filter(|settled| settled.held.work.position + 1 < settled.held.work.steps)
        .map(|settled| settled.held.work.operation_id)
        .collect();
    let steps = if more_steps.is_empty() { Vec::new() } else { operations::steps(tx, &more_steps).await? };
    let mut writing = Writing::default();
    for settled in ours {
        writing.move_on(gate, settled, &steps)?;
    }
    ledger::change_operations(tx, &writing.changes).await?;
    ledger::reschedule(tx, &writing.again).await?;
    ledger::remove_work(tx, &writing.finished).await?;
    events::insert(tx, &writing.notes).await?;
    for settled in ours {
        tell_letters(gate, tx, settled).await?;
    }
    Ok(())
}

impl Writing {
    fn move_on(&mut self, gate: &Gate, settled: &Settled<'_>, steps: &[StepRow]) -> Result<(), GateError> {
        let work = &settled.held.work;
        let next = steps::following(steps, work);
        if let Some(found) = &settled.found {
            self.notes.push(finding::event(gate, settled.held, found, settled.at));
        }
        let event = match &settled.next {
            Next::Complete | Next::PassOver(_) => Some(OperationEvent::StepDone { last: next.is_none() }),
            Next::LookUp { task: Task::FetchResult, .. } => Some(OperationEvent::StepDone { last: false }),
            Next::Retry { .. } | Next::LookUp { .. } => {
                Some(OperationEvent::WillRetry { doubt: settled.doubt })
            }
            Next::Park(_) => Some(OperationEvent::Parked { doubt: settled.doubt }),
            // Of what may have happened it was proved that it did not.
            Next::Leave if work.state == OperationState::Uncertain && !settled.doubt => {
                Some(OperationEvent::Parked { doubt: false })
            }
            Next::Leave => None,
        };
        if let Some(event) = event {
            let state = work.state.next(event)?;
            let done = event == OperationEvent::StepDone { last: true };
            if state != work.state || done {
                let completed_at = done.then_some(settled.at);
                self.changes.push(OperationChange { id: work.operation_id, state, completed_at });
            }
        }
        match &settled.next {
            Next::Complete | Next::PassOver(_) => {
                match next {
                    Some(step) => self.again.push(steps::row_for(gate, work, step, settled.at)),
                    None => self.finished.push(work.operation_id),
                }
                if let Next::PassOver(parked) = &settled.next {
                    self.notes.push(steps::note(gate, work, passed_over(settled, *parked), settled.at));
                }
            }
            Next::Retry { at } => self.again.push(same_step(gate, settled, Task::Send, *at)),
            Next::LookUp { at, task } => self.again.push(same_step(gate, settled, *task, *at)),
            Next::Park(_) | Next::Leave => self.finished.push(work.operation_id),
        }
        Ok(())
    }
}

/// Why an operation goes on without an optional step, for people.
fn passed_over(settled: &Settled<'_>, parked: Parked) -> String {
    format!(
        "\u{201c}{}\u{201d} is optional and came to nothing ({}), so the operation goes on without it: {}",
        settled.held.work.step,
        parked.certainty.as_str().replace('_', " "),
        settled.error.as_deref().unwrap_or_default()
    )
}

fn same_step(gate: &Gate, settled: &Settled<'_>, task: Task, at: Timestamp) -> Reschedule {
    let work = &settled.held.work;
    // A waiver is for one send: it lasts until that has left.
    let unsent = settled.found.is_some()
        || matches!(settled.classified.outcome, Outcome::NotSent | Outcome::Throttled);
    Reschedule {
        operation_id: work.operation_id,
        position: work.position,
        destination: work.destination.clone(),
        lane: match task {
            Task::Send => gate.lane(&work.kind, &work.step, &work.destination),
            // Whoever carries the step out, it is the engine that asks.
            Task::FindOut | Task::Ask | Task::FetchResult => work.destination.clone(),
        },
        task,
        cause: work.cause,
        requested_by: work.requested_by.clone(),
        waived: if unsent { work.waived.clone() } else { String::new() },
        due_at: at,
        since: settled.round.since,
        tries: settled.round.tries.into(),
        doubts: settled.round.doubts.into(),
        waits: settled.round.waits.into(),
        asks: settled.round.asks.into(),
        lost: matches!(settled.classified.symptom, Symptom::LostBeforeSending | Symptom::LostAfterSending),
    }
}

/// What the dead letter of an operation, if it has one, is to say now.
async fn tell_letters(gate: &Gate, tx: &mut Tx, settled: &Settled<'_>) -> Result<(), GateError> {
    let work = &settled.held.work;
    let (id, at, reference) = (work.operation_id, settled.at, settled.reference.as_deref());
    match (&settled.next, &settled.found) {
        (Next::Complete, Some(found)) if work.task != Task::FetchResult => {
            let by = work.asked_by.as_deref().unwrap_or(&work.requested_by);
            let why = format!("The destination was asked: {}.", found.detail);
            dead_letters::found(tx, id, by, &why, reference, at).await?;
        }
        (Next::PassOver(parked), _) if work.cause != Cause::Automatic => {
            let why = passed_over(settled, *parked);
            dead_letters::passed_over(tx, id, &work.requested_by, &why, at).await?;
        }
        (Next::Complete, _) if work.cause != Cause::Automatic => {
            dead_letters::replayed(tx, id, &work.requested_by, reference, at).await?;
        }
        (Next::Leave, Some(found)) if found.finding == Finding::Absent && settled.doubt => {}
        (Next::Leave, Some(found)) => dead_letters::learned(tx, id, found.finding).await?,
        (Next::Park(parked), found) => {
            let status = match settled.event {
                Event::Answered(answer) => Some(i64::from(answer.status)),
                Event::NoAnswer(..) | Event::Reported(_) => None,
            };
            let made = work.attempts + i64::from(found.is_none());
            let error = settled.error.as_deref().unwrap_or_default();
            let letter = letter(gate, work, made, *parked, &settled.classified, status, error, at);
            dead_letters::open(tx, &letter).await?;
        }
        _ => {}
    }
    Ok(())
}
