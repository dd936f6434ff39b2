//! Evidence that is taken out of the desk, private values included. Each is a form and no link, since
//! each is written down, and looking at a page writes nothing.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use uuid::Uuid;

use crate::domain::actor::Right;
use crate::engine::evidence::{Evidence, Look, Reader, forget_foreign_text, looked};
use crate::engine::thread::Thread;
use crate::store::{attempts, operations};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Posted;
use crate::web::tell::mask::Mask;

/// The forms' routes.
pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/operations/{id}/evidence.json", post(evidence))
        .route("/operations/{id}/payload", post(payload))
        .route("/operations/{id}/attempts/{attempt}/answer", post(answer))
}

/// Everything that is known, as JSON.
async fn evidence(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let id = parsed(&id)?;
    let whole = posted.fields.ticked("whole");
    record(&web, &posted, id, Look::Export { whole }).await?;
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let mut thread = Thread::load(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let mask = if whole {
        Mask::default()
    } else {
        Mask::of(config, &thread.operation.kind, thread.payload.as_deref())
    };
    if mask.is_blind() {
        forget_foreign_text(&mut thread);
    }
    let actor = posted.who.actor();
    let mut evidence = Evidence::load(&mut tx, config, &thread, &actor, now).await?;
    drop(tx);
    evidence.masked = !whole;
    let text = serde_json::to_string(&evidence).map_err(|error| Failure::defect(error.to_string()))?;
    let text = mask
        .document(&text, thread.letters.len())
        .ok_or_else(|| Failure::defect("evidence that is no JSON".to_owned()))?;
    Ok(file("application/json", &format!("evidence-{id}.json"), text))
}

/// The payload to the byte.
async fn payload(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let id = parsed(&id)?;
    record(&web, &posted, id, Look::Payload).await?;
    let mut tx = web.engine.db().read().await?;
    let body = operations::payload(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    Ok(file(TEXT, &format!("payload-{id}.txt"), body))
}

/// The body of an answer as it came.
async fn answer(
    State(web): State<Web>,
    Path((id, attempt)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ViewPayload)?;
    let (id, attempt) = (parsed(&id)?, parsed(&attempt)?);
    let mut tx = web.engine.db().read().await?;
    let found = attempts::by_id(&mut tx, attempt).await?.filter(|row| row.operation_id == id);
    drop(tx);
    let (number, body) =
        found.and_then(|row| Some((row.number, row.answer_body?))).ok_or(Failure::NotFound)?;
    record(&web, &posted, id, Look::Answer(number)).await?;
    Ok(file(TEXT, &format!("answer-{attempt}.txt"), body))
}

fn parsed(id: &str) -> Result<Uuid, Failure> {
    id.parse().map_err(|_| Failure::NotFound)
}

async fn record(web: &Web, posted: &Posted, id: Uuid, look: Look) -> Result<(), Failure> {
    let actor = posted.who.actor();
    let reader = Reader { actor: &actor, origin: &posted.who.origin };
    Ok(looked(web.engine.gate(), id, look, reader).await?)
}

const TEXT: &str = "text/plain; charset=utf-8";

/// Something to be kept and not shown: a browser runs nothing of it.
fn file(media_type: &'static str, name: &str, body: String) -> Response {
    let disposition = format!("attachment; filename=\"{name}\"");
    ([(header::CONTENT_TYPE, media_type.to_owned()), (header::CONTENT_DISPOSITION, disposition)], body)
        .into_response()
}
