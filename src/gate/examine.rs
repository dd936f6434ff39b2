//! The checks without a permit: for forms, previews, and the immediate verdict of a person's
//! action, in the transaction that writes the row of work.

use uuid::Uuid;

use super::checks::{self, Ask, Examination};
use super::{Gate, GateError, ledger, render, settle, steps};
use crate::domain::attempt::{Cause, StoredRequest, Waiver};
use crate::domain::key::DestinationKey;
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationEvent, StepState};
use crate::domain::retry::RetryPolicy;
use crate::domain::verdict::{KnownResult, Run, Verdict, VerdictKind};
use crate::store::work::{NewWork, WorkRow};
use crate::store::{Tx, operations, work};

/// What stands for a key that is not made yet.
pub const NEW_KEY: &str = "(a new key)";

/// What is known of an operation that somebody wants sent, and what the checks say of it.
#[derive(Debug)]
pub struct Examined {
    /// The facts the checks were made on.
    pub facts: WorkRow,
    /// What they found.
    pub examination: Examination,
}

impl Gate {
    /// Makes every check for a person. Absent when there is no such operation.
    pub async fn examine(
        &self,
        tx: &mut Tx,
        asked: &NewWork,
        allowed: Result<(), String>,
    ) -> Result<Option<Examined>, GateError> {
        let Some(facts) = work::as_if(tx, asked).await? else { return Ok(None) };
        let waived = waivers(&asked.waived);
        let ask = Ask { automatic: false, waived: &waived, allowed };
        let contract = self.config.destinations.get(&facts.destination).map(|known| &known.contract);
        let policy = self.policy(&facts.kind);
        let examination = checks::examine(&facts, contract, &policy, &ask, self.ambient.now());
        Ok(Some(Examined { facts, examination }))
    }

    /// What a send would send, without sending: the stored request, or the one that the step's first
    /// attempt would make; or why it cannot be built, for people.
    pub async fn request(
        &self,
        tx: &mut Tx,
        facts: &WorkRow,
    ) -> Result<Result<StoredRequest, String>, GateError> {
        let steps = operations::steps(tx, &[facts.operation_id]).await?;
        Ok(render::preview(self, facts, &render::saved(&steps, facts)))
    }

    /// The same under a key that is not made yet: [`NEW_KEY`] stands where that would.
    pub async fn request_anew(
        &self,
        tx: &mut Tx,
        facts: &WorkRow,
    ) -> Result<Result<StoredRequest, String>, GateError> {
        let key = DestinationKey(Uuid::max());
        let fresh = WorkRow { step_key: key, method: None, ..facts.clone() };
        let made = self.request(tx, &fresh).await?;
        let told = |text: String| text.replace(&key.to_string(), NEW_KEY);
        Ok(made.map(|made| StoredRequest {
            method: made.method,
            url: told(made.url),
            headers: made.headers.into_iter().map(|(name, value)| (name, told(value))).collect(),
            body: made.body.map(told),
        }))
    }

    /// Puts an examined operation back to work. False when it is there already.
    pub async fn requeue(
        &self,
        tx: &mut Tx,
        facts: &WorkRow,
        asked: &NewWork,
        new_effect: bool,
    ) -> Result<bool, GateError> {
        let row = NewWork {
            position: facts.position,
            destination: facts.destination.clone(),
            lane: self.lane(&facts.kind, &facts.step, &facts.destination),
            ..asked.clone()
        };
        if !work::insert(tx, &row).await? {
            return Ok(false);
        }
        if new_effect {
            let key = DestinationKey(self.ambient.opaque());
            ledger::next_generation(tx, facts.operation_id, facts.position, key).await?;
        }
        let state = facts.state.next(OperationEvent::Requeued)?;
        let change = ledger::OperationChange { id: facts.operation_id, state, completed_at: None };
        ledger::change_operations(tx, &[change]).await?;
        Ok(true)
    }

    /// Takes a person's word that a step was done: it counts as completed, and the engine goes on
    /// with the next one, if any.
    pub async fn record_done(
        &self,
        tx: &mut Tx,
        facts: &WorkRow,
        reference: Option<&str>,
    ) -> Result<(), GateError> {
        let now = self.ambient.now();
        let all = operations::steps(tx, &[facts.operation_id]).await?;
        let next = steps::following(&all, facts);
        let last = next.is_none();
        let state = facts.state.next(OperationEvent::StepDone { last })?;
        let step = ledger::StepChange {
            operation_id: facts.operation_id,
            position: facts.position,
            state: StepState::Completed,
            attempts: facts.attempts,
            last_outcome: facts.last_outcome,
            doubt_at: facts.doubt_at,
            saved: reference.and_then(|reference| settle::saved_as_reference(self, facts, reference)),
            reference: reference.map(str::to_owned),
            completed_at: Some(now),
        };
        ledger::change_steps(tx, &[step]).await?;
        let change =
            ledger::OperationChange { id: facts.operation_id, state, completed_at: last.then_some(now) };
        ledger::change_operations(tx, &[change]).await?;
        if let Some(next) = next {
            let row = NewWork {
                operation_id: facts.operation_id,
                position: next.position,
                destination: next.destination.clone(),
                lane: self.lane(&facts.kind, &next.name, &next.destination),
                task: Task::Send,
                cause: Cause::Automatic,
                requested_by: "engine".to_owned(),
                waived: String::new(),
                at: now,
            };
            work::insert(tx, &row).await?;
        }
        Ok(())
    }

    /// Has the destination asked what it knows of an operation's step, before anything else is done
    /// with it. False when somebody is at it, or waits to be, right now.
    pub async fn ask(&self, tx: &mut Tx, facts: &WorkRow, asked: &NewWork) -> Result<bool, GateError> {
        let row = NewWork {
            position: facts.position,
            destination: facts.destination.clone(),
            lane: facts.destination.clone(),
            task: Task::Ask,
            ..asked.clone()
        };
        if work::insert(tx, &row).await? {
            return Ok(true);
        }
        let now = self.ambient.now();
        Ok(ledger::ask_first(tx, facts.operation_id, &row.lane, &row.requested_by, now).await?)
    }

    pub(super) fn policy(&self, kind: &str) -> RetryPolicy {
        self.config
            .operations
            .get(kind)
            .map_or_else(|| self.config.retry.clone(), |known| known.retry.clone())
    }
}

impl Examined {
    /// The published answer, with what is known of the effect.
    pub fn verdict(&self, known_result: Option<KnownResult>) -> Verdict {
        let facts = &self.facts;
        let run = match self.examination.verdict {
            VerdictKind::InFlight => facts.live_since.or(facts.queued_at).map(|since| Run {
                by: facts.live_by.clone().unwrap_or_else(|| facts.requested_by.clone()),
                since,
                url: format!("/operations/{}", facts.operation_id),
            }),
            _ => None,
        };
        Verdict {
            verdict: self.examination.verdict,
            reason: self.examination.reason.clone(),
            checks: self.examination.checks.clone(),
            known_result,
            attempt: facts.live_attempt,
            run,
        }
    }
}

/// The checks that a row of work's words waive.
pub(super) fn waivers(words: &str) -> Vec<Waiver> {
    words.split_ascii_whitespace().filter_map(|word| word.parse().ok()).collect()
}
