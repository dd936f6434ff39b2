//! Writes down what attempts came to and what follows: done, again at a moment, or a dead letter.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use serde_json::{Map, Value};
use uuid::Uuid;

use super::ledger::{self, Finish, OperationChange, Reschedule, StepChange};
use super::park::letter;
use super::permit::{Held, Settlement};
use super::wording::{clean, cleaned, error_text, pairs_text};
use super::{Gate, GateError};
use crate::config::StepType;
use crate::domain::attempt::{Cause, Outcome, StoredRequest};
use crate::domain::classify::{Answer, Classified, Event, Symptom, classify, text_of};
use crate::domain::contract::Contract;
use crate::domain::decide::{self, Next, Round, decide};
use crate::domain::operation::{OperationEvent, StepState};
use crate::domain::time::Timestamp;
use crate::store::dead_letters;
use crate::store::events::{self, EventKind, EventRow};
use crate::store::work::WorkRow;
use crate::store::{Tx, operations};

/// One settlement, thought through: what is to be written.
struct Settled<'a> {
    held: &'a Held,
    event: &'a Event,
    at: Timestamp,
    classified: Classified,
    doubt: bool,
    round: Round,
    next: Next,
    error: Option<String>,
    reference: Option<String>,
    saved: Option<String>,
}

/// Settles attempts that ended. Those that somebody else settled meanwhile leave an event and
/// change nothing. How many were settled.
pub(super) async fn settle(gate: &Gate, tx: &mut Tx, ended: &[Settlement]) -> Result<usize, GateError> {
    let thought: Vec<Settled<'_>> = ended.iter().map(|settlement| think(gate, settlement)).collect();
    let finishes: Vec<Finish> = thought.iter().map(|settled| finish(gate, settled)).collect();
    let counted: HashSet<Uuid> = ledger::finish(tx, &finishes).await?.into_iter().collect();
    let (ours, late): (Vec<_>, Vec<_>) =
        thought.into_iter().partition(|settled| counted.contains(&settled.held.attempt));
    if !late.is_empty() {
        record_late(gate, tx, &late).await?;
    }
    if ours.is_empty() {
        return Ok(0);
    }
    let steps: Vec<StepChange> = ours.iter().map(step_change).collect();
    ledger::change_steps(tx, &steps).await?;
    write_consequences(gate, tx, &ours).await?;
    Ok(ours.len())
}

/// Settles attempts whose leases ran out: the worker may have sent and is not heard of.
pub(super) async fn lost(gate: &Gate, tx: &mut Tx, rows: Vec<WorkRow>) -> Result<(), GateError> {
    let now = gate.ambient.now();
    let mut noted = Vec::with_capacity(rows.len());
    let mut ended = Vec::with_capacity(rows.len());
    for work in rows {
        let Some(attempt) = work.attempt_id else { continue };
        noted.push(EventRow {
            id: gate.ambient.id(),
            operation_id: work.operation_id,
            at: now,
            kind: EventKind::LeaseLost,
            actor: gate.node.to_string(),
            detail: "The worker that was sending it was not heard of again.".to_owned(),
        });
        let held = Held {
            attempt,
            fence: work.fence,
            since: work.since,
            started_at: work.live_since.unwrap_or(now),
            first_sent_at: work.first_sent_at.unwrap_or(now),
            request: StoredRequest {
                method: String::new(),
                url: String::new(),
                headers: Vec::new(),
                body: None,
            },
            send_by: Instant::now(),
            work,
        };
        let text = "the worker that was sending it was lost".to_owned();
        let event = Event::NoAnswer(Symptom::LostAfterSending, text);
        ended.push(Settlement { held: Box::new(held), event, at: now });
    }
    events::insert(tx, &noted).await?;
    settle(gate, tx, &ended).await?;
    Ok(())
}

/// What a settlement means, from its facts alone.
fn think<'a>(gate: &Gate, settlement: &'a Settlement) -> Settled<'a> {
    let Settlement { held, event, at } = settlement;
    let nothing = Contract::default();
    let contract =
        gate.config.destinations.get(&held.work.destination).map_or(&nothing, |known| &known.contract);
    let classified = classify(contract, event, *at);
    // Only a confirmed effect ends a doubt: a later refusal may come from a layer that never saw
    // what an earlier send did.
    let doubt = match classified.outcome {
        Outcome::Done => false,
        Outcome::Uncertain => true,
        _ => held.work.step_state == StepState::Uncertain,
    };
    let count =
        |stored: i64, more: bool| u32::try_from(stored).unwrap_or(u32::MAX).saturating_add(more.into());
    let round = Round {
        since: held.since,
        tries: count(held.work.tries, decide::counts(&classified)),
        doubts: count(held.work.doubts, classified.outcome == Outcome::Uncertain),
        waits: count(held.work.waits, !decide::counts(&classified)),
    };
    let policy = gate.policy(&held.work.kind);
    let draw = |most: Duration| gate.ambient.up_to(most);
    let next = decide(&classified, contract, held.first_sent_at, doubt, round, &policy, *at, draw);
    let (reference, saved) = match (event, &next) {
        (Event::Answered(answer), Next::Complete) => results(gate, held, answer, &classified),
        _ => (held.work.reference.clone(), None),
    };
    let error = (classified.outcome != Outcome::Done).then(|| error_text(event));
    Settled { held, event, at: *at, classified, doubt, round, next, error, reference, saved }
}

/// The reference and the artifacts in a step's answer.
fn results(
    gate: &Gate,
    held: &Held,
    answer: &Answer,
    classified: &Classified,
) -> (Option<String>, Option<String>) {
    let Some(step) = step_type(gate, &held.work) else { return (classified.reference.clone(), None) };
    let body = answer.json();
    let at = |pointer: &str| body.as_ref().and_then(|body| body.pointer(pointer));
    let reference = classified
        .reference
        .clone()
        .or_else(|| step.reference.as_deref().and_then(at).and_then(text_of))
        .map(|text| clean(&text, 200));
    let saved: Map<String, Value> =
        step.save.iter().filter_map(|(name, pointer)| Some((name.clone(), at(pointer)?.clone()))).collect();
    (reference, (!saved.is_empty()).then(|| Value::Object(saved).to_string()))
}

/// The artifacts that a person's reference tells: those that the step takes from the same place as
/// its reference.
pub(super) fn saved_as_reference(gate: &Gate, work: &WorkRow, reference: &str) -> Option<String> {
    let step = step_type(gate, work)?;
    let place = step.reference.as_deref()?;
    let saved: Map<String, Value> = step
        .save
        .iter()
        .filter(|(_, pointer)| pointer == place)
        .map(|(name, _)| (name.clone(), reference.into()))
        .collect();
    (!saved.is_empty()).then(|| Value::Object(saved).to_string())
}

fn step_type<'a>(gate: &'a Gate, work: &WorkRow) -> Option<&'a StepType> {
    gate.config.operations.get(&work.kind)?.steps.iter().find(|step| step.name == work.step)
}

fn finish(gate: &Gate, settled: &Settled<'_>) -> Finish {
    let answer = match settled.event {
        Event::Answered(answer) => Some(answer),
        Event::NoAnswer(..) => None,
    };
    let cap = gate.config.engine.answer_cap;
    let body = answer.map(|answer| cleaned(&String::from_utf8_lossy(&answer.body), cap));
    Finish {
        id: settled.held.attempt,
        fence: settled.held.fence,
        ended_at: settled.at,
        outcome: settled.classified.outcome,
        symptom: settled.classified.symptom,
        status: answer.map(|answer| answer.status.into()),
        error: settled.error.clone(),
        next_at: match settled.next {
            Next::Retry { at } => Some(at),
            Next::Complete | Next::Park(_) => None,
        },
        retry_after: settled.classified.wait.map(|wait| i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        reference: match settled.next {
            Next::Complete => settled.reference.clone(),
            _ => None,
        },
        answer_headers: answer.map(|answer| pairs_text(&answer.headers)),
        answer_cut: match (answer, &body) {
            (Some(answer), Some((_, cut))) => *cut || !answer.complete,
            _ => false,
        },
        answer_body: body.map(|(text, _)| text),
    }
}

fn step_change(settled: &Settled<'_>) -> StepChange {
    let work = &settled.held.work;
    let done = settled.next == Next::Complete;
    StepChange {
        operation_id: work.operation_id,
        position: work.position,
        state: match &settled.next {
            Next::Complete => StepState::Completed,
            Next::Retry { .. } => StepState::unfinished(settled.doubt, false),
            Next::Park(_) => StepState::unfinished(settled.doubt, true),
        },
        attempts: work.attempts + 1,
        last_outcome: settled.classified.outcome,
        saved: settled.saved.clone(),
        reference: settled.reference.clone(),
        completed_at: done.then_some(settled.at),
    }
}

/// Moves operations and their rows of work, and opens or closes dead letters.
async fn write_consequences(gate: &Gate, tx: &mut Tx, ours: &[Settled<'_>]) -> Result<(), GateError> {
    let more_steps: Vec<Uuid> = ours
        .iter()
        .filter(|settled| settled.next == Next::Complete && !is_last(&settled.held.work))
        .map(|settled| settled.held.work.operation_id)
        .collect();
    let steps = if more_steps.is_empty() { Vec::new() } else { operations::steps(tx, &more_steps).await? };
    let mut changes = Vec::with_capacity(ours.len());
    let mut finished = Vec::with_capacity(ours.len());
    let mut again = Vec::new();
    let mut replayed = Vec::new();
    let mut letters = Vec::new();
    for settled in ours {
        let work = &settled.held.work;
        let event = match &settled.next {
            Next::Complete => OperationEvent::StepDone { last: is_last(work) },
            Next::Retry { .. } => OperationEvent::WillRetry { doubt: settled.doubt },
            Next::Park(_) => OperationEvent::Parked { doubt: settled.doubt },
        };
        let state = work.state.next(event)?;
        let done = event == OperationEvent::StepDone { last: true };
        if state != work.state || done {
            let completed_at = done.then_some(settled.at);
            changes.push(OperationChange { id: work.operation_id, state, completed_at });
        }
        match &settled.next {
            Next::Complete => {
                let following = steps.iter().find(|step| {
                    step.operation_id == work.operation_id && step.position == work.position + 1
                });
                match following {
                    Some(step) => again.push(next_step(work, &step.destination, settled.at)),
                    None => finished.push(work.operation_id),
                }
                if work.cause != Cause::Automatic {
                    replayed.push(settled);
                }
            }
            Next::Retry { at } => again.push(same_step(settled, *at)),
            Next::Park(parked) => {
                finished.push(work.operation_id);
                letters.push((settled, *parked));
            }
        }
    }
    ledger::change_operations(tx, &changes).await?;
    ledger::reschedule(tx, &again).await?;
    ledger::remove_work(tx, &finished).await?;
    for settled in replayed {
        let work = &settled.held.work;
        let reference = settled.reference.as_deref();
        dead_letters::replayed(tx, work.operation_id, &work.requested_by, reference, settled.at).await?;
    }
    for (settled, parked) in letters {
        let (work, error) = (&settled.held.work, settled.error.as_deref().unwrap_or_default());
        let status = match settled.event {
            Event::Answered(answer) => Some(i64::from(answer.status)),
            Event::NoAnswer(..) => None,
        };
        let made = work.attempts + 1;
        let letter = letter(gate, work, made, parked, &settled.classified, status, error, settled.at);
        dead_letters::open(tx, &letter).await?;
    }
    Ok(())
}

fn is_last(work: &WorkRow) -> bool {
    work.position + 1 >= work.steps
}

fn next_step(work: &WorkRow, destination: &str, at: Timestamp) -> Reschedule {
    Reschedule {
        operation_id: work.operation_id,
        position: work.position + 1,
        destination: destination.to_owned(),
        // A person asked for the step that was done; what follows is the engine's own work.
        cause: Cause::Automatic,
        requested_by: "engine".to_owned(),
        waived: String::new(),
        due_at: at,
        since: at,
        tries: 0,
        doubts: 0,
        waits: 0,
    }
}

fn same_step(settled: &Settled<'_>, at: Timestamp) -> Reschedule {
    let work = &settled.held.work;
    // A waiver is for one send: it lasts until that has left.
    let unsent = matches!(settled.classified.outcome, Outcome::NotSent | Outcome::Throttled);
    Reschedule {
        operation_id: work.operation_id,
        position: work.position,
        destination: work.destination.clone(),
        cause: work.cause,
        requested_by: work.requested_by.clone(),
        waived: if unsent { work.waived.clone() } else { String::new() },
        due_at: at,
        since: settled.round.since,
        tries: settled.round.tries.into(),
        doubts: settled.round.doubts.into(),
        waits: settled.round.waits.into(),
    }
}

/// An answer that came after its lease had run out is evidence: it is kept and overwrites nothing.
async fn record_late(gate: &Gate, tx: &mut Tx, late: &[Settled<'_>]) -> Result<(), GateError> {
    let rows: Vec<EventRow> = late
        .iter()
        .map(|settled| {
            let what = match settled.event {
                Event::Answered(answer) => {
                    format!("{} {}", answer.status, clean(&String::from_utf8_lossy(&answer.body), 2_000))
                }
                Event::NoAnswer(_, text) => clean(text, 2_000),
            };
            EventRow {
                id: gate.ambient.id(),
                operation_id: settled.held.work.operation_id,
                at: settled.at,
                kind: match settled.classified.outcome {
                    Outcome::Done => EventKind::LateDone,
                    _ => EventKind::LateAnswer,
                },
                actor: gate.node.to_string(),
                detail: format!(
                    "Attempt {} was answered after its lease had run out: {} ({what})",
                    settled.held.work.attempts + 1,
                    settled.classified.outcome,
                ),
            }
        })
        .collect();
    Ok(events::insert(tx, &rows).await?)
}
