//! Asking a destination what it knows, at a person's word. The question goes through the queue and
//! the ledger like a send, so that nothing is sent while it is under way.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::actions::{ActionError, Request, asked, examine, permitted, take};
use super::thread::Thread;
use crate::domain::actor::Right;
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::classify::Symptom;
use crate::domain::lookup::Finding;
use crate::domain::operation::OperationState;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::{Commit, StoreError, actions, work};

/// How often an answer is looked for.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A question that was put.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Question {
    /// About which operation.
    pub operation: Uuid,
    /// Who is asked.
    pub destination: String,
    /// Who asks.
    pub by: String,
    /// Answers that began before this are to earlier questions.
    pub since: Timestamp,
}

/// What a destination said, as it is published.
#[derive(Clone, Debug, Serialize)]
pub struct FindingReport {
    /// In a word; absent while it has not answered.
    pub finding: Option<Finding>,
    /// When it did.
    pub at: Option<Timestamp>,
    /// Who was asked.
    pub destination: String,
    /// About which step.
    pub step: String,
    /// The id over there.
    pub reference: Option<String>,
    /// For people.
    pub detail: String,
    /// The question in the operation's attempts.
    pub attempt: Option<Uuid>,
    /// What is known of the operation now.
    pub state: OperationState,
}

/// Has the destination asked about an operation's present step.
pub async fn ask(gate: &Gate, operation: Uuid, request: &Request<'_>) -> Result<Question, ActionError> {
    permitted(request.actor, Right::Replay)?;
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    let subject = format!("{} {operation}", Cause::Lookup);
    if let Some(earlier) = take(&mut tx, &actor, request.action_id, &subject, now).await? {
        return Ok(serde_json::from_str(&earlier)?);
    }
    work::lock_operation(&mut tx, operation).await?;
    if !work::seize(&mut tx, operation).await? {
        return Err(ActionError::Busy("it is being taken up this very moment; ask again".to_owned()));
    }
    let asked = asked(gate, operation, request.actor, Cause::Lookup, String::new());
    let facts = examine(gate, &mut tx, &asked, request.actor, Right::Replay).await?.facts;
    let name = words::destination_name(&facts.destination);
    let can =
        gate.config().destinations.get(&facts.destination).is_some_and(|known| known.question.is_some());
    if !can {
        return Err(ActionError::Invalid(format!(
            "{name} cannot be asked: the file describes no lookup for it"
        )));
    }
    if facts.paused_at.is_some() {
        return Err(ActionError::Busy(format!("{name} is paused; resume it on its page, then ask")));
    }
    if facts.live_attempt.is_some() || !gate.ask(&mut tx, &facts, &asked).await? {
        return Err(ActionError::Busy(
            "something is under way for this operation right now; ask again when it has ended".to_owned(),
        ));
    }
    let thread = Thread::load(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let question =
        Question { operation, destination: facts.destination.clone(), by: actor.clone(), since: now };
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor: actor.clone(),
        action: Cause::Lookup.as_str().to_owned(),
        operation_id: Some(operation),
        dead_letter_id: thread.live_letter().map(|letter| letter.id),
        subject: None,
        reason: None,
        result: "asked".to_owned(),
        detail: facts.destination,
        origin: request.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    actions::answer(&mut tx, &actor, request.action_id, operation, &serde_json::to_string(&question)?)
        .await?;
    work::announce(&mut tx).await?;
    tx.commit(Commit::Action).await?;
    Ok(question)
}

/// What was answered to a question so far.
pub async fn answer(gate: &Gate, question: &Question) -> Result<FindingReport, StoreError> {
    let mut tx = gate.db().read().await?;
    let thread = Thread::load(&mut tx, question.operation).await?;
    let thread =
        thread.ok_or_else(|| StoreError::Corrupt("an operation that was asked about is gone".into()))?;
    let answered = thread.attempts.iter().rev().find(|row| {
        row.cause == Cause::Lookup
            && row.requested_by == question.by
            && row.started_at >= question.since
            && row.outcome != Outcome::Running
    });
    let Some(row) = answered else {
        return Ok(FindingReport {
            finding: None,
            at: None,
            destination: question.destination.clone(),
            step: thread.current_step().map(|step| step.name.clone()).unwrap_or_default(),
            reference: None,
            detail: "It was asked and has not answered yet; the finding will be in the events.".to_owned(),
            attempt: None,
            state: thread.operation.state(),
        });
    };
    let finding = row.symptom.and_then(Symptom::finding);
    Ok(FindingReport {
        finding,
        at: row.ended_at,
        destination: question.destination.clone(),
        step: thread.step_name(row.position).to_owned(),
        reference: row.reference.clone(),
        detail: row.error.clone().unwrap_or_else(|| "The destination has it.".to_owned()),
        attempt: Some(row.id),
        state: thread.operation.state(),
    })
}

/// The same, waiting for the answer as long as it is worth.
pub async fn answer_within(
    gate: &Gate,
    question: &Question,
    patience: Duration,
) -> Result<FindingReport, StoreError> {
    let until = tokio::time::Instant::now() + patience;
    loop {
        let report = answer(gate, question).await?;
        if report.finding.is_some() || tokio::time::Instant::now() >= until {
            return Ok(report);
        }
        tokio::time::sleep(LOOK_EVERY).await;
    }
}

/// How long an answer is worth waiting for: one exchange and a little more.
pub fn patience(gate: &Gate, question: &Question) -> Duration {
    let timeout = gate.config().destinations.get(&question.destination).map(|known| known.timeout);
    timeout.unwrap_or_default() + Duration::from_secs(2)
}
