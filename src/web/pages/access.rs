//! The doors: sign-in, and one-time links.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use tower_sessions::Session;

use crate::accounts::{self, AccountError, LinkFor, MIN_PASSWORD, NewPassword, Purpose};
use crate::domain::sign_in::SignInBy;
use crate::store::accounts::{UserRow, user_by_name};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Came, OpenForm, Posted, Signed};
use crate::web::page::{Layout, render, render_as};
use crate::web::second;
use crate::web::tell::list;
use crate::web::view::{Field, Seen, When, coarse};

/// `/login`
#[derive(Template, Debug)]
#[template(path = "pages/login.html")]
pub struct LoginPage {
    /// Around it.
    pub layout: Layout,
    /// The name as typed. A wrong name and a wrong password read the same.
    pub name: Field,
    /// Why it failed, in words.
    pub problem: Option<String>,
    /// What was done just now, such as a change of the password.
    pub note: Option<String>,
    /// Where to go after: a path of the desk, checked by the handler.
    pub next: Option<String>,
    /// The way to the identity provider, where there is one.
    pub elsewhere: Option<Elsewhere>,
    /// Whether a name and a password will do.
    pub local: bool,
}

/// The way to the identity provider.
#[derive(Clone, Debug)]
pub struct Elsewhere {
    /// What the button says.
    pub words: String,
    /// Where it leads first.
    pub href: String,
}

/// `/setup/{token}`
#[derive(Template, Debug)]
#[template(path = "pages/setup.html")]
pub struct SetupPage {
    /// Around it.
    pub layout: Layout,
    /// Where the form goes: this page, token included.
    pub action: String,
    /// Whose password is set; absent when the link makes the first account.
    pub person: Option<String>,
    /// The name as typed.
    pub name: Field,
    /// Its value is never filled.
    pub password: Field,
    /// The fewest characters of a password.
    pub shortest: usize,
    /// When the link stops working.
    pub expires: When,
}

impl SetupPage {
    /// What a password has to be.
    pub fn hint(&self) -> String {
        password_hint(self.shortest)
    }

    /// Something has to be put right.
    pub fn wrong(&self) -> bool {
        self.name.error.is_some() || self.password.error.is_some()
    }
}

/// What a new password has to be, said before it is typed.
pub(super) fn password_hint(shortest: usize) -> String {
    format!(
        "At least {shortest} characters; 15 or more are better. Any characters will do: a few words that do not belong \
         together are good."
    )
}

/// The doors' routes.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/login", get(login).post(sign_in))
        .route("/logout", post(sign_out))
        .route("/setup/{token}", get(setup).post(use_setup))
}

/// The page as it is at first.
pub(super) fn login_page(web: &Web, next: Option<String>) -> LoginPage {
    let auth = &web.engine.config().auth;
    let href = || {
        let pairs: Vec<(&'static str, String)> = next.iter().map(|next| ("next", next.clone())).collect();
        list::address("/login/oidc", &pairs)
    };
    LoginPage {
        layout: Layout::outside("Sign in", ""),
        name: Field::default(),
        problem: None,
        note: None,
        elsewhere: auth.oidc.as_ref().map(|oidc| Elsewhere { words: oidc.button.clone(), href: href() }),
        local: auth.local,
        next,
    }
}

async fn login(
    State(web): State<Web>,
    Query(asked): Query<Vec<(String, String)>>,
    who: Option<Signed>,
) -> Response {
    if who.is_some() {
        return Redirect::to("/").into_response();
    }
    let asked = |name: &str| asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.clone());
    let mut page = login_page(&web, asked("next").filter(|path| is_local(path)));
    let left = match page.elsewhere {
        Some(_) => {
            "You are signed out here. The identity provider may still know you: sign out there too if others use \
             this browser."
        }
        None => "You are signed out.",
    };
    page.note = [
        ("changed", "Your password is changed. Sign in with the new one."),
        ("set", "Your password is set. Sign in with it."),
        ("left", left),
        ("lapsed", "Your second factor has to follow within 5 minutes. Sign in again."),
    ]
    .into_iter()
    .find_map(|(name, words)| asked(name).map(|_| words.to_owned()));
    render(&page)
}

async fn sign_in(State(web): State<Web>, form: OpenForm) -> Result<Response, Failure> {
    let OpenForm { fields, origin, agent, session } = form;
    let name = fields.get("name");
    let next = Some(fields.get("next")).filter(|path| is_local(path));
    if !web.engine.config().auth.local {
        let mut page = login_page(&web, next.map(str::to_owned));
        page.problem = Some("Nobody signs in with a password here. Use the button.".to_owned());
        return Ok(render_as(StatusCode::FORBIDDEN, &page));
    }
    let password = fields.raw("password").to_owned();
    let checked = check_password(&web, name, password, Purpose::SignIn, &origin).await?;
    let refused = match checked {
        Checked::Right(user) => {
            let came = Came { by: SignInBy::Password, from: &origin, agent: &agent, shown: None };
            let next = next.unwrap_or("/");
            return Ok(second::come_in(&web, &session, &user, came, next).await?.into_response());
        }
        refused => refused,
    };
    let page = LoginPage {
        name: Field::of(name),
        problem: refused.words("That name and password do not belong together."),
        ..login_page(&web, next.map(str::to_owned))
    };
    Ok(refused.answer(&page))
}

async fn sign_out(State(web): State<Web>, posted: Posted) -> Result<Redirect, Failure> {
    posted.who.sign_out(&web).await?;
    Ok(Redirect::to("/login?left=1"))
}

/// What came of a password that somebody typed.
pub(super) enum Checked {
    /// It is this person's.
    Right(Box<UserRow>),
    /// It is not, or nobody has the name, or the account is disabled.
    Wrong,
    /// It was not looked at, since too many were tried. How long to wait.
    Later(Duration),
}

impl Checked {
    /// Why not, with `wrong` for a password that is not right.
    pub(super) fn words(&self, wrong: &str) -> Option<String> {
        match self {
            Self::Right(_) => None,
            Self::Wrong => Some(wrong.to_owned()),
            Self::Later(wait) => Some(too_many(*wait)),
        }
    }

    /// The form again.
    pub(super) fn answer(&self, page: &impl Template) -> Response {
        match self {
            Self::Later(wait) => after(*wait, page),
            _ => render_as(StatusCode::UNPROCESSABLE_ENTITY, page),
        }
    }
}

/// Rounded up, so that nobody is told to come too early.
fn whole_seconds(wait: Duration) -> u64 {
    wait.as_millis().div_ceil(1_000).try_into().unwrap_or(u64::MAX)
}

fn too_many(wait: Duration) -> String {
    let wait = coarse(Duration::from_secs(whole_seconds(wait)));
    format!("There were too many tries. Wait {wait}, then try again.")
}

fn after(wait: Duration, page: &impl Template) -> Response {
    let mut response = render_as(StatusCode::TOO_MANY_REQUESTS, page);
    response.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(whole_seconds(wait)));
    response
}

/// The answer to a try too many: a page with these words on it.
pub(super) fn later<T: Template>(wait: Duration, page: impl FnOnce(String) -> T) -> Response {
    after(wait, &page(too_many(wait)))
}

/// Checks a password at a door: not too often, and on record.
pub(super) async fn check_password(
    web: &Web,
    name: &str,
    password: String,
    purpose: Purpose,
    origin: &str,
) -> Result<Checked, Failure> {
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    match accounts::sign_in_from(db, ambient, name, password, purpose, origin).await {
        Ok(Some(user)) => Ok(Checked::Right(Box::new(user))),
        Ok(None) => Ok(Checked::Wrong),
        Err(AccountError::Later(wait)) => {
            tracing::warn!(origin, "too many sign-ins were tried");
            Ok(Checked::Later(wait))
        }
        Err(error) => Err(error.into()),
    }
}

/// A path of the desk itself. Browsers take `//host` and `/\host` for another site, and drop tabs
/// and line ends before they look.
pub(super) fn is_local(path: &str) -> bool {
    path.starts_with('/')
        && !path.starts_with("//")
        && path.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\')
}

async fn setup(State(web): State<Web>, Path(token): Path<String>) -> Result<Response, Failure> {
    let page = setup_page(&web, &token).await?;
    Ok(render(&page))
}

async fn setup_page(web: &Web, token: &str) -> Result<SetupPage, Failure> {
    let ambient = web.engine.ambient();
    let (purpose, expires) = accounts::link_details(web.engine.db(), ambient, token).await?;
    let person = match purpose {
        LinkFor::FirstAdmin => None,
        LinkFor::Password(name) => Some(name),
    };
    let title = if person.is_some() { "Set your password" } else { "First account" };
    Ok(SetupPage {
        layout: Layout::outside(title, ""),
        action: format!("/setup/{token}"),
        person,
        name: Field::default(),
        password: Field::default(),
        shortest: MIN_PASSWORD,
        expires: When::at(expires, Seen::by_nobody(ambient.now())),
    })
}

async fn use_setup(
    State(web): State<Web>,
    Path(token): Path<String>,
    form: OpenForm,
) -> Result<Response, Failure> {
    let OpenForm { fields, origin, agent, session } = form;
    let mut page = setup_page(&web, &token).await?;
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let (name, password) = (fields.get("name"), new_password(&web, fields.raw("password")));
    page.name = Field::of(name);
    match accounts::use_link(db, ambient, &token, name, password, &origin).await {
        // A link proves that somebody was handed it and nothing else: they come in by the door. Where
        // no password opens that, the link is the way in should the provider be gone.
        Ok(_) if page.person.is_some() && web.engine.config().auth.local => {
            Ok(Redirect::to("/login?set").into_response())
        }
        Ok(name) => {
            let came = Came { by: SignInBy::Password, from: &origin, agent: &agent, shown: None };
            enter(&web, &session, &name, came).await
        }
        Err(error @ AccountError::Name(_)) => {
            page.name.error = Some(sentence(&error.to_string()));
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error @ AccountError::Password(_)) => {
            page.password.error = Some(sentence(&error.to_string()));
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error) => Err(error.into()),
    }
}

/// A password that somebody chose for this desk.
pub(super) fn new_password(web: &Web, text: &str) -> NewPassword {
    let host = web.engine.config().server.public_url.host_str().unwrap_or_default();
    NewPassword::from(text).at(host)
}

/// Lets somebody in who has just chosen their password, the second factor asked for all the same.
async fn enter(web: &Web, session: &Session, name: &str, came: Came<'_>) -> Result<Response, Failure> {
    let mut tx = web.engine.db().read().await?;
    let user = user_by_name(&mut tx, name).await?.ok_or(Failure::NotFound)?;
    drop(tx);
    if !second::is_asked(came.by, second::held(web, &user).await?) {
        accounts::came_in_by_link(web.engine.db(), web.engine.ambient(), &user, came.from).await?;
    }
    Ok(second::come_in(web, session, &user, came, "/").await?.into_response())
}

#[cfg(test)]
mod tests {
    use super::is_local;

    #[test]
    fn only_paths_of_the_desk_are_followed() {
        for path in ["/", "/dead-letters?status=open&page=2", "/operations/1#e3"] {
            assert!(is_local(path), "{path}");
        }
        for path in
            ["", "x", "//evil.example", "/\\evil.example", "/\t/evil.example", "https://evil.example", "/ä"]
        {
            assert!(!is_local(path), "{path}");
        }
    }
}
