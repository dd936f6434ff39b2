//! Turns claimed work into permits: the checks, the request's bytes, and the mark *sending*.

use std::collections::{BTreeMap, HashSet};
use std::time::{Duration, Instant};

use serde_json::Value;
use uuid::Uuid;

use super::checks::{self, Ask, Examination};
use super::examine::waivers;
use super::ledger::{self, Begin, Keep, Lease};
use super::permit::{Held, Permit, Settlement};
use super::{Gate, GateError, park, settle, wording};
use crate::config::RenderContext;
use crate::domain::attempt::{Cause, StoredRequest};
use crate::domain::classify::{Event, Symptom};
use crate::domain::time::Timestamp;
use crate::domain::verdict::VerdictKind;
use crate::store::Tx;
use crate::store::operations::{self, StepRow};
use crate::store::work::WorkRow;

/// The gate's answer to a worker.
#[derive(Debug)]
pub enum Admission {
    /// It may send, once.
    Send(Permit),
    /// It may not; the text says why, and that is on record.
    Refused(VerdictKind, String),
}

impl Admission {
    /// The permit, when there is one.
    pub fn into_permit(self) -> Option<Permit> {
        match self {
            Self::Send(permit) => Some(permit),
            Self::Refused(..) => None,
        }
    }
}

/// Judges claimed rows and marks those that pass as sending.
pub(super) async fn admit(
    gate: &Gate,
    tx: &mut Tx,
    rows: Vec<WorkRow>,
    began: Instant,
) -> Result<Vec<Admission>, GateError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let now = gate.ambient.now();
    let mut answers = Vec::with_capacity(rows.len());
    let mut passed = Vec::with_capacity(rows.len());
    for row in rows {
        let examination = judge(gate, &row, now);
        if examination.passed() {
            passed.push(hold(gate, row, now, began));
        } else {
            answers.push(pass_over(gate, tx, row, examination, now).await?);
        }
    }
    if passed.is_empty() {
        return Ok(answers);
    }
    let begins: Vec<Begin<'_>> = passed.iter().map(|held| begin(gate, held)).collect();
    let started: HashSet<Uuid> = ledger::begin(tx, &begins).await?.into_iter().collect();
    let (mut ours, lost): (Vec<Held>, Vec<Held>) =
        passed.into_iter().partition(|held| started.contains(&held.attempt));
    for held in lost {
        // Another worker's attempt stands, though it was not there when the facts were read.
        let why = "Another worker is sending it already.".to_owned();
        ledger::skip(tx, &Begin { id: gate.ambient.id(), ..begin(gate, &held) }, &why).await?;
        answers.push(Admission::Refused(VerdictKind::InFlight, why));
    }
    let failures = render_all(gate, tx, &mut ours).await?;
    lease(gate, tx, &ours).await?;
    let mut unbuildable = Vec::new();
    for held in ours {
        match failures.iter().find(|(id, _)| *id == held.attempt) {
            None => answers.push(Admission::Send(Permit::new(held))),
            Some((_, why)) => {
                answers.push(Admission::Refused(VerdictKind::Refused, why.clone()));
                let event = Event::NoAnswer(Symptom::NotBuilt, why.clone());
                unbuildable.push(Settlement { held: Box::new(held), event, at: now });
            }
        }
    }
    if !unbuildable.is_empty() {
        settle::settle(gate, tx, &unbuildable).await?;
    }
    Ok(answers)
}

fn judge(gate: &Gate, row: &WorkRow, now: Timestamp) -> Examination {
    let waived = waivers(&row.waived);
    let ask = Ask { automatic: row.cause == Cause::Automatic, waived: &waived, allowed: Ok(()) };
    let contract = gate.config.destinations.get(&row.destination).map(|known| &known.contract);
    checks::examine(row, contract, &gate.policy(&row.kind), &ask, now)
}

fn hold(gate: &Gate, row: WorkRow, now: Timestamp, began: Instant) -> Held {
    let timeout =
        gate.config.destinations.get(&row.destination).map_or(Duration::ZERO, |known| known.timeout);
    Held {
        attempt: gate.ambient.id(),
        fence: row.fence + 1,
        since: if row.begun() { row.since } else { now },
        started_at: now,
        first_sent_at: row.first_sent_at.unwrap_or(now),
        request: StoredRequest { method: String::new(), url: String::new(), headers: Vec::new(), body: None },
        send_by: began + gate.config.engine.lease.saturating_sub(timeout),
        work: row,
    }
}

fn begin<'a>(gate: &'a Gate, held: &'a Held) -> Begin<'a> {
    Begin {
        id: held.attempt,
        operation_id: held.work.operation_id,
        position: held.work.position,
        generation: held.work.generation,
        number: held.work.attempts + 1,
        cause: held.work.cause,
        requested_by: &held.work.requested_by,
        fence: held.fence,
        node: &gate.node,
        at: held.started_at,
    }
}

/// Records why a claimed row is not sent, and takes it out of the queue where it has no business.
async fn pass_over(
    gate: &Gate,
    tx: &mut Tx,
    row: WorkRow,
    examination: Examination,
    now: Timestamp,
) -> Result<Admission, GateError> {
    let Examination { verdict, reason, .. } = examination;
    let skipped = Begin {
        id: gate.ambient.id(),
        operation_id: row.operation_id,
        position: row.position,
        generation: row.generation,
        number: row.attempts,
        cause: row.cause,
        requested_by: &row.requested_by,
        fence: row.fence,
        node: &gate.node,
        at: now,
    };
    ledger::skip(tx, &skipped, &reason).await?;
    match verdict {
        // The row belongs to whoever is at it.
        VerdictKind::InFlight => {}
        VerdictKind::AlreadyDone => ledger::remove_work(tx, &[row.operation_id]).await?,
        _ => park::park_unsent(gate, tx, &row, examination.failed, &reason, now).await?,
    }
    Ok(Admission::Refused(verdict, reason))
}

/// Computes the bytes of each step's request, or takes those that its first attempt stored. The
/// failures tell why a request cannot be built.
async fn render_all(gate: &Gate, tx: &mut Tx, rows: &mut [Held]) -> Result<Vec<(Uuid, String)>, GateError> {
    let later: Vec<Uuid> =
        rows.iter().filter(|held| held.work.position > 0).map(|held| held.work.operation_id).collect();
    let earlier_steps = if later.is_empty() { Vec::new() } else { operations::steps(tx, &later).await? };
    let mut failures = Vec::new();
    let mut made = Vec::new();
    for (index, held) in rows.iter_mut().enumerate() {
        if held.work.method.is_some() {
            held.request = stored(&held.work);
            continue;
        }
        match render(gate, &held.work, &saved(&earlier_steps, &held.work)) {
            Ok(request) => {
                held.request = request;
                made.push(index);
            }
            Err(why) => failures.push((held.attempt, why)),
        }
    }
    let keeps: Vec<Keep<'_>> = made
        .into_iter()
        .map(|index| {
            let held = &rows[index];
            Keep {
                operation_id: held.work.operation_id,
                position: held.work.position,
                generation: held.work.generation,
                key: held.work.step_key,
                at: held.started_at,
                headers: wording::pairs_text(&held.request.headers),
                body_is_payload: held.request.body == held.work.payload,
                request: &held.request,
            }
        })
        .collect();
    ledger::keep_requests(tx, &keeps).await?;
    Ok(failures)
}

/// What the steps before this one saved, by their names.
pub(super) fn saved(steps: &[StepRow], work: &WorkRow) -> BTreeMap<String, Value> {
    steps
        .iter()
        .filter(|step| step.operation_id == work.operation_id && step.position < work.position)
        .filter_map(|step| Some((step.name.clone(), serde_json::from_str(step.saved.as_deref()?).ok()?)))
        .collect()
}

/// The request that the step's first attempt stored.
pub(super) fn stored(work: &WorkRow) -> StoredRequest {
    StoredRequest {
        method: work.method.clone().unwrap_or_default(),
        url: work.url.clone().unwrap_or_default(),
        headers: work.headers.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        body: if work.body_is_payload == Some(true) { work.payload.clone() } else { work.body.clone() },
    }
}

/// The request that the step's first attempt would make; why it cannot be built, for people.
pub(super) fn render(
    gate: &Gate,
    work: &WorkRow,
    saved: &BTreeMap<String, Value>,
) -> Result<StoredRequest, String> {
    let kind = gate
        .config
        .operations
        .get(&work.kind)
        .ok_or_else(|| format!("The operation type {} is no longer configured.", work.kind))?;
    let step = kind.steps.iter().find(|step| step.name == work.step).ok_or_else(|| {
        format!("The type {} no longer has a step \u{201c}{}\u{201d}.", work.kind, work.step)
    })?;
    let destination = gate
        .config
        .destinations
        .get(&work.destination)
        .ok_or_else(|| format!("The destination {} is no longer configured.", work.destination))?;
    let text = work.payload.as_deref().ok_or("The payload was erased.")?;
    let payload: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let context = RenderContext {
        payload: &payload,
        key: work.step_key.to_string(),
        operation: crate::config::OperationFacts {
            id: work.operation_id,
            key: work.key.clone(),
            kind: work.kind.clone(),
            correlation_id: work.correlation_id.clone(),
            source: work.source.clone(),
        },
        received_at: work.received_at,
        steps: saved,
    };
    step.request(destination, text, &context).map_err(|error| error.to_string())
}

async fn lease(gate: &Gate, tx: &mut Tx, rows: &[Held]) -> Result<(), GateError> {
    let leases: Vec<Lease> = rows
        .iter()
        .map(|held| Lease {
            operation_id: held.work.operation_id,
            attempt_id: held.attempt,
            fence: held.fence,
            since: held.since,
            until: held.started_at.plus(gate.config.engine.lease),
        })
        .collect();
    Ok(ledger::lease(tx, &leases).await?)
}
