//! Sign-in at an identity provider: there, and back.
//!
//! Both addresses are asked by GET, as the protocol has it, and the second makes a session: the one
//! exception to looking changes nothing. Another site cannot use it: what comes back has to name the
//! secret that this browser's session keeps, and the provider's token the one that it was asked with.

use std::time::Duration;

use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::http::request::Parts;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde::{Deserialize, Serialize};
use subtle::ConstantTimeEq as _;
use tower_sessions::Session;

use super::access::{LoginPage, is_local, later, login_page};
use crate::accounts::{self, Entry};
use crate::config::Oidc;
use crate::domain::identity::Identity;
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;
use crate::domain::words::one_line;
use crate::engine::sso::{Begun, SsoError};
use crate::web::failure::Failure;
use crate::web::guard::{self, Came, Signed};
use crate::web::page::render_as;
use crate::web::{Web, agent, rates, second};

/// Where the browser's session keeps a sign-in under way: the last that was begun.
const UNDER_WAY: &str = "oidc";
/// Long enough to find a telephone.
const LASTS: Duration = Duration::from_mins(10);

/// What has to be known when the browser comes back.
#[derive(Serialize, Deserialize)]
struct UnderWay {
    begun: Begun,
    at: i64,
    /// A path of the desk.
    next: String,
    /// Somebody who is signed in shows that it is they who sit there.
    confirm: bool,
}

/// The provider's routes.
pub(super) fn routes() -> Router<Web> {
    Router::new().route("/login/oidc", get(begin)).route("/login/oidc/back", get(back))
}

async fn begin(
    State(web): State<Web>,
    session: Session,
    who: Option<Signed>,
    Query(asked): Query<Vec<(String, String)>>,
    parts: Parts,
) -> Result<Response, Failure> {
    let oidc = web.sso.oidc().ok_or(Failure::NotFound)?;
    let asked = |name: &str| asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let next = asked("next").filter(|path| is_local(path)).unwrap_or("/").to_owned();
    let confirm = asked("confirm").is_some() && who.is_some();
    if who.is_some() && !confirm {
        return Ok(Redirect::to(&next).into_response());
    }
    // Each makes a session. What another site's page can set off in the name of an address must not
    // be held against it for long, as a wrong password is.
    if who.is_none()
        && let Some(stranger) = rates::stranger(&parts)
        && let Err(exceeded) = web.rates.take(&stranger)
    {
        let wait = Duration::from_secs(exceeded.wait);
        return Ok(later(wait, |words| page(&web, Some(next), &words)));
    }
    match web.sso.begin(oidc, confirm).await {
        Ok((url, begun)) => {
            let at = web.engine.ambient().now().as_micros();
            session.insert(UNDER_WAY, UnderWay { begun, at, next, confirm }).await?;
            Ok(Redirect::to(url.as_str()).into_response())
        }
        // Nobody has tried to come in yet: that is for the log alone.
        Err(error) => Ok(failed(&web, &error, next)),
    }
}

async fn back(
    State(web): State<Web>,
    session: Session,
    who: Option<Signed>,
    Query(answer): Query<Vec<(String, String)>>,
    parts: Parts,
) -> Result<Response, Failure> {
    let oidc = web.sso.oidc().ok_or(Failure::NotFound)?;
    let answer = |name: &str| answer.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let origin = guard::client(&parts);
    let Some(UnderWay { begun, next, confirm, .. }) = under_way(&web, &session, answer("state")).await?
    else {
        let why = "This sign-in was not begun in this browser, took too long, or was finished already. Begin again.";
        return Ok(refused(&web, StatusCode::FORBIDDEN, None, why));
    };
    if let Some(error) = answer("error") {
        let said = one_line(answer("error_description").unwrap_or(error));
        accounts::refused_elsewhere(
            web.engine.db(),
            web.engine.ambient(),
            &format!("{} said {}: {said}", oidc.issuer, one_line(error)),
            &origin,
        )
        .await?;
        let why = format!("You were not signed in. The identity provider says: \u{201c}{said}\u{201d}.");
        return Ok(refused(&web, StatusCode::FORBIDDEN, Some(next), &why));
    }
    // Where it says whose answer this is, it is the one that was asked.
    let identity = match (answer("code"), answer("iss")) {
        (Some(code), None) => web.sso.end(oidc, begun, code.to_owned()).await,
        (Some(code), Some(issuer)) if issuer == oidc.issuer => {
            web.sso.end(oidc, begun, code.to_owned()).await
        }
        (Some(_), Some(_)) => Err(SsoError::Invalid("the answer is another provider's".to_owned())),
        (None, _) => Err(SsoError::Invalid("there is no code".to_owned())),
    };
    let identity = match identity {
        Ok(identity) => identity,
        Err(error) => {
            let (db, ambient) = (web.engine.db(), web.engine.ambient());
            accounts::refused_elsewhere(db, ambient, &error.to_string(), &origin).await?;
            return Ok(failed(&web, &error, next));
        }
    };
    match who {
        Some(who) if confirm => confirmed(&web, who, &identity, &next).await,
        _ => {
            let agent = agent::of(&parts.headers);
            enter(&web, &session, oidc, &identity, next, (&origin, &agent)).await
        }
    }
}

/// The sign-in that this answer belongs to. It is used up: an answer counts once.
async fn under_way(web: &Web, session: &Session, state: Option<&str>) -> Result<Option<UnderWay>, Failure> {
    let Some(found) = session.get::<UnderWay>(UNDER_WAY).await? else { return Ok(None) };
    let ours = state.is_some_and(|state| bool::from(state.as_bytes().ct_eq(found.begun.state.as_bytes())));
    if !ours {
        return Ok(None);
    }
    session.remove_value(UNDER_WAY).await?;
    let age = web.engine.ambient().now().since(Timestamp::from_micros(found.at));
    Ok((age < LASTS).then_some(found))
}

async fn enter(
    web: &Web,
    session: &Session,
    oidc: &Oidc,
    identity: &Identity,
    next: String,
    (origin, agent): (&str, &str),
) -> Result<Response, Failure> {
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let why = match accounts::sign_in_elsewhere(db, ambient, identity, origin).await? {
        Entry::In(user) => {
            // A provider may know who sits there from this morning: that is no fresh sign-in. Where it does not
            // say since when, it may be from ever so long ago.
            let shown = Some(identity.asked_at.unwrap_or(Timestamp::from_micros(0)));
            let came = Came { by: SignInBy::Oidc, from: origin, agent, shown };
            return Ok(second::come_in(web, session, &user, came, &next).await?.into_response());
        }
        Entry::Disabled => "Your account here is disabled. An administrator can let you in again.".to_owned(),
        Entry::NoRole => format!(
            "The identity provider knows you as {}, and nothing that it says of you stands for a role here. Ask an \
             administrator which group you need.",
            one_line(&identity.name)
        ),
    };
    tracing::info!(issuer = oidc.issuer, "somebody was not let in");
    Ok(refused(web, StatusCode::FORBIDDEN, None, &why))
}

/// They showed that it is they who sit there, or somebody else did.
async fn confirmed(web: &Web, mut who: Signed, identity: &Identity, next: &str) -> Result<Response, Failure> {
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    if !accounts::signed_in_again(db, ambient, &who.user, identity, &who.origin).await? {
        let text = format!(
            "Somebody else signed in at the identity provider. You are still {} here.",
            who.user.name
        );
        return Err(Failure::Conflict(text));
    }
    who.renew(web).await?;
    Ok(Redirect::to(next).into_response())
}

/// The sign-in again, with why the provider did not lead in. Details are for the log.
fn failed(web: &Web, error: &SsoError, next: String) -> Response {
    tracing::warn!(%error, "a sign-in at the identity provider failed");
    let (status, why) = match error {
        SsoError::Unreachable(_) => (
            StatusCode::SERVICE_UNAVAILABLE,
            "The identity provider does not answer as it should. Try again in a minute; if it stays, tell an \
             administrator: the log says more.",
        ),
        SsoError::Refused(_) | SsoError::Invalid(_) => (
            StatusCode::FORBIDDEN,
            "What the identity provider sent does not hold, so you were not signed in. Begin again; if it stays, \
             tell an administrator: the log says more.",
        ),
    };
    refused(web, status, Some(next), why)
}

fn refused(web: &Web, status: StatusCode, next: Option<String>, why: &str) -> Response {
    render_as(status, &page(web, next, why))
}

/// The sign-in again, with what stands in the way.
fn page(web: &Web, next: Option<String>, why: &str) -> LoginPage {
    let page = login_page(web, next.filter(|path| path != "/"));
    LoginPage { problem: Some(why.to_owned()), ..page }
}
