//! `/api/v1/dead-letters`

use axum::Json;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use uuid::Uuid;

use super::call::{Act, Sent};
use super::operations::{Items, id};
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::domain::dead_letter::Resolution;
use crate::domain::filter::Parameters;
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::engine::actions::{self, OverrideMode, Resolve};
use crate::engine::report::DeadLetterReport;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::web::Web;

/// What the list takes.
pub(super) const PARAMETERS: [&str; 15] = [
    "status",
    "certainty",
    "type",
    "destination",
    "cause",
    "severity",
    "assignee",
    "next_action",
    "age",
    "snoozed",
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

/// Why it is tried again.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Replay {
    reason: String,
}

impl Sent for Replay {
    const RIGHT: Right = Right::Replay;
}

/// `POST /api/v1/dead-letters/{id}/replay`
pub async fn replay(
    State(web): State<Web>,
    Path(text): Path<String>,
    act: Act<Replay>,
) -> Result<Response, Problem> {
    let letter = letter(&web, &text).await?;
    let request = act.request(&act.sent.reason);
    let verdict = actions::replay_letter(web.engine.gate(), &letter, &request).await?;
    web.engine.wake();
    Ok(answer(verdict))
}

/// Why, and what is sent, in spite of named checks.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Override {
    reason: String,
    mode: OverrideMode,
    #[serde(default)]
    accept_duplicate: bool,
}

impl Sent for Override {
    const RIGHT: Right = Right::Override;
}

/// `POST /api/v1/dead-letters/{id}/override`
pub async fn override_checks(
    State(web): State<Web>,
    Path(text): Path<String>,
    act: Act<Override>,
) -> Result<Response, Problem> {
    let letter = letter(&web, &text).await?;
    let (gate, sent, request) = (web.engine.gate(), &act.sent, act.request(&act.sent.reason));
    let verdict =
        actions::override_letter(gate, &letter, sent.mode, sent.accept_duplicate, None, &request).await?;
    web.engine.wake();
    Ok(answer(verdict))
}

/// How and why it is closed.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Resolved {
    resolution: Resolution,
    reason: String,
    reference: Option<String>,
}

impl Sent for Resolved {
    const RIGHT: Right = Right::Resolve;
}

/// `POST /api/v1/dead-letters/{id}/resolve`
pub async fn resolve(
    State(web): State<Web>,
    Path(text): Path<String>,
    act: Act<Resolved>,
) -> Result<Response, Problem> {
    let letter = id(&text)?;
    let how = Resolve { resolution: act.sent.resolution, reference: act.sent.reference.clone() };
    actions::resolve(web.engine.gate(), letter, &how, &act.request(&act.sent.reason)).await?;
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
