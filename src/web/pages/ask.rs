//! The button that has a destination asked what it knows.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use uuid::Uuid;

use super::case;
use crate::domain::actor::Right;
use crate::domain::lookup::Finding;
use crate::domain::words;
use crate::engine::actions::Request;
use crate::engine::ask::{self, FindingReport};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Posted;

/// Its route.
pub(super) fn routes() -> Router<Web> {
    Router::new().route("/operations/{id}/ask", post(ask_now))
}

async fn ask_now(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Replay)?;
    let operation: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let action_id = case::action_id(&web, Some(&fields));
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    let gate = web.engine.gate();
    let question = ask::ask(gate, operation, &asked).await?;
    web.engine.wake();
    let report = ask::answer_within(gate, &question, ask::patience(gate, &question)).await?;
    who.flash(report.finding.is_some(), told(&report)).await?;
    // Back to where the button stood; only our own pages can be named.
    let back = match fields.get("letter").parse::<Uuid>() {
        Ok(letter) => format!("/dead-letters/{letter}"),
        Err(_) => format!("/operations/{operation}"),
    };
    Ok(Redirect::to(&back).into_response())
}

/// What it said, in a sentence.
fn told(report: &FindingReport) -> String {
    let it = words::capitalised(&words::destination_name(&report.destination));
    match report.finding {
        Some(Finding::Found) => match &report.reference {
            Some(reference) => format!("{it} was asked and has it, as {reference}."),
            None => format!("{it} was asked and has it."),
        },
        Some(Finding::OtherPayload) => {
            format!("{it} was asked and has something else under our reference. Somebody has to decide.")
        }
        Some(Finding::Absent) => format!("{it} was asked and does not have it: it can be replayed safely."),
        Some(Finding::TooEarly) => {
            format!("{it} was asked and does not show it yet. It may still appear: ask again later.")
        }
        Some(Finding::Failed) => format!("{it} was asked and could not say. The thread below tells why."),
        None => format!("{it} was asked and has not answered yet. The answer will appear below."),
    }
}
