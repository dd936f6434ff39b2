//! The buttons of a bulk action: start, confirm, go on, pause, cancel, act again.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use uuid::Uuid;

use super::super::case;
use super::PATH;
use crate::domain::actor::Right;
use crate::domain::bulk::Step;
use crate::engine::actions::Request;
use crate::engine::bulk::{again, cancel, pause, set_going};
use crate::store::bulk as stored;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Posted;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/bulk/{id}/start", post(go))
        .route("/bulk/{id}/pause", post(hold))
        .route("/bulk/{id}/cancel", post(stop))
        .route("/bulk/{id}/again", post(repeat))
}

/// The bulk action that an address names, for somebody who may act on it.
async fn known(web: &Web, id: &str, posted: &Posted) -> Result<Uuid, Failure> {
    posted.who.require(Right::Bulk)?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    let row = stored::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    posted.who.require(row.action.right())?;
    Ok(id)
}

async fn go(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let id = known(&web, &id, &posted).await?;
    let step: Step =
        posted.fields.get("step").parse().map_err(|_| Failure::BadForm(StatusCode::UNPROCESSABLE_ENTITY))?;
    let said = match step {
        Step::Start => "It is started. What becomes of each member appears below.",
        Step::Confirm => "Confirmed: the others follow. What becomes of each appears below.",
        Step::Resume => "It goes on where it was.",
    };
    let (actor, action_id) = (posted.who.actor(), case::action_id(&web, Some(&posted.fields)));
    let request = Request { actor: &actor, action_id: &action_id, reason: "", origin: &posted.who.origin };
    set_going(web.engine.gate(), id, step, &request).await?;
    posted.who.flash(true, said).await?;
    Ok(to(id))
}

async fn hold(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let id = known(&web, &id, &posted).await?;
    let (actor, action_id) = (posted.who.actor(), case::action_id(&web, Some(&posted.fields)));
    let request = Request { actor: &actor, action_id: &action_id, reason: "", origin: &posted.who.origin };
    pause(web.engine.gate(), id, &request).await?;
    posted.who.flash(true, "It is paused. What was sent before is still looked after.").await?;
    Ok(to(id))
}

async fn stop(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let id = known(&web, &id, &posted).await?;
    let (actor, action_id) = (posted.who.actor(), case::action_id(&web, Some(&posted.fields)));
    let request = Request { actor: &actor, action_id: &action_id, reason: "", origin: &posted.who.origin };
    cancel(web.engine.gate(), id, &request).await?;
    posted.who.flash(true, "It is cancelled. Members that were waiting are left as they are.").await?;
    Ok(to(id))
}

async fn repeat(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let id = known(&web, &id, &posted).await?;
    let (actor, action_id) = (posted.who.actor(), case::action_id(&web, Some(&posted.fields)));
    let request = Request { actor: &actor, action_id: &action_id, reason: "", origin: &posted.who.origin };
    let new = again(web.engine.gate(), id, &request).await?;
    let said = "These are the ones that were refused or failed again. Nothing is done until it is started.";
    posted.who.flash(true, said).await?;
    Ok(to(new))
}

fn to(id: Uuid) -> Response {
    Redirect::to(&format!("{PATH}/{id}")).into_response()
}
