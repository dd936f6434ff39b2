//! `/api/v1/operations`

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::call::action_id;
use super::problem::Problem;
use super::tokens::Caller;
use super::{MOST_BATCH, MOST_BODY};
use crate::domain::actor::Right;
use crate::domain::filter::Parameters;
use crate::engine::accept::{Accepted, Submission};
use crate::engine::actions::Request;
use crate::engine::ask;
use crate::engine::report::{AttemptReport, OperationReport};
use crate::engine::thread::{Entry, Thread};
use crate::store::operations;
use crate::web::Web;

/// A submission as it is sent.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Sent {
    r#type: String,
    payload: Box<RawValue>,
    key: Option<String>,
    correlation_id: Option<String>,
    source: Option<String>,
}

impl Sent {
    fn into_submission(self, header_key: Option<String>, by: String) -> Result<Submission, Problem> {
        let key = match (self.key, header_key) {
            (Some(body), Some(header)) if body != header => {
                return Err(Problem::malformed(
                    "The key in the body and the one in the header Idempotency-Key differ; send one.",
                ));
            }
            (body, header) => body.or(header),
        };
        Ok(Submission {
            kind: self.r#type,
            payload: self.payload,
            key,
            correlation_id: self.correlation_id,
            source: self.source,
            by,
        })
    }
}

fn parse(bytes: &[u8]) -> Result<Sent, Problem> {
    serde_json::from_slice(bytes).map_err(|error| {
        Problem::malformed(format!(
            "A submission is a JSON object with \"type\" and \"payload\", and optionally \"key\", \
             \"correlation_id\" and \"source\": {error}."
        ))
    })
}

/// `POST /api/v1/operations`
pub async fn submit(
    State(web): State<Web>,
    caller: Caller,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Submit)?;
    let body = body.map_err(|rejection| Problem::unread(&rejection, MOST_BODY))?;
    let submission = parse(&body)?.into_submission(header_key(&headers)?, caller.actor.to_string())?;
    let accepted = web.engine.intake().submit(submission).await?;
    let (status, report) = report(&web, &accepted).await?;
    Ok((status, Json(report)).into_response())
}

/// The header's key, bare or quoted as the draft has it.
pub(super) fn header_key(headers: &HeaderMap) -> Result<Option<String>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value
        .to_str()
        .map_err(|_| Problem::malformed("The header Idempotency-Key holds more than plain ASCII."))?
        .trim();
    let bare = text.strip_prefix('"').and_then(|rest| rest.strip_suffix('"')).unwrap_or(text);
    Ok(Some(bare.to_owned()))
}

async fn report(web: &Web, accepted: &Accepted) -> Result<(StatusCode, OperationReport), Problem> {
    let url = web.engine.config().server.public_url.as_str();
    match accepted {
        Accepted::Created(new) => Ok((StatusCode::CREATED, OperationReport::created(new, url))),
        Accepted::Duplicate(id) => {
            let mut tx = web.engine.db().read().await?;
            let report = OperationReport::one(&mut tx, *id, url).await?;
            let report = report.ok_or_else(|| Problem::not_found("The operation is gone."))?;
            Ok((StatusCode::OK, report.as_duplicate()))
        }
    }
}

/// One line of a batch's answer.
#[derive(Serialize)]
struct Line<T> {
    status: u16,
    #[serde(flatten)]
    answer: T,
}

/// `POST /api/v1/operations/batch`
pub async fn batch(
    State(web): State<Web>,
    caller: Caller,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Submit)?;
    let body = body.map_err(|rejection| Problem::unread(&rejection, MOST_BATCH))?;
    let by = caller.actor.to_string();
    // All are handed in before the first answer is awaited, so that they share commits.
    let mut waiting = Vec::new();
    for line in body.split(|byte| *byte == b'\n').filter(|line| !line.trim_ascii().is_empty()) {
        let submission = match line.len() {
            0..=MOST_BODY => parse(line).and_then(|sent| sent.into_submission(None, by.clone())),
            _ => Err(Problem::too_large(MOST_BODY)),
        };
        waiting.push(match submission {
            Ok(submission) => web.engine.intake().enqueue(submission).await.map_err(Problem::from),
            Err(problem) => Err(problem),
        });
    }
    let mut answer = String::new();
    for line in waiting {
        let accepted = match line {
            Ok(receiver) => match receiver.await {
                Ok(accepted) => accepted.map_err(Problem::from),
                Err(error) => Err(Problem::unavailable(&error)),
            },
            Err(problem) => Err(problem),
        };
        let reported = match &accepted {
            Ok(accepted) => report(&web, accepted).await,
            Err(problem) => Err(problem.clone()),
        };
        let line = match reported {
            Ok((status, report)) => serde_json::to_string(&Line { status: status.as_u16(), answer: report }),
            Err(problem) => serde_json::to_string(&problem),
        };
        answer.push_str(&line.unwrap_or_default());
        answer.push('\n');
    }
    Ok(([(header::CONTENT_TYPE, "application/x-ndjson")], answer).into_response())
}

/// A stretch of a list.
#[derive(Serialize)]
pub(super) struct Items<T> {
    pub(super) items: Vec<T>,
    pub(super) next: Option<String>,
}

/// What the list takes.
const PARAMETERS: [&str; 9] =
    ["key", "type", "state", "destination", "search", "from", "to", "limit", "cursor"];

/// `GET /api/v1/operations`
pub async fn list(
    State(web): State<Web>,
    caller: Caller,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    let parameters = Parameters(&pairs);
    parameters.only(&PARAMETERS)?;
    let (filter, page) = (parameters.operations()?, parameters.page()?);
    let mut tx = web.engine.db().read().await?;
    let listed = operations::list(&mut tx, &filter, page).await?;
    let url = web.engine.config().server.public_url.as_str();
    let next = listed.older.map(|cursor| cursor.encode());
    let items = OperationReport::load(&mut tx, listed.items, url).await?;
    Ok(Json(Items { items, next }).into_response())
}

/// `GET /api/v1/operations/{id}`
pub async fn one(
    State(web): State<Web>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    let mut tx = web.engine.db().read().await?;
    let url = web.engine.config().server.public_url.as_str();
    let report = OperationReport::one(&mut tx, self::id(&id)?, url).await?;
    let report = report.ok_or_else(no_operation)?;
    Ok(Json(report).into_response())
}

/// `GET /api/v1/operations/{id}/attempts`
pub async fn attempts(
    State(web): State<Web>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    caller.require(Right::ViewPayload)?;
    let thread = thread(&web, &id).await?;
    Ok(Json(Items { items: AttemptReport::all(&thread), next: None }).into_response())
}

/// `GET /api/v1/operations/{id}/events`
pub async fn events(
    State(web): State<Web>,
    caller: Caller,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    let thread = thread(&web, &id).await?;
    let items: Vec<Entry> = thread.entries();
    Ok(Json(Items { items, next: None }).into_response())
}

/// `POST /api/v1/operations/{id}/lookup`: answers with the finding once the destination has
/// answered, or, when that takes too long, that it was asked.
pub async fn lookup(
    State(web): State<Web>,
    caller: Caller,
    Path(id): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.require(Right::Replay)?;
    let action_id = action_id(&web, &headers)?;
    let request = Request { actor: &caller.actor, action_id: &action_id, reason: "", origin: &caller.origin };
    let gate = web.engine.gate();
    let question = ask::ask(gate, self::id(&id)?, &request).await?;
    web.engine.wake();
    let report = ask::answer_within(gate, &question, ask::patience(gate, &question)).await?;
    let status = if report.finding.is_some() { StatusCode::OK } else { StatusCode::ACCEPTED };
    Ok((status, Json(report)).into_response())
}

async fn thread(web: &Web, id: &str) -> Result<Thread, Problem> {
    let mut tx = web.engine.db().read().await?;
    Thread::load(&mut tx, self::id(id)?).await?.ok_or_else(no_operation)
}

pub(super) fn no_operation() -> Problem {
    Problem::not_found("There is no operation with this id.")
}

/// An id in a path; what is none names nothing.
pub(super) fn id(text: &str) -> Result<Uuid, Problem> {
    text.parse().map_err(|_| Problem::not_found("This is not an id, so there is nothing of that name."))
}
