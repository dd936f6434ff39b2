//! Ending an operation in favour of one with other data, and trying out whether that one can be sent.

use uuid::Uuid;

use super::park::letter;
use super::{Gate, GateError, ledger, render};
use crate::domain::actor::Actor;
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::classify::{Action, Classified, Symptom};
use crate::domain::decide::{self, ParkReason};
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationEvent, OperationState, StepState};
use crate::store::attempts::AttemptRow;
use crate::store::work::{self, NewWork, WorkRow};
use crate::store::{Tx, dead_letters};

impl Gate {
    /// Takes a held row of work that nobody is at out of the queue: what it would have sent is not
    /// wanted any more. `last` is the step's last attempt. The operation has failed with that, and
    /// has a dead letter that says why, like every operation that failed. Nothing of it may be in
    /// doubt.
    pub async fn withdraw(
        &self,
        tx: &mut Tx,
        facts: &WorkRow,
        last: Option<&AttemptRow>,
    ) -> Result<(), GateError> {
        let now = self.ambient.now();
        ledger::remove_work(tx, &[facts.operation_id]).await?;
        // A question about what had failed before changes nothing of that.
        if facts.state == OperationState::Failed {
            return Ok(());
        }
        let state = facts.state.next(OperationEvent::Parked { doubt: false })?;
        let change = ledger::OperationChange { id: facts.operation_id, state, completed_at: None };
        ledger::change_operations(tx, &[change]).await?;
        ledger::fail_step(tx, facts.operation_id, facts.position, StepState::unfinished(false, true)).await?;
        let classified = Classified {
            outcome: facts.last_outcome.unwrap_or(Outcome::NotSent),
            symptom: last.and_then(|last| last.symptom).unwrap_or(Symptom::HeldBack),
            action: Action::DeadLetter,
            pause: false,
            wait: None,
            reference: None,
        };
        let parked = decide::parked(ParkReason::Corrected, &classified, false);
        let status = last.and_then(|last| last.status);
        let error = last.and_then(|last| last.error.as_deref()).unwrap_or_default();
        let letter = letter(self, facts, facts.attempts, parked, &classified, status, error, now);
        Ok(dead_letters::open(tx, &letter).await?)
    }

    /// Notes that another operation took this one's place, so that nothing sends it again.
    pub async fn replace(&self, tx: &mut Tx, operation: Uuid, by: Uuid) -> Result<(), GateError> {
        Ok(ledger::replaced(tx, operation, by).await?)
    }

    /// Builds the first request of an operation and drops it: why it cannot be built, for people.
    /// A first step that will be passed over has none, and nothing to complain of.
    pub async fn try_out(
        &self,
        tx: &mut Tx,
        operation: Uuid,
        actor: &Actor,
    ) -> Result<Result<(), String>, GateError> {
        let asked = NewWork {
            operation_id: operation,
            position: 0,
            destination: String::new(),
            lane: String::new(),
            task: Task::Send,
            cause: Cause::Automatic,
            requested_by: actor.to_string(),
            waived: String::new(),
            at: self.ambient.now(),
        };
        let facts = work::as_if(tx, &asked).await?;
        Ok(facts.map_or(Ok(()), |facts| render::try_out(self, &facts)))
    }
}
