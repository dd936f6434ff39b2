//! Errors of the API: RFC 9457 `application/problem+json` with stable types.

use axum::extract::rejection::BytesRejection;
use axum::http::{HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;

use crate::domain::errors::with_causes;
use crate::domain::filter::FilterError;
use crate::engine::accept::SubmitError;
use crate::engine::actions::ActionError;
use crate::engine::correct::{CorrectError, Uncorrectable};
use crate::gate::GateError;
use crate::store::StoreError;
use crate::web::failure::sentence;
use crate::web::inbound::slow;
use crate::web::rates::Exceeded;
use crate::web::request_id;

/// What callers may do in general, and what is left of it: draft-ietf-httpapi-ratelimit-headers.
const POLICY: HeaderName = HeaderName::from_static("ratelimit-policy");
const LIMIT: HeaderName = HeaderName::from_static("ratelimit");

/// An error as it is answered.
#[derive(Clone, Debug, Serialize)]
pub struct Problem {
    r#type: String,
    title: &'static str,
    status: u16,
    detail: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    operation: Option<uuid::Uuid>,
    #[serde(skip_serializing_if = "Option::is_none")]
    request_id: Option<String>,
    /// Which limit was passed; the name is the draft's.
    #[serde(rename = "violated-policies", skip_serializing_if = "Option::is_none")]
    exceeded: Option<Box<Exceeded>>,
}

impl Problem {
    /// A problem of a stable kind: `/problems/KIND`.
    pub(in crate::web) fn new(
        status: StatusCode,
        kind: &str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            r#type: format!("/problems/{kind}"),
            title,
            status: status.as_u16(),
            detail: detail.into(),
            operation: None,
            request_id: request_id::current(),
            exceeded: None,
        }
    }

    /// The answer's status.
    pub fn status(&self) -> u16 {
        self.status
    }

    /// There is no such thing.
    pub fn not_found(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", detail)
    }

    /// The call exists, and takes another method.
    pub fn wrong_method() -> Self {
        let detail = "This call takes another method; see the header Allow.";
        Self::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method not allowed", detail)
    }

    /// The request cannot be understood.
    pub fn malformed(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::BAD_REQUEST, "malformed", "Malformed request", detail)
    }

    /// No token, or one that does not work.
    pub fn unauthorized() -> Self {
        let detail =
            "Send Authorization: Bearer with a token that `dlo token create` made and nobody revoked.";
        Self::new(StatusCode::UNAUTHORIZED, "unauthorized", "No valid token", detail)
    }

    /// The token may not.
    pub fn forbidden(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::FORBIDDEN, "forbidden", "Not permitted", detail)
    }

    /// A type that there is not, or not for this.
    pub fn unknown_type(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::UNPROCESSABLE_ENTITY, "unknown-type", "Unknown operation type", detail)
    }

    /// A claim that is not held, or not any more.
    pub fn claim_lost(detail: impl Into<String>) -> Self {
        Self::new(StatusCode::CONFLICT, "claim-lost", "Claim lost", detail)
    }

    /// The body is larger than is read.
    pub fn too_large(most: usize) -> Self {
        let detail = format!("The body has more than {most} bytes.");
        Self::new(StatusCode::PAYLOAD_TOO_LARGE, "too-large", "Body too large", detail)
    }

    /// The body could not be read.
    pub fn unread(rejection: &BytesRejection, most: usize) -> Self {
        if slow::came_too_slowly(rejection) {
            let detail = "The body did not arrive in time.";
            Self::new(StatusCode::REQUEST_TIMEOUT, "too-slow", "Body too slow", detail)
        } else if rejection.status() == StatusCode::PAYLOAD_TOO_LARGE {
            Self::too_large(most)
        } else {
            Self::malformed("The body ended early.")
        }
    }

    /// It was not done in time.
    pub fn took_too_long() -> Self {
        let detail = "It is not known whether it was done. Send it again under the same key.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "took-too-long", "Took too long", detail)
    }

    /// The caller has to slow down. The type is the one of the rate limit headers' draft.
    pub(in crate::web) fn too_often(exceeded: Exceeded) -> Self {
        let Exceeded { policy, quota, window, wait } = exceeded;
        let detail = format!(
            "This {policy} may call {quota} times in {window} s, and nothing was done. Send it again in {wait} s."
        );
        let problem = Self::new(StatusCode::TOO_MANY_REQUESTS, "", "Quota exceeded", detail);
        let r#type = "https://iana.org/assignments/http-problem-types#quota-exceeded".to_owned();
        Self { r#type, exceeded: Some(Box::new(exceeded)), ..problem }
    }

    /// A defect of ours.
    pub(in crate::web) fn defect() -> Self {
        let detail = "Dead Letter Office has a defect; its log says more under the request's id.";
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "defect", "A defect", detail)
    }

    /// The database did not answer.
    pub fn unavailable(error: &dyn std::error::Error) -> Self {
        tracing::error!(error = with_causes(error), "a call failed");
        Self::store_unavailable()
    }

    fn key_reused(first: uuid::Uuid, detail: String) -> Self {
        let problem = Self::new(StatusCode::UNPROCESSABLE_ENTITY, "key-reused", "Key used before", detail);
        Self { operation: Some(first), ..problem }
    }

    fn store_unavailable() -> Self {
        let detail = "Nothing was stored. Send it again under the same key.";
        Self::new(StatusCode::SERVICE_UNAVAILABLE, "store-unavailable", "The store is unavailable", detail)
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let text = serde_json::to_string(&self).unwrap_or_default();
        let mut response = (status, text).into_response();
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/problem+json"));
        match status {
            StatusCode::SERVICE_UNAVAILABLE => {
                headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
            StatusCode::TOO_MANY_REQUESTS => {
                if let Some(exceeded) = self.exceeded {
                    let Exceeded { policy, quota, window, wait } = *exceeded;
                    let lines = [
                        (header::RETRY_AFTER, wait.to_string()),
                        (POLICY, format!("\"{policy}\";q={quota};w={window}")),
                        (LIMIT, format!("\"{policy}\";r=0;t={wait}")),
                    ];
                    for (name, value) in lines {
                        headers.extend(HeaderValue::from_str(&value).map(|value| (name, value)));
                    }
                }
            }
            StatusCode::UNAUTHORIZED => {
                headers.insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
            }
            _ => {}
        }
        response
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<GateError> for Problem {
    fn from(error: GateError) -> Self {
        Self::unavailable(&error)
    }
}

impl From<FilterError> for Problem {
    fn from(error: FilterError) -> Self {
        Self::malformed(sentence(&error.to_string()))
    }
}

impl From<SubmitError> for Problem {
    fn from(error: SubmitError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            SubmitError::UnknownType { .. } => Self::unknown_type(detail),
            SubmitError::Malformed(_) => Self::malformed(detail),
            SubmitError::KeyMissing(_) => {
                Self::new(StatusCode::BAD_REQUEST, "key-missing", "No operation key", detail)
            }
            SubmitError::KeyReused { first, .. } => Self::key_reused(first, detail),
            SubmitError::Unavailable => Self::store_unavailable(),
        }
    }
}

impl From<ActionError> for Problem {
    fn from(error: ActionError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            ActionError::Forbidden(_) => Self::forbidden(detail),
            ActionError::NotFound => Self::not_found(detail),
            ActionError::Invalid(_) => Self::malformed(detail),
            ActionError::IdReused => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "action-id-reused",
                "Action id used before",
                detail,
            ),
            ActionError::Busy(_) => Self::new(StatusCode::CONFLICT, "busy", "Not at this moment", detail),
            ActionError::NotOpen(_) => Self::new(StatusCode::CONFLICT, "not-open", "Not open", detail),
            ActionError::Settled(_) | ActionError::Changed(_) => {
                Self::new(StatusCode::CONFLICT, "settled", "Settled before", detail)
            }
            ActionError::Gate(_) | ActionError::Answer(_) => Self::unavailable(&error),
        }
    }
}

impl From<CorrectError> for Problem {
    fn from(error: CorrectError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            CorrectError::Action(error) => error.into(),
            CorrectError::Submission(error) => error.into(),
            CorrectError::KeyTaken { first, .. } => Self::key_reused(first, detail),
            CorrectError::Stands(stands) => {
                let problem = Self::new(StatusCode::CONFLICT, "not-correctable", "Not correctable", detail);
                match stands {
                    Uncorrectable::Corrected(by) => Self { operation: Some(by), ..problem },
                    _ => problem,
                }
            }
        }
    }
}
