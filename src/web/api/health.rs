//! For whoever watches the process.

use axum::extract::State;
use axum::http::StatusCode;

use crate::store::Db;
use crate::web::Web;

/// `GET /healthz`: the process answers.
#[allow(clippy::unused_async, reason = "axum's handlers are asynchronous")]
pub async fn alive() -> &'static str {
    "alive\n"
}

/// `GET /readyz`: it can serve, since the database answers and has this version's schema.
pub async fn ready(State(web): State<Web>) -> (StatusCode, String) {
    match web.engine.db().version().await {
        Ok(version) if version == Db::newest_version() => (StatusCode::OK, "ready\n".to_owned()),
        Ok(version) => (
            StatusCode::SERVICE_UNAVAILABLE,
            format!(
                "the database has version {version} of the schema, this program needs {}; run `dlo migrate`\n",
                Db::newest_version()
            ),
        ),
        Err(_) => (StatusCode::SERVICE_UNAVAILABLE, "the database does not answer\n".to_owned()),
    }
}
