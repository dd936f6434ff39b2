//! `/api/v1/dead-letters`

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::MOST_BODY;
use super::operations::{Items, header_key, id};
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::domain::dead_letter::Resolution;
use crate::domain::filter::Parameters;
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::engine::actions::{self, OverrideMode, Request, Resolve};
use crate::engine::report::DeadLetterReport;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::web::Web;

/// What the list takes.
pub(super) const PARAMETERS: [&str; 13] = [
    "status",
    "certainty",
    "type",
    "destination",
    "cause",
    "severity",
    "assignee",
    "next_action",
    "search",
    "from",
    "to",
    "limit",
    "cursor",
];

/// `GET /api/v1/dead-letters`
pub async fn list(
    State(web): State<Web>,
    caller: Caller,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    let parameters = Parameters(&pairs);
    parameters.only(&PARAMETERS)?;
    let (filter, page) = (parameters.dead_letters(web.engine.ambient().now())?, parameters.page()?);
    let mut tx = web.engine.db().read().await?;
    let listed = dead_letters::list(&mut tx, &filter, page).await?;
    let next = listed.older.map(|cursor| cursor.encode());
    let items = DeadLetterReport::load(&mut tx, listed.items, public_url(&web)).await?;
    Ok(Json(Items { items, next }).into_response())
}

/// `GET /api/v1/dead-letters/{id}`
pub async fn one(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    report(&web, id(&text)?).await
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Replay {
    reason: String,
}

/// `POST /api/v1/dead-letters/{id}/replay`
pub async fn replay(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Replay)?;
    let sent: Replay = parse(body)?;
    let letter = letter(&web, &text).await?;
    let action_id = action_id(&web, &headers)?;
    let request =
        Request { actor: &caller.actor, action_id: &action_id, reason: &sent.reason, origin: &caller.origin };
    let verdict = actions::replay_letter(web.engine.gate(), &letter, &request).await?;
    web.engine.wake();
    Ok(answer(verdict))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Override {
    reason: String,
    mode: OverrideMode,
    #[serde(default)]
    accept_duplicate: bool,
}

/// `POST /api/v1/dead-letters/{id}/override`
pub async fn override_checks(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Override)?;
    let sent: Override = parse(body)?;
    let letter = letter(&web, &text).await?;
    let action_id = action_id(&web, &headers)?;
    let request =
        Request { actor: &caller.actor, action_id: &action_id, reason: &sent.reason, origin: &caller.origin };
    let verdict =
        actions::override_letter(web.engine.gate(), &letter, sent.mode, sent.accept_duplicate, &request)
            .await?;
    web.engine.wake();
    Ok(answer(verdict))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Resolved {
    resolution: Resolution,
    reason: String,
    reference: Option<String>,
}

/// `POST /api/v1/dead-letters/{id}/resolve`
pub async fn resolve(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Resolve)?;
    let sent: Resolved = parse(body)?;
    let letter = id(&text)?;
    let action_id = action_id(&web, &headers)?;
    let request =
        Request { actor: &caller.actor, action_id: &action_id, reason: &sent.reason, origin: &caller.origin };
    let how = Resolve { resolution: sent.resolution, reference: sent.reference };
    actions::resolve(web.engine.gate(), letter, &how, &request).await?;
    web.engine.wake();
    report(&web, letter).await
}

fn public_url(web: &Web) -> &str {
    web.engine.config().server.public_url.as_str()
}

async fn report(web: &Web, letter: Uuid) -> Result<Response, Problem> {
    let mut tx = web.engine.db().read().await?;
    let report = DeadLetterReport::one(&mut tx, letter, public_url(web)).await?;
    Ok(Json(report.ok_or_else(no_letter)?).into_response())
}

fn no_letter() -> Problem {
    Problem::not_found("There is no dead letter with this id.")
}

async fn letter(web: &Web, text: &str) -> Result<DeadLetterRow, Problem> {
    let mut tx = web.engine.db().read().await?;
    let row = dead_letters::by_id(&mut tx, id(text)?).await?;
    row.ok_or_else(no_letter)
}

pub(super) fn parse<T: DeserializeOwned>(body: Result<Bytes, BytesRejection>) -> Result<T, Problem> {
    let body = body.map_err(|_| Problem::too_large(MOST_BODY))?;
    serde_json::from_slice(&body).map_err(|error| Problem::malformed(format!("The body: {error}.")))
}

/// The caller's id of this action; a caller that sends none cannot repeat it.
pub(super) fn action_id(web: &Web, headers: &HeaderMap) -> Result<String, Problem> {
    Ok(header_key(headers)?.unwrap_or_else(|| web.engine.ambient().opaque().to_string()))
}

fn answer(verdict: Verdict) -> Response {
    let status = match verdict.verdict {
        VerdictKind::Accepted => StatusCode::ACCEPTED,
        VerdictKind::AlreadyDone => StatusCode::OK,
        VerdictKind::InFlight
        | VerdictKind::LookUpFirst
        | VerdictKind::NeedsOverride
        | VerdictKind::Refused => StatusCode::CONFLICT,
    };
    (status, Json(verdict)).into_response()
}
