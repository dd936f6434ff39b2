//! Turns claimed work into permits: the checks, the request's bytes, and the mark *sending*.

use std::collections::HashSet;
use std::time::{Duration, Instant};

use uuid::Uuid;

use super::checks::{self, Ask, Examination};
use super::examine::waivers;
use super::ledger::{self, Begin, Keep, Lease};
use super::permit::{Held, Permit, Settlement};
use super::render::{self, Rendered};
use super::{Gate, GateError, park, settle, steps, wording};
use crate::domain::attempt::{Cause, StoredRequest};
use crate::domain::classify::{Event, Symptom};
use crate::domain::lookup::Task;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{CheckName, VerdictKind};
use crate::store::work::WorkRow;
use crate::store::{Tx, retention};

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

/// Who takes the work, and for how long.
#[derive(Clone, Copy, Debug)]
pub(super) struct Holder<'a> {
    /// As the ledger names it.
    pub(super) node: &'a str,
    /// Until when it may have it without a word.
    pub(super) lease: Duration,
    /// When the work was asked for.
    pub(super) began: Instant,
}

/// Judges claimed rows and marks those that pass as sending.
pub(super) async fn admit(
    gate: &Gate,
    tx: &mut Tx,
    rows: Vec<WorkRow>,
    holder: Holder<'_>,
) -> Result<Vec<Admission>, GateError> {
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let now = gate.ambient.now();
    let mut answers = Vec::with_capacity(rows.len());
    let mut passed = Vec::with_capacity(rows.len());
    for mut row in rows {
        if row.task != Task::Send {
            passed.push(row);
            continue;
        }
        let lane = gate.lane(&row.kind, &row.step, &row.destination);
        if lane != row.lane {
            // The file names another runner now.
            ledger::change_lane(tx, row.operation_id, &lane).await?;
            answers.push(Admission::Refused(VerdictKind::InFlight, format!("It waits in {lane} now.")));
            continue;
        }
        let examination = judge(gate, &row, now);
        if examination.passed() {
            match within_budget(gate, &row, now) {
                Ok(()) => passed.push(row),
                Err(until) => answers.push(put_off(gate, tx, &row, until).await?),
            }
        } else if examination.verdict == VerdictKind::LookUpFirst && row.lane != row.destination {
            // A program would take the question for its step: it is the engine that asks.
            ledger::find_out(tx, row.operation_id, &row.destination, now).await?;
            answers.push(Admission::Refused(examination.verdict, examination.reason));
        } else if examination.verdict == VerdictKind::LookUpFirst {
            // Nothing is sent before the destination has been asked.
            row.task = Task::FindOut;
            passed.push(row);
        } else {
            answers.push(pass_over(gate, tx, row, examination, now, holder.node).await?);
        }
    }
    if passed.is_empty() {
        return Ok(answers);
    }
    let mut skipped = Vec::new();
    let mut ready = Vec::with_capacity(passed.len());
    for (row, rendered) in render::all(gate, tx, passed).await? {
        match rendered {
            Rendered::Passed(why) => {
                answers.push(Admission::Refused(VerdictKind::AlreadyDone, why.clone()));
                skipped.push((row, why));
            }
            rendered => ready.push((hold(gate, row, now, holder), rendered)),
        }
    }
    steps::pass_over(gate, tx, skipped, now).await?;
    answers.extend(begin_all(gate, tx, ready, holder, now).await?);
    Ok(answers)
}

/// Begins the attempts, keeps their bytes and takes the leases.
async fn begin_all(
    gate: &Gate,
    tx: &mut Tx,
    mut ready: Vec<(Held, Rendered)>,
    holder: Holder<'_>,
    now: Timestamp,
) -> Result<Vec<Admission>, GateError> {
    if ready.is_empty() {
        return Ok(Vec::new());
    }
    let mut answers = Vec::with_capacity(ready.len());
    for (held, rendered) in &mut ready {
        held.take(rendered);
    }
    let begins: Vec<Begin<'_>> = ready.iter().map(|(held, _)| begin(held, holder.node)).collect();
    let started: HashSet<Uuid> = ledger::begin(tx, &begins).await?.into_iter().collect();
    let (ours, lost): (Vec<_>, Vec<_>) =
        ready.into_iter().partition(|(held, _)| started.contains(&held.attempt));
    for (held, _) in lost {
        // Another worker's attempt stands, though it was not there when the facts were read.
        let why = "Another worker is sending it already.".to_owned();
        ledger::skip(tx, &Begin { id: gate.ambient.id(), ..begin(&held, holder.node) }, &why).await?;
        answers.push(Admission::Refused(VerdictKind::InFlight, why));
    }
    keep(tx, &ours).await?;
    // What was erased and is asked about again brings an answer that has to be erased as well.
    let erased = ours.iter().filter(|(held, _)| held.work.payload.is_none());
    let erased: Vec<Uuid> = erased.map(|(held, _)| held.work.operation_id).collect();
    retention::put_off(tx, retention::Task::Erase, &erased).await?;
    let leases: Vec<Lease> = ours.iter().map(|(held, _)| lease(held, holder.lease)).collect();
    ledger::lease(tx, &leases).await?;
    let mut unbuildable = Vec::new();
    for (held, rendered) in ours {
        match rendered {
            Rendered::Impossible(why) => {
                answers.push(Admission::Refused(VerdictKind::Refused, why.clone()));
                let event = Event::NoAnswer(Symptom::NotBuilt, why);
                unbuildable.push(Settlement { held: Box::new(held), event, at: now });
            }
            _ => answers.push(Admission::Send(Permit::new(held))),
        }
    }
    if !unbuildable.is_empty() {
        // What was never sent says nothing of a destination's health.
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

/// Counts a send against the retry budget of its destination; when there may be room again, where
/// there is none. What a person asks for is not counted, and what our own crash cut off is not the
/// destination's doing.
fn within_budget(gate: &Gate, row: &WorkRow, now: Timestamp) -> Result<(), Timestamp> {
    let Some(known) = gate.config.destinations.get(&row.destination) else { return Ok(()) };
    match (row.cause, row.tries) {
        (Cause::Automatic, tries) if tries == 0 || row.lost => {
            gate.budgets.first(&row.destination, now);
            Ok(())
        }
        (Cause::Automatic, _) => gate.budgets.retry(&row.destination, &known.limit, now),
        _ => Ok(()),
    }
}

/// Leaves a retry for a later minute, spread out so that not all of them come back at once.
async fn put_off(gate: &Gate, tx: &mut Tx, row: &WorkRow, until: Timestamp) -> Result<Admission, GateError> {
    let until = until.plus(gate.ambient.up_to(gate.policy(&row.kind).max_delay));
    ledger::put_off(tx, row.operation_id, until).await?;
    let why = format!("The retry budget of {} is used up for now.", row.destination);
    Ok(Admission::Refused(VerdictKind::Refused, why))
}

fn hold(gate: &Gate, row: WorkRow, now: Timestamp, holder: Holder<'_>) -> Held {
    let timeout =
        gate.config.destinations.get(&row.destination).map_or(Duration::ZERO, |known| known.timeout);
    Held {
        attempt: gate.ambient.id(),
        fence: row.fence + 1,
        since: if row.begun() { row.since } else { now },
        started_at: now,
        first_sent_at: row.first_sent_at.unwrap_or(now),
        request: StoredRequest::default(),
        expected: Vec::new(),
        send_by: holder.began + holder.lease.saturating_sub(timeout),
        _slot: gate.lanes.take(&row.lane),
        work: row,
    }
}

fn begin<'a>(held: &'a Held, node: &'a str) -> Begin<'a> {
    let asks = held.work.task != Task::Send;
    let by = if asks { held.work.asked_by.as_deref().unwrap_or("engine") } else { &held.work.requested_by };
    Begin {
        id: held.attempt,
        operation_id: held.work.operation_id,
        position: held.work.position,
        generation: held.work.generation,
        // A question is no attempt: it bears the number of the one that it is about.
        number: held.work.attempts + i64::from(!asks),
        cause: if asks { Cause::Lookup } else { held.work.cause },
        requested_by: by,
        fence: held.fence,
        node,
        at: held.started_at,
        asked: asks.then_some(held.request.url.as_str()),
    }
}

fn lease(held: &Held, span: Duration) -> Lease {
    Lease {
        operation_id: held.work.operation_id,
        attempt_id: held.attempt,
        fence: held.fence,
        since: held.since,
        until: held.started_at.plus(span),
        task: held.work.task,
    }
}

/// Keeps the bytes of first sends, so that every later one sends the same.
async fn keep(tx: &mut Tx, ours: &[(Held, Rendered)]) -> Result<(), GateError> {
    let first = ours.iter().filter(|(_, rendered)| matches!(rendered, Rendered::First(_)));
    let keeps: Vec<Keep<'_>> = first
        .map(|(held, _)| Keep {
            operation_id: held.work.operation_id,
            position: held.work.position,
            generation: held.work.generation,
            key: held.work.step_key,
            at: held.started_at,
            headers: wording::pairs_text(&held.request.headers),
            body_is_payload: held.request.body == held.work.payload,
            request: &held.request,
        })
        .collect();
    Ok(ledger::keep_requests(tx, &keeps).await?)
}

/// Records why a claimed row is not sent, and takes it out of the queue where it has no business.
async fn pass_over(
    gate: &Gate,
    tx: &mut Tx,
    row: WorkRow,
    examination: Examination,
    now: Timestamp,
    node: &str,
) -> Result<Admission, GateError> {
    let Examination { verdict, reason, failed, .. } = examination;
    // It was paused since the claim: it waits like all others.
    if failed == Some(CheckName::DestinationOpen) && row.paused_at.is_some() {
        return Ok(Admission::Refused(verdict, reason));
    }
    let skipped = Begin {
        id: gate.ambient.id(),
        operation_id: row.operation_id,
        position: row.position,
        generation: row.generation,
        number: row.attempts,
        cause: row.cause,
        requested_by: &row.requested_by,
        fence: row.fence,
        node,
        at: now,
        asked: None,
    };
    ledger::skip(tx, &skipped, &reason).await?;
    match verdict {
        // The row belongs to whoever is at it.
        VerdictKind::InFlight => {}
        VerdictKind::AlreadyDone => ledger::remove_work(tx, &[row.operation_id]).await?,
        // It came to nothing, as after a last attempt.
        _ if settle::step_type(gate, &row).is_some_and(|step| step.optional) => {
            let why = format!("\u{201c}{}\u{201d} is optional and was not sent: {reason}", row.step);
            steps::pass_over(gate, tx, vec![(row, why)], now).await?;
        }
        _ => park::park_unsent(gate, tx, &row, failed, &reason, now).await?,
    }
    Ok(Admission::Refused(verdict, reason))
}
