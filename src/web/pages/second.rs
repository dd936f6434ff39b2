//! The page between the password and the desk: the second factor.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use tower_sessions::Session;

use super::access::later;
use super::passkey::PasskeyPage;
use crate::accounts::Purpose;
use crate::domain::sign_in::SignInBy;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{self, Came, OpenForm};
use crate::web::page::{Layout, render, render_as};
use crate::web::second::{self, DOOR, Half, PASSKEY, START, Shown};
use crate::web::view::{Field, Reference};

/// `/login/second`
#[derive(Template, Debug)]
#[template(path = "pages/second.html")]
pub struct SecondPage {
    /// Around it.
    pub layout: Layout,
    /// Who signs in.
    pub name: String,
    /// For a code of the app or a recovery code, where there could be one. Its value is never filled.
    pub code: Option<Field>,
    /// There is a passkey.
    pub passkey: bool,
    /// What goes along with it: nothing here.
    pub carried: Vec<(String, String)>,
    /// Why it failed, in words.
    pub problem: Option<String>,
}

/// The page's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/login/second", get(door).post(show))
}

/// Where somebody begins anew who took too long.
fn lapsed() -> Response {
    Redirect::to("/login?lapsed=1").into_response()
}

fn page(web: &Web, half: &Half, problem: Option<String>) -> SecondPage {
    SecondPage {
        layout: Layout::outside("Second factor", ""),
        name: half.user.name.clone(),
        code: half.held.takes_codes().then(Field::default),
        passkey: half.held.passkeys > 0 && second::site(web).is_ok(),
        carried: Vec::new(),
        problem,
    }
}

async fn door(State(web): State<Web>, session: Session) -> Result<Response, Failure> {
    let Some(half) = Half::of(&web, &session).await? else { return Ok(lapsed()) };
    Ok(render(&page(&web, &half, None)))
}

async fn show(State(web): State<Web>, form: OpenForm) -> Result<Response, Failure> {
    let OpenForm { fields, origin, agent, session } = form;
    let Some(half) = Half::of(&web, &session).await? else { return Ok(lapsed()) };
    if fields.get(PASSKEY) == START {
        let layout = Layout::outside("Show your passkey", "");
        let back = Reference::here("Another way", DOOR);
        return Ok(match second::ask_passkey(&web, &session, &half.user).await? {
            Some(options) => render(&PasskeyPage::show(layout, DOOR, Vec::new(), options, back)),
            None => Redirect::to(DOOR).into_response(),
        });
    }
    match second::check(&web, &session, &half.user, &fields, Purpose::SignIn, &origin).await? {
        Shown::Right(told) => {
            let came = Came { by: SignInBy::Password, from: &origin, agent: &agent, shown: None };
            guard::sign_in(&web, &session, &half.user, came).await?;
            if let Some(told) = told {
                guard::say(&session, false, told).await?;
            }
            Ok(Redirect::to(&half.next).into_response())
        }
        Shown::Wrong(words) => {
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page(&web, &half, Some(words.to_owned()))))
        }
        Shown::Later(wait) => Ok(later(wait, |words| page(&web, &half, Some(words)))),
    }
}
