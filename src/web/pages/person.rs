//! One person: where they are signed in.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use uuid::Uuid;

use super::account::{SessionView, ended};
use super::people::person;
use crate::accounts;
use crate::domain::actor::Right;
use crate::store::audit::last_sign_ins;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{Reference, When};

/// `/people/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/person.html")]
pub struct PersonPage {
    /// Around it.
    pub layout: Layout,
    /// Everybody.
    pub back: Reference,
    /// Where its forms go, each with its word behind it.
    pub path: String,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: String,
    /// They may sign in.
    pub active: bool,
    /// They have set a password.
    pub has_password: bool,
    /// When the account was made.
    pub created: When,
    /// Their last sign-in.
    pub seen: Option<When>,
    /// Where they are signed in, the last used first.
    pub sessions: Vec<SessionView>,
}

/// The page's routes.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/people/{id}", get(show))
        .route("/people/{id}/sessions/{session}/end", post(end_session))
        .route("/people/{id}/sign-out", post(sign_out))
}

async fn show(State(web): State<Web>, Path(id): Path<String>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let seen = who.seen(web.engine.ambient().now());
    let path = format!("/people/{}", user.id);
    let sessions = accounts::sessions(web.engine.db(), web.engine.ambient(), user.id).await?;
    let mut tx = web.engine.db().read().await?;
    let last = last_sign_ins(&mut tx).await?;
    let layout = list::rail(&mut tx, who.layout(user.name.clone(), Section::People).await).await?;
    drop(tx);
    Ok(render(&PersonPage {
        layout,
        back: Reference::here("People", "/people"),
        role: user.role.clone(),
        active: user.disabled_at.is_none(),
        has_password: user.password_hash.is_some(),
        created: When::at(user.created_at, seen),
        seen: last.iter().find(|(name, _)| *name == user.name).map(|(_, at)| When::at(*at, seen)),
        sessions: sessions.into_iter().map(|row| SessionView::of(row, who.entry.id, &path, seen)).collect(),
        path,
        name: user.name,
    }))
}

async fn end_session(
    State(web): State<Web>,
    Path((id, session)): Path<(String, String)>,
    posted: Posted,
) -> Result<Response, Failure> {
    let who = posted.who;
    who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let session: Uuid = session.parse().map_err(|_| Failure::NotFound)?;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let row = accounts::end_session(db, ambient, &user, session, &who.by(&actor)).await?;
    who.flash(true, ended(row)).await?;
    Ok(Redirect::to(&format!("/people/{}", user.id)).into_response())
}

async fn sign_out(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let who = posted.who;
    who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    accounts::sign_out_everywhere(db, ambient, &user.name, &who.by(&actor)).await?;
    if user.id == who.user.id {
        who.leave().await?;
        return Ok(Redirect::to("/login?left=1").into_response());
    }
    who.flash(true, format!("{} is signed out everywhere.", user.name)).await?;
    Ok(Redirect::to(&format!("/people/{}", user.id)).into_response())
}
