//! `POST /hooks/{source}`: webhooks from other systems.
//!
//! No session, no form token and no API token opens this address, and none is asked for: a delivery
//! is let in by the proof that its source is configured with and by nothing else. A browser that is
//! made to post here has no such proof, so that there is nothing to forge.

use axum::body::Bytes;
use axum::extract::{DefaultBodyLimit, FromRequest as _, Path, Request, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Response};
use axum::routing::post;
use axum::{Json, Router};
use serde::Serialize;
use uuid::Uuid;

use super::Web;
use super::api::MOST_BODY;
use super::api::problem::Problem;
use super::failure::sentence;
use super::guard::client;
use super::rates::{self, Who};
use crate::domain::webhook::Headers;
use crate::engine::hooks::{HookError, Received};
use crate::engine::report::operation_url;

/// The routes of webhooks.
pub fn routes() -> Router<Web> {
    Router::new().route("/hooks/{source}", post(receive)).layer(DefaultBodyLimit::max(MOST_BODY))
}

/// What a sender is told.
#[derive(Serialize)]
#[serde(untagged)]
enum Answer {
    Taken { operation: Uuid, duplicate: bool, url: String },
    Ignored { ignored: bool },
}

/// Always 200 when nothing more is to be done by the sender, new or not: some senders take any other
/// success for a failure.
async fn receive(
    State(web): State<Web>,
    Path(source): Path<String>,
    request: Request,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    let address = client(&parts);
    let headers = Headers::new(parts.headers.iter().map(|(name, value)| (name, value.as_bytes())));
    let hooks = web.engine.hooks();
    let stranger = rates::stranger(&parts);
    // What proves nothing is counted to its address, and written down only while that is not too often.
    let unproven = || stranger.as_ref().map_or(Ok(()), |who| web.rates.take(who)).map_err(Problem::too_often);
    let body = match Bytes::from_request(Request::from_parts(parts, body), &web).await {
        Ok(body) => body,
        Err(rejection) => {
            if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
                unproven()?;
                hooks.too_large(&source, &address).await?;
            }
            return Err(Problem::unread(&rejection, MOST_BODY));
        }
    };
    let proven = match hooks.prove(&source, &headers, &body) {
        Ok(proven) => proven,
        Err(error) => {
            unproven()?;
            hooks.unproven(&source, &error, &address).await;
            return Err(error.into());
        }
    };
    web.rates.take(&Who::Source(source.clone())).map_err(Problem::too_often)?;
    let answer = match hooks.receive(proven, &address).await? {
        Received::Accepted(operation) => taken(&web, operation, false),
        Received::Duplicate(operation) => taken(&web, operation, true),
        Received::Ignored => Answer::Ignored { ignored: true },
    };
    Ok(Json(answer).into_response())
}

fn taken(web: &Web, operation: Uuid, duplicate: bool) -> Answer {
    let url = operation_url(web.engine.config().server.public_url.as_str(), operation);
    Answer::Taken { operation, duplicate, url }
}

impl From<HookError> for Problem {
    fn from(error: HookError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            HookError::UnknownSource => Self::not_found(detail),
            HookError::Unproven(_) => {
                Self::new(StatusCode::UNAUTHORIZED, "bad-signature", "Not proven", detail)
            }
            HookError::BadEvent(_) => Self::malformed(detail),
            HookError::Unmatched => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unmatched", "No mapping for this event", detail)
            }
            HookError::Submit(error) => error.into(),
        }
    }
}
