//! Going on from one step to the next.

use uuid::Uuid;

use super::ledger::{self, OperationChange, Reschedule, StepChange};
use super::{Gate, GateError};
use crate::domain::attempt::Cause;
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationEvent, StepState};
use crate::domain::time::Timestamp;
use crate::store::events::{self, EventKind, EventRow};
use crate::store::operations::{self, StepRow};
use crate::store::work::WorkRow;
use crate::store::{Tx, dead_letters};

/// The step that follows another, if any is left.
pub(super) fn following<'s>(steps: &'s [StepRow], work: &WorkRow) -> Option<&'s StepRow> {
    steps.iter().find(|step| {
        step.operation_id == work.operation_id && step.position > work.position && !step.state.is_over()
    })
}

/// The row of work for a following step: the engine's own, whoever asked for the one before.
pub(super) fn row_for(gate: &Gate, work: &WorkRow, step: &StepRow, at: Timestamp) -> Reschedule {
    Reschedule {
        operation_id: work.operation_id,
        position: step.position,
        destination: step.destination.clone(),
        lane: gate.lane(&work.kind, &step.name, &step.destination),
        task: Task::Send,
        cause: Cause::Automatic,
        requested_by: "engine".to_owned(),
        waived: String::new(),
        due_at: at,
        since: at,
        tries: 0,
        doubts: 0,
        waits: 0,
        asks: 0,
        lost: false,
    }
}

/// Passes steps over whose conditions do not hold, and goes on.
pub(super) async fn pass_over(
    gate: &Gate,
    tx: &mut Tx,
    rows: Vec<(WorkRow, String)>,
    at: Timestamp,
) -> Result<(), GateError> {
    if rows.is_empty() {
        return Ok(());
    }
    let ids: Vec<Uuid> = rows.iter().map(|(work, _)| work.operation_id).collect();
    let steps = operations::steps(tx, &ids).await?;
    let (mut changes, mut states, mut notes) = (Vec::new(), Vec::new(), Vec::new());
    let (mut again, mut finished) = (Vec::new(), Vec::new());
    for (work, why) in rows {
        let next = following(&steps, &work);
        let last = next.is_none();
        let state = work.state.next(OperationEvent::StepDone { last })?;
        states.push(OperationChange { id: work.operation_id, state, completed_at: last.then_some(at) });
        changes.push(StepChange {
            operation_id: work.operation_id,
            position: work.position,
            state: StepState::Skipped,
            attempts: work.attempts,
            last_outcome: work.last_outcome,
            doubt_at: work.doubt_at,
            saved: None,
            reference: None,
            completed_at: Some(at),
        });
        match next {
            Some(step) => again.push(row_for(gate, &work, step, at)),
            None => finished.push(work.operation_id),
        }
        if work.cause != Cause::Automatic {
            dead_letters::passed_over(tx, work.operation_id, &work.requested_by, &why, at).await?;
        }
        notes.push(note(gate, &work, why, at));
    }
    ledger::change_steps(tx, &changes).await?;
    ledger::change_operations(tx, &states).await?;
    ledger::reschedule(tx, &again).await?;
    ledger::remove_work(tx, &finished).await?;
    Ok(events::insert(tx, &notes).await?)
}

/// Says that a step was passed over.
pub(super) fn note(gate: &Gate, work: &WorkRow, why: String, at: Timestamp) -> EventRow {
    EventRow {
        id: gate.ambient.id(),
        operation_id: work.operation_id,
        position: Some(work.position),
        at,
        kind: EventKind::PassedOver,
        actor: "engine".to_owned(),
        detail: why,
    }
}

impl Gate {
    /// Who takes a step's rows of work. A step that is no longer configured is the engine's, which
    /// will say so.
    pub(super) fn lane(&self, kind: &str, step: &str, destination: &str) -> String {
        self.config
            .operations
            .get(kind)
            .and_then(|known| known.steps.iter().find(|known| known.name == step))
            .map_or_else(|| destination.to_owned(), |step| step.lane(kind))
    }
}
