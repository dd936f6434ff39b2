//! `/api/v1/operations/{id}/correct`

use axum::Json;
use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{Path, State};
use axum::http::{HeaderMap, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::dead_letters::{action_id, parse};
use super::operations::{id, no_operation};
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::engine::actions::Request;
use crate::engine::correct::{self, Correction};
use crate::engine::report::OperationReport;
use crate::web::Web;

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Corrected {
    payload: Box<RawValue>,
    reason: String,
    key: Option<String>,
}

/// `POST /api/v1/operations/{id}/correct`: 201 and the new operation. The header `Idempotency-Key`
/// is the action's id; the new operation's own key is in the body.
pub async fn correct(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
    headers: HeaderMap,
    body: Result<Bytes, BytesRejection>,
) -> Result<Response, Problem> {
    caller.require(Right::Correct)?;
    let Corrected { payload, reason, key } = parse(body)?;
    let operation = id(&text)?;
    let action_id = action_id(&web, &headers)?;
    let request =
        Request { actor: &caller.actor, action_id: &action_id, reason: &reason, origin: &caller.origin };
    let new = correct::correct(web.engine.gate(), operation, Correction { payload, key }, &request).await?;
    web.engine.wake();
    let mut tx = web.engine.db().read().await?;
    let url = web.engine.config().server.public_url.as_str();
    let report = OperationReport::one(&mut tx, new, url).await?.ok_or_else(no_operation)?;
    Ok((StatusCode::CREATED, Json(report.as_created())).into_response())
}
