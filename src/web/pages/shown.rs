//! The button that shows an operation's private values for a while, and the one that hides them
//! again. Lists keep them hidden all the same.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use uuid::Uuid;

use super::case;
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::engine::actions::Request;
use crate::engine::shown;
use crate::store::Tx;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::labels;
use crate::web::tell::Tale;
use crate::web::view::When;

/// How the private values of a page's operation stand.
#[derive(Clone, Debug)]
pub enum Private {
    /// There are none.
    None,
    /// Hidden; the right that seeing them takes.
    Locked(String),
    /// Hidden; the form that shows them.
    Hidden(Form),
    /// Shown to this session until then; the form that hides them.
    Shown(Form, When),
}

impl Private {
    /// There is something to press, or to say why not.
    pub fn is_open(&self) -> bool {
        matches!(self, Self::Locked(_) | Self::Hidden(_))
    }

    /// They are on the page.
    pub fn is_shown(&self) -> bool {
        matches!(self, Self::Shown(..))
    }
}

/// Where a form goes, and what goes with it.
#[derive(Clone, Debug)]
pub struct Form {
    /// Its address.
    pub href: String,
    /// One click is one act.
    pub action_id: String,
    /// The dead letter on whose page it stands.
    pub letter: Option<Uuid>,
}

/// The forms' routes.
pub(super) fn routes() -> Router<Web> {
    Router::new().route("/operations/{id}/unmasked", post(show)).route("/operations/{id}/masked", post(hide))
}

/// How they stand for whoever looks.
pub(super) async fn of(
    web: &Web,
    tx: &mut Tx,
    who: &Signed,
    tale: &Tale<'_>,
    letter: Option<Uuid>,
) -> Result<Private, Failure> {
    if !tale.mask.hides_something() {
        return Ok(Private::None);
    }
    if !tale.role.may(Right::ViewPayload) {
        return Ok(Private::Locked(labels::lacks(Right::ViewPayload, tale.role)));
    }
    let id = tale.thread.operation.id;
    let form = |act: &str| Form {
        href: format!("/operations/{id}/{act}"),
        action_id: case::action_id(web, None),
        letter,
    };
    Ok(match until(tx, who, id, tale.now).await? {
        Some(at) => Private::Shown(form("masked"), When::at(at, tale.seen())),
        None => Private::Hidden(form("unmasked")),
    })
}

/// Until when an operation's private values are shown to whoever asks; absent while they are hidden.
pub(super) async fn until(
    tx: &mut Tx,
    who: &Signed,
    operation: Uuid,
    now: Timestamp,
) -> Result<Option<Timestamp>, Failure> {
    match who.session_hash() {
        Some(session) if who.role.may(Right::ViewPayload) => {
            Ok(shown::ends_at(tx, operation, &session, now).await?)
        }
        _ => Ok(None),
    }
}

async fn show(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    act(&web, &id, &posted, true).await
}

async fn hide(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    act(&web, &id, &posted, false).await
}

async fn act(web: &Web, id: &str, posted: &Posted, shows: bool) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::ViewPayload)?;
    let operation: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let session = who.session_hash().ok_or(Failure::StaleForm)?;
    let action_id = case::action_id(web, Some(fields));
    let typed = case::reason(fields);
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: &typed.value, origin: &who.origin };
    let gate = web.engine.gate();
    if shows {
        shown::begin(gate, operation, &session, &asked).await?;
    } else {
        shown::end(gate, operation, &session, &asked).await?;
    }
    // Back to where the button stood; only our own pages can be named.
    let back = match fields.get("letter").parse::<Uuid>() {
        Ok(letter) => format!("/dead-letters/{letter}"),
        Err(_) => format!("/operations/{operation}"),
    };
    Ok(Redirect::to(&back).into_response())
}
