//! `/api/v1/claims`: steps that programs of the user's own carry out.

use std::time::Duration;

use axum::Json;
use axum::body::Bytes;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use tokio::time::Instant;
use uuid::Uuid;

use super::call::{Call, Sent};
use super::operations::id;
use super::problem::Problem;
use super::tokens::Caller;
use crate::config::{OperationType, StepType, parse_duration};
use crate::domain::actor::Right;
use crate::domain::attempt::Outcome;
use crate::domain::classify::{Event, Report, classify};
use crate::domain::contract::{Contract, RuleOutcome};
use crate::domain::time::Timestamp;
use crate::gate::{self, Heard};
use crate::web::Web;

/// Steps taken at once, at most.
const MOST: usize = 50;
/// How long a claim may be held without a word.
const LONGEST_LEASE: Duration = Duration::from_hours(1);
/// How long a call may wait for work.
const LONGEST_WAIT: Duration = Duration::from_secs(30);
/// How often a waiting call looks for work.
const LOOK_EVERY: Duration = Duration::from_millis(250);

/// What a program wants.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Wanted {
    types: Option<Vec<String>>,
    limit: Option<usize>,
    lease: Option<String>,
    wait: Option<String>,
}

impl Sent for Wanted {
    const RIGHT: Right = Right::Work;
}

/// What it gets.
#[derive(Serialize)]
struct Claims {
    claims: Vec<Claim>,
}

/// One step.
#[derive(Serialize)]
struct Claim {
    id: Uuid,
    fence: i64,
    lease_expires_at: Timestamp,
    operation: Operation,
    step: String,
    destination: String,
    /// The key to send to the destination: the same on every attempt.
    key: String,
    /// Until when the destination recognises that key, where it has been sent before.
    key_valid_until: Option<Timestamp>,
    generation: i64,
    attempt: i64,
    /// Something was sent before and nobody knows what became of it.
    uncertain: bool,
    body: Option<Box<RawValue>>,
}

#[derive(Serialize)]
struct Operation {
    id: Uuid,
    key: String,
    r#type: String,
    correlation_id: Option<String>,
    source: Option<String>,
    received_at: Timestamp,
}

/// `POST /api/v1/claims`
pub async fn claim(
    State(web): State<Web>,
    Call { caller, sent: wanted }: Call<Wanted>,
) -> Result<Response, Problem> {
    let kinds = kinds(&web, wanted.types)?;
    let most = wanted.limit.unwrap_or(1);
    if !(1..=MOST).contains(&most) {
        return Err(Problem::malformed(format!("\"limit\" is a number from 1 to {MOST}.")));
    }
    let lease = lease(&web, wanted.lease.as_deref())?;
    let wait = span("wait", wanted.wait.as_deref(), LONGEST_WAIT)?.unwrap_or_default();
    let by = caller.actor.to_string();
    let until = Instant::now() + wait;
    let taken = loop {
        let taken = web.engine.gate().claim(&kinds, most, &by, lease).await?;
        if !taken.is_empty() || Instant::now() >= until {
            break taken;
        }
        tokio::time::sleep(LOOK_EVERY.min(until - Instant::now())).await;
    };
    let claims = taken.into_iter().map(|claim| shown(&web, claim, lease)).collect();
    Ok(Json(Claims { claims }).into_response())
}

/// The types that are asked for, or all that have steps for programs.
fn kinds(web: &Web, wanted: Option<Vec<String>>) -> Result<Vec<String>, Problem> {
    let pulled = |kind: &&OperationType| kind.steps.iter().any(StepType::is_pulled);
    let known: Vec<String> =
        web.engine.config().operations.values().filter(pulled).map(|kind| kind.name.clone()).collect();
    let wanted = wanted.unwrap_or_else(|| known.clone());
    if let Some(other) = wanted.iter().find(|kind| !known.contains(kind)) {
        let other: String = other.chars().take(100).collect();
        return Err(Problem::unknown_type(format!(
            "No operation type {other:?} has a step with runner = \"worker\"."
        )));
    }
    Ok(wanted)
}

fn span(name: &str, text: Option<&str>, most: Duration) -> Result<Option<Duration>, Problem> {
    let Some(text) = text else { return Ok(None) };
    match parse_duration(text).filter(|span| *span <= most) {
        Some(span) => Ok(Some(span)),
        None => Err(Problem::malformed(format!(
            "\"{name}\" is a span such as \"20s\", of {} s at most.",
            most.as_secs()
        ))),
    }
}

fn lease(web: &Web, text: Option<&str>) -> Result<Duration, Problem> {
    let span = span("lease", text, LONGEST_LEASE)?.unwrap_or(web.engine.config().engine.lease);
    if span < Duration::from_secs(1) {
        return Err(Problem::malformed("\"lease\" is one second at least."));
    }
    Ok(span)
}

fn shown(web: &Web, claim: gate::Claim, lease: Duration) -> Claim {
    let facts = claim.facts;
    let contract = web.engine.config().destinations.get(&facts.destination).map(|known| &known.contract);
    Claim {
        id: claim.attempt,
        fence: claim.fence,
        lease_expires_at: claim.started_at.plus(lease),
        operation: Operation {
            id: facts.operation_id,
            key: facts.key,
            r#type: facts.kind,
            correlation_id: facts.correlation_id,
            source: facts.source,
            received_at: facts.received_at,
        },
        step: facts.step.clone(),
        destination: facts.destination.clone(),
        key: facts.step_key.to_string(),
        key_valid_until: facts
            .first_sent_at
            .and_then(|first| contract.and_then(|contract| contract.resend_until(first))),
        generation: facts.generation,
        attempt: facts.attempts + 1,
        uncertain: facts.step_state == crate::domain::operation::StepState::Uncertain,
        body: claim.request.body.and_then(|text| RawValue::from_string(text).ok()),
    }
}

/// A word that the work goes on.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Beat {
    fence: i64,
    lease: Option<String>,
}

impl Sent for Beat {
    const RIGHT: Right = Right::Work;
}

#[derive(Serialize)]
struct Held {
    lease_expires_at: Timestamp,
}

/// `POST /api/v1/claims/{id}/heartbeat`
pub async fn heartbeat(
    State(web): State<Web>,
    Path(text): Path<String>,
    Call { caller, sent: beat }: Call<Beat>,
) -> Result<Response, Problem> {
    let (claim, lease) = (id(&text)?, lease(&web, beat.lease.as_deref())?);
    let by = caller.actor.to_string();
    match web.engine.gate().extend(claim, beat.fence, &by, lease).await? {
        Some(until) => Ok(Json(Held { lease_expires_at: until }).into_response()),
        None => Err(Problem::claim_lost(
            "You do not hold this claim, or not any more. Stop working on it: somebody else may have it.",
        )),
    }
}

/// A word that the step is done.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Complete {
    fence: i64,
    result: Option<Box<RawValue>>,
    reference: Option<String>,
}

impl Sent for Complete {
    const RIGHT: Right = Right::Work;
}

/// `POST /api/v1/claims/{id}/complete`
pub async fn complete(
    State(web): State<Web>,
    Path(text): Path<String>,
    Call { caller, sent: said }: Call<Complete>,
) -> Result<Response, Problem> {
    let reference = said.reference.map(|text| text.trim().to_owned()).filter(|text| !text.is_empty());
    if reference.as_ref().is_some_and(|text| text.chars().count() > 200 || text.chars().any(char::is_control))
    {
        return Err(Problem::malformed("\"reference\" is one line of at most 200 characters."));
    }
    let result = said.result.map(|result| result.get().to_owned()).unwrap_or_default();
    let report =
        Report { outcome: RuleOutcome::Done, result: result.into(), reference, error: String::new() };
    settle(&web, &caller, &text, said.fence, report).await
}

/// A word that the step did not happen.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Fail {
    fence: i64,
    error: String,
    /// Nothing happened, and trying again can help.
    #[serde(default)]
    retry: bool,
}

impl Sent for Fail {
    const RIGHT: Right = Right::Work;
}

/// `POST /api/v1/claims/{id}/fail`
pub async fn fail(
    State(web): State<Web>,
    Path(text): Path<String>,
    Call { caller, sent: said }: Call<Fail>,
) -> Result<Response, Problem> {
    let outcome = if said.retry { RuleOutcome::NotProcessed } else { RuleOutcome::Rejected };
    settle(&web, &caller, &text, said.fence, without_result(outcome, said.error)).await
}

/// A word that nobody can tell what became of it.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Unknown {
    fence: i64,
    error: Option<String>,
}

impl Sent for Unknown {
    const RIGHT: Right = Right::Work;
}

/// `POST /api/v1/claims/{id}/unknown`
pub async fn unknown(
    State(web): State<Web>,
    Path(text): Path<String>,
    Call { caller, sent: said }: Call<Unknown>,
) -> Result<Response, Problem> {
    let error = said.error.unwrap_or_else(|| "the program cannot tell what became of it".to_owned());
    settle(&web, &caller, &text, said.fence, without_result(RuleOutcome::Uncertain, error)).await
}

fn without_result(outcome: RuleOutcome, error: String) -> Report {
    Report { outcome, result: Bytes::new(), reference: None, error }
}

#[derive(Serialize)]
struct Settled {
    outcome: Outcome,
    duplicate: bool,
}

async fn settle(
    web: &Web,
    caller: &Caller,
    text: &str,
    fence: i64,
    report: Report,
) -> Result<Response, Problem> {
    let (claim, by) = (id(text)?, caller.actor.to_string());
    let event = Event::Reported(report);
    let outcome = classify(&Contract::default(), &event, web.engine.ambient().now()).outcome;
    let heard = web.engine.gate().report(claim, fence, &by, event, outcome).await?;
    web.engine.wake();
    match heard {
        Heard::Counted | Heard::Repeated => {
            let duplicate = heard == Heard::Repeated;
            Ok((StatusCode::OK, Json(Settled { outcome, duplicate })).into_response())
        }
        Heard::TooLate => Err(Problem::claim_lost(
            "The claim was lost before this came. It is kept as evidence with the operation, and nothing was \
             changed.",
        )),
        Heard::OtherFence => Err(Problem::claim_lost(
            "This claim has another fence, so that nothing was changed. Send the one that came with the claim.",
        )),
        Heard::Unknown => Err(Problem::not_found("You hold no claim of this id.")),
    }
}
