//! Evidence that is taken out of the desk. Private values go along only while they are shown to the
//! session. Each is a form and no link, since each is written down, and looking at a page writes
//! nothing.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use uuid::Uuid;

use super::shown;
use crate::domain::actor::Right;
use crate::engine::evidence::{Evidence, Look, Reader, forget_foreign_text, looked};
use crate::engine::thread::Thread;
use crate::store::{attempts, operations};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
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
    posted.who.require(Right::Export)?;
    let whole = posted.fields.ticked("whole") && !hidden(&web, &posted.who, id).await?.hides_something();
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

/// The payload: to the byte, or laid out without what is private.
async fn payload(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ViewPayload)?;
    let id = parsed(&id)?;
    let mask = hidden(&web, &posted.who, id).await?;
    let whole = !mask.hides_something();
    record(&web, &posted, id, Look::Payload { whole }).await?;
    let mut tx = web.engine.db().read().await?;
    let body = operations::payload(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    Ok(if whole {
        file(TEXT, &format!("payload-{id}.txt"), body)
    } else {
        file(TEXT, &format!("payload-{id}-masked.txt"), mask.payload(&body, usize::MAX).text)
    })
}

/// The body of an answer: as it came, or laid out without what is private.
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
    let mask = hidden(&web, &posted.who, id).await?;
    if mask.is_blind() {
        let why = "What is private in it is not known any more, since the payload was erased. Have everything \
                   shown first, with a reason.";
        return Err(Failure::Conflict(why.to_owned()));
    }
    let whole = !mask.hides_something();
    record(&web, &posted, id, Look::Answer { number, whole }).await?;
    Ok(if whole {
        file(TEXT, &format!("answer-{attempt}.txt"), body)
    } else {
        file(TEXT, &format!("answer-{attempt}-masked.txt"), mask.body(&body))
    })
}

/// What must not leave the desk with an operation at this moment: nothing, while its private values
/// are shown to the session.
async fn hidden(web: &Web, who: &Signed, id: Uuid) -> Result<Mask, Failure> {
    let now = web.engine.ambient().now();
    let mut tx = web.engine.db().read().await?;
    if shown::until(&mut tx, who, id, now).await?.is_some() {
        return Ok(Mask::default());
    }
    let operation = operations::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let payload = operations::payload(&mut tx, id).await?;
    Ok(Mask::of(web.engine.config(), &operation.kind, payload.as_deref()))
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
