//! Writes down what attempts came to, and thinks what follows: done, again at a moment, a question,
//! or a dead letter.

use std::collections::HashSet;
use std::time::Duration;

use serde_json::{Map, Value};
use uuid::Uuid;

use super::health::Noticed;
use super::ledger::{self, Finish, StepChange};
use super::permit::{Held, Settlement};
use super::wording::{clean, cleaned, error_text, pairs_text};
use super::{Gate, GateError, consequences, finding};
use crate::config::StepType;
use crate::domain::attempt::Outcome;
use crate::domain::classify::{Classified, Event, Symptom, classify, text_of};
use crate::domain::contract::Contract;
use crate::domain::decide::{self, Next, Round, decide};
use crate::domain::lookup::{Found, Task};
use crate::domain::operation::StepState;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::events::{self, EventKind, EventRow};
use crate::store::work::{self, WorkRow};
use crate::store::{Tx, results, retention};

/// One settlement, thought through: what is to be written.
pub(super) struct Settled<'a> {
    pub(super) held: &'a Held,
    pub(super) event: &'a Event,
    pub(super) at: Timestamp,
    /// The engine's own.
    pub(super) lease: Duration,
    /// What it shows of the destination.
    pub(super) healthy: Option<bool>,
    /// Nothing else should be sent there.
    pub(super) pause: bool,
    pub(super) classified: Classified,
    pub(super) doubt: bool,
    pub(super) round: Round,
    pub(super) next: Next,
    pub(super) error: Option<String>,
    pub(super) reference: Option<String>,
    pub(super) saved: Option<String>,
    /// Of a question.
    pub(super) found: Option<Found>,
}

/// Settles attempts that ended. Those that somebody else settled meanwhile leave an event and
/// change nothing. How many were settled, and what they showed of their destinations.
pub(super) async fn settle(
    gate: &Gate,
    tx: &mut Tx,
    ended: &[Settlement],
) -> Result<(usize, Vec<Noticed>), GateError> {
    let thought: Vec<Settled<'_>> = ended.iter().map(|settlement| think(gate, settlement)).collect();
    let finishes: Vec<Finish> = thought.iter().map(|settled| finish(gate, settled)).collect();
    let counted: HashSet<Uuid> = ledger::finish(tx, &finishes).await?.into_iter().collect();
    let (mut ours, late): (Vec<_>, Vec<_>) =
        thought.into_iter().partition(|settled| counted.contains(&settled.held.attempt));
    if !late.is_empty() {
        record_late(gate, tx, &late).await?;
    }
    if ours.is_empty() {
        return Ok((0, Vec::new()));
    }
    leave_what_was_closed(tx, &mut ours).await?;
    let steps: Vec<StepChange> = ours.iter().map(step_change).collect();
    ledger::change_steps(tx, &steps).await?;
    consequences::write(gate, tx, &ours).await?;
    Ok((ours.len(), ours.iter().map(notice).collect()))
}

/// A question about an operation that a person closed is answered, and starts nothing: their word
/// stands, though the finding may say otherwise.
async fn leave_what_was_closed(tx: &mut Tx, ours: &mut [Settled<'_>]) -> Result<(), GateError> {
    for settled in ours.iter_mut() {
        let work = &settled.held.work;
        if work.task != Task::Ask || settled.next != Next::Complete || work.resume_at.is_some() {
            continue;
        }
        // Nobody closes it between this look and the commit.
        work::lock_operation(tx, work.operation_id).await?;
        if results::live_letters(tx, &[work.operation_id]).await?.is_empty() {
            settled.next = Next::Leave;
            settled.doubt = work.step_state == StepState::Uncertain;
            settled.reference.clone_from(&work.reference);
            settled.saved = None;
        }
    }
    Ok(())
}

/// What an attempt showed of its destination.
fn notice(settled: &Settled<'_>) -> Noticed {
    let work = &settled.held.work;
    let why = || {
        let said = settled.error.as_deref().unwrap_or_default();
        format!("{}: {said}", words::title(settled.classified.symptom))
    };
    Noticed {
        destination: work.destination.clone(),
        at: settled.at,
        healthy: settled.healthy,
        pause: settled.pause.then(why),
        hold: settled.classified.wait.filter(|_| settled.classified.outcome == Outcome::Throttled),
    }
}

/// Settles attempts whose leases ran out: the worker may have sent and is not heard of.
pub(super) async fn lost(gate: &Gate, tx: &mut Tx, rows: Vec<WorkRow>) -> Result<(), GateError> {
    let now = gate.ambient.now();
    let mut noted = Vec::with_capacity(rows.len());
    let mut ended = Vec::with_capacity(rows.len());
    for work in rows {
        noted.push(EventRow {
            id: gate.ambient.id(),
            operation_id: work.operation_id,
            position: Some(work.position),
            at: now,
            kind: EventKind::LeaseLost,
            actor: gate.node.to_string(),
            detail: "The worker that was sending it was not heard of again.".to_owned(),
        });
        let held = Held::out_of_hand(work, now);
        let text = "the worker that was sending it was lost".to_owned();
        let event = Event::NoAnswer(Symptom::LostAfterSending, text);
        ended.push(Settlement { held: Box::new(held), event, at: now });
    }
    events::insert(tx, &noted).await?;
    // What was cut off on our side says nothing of a destination's health.
    settle(gate, tx, &ended).await?;
    Ok(())
}

/// What a settlement means, from its facts alone.
fn think<'a>(gate: &Gate, settlement: &'a Settlement) -> Settled<'a> {
    let held = &settlement.held;
    let nothing = Contract::default();
    let contract =
        gate.config.destinations.get(&held.work.destination).map_or(&nothing, |known| &known.contract);
    let mut settled = match held.work.task {
        Task::Send => think_send(gate, settlement, contract),
        Task::FindOut | Task::Ask | Task::FetchResult => finding::think(gate, settlement, contract),
    };
    if let Next::Park(parked) = settled.next
        && step_type(gate, &held.work).is_some_and(|step| step.optional)
    {
        settled.next = Next::PassOver(parked);
    }
    settled
}

fn think_send<'a>(gate: &Gate, settlement: &'a Settlement, contract: &Contract) -> Settled<'a> {
    let Settlement { held, event, at } = settlement;
    let classified = classify(contract, event, *at);
    // Only a confirmed effect ends a doubt: a later refusal may come from a layer that never saw
    // what an earlier send did.
    let doubt = match classified.outcome {
        Outcome::Done => false,
        Outcome::Uncertain => true,
        _ => held.work.step_state == StepState::Uncertain,
    };
    let round = Round {
        since: held.since,
        tries: count(held.work.tries, decide::counts(&classified)),
        doubts: count(held.work.doubts, classified.outcome == Outcome::Uncertain),
        waits: count(held.work.waits, !decide::counts(&classified)),
        asks: 0,
    };
    let policy = gate.policy(&held.work.kind);
    let draw = |most: Duration| gate.ambient.up_to(most);
    let next = decide(&classified, contract, held.first_sent_at, doubt, round, &policy, *at, draw);
    let (reference, saved) = match next {
        Next::Complete => {
            let body = event.json();
            results_of(gate, &held.work, classified.reference.clone(), body.as_ref())
        }
        _ => (held.work.reference.clone(), None),
    };
    let error = (classified.outcome != Outcome::Done).then(|| error_text(event));
    Settled {
        held,
        event,
        at: *at,
        lease: gate.config.engine.lease,
        healthy: classified.symptom.healthy(),
        pause: classified.pause,
        classified,
        doubt,
        round,
        next,
        error,
        reference,
        saved,
        found: None,
    }
}

/// A stored count, and the present one where it counts.
pub(super) fn count(stored: i64, more: bool) -> u32 {
    u32::try_from(stored).unwrap_or(u32::MAX).saturating_add(more.into())
}

/// The reference and the artifacts in what a step's answer, or the destination when it was asked,
/// shows.
pub(super) fn results_of(
    gate: &Gate,
    work: &WorkRow,
    known: Option<String>,
    body: Option<&Value>,
) -> (Option<String>, Option<String>) {
    let Some(step) = step_type(gate, work) else { return (known, None) };
    let at = |pointer: &str| body.and_then(|body| body.pointer(pointer));
    let reference = known
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

pub(super) fn step_type<'a>(gate: &'a Gate, work: &WorkRow) -> Option<&'a StepType> {
    gate.config.operations.get(&work.kind)?.steps.iter().find(|step| step.name == work.step)
}

fn finish(gate: &Gate, settled: &Settled<'_>) -> Finish {
    let answer = match settled.event {
        Event::Answered(answer) => Some(answer),
        Event::NoAnswer(..) | Event::Reported(_) => None,
    };
    let reported = match settled.event {
        Event::Reported(report) => Some(&report.result),
        Event::Answered(_) | Event::NoAnswer(..) => None,
    };
    let cap = gate.config.engine.answer_cap;
    let body = answer.map(|answer| &answer.body).or(reported);
    let body = body.map(|body| cleaned(&String::from_utf8_lossy(body), cap));
    Finish {
        id: settled.held.attempt,
        fence: settled.held.fence,
        ended_at: settled.at,
        outcome: settled.classified.outcome,
        symptom: settled.classified.symptom,
        status: answer.map(|answer| answer.status.into()),
        error: settled.error.clone(),
        next_at: match settled.next {
            Next::Retry { at } | Next::LookUp { at, .. } => Some(at),
            Next::Complete | Next::Park(_) | Next::PassOver(_) | Next::Leave => None,
        },
        retry_after: settled.classified.wait.map(|wait| i64::try_from(wait.as_micros()).unwrap_or(i64::MAX)),
        reference: match settled.next {
            Next::Complete => settled.reference.clone(),
            _ => None,
        },
        answer_headers: answer.map(|answer| pairs_text(&answer.headers)),
        answer_cut: body.as_ref().is_some_and(|(_, cut)| *cut)
            || answer.is_some_and(|answer| !answer.complete),
        answer_body: body.map(|(text, _)| text),
    }
}

fn step_change(settled: &Settled<'_>) -> StepChange {
    let (held, work) = (settled.held, &settled.held.work);
    let asks = settled.found.is_some();
    let state = match &settled.next {
        Next::Complete | Next::LookUp { task: Task::FetchResult, .. } => StepState::Completed,
        Next::Retry { .. } | Next::LookUp { .. } => StepState::unfinished(settled.doubt, false),
        Next::Park(_) => StepState::unfinished(settled.doubt, true),
        Next::PassOver(_) => StepState::Skipped,
        // An absence that was proved ends a doubt; nothing else changes.
        Next::Leave if work.step_state == StepState::Uncertain => StepState::unfinished(settled.doubt, true),
        Next::Leave => work.step_state,
    };
    StepChange {
        operation_id: work.operation_id,
        position: work.position,
        state,
        attempts: work.attempts + i64::from(!asks),
        last_outcome: match settled.classified.outcome {
            // A question that was not answered says nothing new.
            Outcome::Uncertain if asks => work.last_outcome,
            outcome => Some(outcome),
        },
        doubt_at: match settled.classified.outcome {
            Outcome::Uncertain if !asks => Some(match settled.event {
                // It may have happened at any moment until now.
                Event::Reported(_) => settled.at,
                // A program may have had it for longer than one lease.
                _ => work
                    .leased_until
                    .map_or(held.started_at, |until| until.minus(settled.lease).max(held.started_at)),
            }),
            _ => work.doubt_at,
        },
        saved: settled.saved.clone(),
        reference: settled.reference.clone(),
        completed_at: state.is_over().then_some(settled.at),
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
                Event::Reported(report) => {
                    clean(&format!("{} {}", report.outcome, String::from_utf8_lossy(&report.result)), 2_000)
                }
            };
            EventRow {
                id: gate.ambient.id(),
                operation_id: settled.held.work.operation_id,
                position: Some(settled.held.work.position),
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
    let erased: Vec<Uuid> = late
        .iter()
        .filter(|settled| settled.held.work.payload.is_none())
        .map(|settled| settled.held.work.operation_id)
        .collect();
    retention::put_off(tx, retention::Task::Erase, &erased).await?;
    Ok(events::insert(tx, &rows).await?)
}
