//! Opens dead letters: after a last attempt, or for work that the checks would not let out.

use super::ledger::{self, OperationChange};
use super::{Gate, GateError};
use crate::domain::attempt::Outcome;
use crate::domain::classify::{Action, Classified, Symptom};
use crate::domain::dead_letter::{CauseFingerprint, DeadLetterStatus};
use crate::domain::decide::{self, ParkReason, Parked};
use crate::domain::operation::{OperationEvent, Severity, StepState};
use crate::domain::time::Timestamp;
use crate::domain::verdict::CheckName;
use crate::store::Tx;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::work::WorkRow;

/// Opens a dead letter for work that the checks would not let out.
pub(super) async fn park_unsent(
    gate: &Gate,
    tx: &mut Tx,
    work: &WorkRow,
    failed: Option<CheckName>,
    reason: &str,
    now: Timestamp,
) -> Result<(), GateError> {
    let doubt = work.step_state == StepState::Uncertain;
    let why = match failed {
        Some(CheckName::KeyWindowOpen) => ParkReason::WindowClosed,
        Some(CheckName::OutcomeKnown) => {
            let contract = gate.config.destinations.get(&work.destination).map(|known| &known.contract);
            if contract.is_some_and(|contract| contract.lookup.is_some()) {
                ParkReason::LookupNeeded
            } else {
                ParkReason::NoWayToKnow
            }
        }
        Some(CheckName::WithinCaps) if work.tries >= i64::from(gate.policy(&work.kind).attempts) => {
            ParkReason::AttemptsUsed
        }
        Some(CheckName::WithinCaps) => ParkReason::TooOld,
        _ => ParkReason::Refused,
    };
    let classified = Classified {
        outcome: if doubt { Outcome::Uncertain } else { work.last_outcome.unwrap_or(Outcome::NotSent) },
        symptom: Symptom::HeldBack,
        action: Action::DeadLetter,
        pause: false,
        wait: None,
        reference: None,
    };
    let parked = decide::parked(why, &classified, doubt);
    events::insert(
        tx,
        &[EventRow {
            id: gate.ambient.id(),
            operation_id: work.operation_id,
            position: Some(work.position),
            at: now,
            kind: EventKind::NotSent,
            actor: gate.node.to_string(),
            detail: reason.to_owned(),
        }],
    )
    .await?;
    ledger::fail_step(tx, work.operation_id, work.position, StepState::unfinished(doubt, true)).await?;
    let state = work.state.next(OperationEvent::Parked { doubt })?;
    let change = OperationChange { id: work.operation_id, state, completed_at: None };
    ledger::change_operations(tx, &[change]).await?;
    ledger::remove_work(tx, &[work.operation_id]).await?;
    let letter = letter(gate, work, work.attempts, parked, &classified, None, reason, now);
    Ok(dead_letters::open(tx, &letter).await?)
}

#[allow(clippy::too_many_arguments, reason = "each is a separate fact, and a struct would only rename them")]
pub(super) fn letter(
    gate: &Gate,
    work: &WorkRow,
    attempts: i64,
    parked: Parked,
    classified: &Classified,
    status: Option<i64>,
    error: &str,
    now: Timestamp,
) -> DeadLetterRow {
    let cause = CauseFingerprint::of(&work.destination, &work.step, classified.outcome, error);
    let severity = gate.config.operations.get(&work.kind).map_or(Severity::Normal, |known| known.severity);
    DeadLetterRow {
        id: gate.ambient.id(),
        operation_id: work.operation_id,
        position: work.position,
        step: work.step.clone(),
        kind: work.kind.clone(),
        destination: work.destination.clone(),
        status: DeadLetterStatus::Open,
        certainty: parked.certainty,
        why: parked.why,
        outcome: classified.outcome,
        symptom: classified.symptom,
        answer_status: status,
        error: error.to_owned(),
        cause: cause.id,
        cause_text: cause.text,
        next_action: parked.next_action,
        severity,
        assignee: None,
        snoozed_until: None,
        attempts,
        first_failed_at: work.since,
        last_failed_at: now,
        opened_at: now,
        closed_at: None,
        closed_by: None,
        resolution: None,
        reason: None,
        reference: None,
    }
}
