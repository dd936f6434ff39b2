//! The HTTP API under `/api/v1`, and the endpoints for whoever watches the process.

pub mod audit;
pub mod bulk;
pub mod call;
pub mod claims;
pub mod corrections;
pub mod dead_letters;
pub mod health;
pub mod operations;
pub mod problem;
pub mod tokens;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post};

use super::Web;

/// The largest submission, in bytes.
pub const MOST_BODY: usize = 1024 * 1024;
/// The largest batch, in bytes.
pub const MOST_BATCH: usize = 32 * 1024 * 1024;

/// Where batches are sent.
pub const BATCH: &str = "/api/v1/operations/batch";

/// The API's routes.
pub fn routes() -> Router<Web> {
    let batch = Router::new()
        .route("/api/v1/operations/batch", post(operations::batch))
        .layer(DefaultBodyLimit::max(MOST_BATCH));
    Router::new()
        .route("/api/v1/operations", post(operations::submit).get(operations::list))
        .route("/api/v1/operations/{id}", get(operations::one))
        .route("/api/v1/operations/{id}/attempts", get(operations::attempts))
        .route("/api/v1/operations/{id}/events", get(operations::events))
        .route("/api/v1/operations/{id}/lookup", post(operations::lookup))
        .route("/api/v1/claims", post(claims::claim))
        .route("/api/v1/claims/{id}/heartbeat", post(claims::heartbeat))
        .route("/api/v1/claims/{id}/complete", post(claims::complete))
        .route("/api/v1/claims/{id}/fail", post(claims::fail))
        .route("/api/v1/claims/{id}/unknown", post(claims::unknown))
        .route("/api/v1/operations/{id}/correct", post(corrections::correct))
        .route("/api/v1/dead-letters", get(dead_letters::list))
        .route("/api/v1/dead-letters/{id}", get(dead_letters::one))
        .route("/api/v1/dead-letters/{id}/replay", post(dead_letters::replay))
        .route("/api/v1/dead-letters/{id}/resolve", post(dead_letters::resolve))
        .route("/api/v1/dead-letters/{id}/override", post(dead_letters::override_checks))
        .route("/api/v1/audit", get(audit::list))
        .route("/api/v1/bulk", post(bulk::create))
        .route("/api/v1/bulk/{id}", get(bulk::one))
        .route("/api/v1/bulk/{id}/start", post(bulk::start))
        .route("/api/v1/bulk/{id}/pause", post(bulk::pause))
        .route("/api/v1/bulk/{id}/cancel", post(bulk::cancel))
        .route("/healthz", get(health::alive))
        .route("/readyz", get(health::ready))
        .layer(DefaultBodyLimit::max(MOST_BODY))
        .merge(batch)
}
