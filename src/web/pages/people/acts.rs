//! What is done to accounts. All of it needs a fresh sign-in: whoever finds a desk unlocked must not
//! make themselves at home there.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;

use super::{OneTimeLink, PATH, PeoplePage, page, person, roles};
use crate::accounts::{self, AccountError};
use crate::domain::actor::Right;
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::page::{render, render_as};
use crate::web::pages::confirm::{self, Asks};
use crate::web::view::Field;

pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/people/{id}/role", post(change_role))
        .route("/people/{id}/disable", post(disable))
        .route("/people/{id}/enable", post(enable))
        .route("/people/{id}/link", post(new_link))
        .route("/people/{id}/second-factor", post(remove_second))
}

/// The page that asks for a fresh sign-in, where it is needed; `below` is where the form went.
async fn ask(web: &Web, posted: &mut Posted, below: &str, what: &str) -> Result<Option<Response>, Failure> {
    let asks = Asks { action: &format!("{PATH}{below}"), what, back: PATH };
    confirm::fresh(web, &mut posted.who, &posted.fields, &asks).await
}

fn role(web: &Web, posted: &Posted) -> Result<String, Failure> {
    let name = posted.fields.get("role");
    let known = web.engine.config().auth.roles.knows(name);
    known.then(|| name.to_owned()).ok_or(Failure::BadForm(StatusCode::UNPROCESSABLE_ENTITY))
}

pub(super) async fn add(State(web): State<Web>, mut posted: Posted) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let role = role(&web, &posted)?;
    if let Some(page) = ask(&web, &mut posted, "", "Then the new person is added.").await? {
        return Ok(page);
    }
    let who = &posted.who;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let name = posted.fields.get("name");
    match accounts::add_user(db, ambient, name, &role, None, &who.by(&actor)).await {
        Ok(user) => show_link(&web, who, user.name).await,
        Err(error @ AccountError::Name(_)) => {
            let name = Field::wrong(name, sentence(&error.to_string()));
            let page = PeoplePage { name, roles: roles(db.roles(), &role), ..page(&web, who).await? };
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error) => Err(error.into()),
    }
}

/// Makes a link and shows it in the answer itself: it is kept nowhere it could be read again.
async fn show_link(web: &Web, who: &Signed, name: String) -> Result<Response, Failure> {
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let secret = match accounts::make_link(db, ambient, Some(&name), &who.by(&actor)).await {
        Ok(secret) => secret,
        Err(error @ AccountError::ShutOut(_)) => return refused(web, who, &error).await,
        Err(error) => return Err(error.into()),
    };
    let root = web.engine.config().server.public_url.as_str().trim_end_matches('/');
    let link = Some(OneTimeLink { name, url: format!("{root}/setup/{secret}") });
    Ok(render(&PeoplePage { link, ..page(web, who).await? }))
}

/// The list again: after what was done, or with why it was not.
async fn answer(
    web: &Web,
    who: &Signed,
    outcome: Result<(), AccountError>,
    done: String,
) -> Result<Response, Failure> {
    match outcome {
        Ok(()) => {
            who.flash(true, done).await?;
            Ok(Redirect::to(PATH).into_response())
        }
        Err(error @ AccountError::LastAdmin(_)) => refused(web, who, &error).await,
        Err(error) => Err(error.into()),
    }
}

/// The list again, with why something was not done.
async fn refused(web: &Web, who: &Signed, error: &AccountError) -> Result<Response, Failure> {
    let problem = Some(sentence(&error.to_string()));
    Ok(render_as(StatusCode::CONFLICT, &PeoplePage { problem, ..page(web, who).await? }))
}

async fn change_role(
    State(web): State<Web>,
    Path(id): Path<String>,
    mut posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let role = role(&web, &posted)?;
    let user = person(&web, &id).await?;
    let what = format!("Then {} is {role}.", user.name);
    if let Some(page) = ask(&web, &mut posted, &format!("/{}/role", user.id), &what).await? {
        return Ok(page);
    }
    let (who, name) = (&posted.who, user.name);
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let outcome = accounts::set_role(db, ambient, &name, &role, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} is {role} now and has to sign in again.")).await
}

async fn disable(
    State(web): State<Web>,
    Path(id): Path<String>,
    mut posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let what = format!("Then {} can no longer sign in.", user.name);
    if let Some(page) = ask(&web, &mut posted, &format!("/{}/disable", user.id), &what).await? {
        return Ok(page);
    }
    let (who, name) = (&posted.who, user.name);
    let actor = who.actor();
    let outcome = accounts::disable(web.engine.db(), web.engine.ambient(), &name, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} can no longer sign in, and is signed out.")).await
}

async fn enable(
    State(web): State<Web>,
    Path(id): Path<String>,
    mut posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let what = format!("Then {} can sign in again.", user.name);
    if let Some(page) = ask(&web, &mut posted, &format!("/{}/enable", user.id), &what).await? {
        return Ok(page);
    }
    let (who, name) = (&posted.who, user.name);
    let actor = who.actor();
    let outcome = accounts::enable(web.engine.db(), web.engine.ambient(), &name, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} can sign in again.")).await
}

async fn new_link(
    State(web): State<Web>,
    Path(id): Path<String>,
    mut posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let what = format!("Then you see a link with which {} sets a password.", user.name);
    if let Some(page) = ask(&web, &mut posted, &format!("/{}/link", user.id), &what).await? {
        return Ok(page);
    }
    show_link(&web, &posted.who, user.name).await
}

/// For somebody whose phone is lost: they sign in with the password alone, and set up another.
async fn remove_second(
    State(web): State<Web>,
    Path(id): Path<String>,
    mut posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let what = format!("Then the second factor of {} is removed.", user.name);
    if let Some(page) = ask(&web, &mut posted, &format!("/{}/second-factor", user.id), &what).await? {
        return Ok(page);
    }
    let (who, name) = (&posted.who, user.name);
    let actor = who.actor();
    let outcome =
        accounts::remove_factors(web.engine.db(), web.engine.ambient(), &name, &who.by(&actor)).await;
    let done = format!("{name} has no second factor any more, and has to sign in again.");
    answer(&web, who, outcome, done).await
}
