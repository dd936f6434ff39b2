//! How long a request may take once its head is there.

use std::error::Error;
use std::time::Duration;

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::{Method, Uri};
use axum::middleware::Next;
use axum::response::{IntoResponse as _, Response};
use tower_http::timeout::{DeadlineBody, TimeoutBody, TimeoutError};

use crate::config::Server;
use crate::web::api::BATCH;
use crate::web::api::problem::Problem;
use crate::web::failure::Failure;
use crate::web::is_for_programs;

/// What a request is given for its body and its answer's head; longer than any call waits on
/// purpose. An answer that goes on, such as the news for open pages, is not counted.
const WHOLE: Duration = Duration::from_mins(1);
/// The same for a batch: 32 MiB over a slow line, and a commit for every few hundred of its lines.
const OF_A_BATCH: Duration = Duration::from_mins(8);

/// How long requests may take.
#[derive(Clone, Copy, Debug)]
pub(in crate::web) struct Patience {
    /// A body may pause for this long.
    pause: Duration,
    whole: Duration,
    of_a_batch: Duration,
}

impl Patience {
    pub(in crate::web) fn of(server: &Server) -> Self {
        Self { pause: server.client_timeout, whole: WHOLE, of_a_batch: OF_A_BATCH }
    }
}

/// Ends what takes too long, in our words. A handler that is dropped has its transaction undone, as
/// it has when its client hangs up.
pub(in crate::web) async fn layer(
    State(patience): State<Patience>,
    method: Method,
    uri: Uri,
    request: Request,
    next: Next,
) -> Response {
    let whole = if uri.path() == BATCH { patience.of_a_batch } else { patience.whole };
    let request = if request.body().is_end_stream() {
        request
    } else {
        // A body that never pauses for long has to end all the same.
        let body = |body| Body::new(DeadlineBody::new(whole / 2, TimeoutBody::new(patience.pause, body)));
        request.map(body)
    };
    match tokio::time::timeout(whole, next.run(request)).await {
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

#[cfg(test)]
mod tests {
    use axum::Router;
    use axum::http::StatusCode;
    use axum::middleware::from_fn_with_state;
    use axum::routing::any;
    use bytes::Bytes;
    use tower::ServiceExt as _;

    use super::*;

    async fn answer(path: &str, body: Body) -> StatusCode {
        let short = Duration::from_millis(40);
        let patience = Patience { pause: short / 4, whole: short, of_a_batch: short * 1_000 };
        let read = |body: Body| async {
            match axum::body::to_bytes(body, 100).await {
                Ok(_) => StatusCode::OK,
                Err(error) if came_too_slowly(&error) => StatusCode::REQUEST_TIMEOUT,
                Err(_) => StatusCode::BAD_REQUEST,
            }
        };
        let router = Router::new()
            .route("/hangs", any(std::future::pending::<()>))
            .route("/api/v1/hangs", any(std::future::pending::<()>))
            .route("/reads", any(read))
            .layer(from_fn_with_state(patience, layer));
        let request = Request::post(path).body(body).unwrap();
        router.oneshot(request).await.unwrap().status()
    }

    #[tokio::test]
    async fn a_handler_that_hangs_is_given_up_and_so_is_a_body() {
        assert_eq!(answer("/hangs", Body::empty()).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer("/api/v1/hangs", Body::empty()).await, StatusCode::SERVICE_UNAVAILABLE);
        assert_eq!(answer("/reads", Body::from("all of it")).await, StatusCode::OK);
        let silent = futures_util::stream::pending::<Result<Bytes, std::io::Error>>();
        assert_eq!(answer("/reads", Body::from_stream(silent)).await, StatusCode::REQUEST_TIMEOUT);
        // A byte now and then, without an end and without a pause.
        let drip = futures_util::stream::unfold((), |()| async {
            tokio::time::sleep(Duration::from_millis(2)).await;
            Some((Ok::<_, std::io::Error>(Bytes::from_static(b"x")), ()))
        });
        assert_eq!(answer("/reads", Body::from_stream(drip)).await, StatusCode::REQUEST_TIMEOUT);
    }
}
