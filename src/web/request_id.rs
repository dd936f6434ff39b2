//! A number for every request, so that a person who is told "it failed" and the log name the same
//! one.

use axum::extract::Request;
use axum::http::{HeaderName, HeaderValue};
use axum::middleware::Next;
use axum::response::Response;
use tracing::Instrument as _;
use uuid::Uuid;

tokio::task_local! {
    static CURRENT: String;
}

/// The number of the request that is being answered.
pub fn current() -> Option<String> {
    CURRENT.try_with(Clone::clone).ok()
}

/// Gives a request its number, in the log and in the answer's header.
pub async fn layer(request: Request, next: Next) -> Response {
    let id = short();
    let span = tracing::info_span!("request", id, method = %request.method(), path = request.uri().path());
    let mut response = CURRENT.scope(id.clone(), next.run(request)).instrument(span).await;
    if let Ok(value) = HeaderValue::from_str(&id) {
        response.headers_mut().insert(HeaderName::from_static("x-request-id"), value);
    }
    response
}

/// Twelve digits: long enough to be found in a day's log, short enough to be read out on the phone.
pub(super) fn short() -> String {
    let random: [u8; 16] = rand::random();
    let digits = uuid::Builder::from_random_bytes(random).into_uuid();
    Uuid::simple(digits).to_string()[..12].to_owned()
}
