//! Who works here.

mod acts;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use super::confirm;
use crate::domain::actor::{Right, Role, Roles, Standing};
use crate::domain::words;
use crate::store::accounts::{UserRow, user_by_id, users};
use crate::store::audit::last_sign_ins;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{Field, When};

const PATH: &str = "/people";

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
    /// Where the reader can show who they are first, when their sign-in is not fresh.
    pub confirm: Option<String>,
}

/// One account.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "facts that the page shows one by one")]
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
    Router::new().route("/people", get(people).post(acts::add)).merge(acts::routes())
}

async fn people(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::ManagePeople)?;
    Ok(render(&page(&web, &who).await?))
}

async fn page(web: &Web, who: &Signed) -> Result<PeoplePage, Failure> {
    let seen = who.seen(web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let (users, last) = (users(&mut tx).await?, last_sign_ins(&mut tx).await?);
    let layout = list::rail(&mut tx, who.layout("People", Section::People).await).await?;
    drop(tx);
    let known = &web.engine.config().auth.roles;
    let row = |user: UserRow| PersonRow {
        path: format!("/people/{}", user.id),
        field: format!("role-{}", user.id),
        roles: roles(known, &user.role),
        role: known.of(&user.role),
        active: user.disabled_at.is_none(),
        second: user.second_factor,
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
        confirm: confirm::before(web, who, PATH),
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

/// The person that an address names.
pub(super) async fn person(web: &Web, id: &str) -> Result<UserRow, Failure> {
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    user_by_id(&mut tx, id).await?.ok_or(Failure::NotFound)
}
