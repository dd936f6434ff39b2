//! The published shapes of operations, attempts and dead letters: what the API answers and the
//! command line prints.

use std::collections::{BTreeMap, HashMap};

use serde::Serialize;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::thread::Thread;
use crate::domain::attempt::{Cause, Outcome, StoredAnswer, StoredRequest};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::operation::{NewOperation, OperationState, Severity, StepState};
use crate::domain::time::Timestamp;
use crate::store::attempts::AttemptRow;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::operations::{OperationRow, RequestRow, StepRow};
use crate::store::{StoreError, Tx, operations, results};

/// An operation.
#[derive(Debug, Serialize)]
pub struct OperationReport {
    id: Uuid,
    r#type: String,
    key: String,
    state: OperationState,
    /// This very submission made it.
    created: bool,
    /// This very submission repeated it.
    duplicate: bool,
    correlation_id: Option<String>,
    source: Option<String>,
    received_at: Timestamp,
    completed_at: Option<Timestamp>,
    next_attempt_at: Option<Timestamp>,
    attempts: i64,
    severity: Severity,
    search: BTreeMap<String, String>,
    result: Option<ResultReport>,
    steps: Vec<StepReport>,
    dead_letter: Option<Uuid>,
    corrects: Option<Uuid>,
    corrected_by: Option<Uuid>,
    url: String,
}

/// What an operation came to.
#[derive(Debug, Serialize)]
struct ResultReport {
    reference: Option<String>,
    status: Option<i64>,
    answer: Option<Value>,
}

#[derive(Debug, Serialize)]
struct StepReport {
    name: String,
    state: StepState,
    destination: String,
    reference: Option<String>,
    saved: Option<Box<RawValue>>,
    attempts: i64,
}

impl OperationReport {
    /// Of one that was accepted just now.
    pub fn created(new: &NewOperation, public_url: &str) -> Self {
        Self {
            id: new.id,
            r#type: new.kind.clone(),
            key: new.key.as_str().to_owned(),
            state: OperationState::Pending,
            created: true,
            duplicate: false,
            correlation_id: new.correlation_id.clone(),
            source: new.source.clone(),
            received_at: new.received_at,
            completed_at: None,
            next_attempt_at: Some(new.received_at),
            attempts: 0,
            severity: new.severity,
            search: new.search.iter().cloned().collect(),
            result: None,
            steps: new
                .steps
                .iter()
                .map(|step| StepReport {
                    name: step.name.clone(),
                    state: StepState::Pending,
                    destination: step.destination.clone(),
                    reference: None,
                    saved: None,
                    attempts: 0,
                })
                .collect(),
            dead_letter: None,
            corrects: new.corrects,
            corrected_by: None,
            url: operation_url(public_url, new.id),
        }
    }

    /// Of one that a submission repeated.
    #[must_use]
    pub fn as_duplicate(mut self) -> Self {
        self.duplicate = true;
        self
    }

    /// Of one that this very call made.
    #[must_use]
    pub fn as_created(mut self) -> Self {
        self.created = true;
        self
    }

    /// Its id.
    pub fn id(&self) -> Uuid {
        self.id
    }

    /// What is known of it.
    pub fn state(&self) -> OperationState {
        self.state
    }

    /// Of stored ones, in the order of the rows.
    pub async fn load(
        tx: &mut Tx,
        rows: Vec<OperationRow>,
        public_url: &str,
    ) -> Result<Vec<Self>, StoreError> {
        let ids: Vec<Uuid> = rows.iter().map(|row| row.id).collect();
        let mut steps: HashMap<Uuid, Vec<StepRow>> = HashMap::new();
        for step in operations::steps(tx, &ids).await? {
            steps.entry(step.operation_id).or_default().push(step);
        }
        let mut search: HashMap<Uuid, BTreeMap<String, String>> = HashMap::new();
        for row in operations::search_values(tx, &ids).await? {
            search.entry(row.operation_id).or_default().insert(row.name, row.value);
        }
        let mut done: HashMap<Uuid, results::ResultRow> =
            results::of(tx, &ids).await?.into_iter().map(|row| (row.operation_id, row)).collect();
        let letters: HashMap<Uuid, Uuid> = results::live_letters(tx, &ids).await?.into_iter().collect();
        Ok(rows
            .into_iter()
            .map(|row| {
                let steps = steps.remove(&row.id).unwrap_or_default();
                let reference = steps.iter().rev().find_map(|step| step.reference.clone());
                let answered = done.remove(&row.id);
                let completed = row.stored_state == OperationState::Completed;
                Self {
                    state: row.state(),
                    next_attempt_at: row.due_at.filter(|_| row.leased_until.is_none()),
                    attempts: steps.iter().map(|step| step.attempts).sum(),
                    search: search.remove(&row.id).unwrap_or_default(),
                    result: completed.then(|| ResultReport {
                        reference,
                        status: answered.as_ref().and_then(|row| row.status),
                        answer: answered.and_then(|row| row.answer_body).map(json_or_text),
                    }),
                    steps: steps.into_iter().map(step).collect(),
                    dead_letter: letters.get(&row.id).copied(),
                    url: operation_url(public_url, row.id),
                    id: row.id,
                    r#type: row.kind,
                    key: row.key,
                    created: false,
                    duplicate: false,
                    correlation_id: row.correlation_id,
                    source: row.source,
                    received_at: row.received_at,
                    completed_at: row.completed_at,
                    severity: row.severity,
                    corrects: row.corrects,
                    corrected_by: row.corrected_by,
                }
            })
            .collect())
    }

    /// Of one, by id.
    pub async fn one(tx: &mut Tx, id: Uuid, public_url: &str) -> Result<Option<Self>, StoreError> {
        let Some(row) = operations::by_id(tx, id).await? else { return Ok(None) };
        Ok(Self::load(tx, vec![row], public_url).await?.pop())
    }
}

/// The page of an operation.
pub fn operation_url(public_url: &str, id: Uuid) -> String {
    format!("{}/operations/{id}", public_url.trim_end_matches('/'))
}

fn step(row: StepRow) -> StepReport {
    StepReport {
        name: row.name,
        state: row.state,
        destination: row.destination,
        reference: row.reference,
        saved: row.saved.and_then(|text| RawValue::from_string(text).ok()),
        attempts: row.attempts,
    }
}

/// A body as JSON where it is, else as text.
fn json_or_text(body: String) -> Value {
    serde_json::from_str(&body).unwrap_or(Value::String(body))
}

/// An attempt.
#[derive(Debug, Serialize)]
pub struct AttemptReport {
    id: Uuid,
    number: i64,
    step: String,
    cause: Cause,
    by: String,
    started_at: Timestamp,
    ended_at: Option<Timestamp>,
    outcome: Outcome,
    status: Option<i64>,
    error: Option<String>,
    /// Seconds that the destination asked us to wait.
    retry_after: Option<f64>,
    reference: Option<String>,
    key_generation: i64,
    request: Option<StoredRequest>,
    response: Option<StoredAnswer>,
}

impl AttemptReport {
    /// Of every attempt of a thread, oldest first.
    pub fn all(thread: &Thread) -> Vec<Self> {
        thread.attempts.iter().map(|row| Self::of(thread, row)).collect()
    }

    fn of(thread: &Thread, row: &AttemptRow) -> Self {
        #[allow(clippy::cast_precision_loss, reason = "seconds for people, to the microsecond for centuries")]
        let retry_after = row.retry_after.map(|micros| micros as f64 / 1e6);
        Self {
            id: row.id,
            number: row.number,
            step: thread.step_name(row.position).to_owned(),
            cause: row.cause,
            by: row.requested_by.clone(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            outcome: row.outcome,
            status: row.status,
            error: row.error.clone(),
            retry_after,
            reference: row.reference.clone(),
            key_generation: row.generation,
            request: match &row.asked {
                Some(url) => Some(StoredRequest {
                    method: "GET".to_owned(),
                    url: url.clone(),
                    ..StoredRequest::default()
                }),
                None => thread
                    .request(row.position, row.generation)
                    .map(|request| stored_request(request, thread.payload.as_deref())),
            },
            response: row.status.map(|_| stored_answer(row)),
        }
    }
}

/// A stored request with its body, which may be the payload.
pub fn stored_request(row: &RequestRow, payload: Option<&str>) -> StoredRequest {
    StoredRequest {
        method: row.method.clone(),
        url: row.url.clone(),
        headers: serde_json::from_str(&row.headers).unwrap_or_default(),
        body: if row.body_is_payload { payload.map(str::to_owned) } else { row.body.clone() },
    }
}

/// What came back to an attempt.
pub fn stored_answer(row: &AttemptRow) -> StoredAnswer {
    StoredAnswer {
        status: row.status.and_then(|status| u16::try_from(status).ok()),
        headers: row
            .answer_headers
            .as_deref()
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default(),
        body: row.answer_body.clone().unwrap_or_default(),
        cut: row.answer_cut,
    }
}

/// A dead letter.
#[derive(Debug, Serialize)]
pub struct DeadLetterReport {
    id: Uuid,
    operation: OperationReport,
    status: DeadLetterStatus,
    certainty: Certainty,
    opened_at: Timestamp,
    closed_at: Option<Timestamp>,
    step: String,
    cause: String,
    outcome: Outcome,
    error: String,
    next_action: NextAction,
    severity: Severity,
    assignee: Option<String>,
    snoozed_until: Option<Timestamp>,
    attempts: i64,
    first_failed_at: Timestamp,
    last_failed_at: Timestamp,
    resolution: Option<Resolution>,
    reason: Option<String>,
    closed_by: Option<String>,
}

impl DeadLetterReport {
    /// Of stored ones, in the order of the rows.
    pub async fn load(
        tx: &mut Tx,
        rows: Vec<DeadLetterRow>,
        public_url: &str,
    ) -> Result<Vec<Self>, StoreError> {
        let mut reports = Vec::with_capacity(rows.len());
        let ids: Vec<Uuid> = rows.iter().map(|row| row.operation_id).collect();
        let found = operations::by_ids(tx, &ids).await?;
        let mut known: HashMap<Uuid, Vec<OperationReport>> = HashMap::new();
        // An operation can have several episodes in one list, and a report each.
        let of_rows: Vec<OperationRow> =
            ids.iter().filter_map(|id| found.iter().find(|row| row.id == *id).cloned()).collect();
        for report in OperationReport::load(tx, of_rows, public_url).await? {
            known.entry(report.id).or_default().push(report);
        }
        for row in rows {
            let Some(operation) = known.get_mut(&row.operation_id).and_then(Vec::pop) else { continue };
            reports.push(Self {
                id: row.id,
                operation,
                status: row.status,
                certainty: row.certainty,
                opened_at: row.opened_at,
                closed_at: row.closed_at,
                step: row.step,
                cause: row.cause,
                outcome: row.outcome,
                error: row.error,
                next_action: row.next_action,
                severity: row.severity,
                assignee: row.assignee,
                snoozed_until: row.snoozed_until,
                attempts: row.attempts,
                first_failed_at: row.first_failed_at,
                last_failed_at: row.last_failed_at,
                resolution: row.resolution,
                reason: row.reason,
                closed_by: row.closed_by,
            });
        }
        Ok(reports)
    }

    /// Of one, by id.
    pub async fn one(tx: &mut Tx, id: Uuid, public_url: &str) -> Result<Option<Self>, StoreError> {
        let Some(row) = crate::store::dead_letters::by_id(tx, id).await? else { return Ok(None) };
        Ok(Self::load(tx, vec![row], public_url).await?.pop())
    }
}
