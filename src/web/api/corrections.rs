//! `/api/v1/operations/{id}/correct`

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::call::{Act, Sent};
use super::operations::{id, no_operation};
use super::problem::Problem;
use crate::domain::actor::Right;
use crate::engine::correct::{self, Correction};
use crate::engine::report::OperationReport;
use crate::web::Web;

/// The data that takes the place of the old, and why.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Corrected {
    payload: Box<RawValue>,
    reason: String,
    key: Option<String>,
}

impl Sent for Corrected {
    const RIGHT: Right = Right::Correct;
}

/// `POST /api/v1/operations/{id}/correct`: 201 and the new operation. The header `Idempotency-Key`
/// is the action's id; the new operation's own key is in the body.
pub async fn correct(
    State(web): State<Web>,
    Path(text): Path<String>,
    act: Act<Corrected>,
) -> Result<Response, Problem> {
    let Corrected { payload, reason, key } = &act.sent;
    let correction = Correction { payload: payload.clone(), key: key.clone() };
    let new = correct::correct(web.engine.gate(), id(&text)?, correction, &act.request(reason)).await?;
    web.engine.wake();
    let mut tx = web.engine.db().read().await?;
    let url = web.engine.config().server.public_url.as_str();
    let report = OperationReport::one(&mut tx, new, url).await?.ok_or_else(no_operation)?;
    Ok((StatusCode::CREATED, Json(report.as_created())).into_response())
}
