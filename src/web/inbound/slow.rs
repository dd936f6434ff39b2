//! How long a request may take once its head is there.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::Request;
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tower_http::timeout::{DeadlineBody, TimeoutBody, TimeoutError};

use crate::web::api::BATCH;
use crate::web::api::problem::Problem;
use crate::web::failure::Failure;
use crate::web::is_for_programs;

/// A body may pause for this long.
const PAUSE: Duration = Duration::from_secs(10);

/// What a kind of request is given.
#[derive(Clone, Copy)]
struct Patience {
    /// For all of its body.
    body: Duration,
    /// For its body and its answer's head; longer than any call waits on purpose. An answer that
    /// goes on, such as the news for open pages, is not counted.
    whole: Duration,
}

const USUAL: Patience = Patience { body: Duration::from_secs(30), whole: Duration::from_mins(1) };
/// 32 MiB over a slow line, and then a commit for every few hundred of its lines.
const OF_A_BATCH: Patience = Patience { body: Duration::from_mins(4), whole: Duration::from_mins(8) };

/// Ends what takes too long, in our words. A handler that is dropped has its transaction undone, as
/// it has when its client hangs up.
pub(in crate::web) async fn layer(method: Method, uri: Uri, request: Request, next: Next) -> Response {
    let patience = if uri.path() == BATCH { OF_A_BATCH } else { USUAL };
    let request = if request.body().is_end_stream() {
        request
    } else {
        request
            .map(|body| Body::new(DeadlineBody::new(patience.body, Body::new(TimeoutBody::new(PAUSE, body)))))
    };
    match tokio::time::timeout(patience.whole, next.run(request)).await {
        Ok(answer) => answer,
        Err(_) if is_for_programs(uri.path()) => {
            tracing::error!(%method, path = uri.path(), "a call took too long");
            Problem::took_too_long().into_response()
        }
        Err(_) => Failure::TooLong.into_response(),
    }
}

/// Whether a body could not be read because it came too slowly.
pub(in crate::web) fn came_too_slowly(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(error) = next {
        if error.is::<TimeoutError>() {
            return true;
        }
        next = error.source();
    }
    false
}
