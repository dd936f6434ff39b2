//! One override that waits for a second person, with the facts that its requester had before them.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use uuid::Uuid;

use super::case::{self, Case};
use super::confirm::{self, Asks};
use super::override_form::Stakes;
use crate::domain::actor::Right;
use crate::domain::attempt::RequestState;
use crate::domain::verdict::VerdictKind;
use crate::domain::words;
use crate::engine::actions::{MAX_REASON, Request};
use crate::engine::approvals::{self, Approved};
use crate::store::overrides::{self, OverrideRow};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, Long, Reference, When};

/// `/approvals/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/approval.html")]
pub struct ApprovalPage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub letter: Reference,
    /// Where its forms go, each with its word behind it.
    pub action: String,
    /// Where it stands.
    pub state: RequestState,
    /// Who asked.
    pub by: String,
    /// When.
    pub at: When,
    /// Why, in their words.
    pub reason: Long,
    /// Under which key it would be sent.
    pub mode: &'static str,
    /// What is at stake now.
    pub stakes: Stakes,
    /// What the reader can do about it.
    pub offer: Offer,
}

/// What the reader of a request can do about it.
#[derive(Clone, Debug)]
pub enum Offer {
    /// Approve or refuse.
    Decide(Box<Decide>),
    /// Take it back.
    TakeBack {
        /// One click is one act.
        action_id: String,
        /// Why it will not be approved any more, where that is so.
        stale: Option<String>,
    },
    /// Nothing, because of this.
    Nothing(String),
    /// It was decided: who, when, in their words.
    Decided(String, When, Option<Long>),
}

/// The two forms of a second person.
#[derive(Clone, Debug)]
pub struct Decide {
    /// One click is one act; the form that refuses has one of its own.
    pub action_ids: [String; 2],
    /// A word on the yes, which may be left out.
    pub word: Field,
    /// Where the reader can show who they are first, when their sign-in is not fresh.
    pub confirm: Option<String>,
    /// Why not.
    pub reason: Field,
    /// Why it cannot be approved any more; it can still be refused.
    pub stale: Option<String>,
}

impl Decide {
    /// What is wrong with the form that approves, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        self.word.error.as_deref().map(|error| ("word", error)).into_iter().collect()
    }
}

/// The page's routes.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/approvals/{id}", get(show))
        .route("/approvals/{id}/approve", post(approve))
        .route("/approvals/{id}/refuse", post(refuse))
        .route("/approvals/{id}/withdraw", post(withdraw))
}

/// The request that an address names, for those who may see it.
async fn request(web: &Web, who: &Signed, id: &str) -> Result<OverrideRow, Failure> {
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    let row = overrides::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let theirs = row.requested_by == who.user.name || who.role.may(Right::Approve);
    if theirs { Ok(row) } else { Err(Failure::forbidden(&who.actor(), Right::Approve)) }
}

async fn show(State(web): State<Web>, Path(id): Path<String>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let row = request(&web, &who, &id).await?;
    let decide = |stale| Decide {
        action_ids: [case::action_id(&web, None), case::action_id(&web, None)],
        word: Field::default(),
        confirm: confirm::before(&web, &who, &format!("/approvals/{}", row.id)),
        reason: Field::default(),
        stale,
    };
    Ok(render(&page(&web, &who, &row, decide).await?))
}

async fn page(
    web: &Web,
    who: &Signed,
    row: &OverrideRow,
    decide: impl FnOnce(Option<String>) -> Decide,
) -> Result<ApprovalPage, Failure> {
    let case = Case::load(web, who, &row.dead_letter_id.to_string(), Right::Override).await?;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, who.layout("Approve an override", Section::Approvals).await).await?;
    drop(tx);
    let tale = case.tale(web, who);
    let stale = match row.state {
        RequestState::Waiting => approvals::out_of_date(web.engine.gate(), row).await?,
        _ => None,
    };
    let stale = stale.map(|why| {
        format!(
            "It cannot be approved any more: {} If it is still needed, somebody has to ask anew.",
            sentence(&why)
        )
    });
    let offer = match (row.decided_by.clone(), row.decided_at) {
        (Some(by), Some(at)) => {
            let word = row.word.as_deref().map(|word| Long::line(tale.mask.text(word)));
            Offer::Decided(by, When::at(at, tale.seen()), word)
        }
        _ if row.requested_by == who.user.name => {
            Offer::TakeBack { action_id: case::action_id(web, None), stale }
        }
        _ if who.role.may(Right::Approve) => Offer::Decide(Box::new(decide(stale))),
        _ => Offer::Nothing(labels::lacks(Right::Approve, &who.role)),
    };
    Ok(ApprovalPage {
        layout,
        letter: case.back(&tale),
        action: format!("/approvals/{}", row.id),
        state: row.state,
        by: row.requested_by.clone(),
        at: When::at(row.requested_at, tale.seen()),
        reason: Long::line(tale.mask.text(&row.reason)),
        mode: words::override_mode(row.mode),
        stakes: Stakes::of(&case, &tale, Some(row.mode)),
        offer,
    })
}

async fn approve(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    who.require(Right::Approve)?;
    let row = request(&web, &who, &id).await?;
    let action_id = case::action_id(&web, Some(&fields));
    let typed = word(&fields);
    let path = format!("/approvals/{}", row.id);
    if typed.error.is_some() {
        let action_ids = [action_id, case::action_id(&web, None)];
        let confirm = confirm::before(&web, &who, &path);
        let decide = |stale| Decide { action_ids, word: typed, confirm, reason: Field::default(), stale };
        let page = page(&web, &who, &row, decide).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let asks = Asks {
        action: &format!("{path}/approve"),
        what: &format!("Then the override that {} asked for is approved, and sent.", row.requested_by),
        back: &path,
    };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: &typed.value, origin: &who.origin };
    let letter = row.dead_letter_id.to_string();
    match approvals::approve(web.engine.gate(), row.id, &asked).await? {
        Approved::Judged(verdict) if verdict.verdict == VerdictKind::Accepted => {
            web.engine.wake();
            let text = format!(
                "Approved. {} It goes out in a moment; what comes back appears below.",
                verdict.reason
            );
            who.flash(true, text).await?;
            Ok(Redirect::to(&format!("/dead-letters/{letter}")).into_response())
        }
        Approved::Judged(verdict) => case::answer(&web, &who, &letter, *verdict).await,
        Approved::Stale(why) => {
            who.flash(false, format!("Nothing was sent: {why}.")).await?;
            Ok(Redirect::to(&format!("/approvals/{}", row.id)).into_response())
        }
    }
}

/// A word that may be left out.
fn word(fields: &Fields) -> Field {
    let value = fields.lines("word");
    let length = value.chars().count();
    let error = (length > MAX_REASON)
        .then(|| format!("This has {length} characters; at most {MAX_REASON} are kept."));
    Field { value, error }
}

async fn refuse(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Approve)?;
    let row = request(&web, &who, &id).await?;
    let (action_id, reason) = (case::action_id(&web, Some(&fields)), case::reason(&fields));
    if reason.error.is_some() {
        let confirm = confirm::before(&web, &who, &format!("/approvals/{}", row.id));
        let action_ids = [case::action_id(&web, None), action_id];
        let decide = |stale| Decide { action_ids, word: Field::default(), confirm, reason, stale };
        let page = page(&web, &who, &row, decide).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: &reason.value, origin: &who.origin };
    approvals::refuse(web.engine.gate(), row.id, &asked).await?;
    who.flash(true, "Refused. Nothing is sent.").await?;
    Ok(Redirect::to("/approvals").into_response())
}

async fn withdraw(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::View)?;
    let row = request(&web, &who, &id).await?;
    let action_id = case::action_id(&web, Some(&fields));
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    approvals::withdraw(web.engine.gate(), row.id, &asked).await?;
    who.flash(true, "Taken back. Nothing is sent.").await?;
    Ok(Redirect::to("/approvals").into_response())
}
