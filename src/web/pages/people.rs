//! Who works here.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use uuid::Uuid;

use super::confirm::{self, Asks};
use crate::accounts::{self, AccountError};
use crate::domain::actor::{Right, Role, Roles, Standing};
use crate::domain::words;
use crate::store::accounts::{UserRow, user_by_id, users};
use crate::store::audit::last_sign_ins;
use crate::store::factors::holders;
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, When};

/// `/people`
#[derive(Template, Debug)]
#[template(path = "pages/people.html")]
pub struct PeoplePage {
    /// Around it.
    pub layout: Layout,
    /// By name.
    pub rows: Vec<PersonRow>,
    /// A link that was made just now, shown this once.
    pub link: Option<OneTimeLink>,
    /// Why something was not done.
    pub problem: Option<String>,
    /// The name of somebody new, as typed.
    pub name: Field,
    /// The roles that they can have.
    pub roles: Vec<Choice>,
    /// The configuration's own roles, and the rights of each.
    pub own_roles: Vec<(String, String)>,
    /// Some sign in at an identity provider, which decides on their roles.
    pub elsewhere: bool,
}

/// One account.
#[derive(Clone, Debug)]
pub struct PersonRow {
    /// Where its forms go.
    pub path: String,
    /// The name on the page of the field that changes the role.
    pub field: String,
    /// The roles that they can have.
    pub roles: Vec<Choice>,
    /// Their name.
    pub name: String,
    /// Their role.
    pub role: Standing,
    /// They may sign in.
    pub active: bool,
    /// They have a second factor.
    pub second: bool,
    /// They have yet to set a password by their link.
    pub no_password: bool,
    /// When the account was made.
    pub created: When,
    /// Their last sign-in.
    pub seen: Option<When>,
    /// It is the reader's own.
    pub own: bool,
}

/// With which somebody sets their password.
#[derive(Clone, Debug)]
pub struct OneTimeLink {
    /// For whom.
    pub name: String,
    /// Its address.
    pub url: String,
}

/// The routes of people.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/people", get(people).post(add))
        .route("/people/{id}/role", post(change_role))
        .route("/people/{id}/disable", post(disable))
        .route("/people/{id}/enable", post(enable))
        .route("/people/{id}/link", post(new_link))
        .route("/people/{id}/second-factor", post(remove_second))
}

async fn people(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::ManagePeople)?;
    Ok(render(&page(&web, &who).await?))
}

async fn page(web: &Web, who: &Signed) -> Result<PeoplePage, Failure> {
    let seen = who.seen(web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let (users, last) = (users(&mut tx).await?, last_sign_ins(&mut tx).await?);
    let holders = holders(&mut tx).await?;
    let layout = list::rail(&mut tx, who.layout("People", Section::People).await).await?;
    drop(tx);
    let known = &web.engine.config().auth.roles;
    let row = |user: UserRow| PersonRow {
        path: format!("/people/{}", user.id),
        field: format!("role-{}", user.id),
        roles: roles(known, &user.role),
        role: known.of(&user.role),
        active: user.disabled_at.is_none(),
        second: holders.contains(&user.id),
        no_password: user.password_hash.is_none() && web.sso.oidc().is_none(),
        created: When::at(user.created_at, seen),
        seen: last.iter().find(|(name, _)| *name == user.name).map(|(_, at)| When::at(*at, seen)),
        own: user.id == who.user.id,
        name: user.name,
    };
    Ok(PeoplePage {
        layout,
        rows: users.into_iter().map(row).collect(),
        link: None,
        problem: None,
        name: Field::default(),
        roles: roles(known, Role::Operator.as_str()),
        own_roles: own_roles(known),
        elsewhere: web.sso.oidc().is_some(),
    })
}

/// All roles, one of them chosen: none while somebody's is no role any more.
pub fn roles(known: &Roles, chosen: &str) -> Vec<Choice> {
    let none = (!known.knows(chosen)).then(|| Choice {
        value: String::new(),
        words: "Choose a role".to_owned(),
        chosen: true,
    });
    let choice = |name: &str| Choice {
        value: name.to_owned(),
        words: name.parse().map_or_else(|_| name.to_owned(), |role: Role| words::role(role).label.to_owned()),
        chosen: name == chosen,
    };
    none.into_iter().chain(known.names().map(choice)).collect()
}

/// The configuration's own roles, and the rights of each.
fn own_roles(known: &Roles) -> Vec<(String, String)> {
    let own = known.names().filter(|name| name.parse::<Role>().is_err());
    own.map(|name| (name.to_owned(), known.of(name).rights().to_string())).collect()
}

fn role(web: &Web, posted: &Posted) -> Result<String, Failure> {
    let name = posted.fields.get("role");
    let known = web.engine.config().auth.roles.knows(name);
    known.then(|| name.to_owned()).ok_or(Failure::BadForm(StatusCode::UNPROCESSABLE_ENTITY))
}

async fn add(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let who = &posted.who;
    who.require(Right::ManagePeople)?;
    let role = role(&web, &posted)?;
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

/// The person that an address names.
pub(super) async fn person(web: &Web, id: &str) -> Result<UserRow, Failure> {
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    user_by_id(&mut tx, id).await?.ok_or(Failure::NotFound)
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
            Ok(Redirect::to("/people").into_response())
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
    posted: Posted,
) -> Result<Response, Failure> {
    let who = &posted.who;
    who.require(Right::ManagePeople)?;
    let role = role(&web, &posted)?;
    let name = person(&web, &id).await?.name;
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let outcome = accounts::set_role(db, ambient, &name, &role, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} is {role} now and has to sign in again.")).await
}

async fn disable(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let who = &posted.who;
    who.require(Right::ManagePeople)?;
    let name = person(&web, &id).await?.name;
    let actor = who.actor();
    let outcome = accounts::disable(web.engine.db(), web.engine.ambient(), &name, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} can no longer sign in, and is signed out.")).await
}

async fn enable(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let who = &posted.who;
    who.require(Right::ManagePeople)?;
    let name = person(&web, &id).await?.name;
    let actor = who.actor();
    let outcome = accounts::enable(web.engine.db(), web.engine.ambient(), &name, &who.by(&actor)).await;
    answer(&web, who, outcome, format!("{name} can sign in again.")).await
}

async fn new_link(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    posted.who.require(Right::ManagePeople)?;
    let name = person(&web, &id).await?.name;
    show_link(&web, &posted.who, name).await
}

/// For somebody whose phone is lost: they sign in with the password alone, and set up another.
async fn remove_second(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    who.require(Right::ManagePeople)?;
    let user = person(&web, &id).await?;
    let action = format!("/people/{}/second-factor", user.id);
    let what = format!("Then the second factor of {} is removed.", user.name);
    if let Some(page) =
        confirm::fresh(&web, &mut who, &fields, &Asks { action: &action, what: &what, back: "/people" })
            .await?
    {
        return Ok(page);
    }
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let outcome = accounts::remove_factors(db, ambient, &user.name, &who.by(&actor)).await;
    let done = format!("{} has no second factor any more, and has to sign in again.", user.name);
    answer(&web, &who, outcome, done).await
}
