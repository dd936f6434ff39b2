//! The form that has an operation tried again.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;

use super::case::{self, Case};
use crate::domain::actor::Right;
use crate::domain::verdict::VerdictKind;
use crate::domain::words::Settles;
use crate::engine::actions::{self, Request as Asked};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::known::{CheckRow, Knowledge, Known};
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::{Tale, card};
use crate::web::timeline::Request;
use crate::web::view::{Button, Field, Reference};

/// `/dead-letters/{id}/replay`
#[derive(Template, Debug)]
#[template(path = "pages/replay.html")]
pub struct ReplayPage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one replay.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// What will be sent; or why it cannot be built.
    pub request: Result<Request, String>,
    /// Every check and how it goes now.
    pub checks: Vec<CheckRow>,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// In their words.
    pub reason: Field,
    /// Reasons given lately, offered again.
    pub recent_reasons: Vec<String>,
    /// What the button says: it follows the card.
    pub words: String,
    /// There is no button, because of this; `None` when there is one.
    pub blocked: Option<Blocked>,
}

/// Why nothing can be sent now.
#[derive(Clone, Debug)]
pub struct Blocked {
    /// The gate's sentence.
    pub why: String,
    /// What would help.
    pub instead: Vec<Button>,
}

/// The form's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters/{id}/replay", get(form).post(replay))
}

async fn form(State(web): State<Web>, Path(id): Path<String>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let action_id = case::action_id(&web, None);
    Ok(render(&page(&web, &who, &id, action_id, Field::default()).await?))
}

async fn page(
    web: &Web,
    who: &Signed,
    id: &str,
    action_id: String,
    reason: Field,
) -> Result<ReplayPage, Failure> {
    let case = Case::load(web, who, id, Right::Replay).await?;
    let recent_reasons = Case::recent(web, who, "replay").await?;
    let layout = case.layout(web, who, "Replay").await?;
    let tale = case.tale(web, who);
    let knowledge = card::knowledge(&tale);
    let shut = case.shut(&tale);
    let refused = (case.preview.verdict.verdict != VerdictKind::Accepted)
        .then(|| tale.mask.text(&case.preview.verdict.reason));
    Ok(ReplayPage {
        layout,
        back: case.back(&tale),
        action: format!("{}/replay", case.path()),
        action_id,
        sentence: case.sentence(&tale),
        request: case.request(&tale),
        checks: case.checks(&tale),
        words: words(&tale, &knowledge),
        blocked: shut.or(refused).map(|why| Blocked { why, instead: case.instead(web, who, &tale) }),
        knowledge,
        reason,
        recent_reasons,
    })
}

/// What the button says: it follows what the destination knows, and what its promise is worth.
fn words(tale: &Tale<'_>, knowledge: &Knowledge) -> String {
    let destination = &knowledge.destination;
    match (knowledge.state, card::settles(tale, tale.thread.current_step())) {
        (Known::NeverReached, _) => format!("Replay: {destination} never saw it"),
        (Known::NotThere, _) => format!("Replay: {destination} did not do it"),
        (_, Some(Settles::SameKey)) => format!("Replay with the same key: {destination} recognises it"),
        (_, Some(Settles::Repeat)) => "Replay: repeating it is harmless".to_owned(),
        _ => "Replay".to_owned(),
    }
}

async fn replay(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Replay)?;
    let letter = case::letter(&web, &id).await?;
    let action_id = case::action_id(&web, Some(&fields));
    let reason = case::reason(&fields);
    if reason.error.is_some() {
        let page = page(&web, &who, &id, action_id, reason).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let actor = who.actor();
    let asked = Asked { actor: &actor, action_id: &action_id, reason: &reason.value, origin: &who.origin };
    let verdict = actions::replay_letter(web.engine.gate(), &letter, &asked).await?;
    case::answer(&web, &who, &id, verdict).await
}
