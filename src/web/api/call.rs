//! What a call brings: who makes it, what they sent, and the right that what is sent needs. The right
//! stands beside the body's type, so that no handler can forget to ask for it.

use axum::body::Bytes;
use axum::extract::rejection::BytesRejection;
use axum::extract::{FromRequest, FromRequestParts as _, Request};
use axum::http::HeaderMap;
use serde::de::DeserializeOwned;

use super::MOST_BODY;
use super::operations::header_key;
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::engine::actions;
use crate::web::Web;

/// What a body says.
fn parse<T: DeserializeOwned>(body: Result<Bytes, BytesRejection>, optional: bool) -> Result<T, Problem> {
    let body = body.map_err(|rejection| Problem::unread(&rejection, MOST_BODY))?;
    let said: &[u8] = if optional && body.is_empty() { b"{}" } else { &body };
    serde_json::from_slice(said).map_err(|error| Problem::malformed(format!("The body: {error}.")))
}

/// The caller's id of this action; a caller that sends none cannot repeat it.
pub(super) fn action_id(web: &Web, headers: &HeaderMap) -> Result<String, Problem> {
    Ok(header_key(headers)?.unwrap_or_else(|| web.engine.ambient().opaque().to_string()))
}

/// A body in JSON.
pub trait Sent: DeserializeOwned {
    /// What somebody must be allowed who sends it.
    const RIGHT: Right;
    /// The body may be left out: it then says nothing.
    const OPTIONAL: bool = false;
}

/// A call by somebody who may make it.
#[derive(Debug)]
pub struct Call<T> {
    /// Who.
    pub caller: Caller,
    /// What they sent.
    pub sent: T,
}

impl<T: Sent> FromRequest<Web> for Call<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Problem> {
        let (mut parts, body) = request.into_parts();
        let caller = Caller::from_request_parts(&mut parts, web).await?;
        caller.require(T::RIGHT)?;
        let body: Result<Bytes, BytesRejection> =
            Bytes::from_request(Request::from_parts(parts, body), web).await;
        Ok(Self { caller, sent: parse(body, T::OPTIONAL)? })
    }
}

/// A call that acts, and that acts once under its id.
#[derive(Debug)]
pub struct Act<T> {
    /// Who.
    pub caller: Caller,
    /// What they sent.
    pub sent: T,
    /// The header `Idempotency-Key`; a caller that sends none cannot repeat the call.
    pub action_id: String,
}

impl<T: Sent> FromRequest<Web> for Act<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, web: &Web) -> Result<Self, Problem> {
        let action_id = action_id(web, request.headers());
        let Call { caller, sent } = Call::from_request(request, web).await?;
        Ok(Self { caller, sent, action_id: action_id? })
    }
}

impl<T> Act<T> {
    /// As the engine takes it.
    pub fn request<'a>(&'a self, reason: &'a str) -> actions::Request<'a> {
        actions::Request {
            actor: &self.caller.actor,
            action_id: &self.action_id,
            reason,
            origin: &self.caller.origin,
        }
    }
}
