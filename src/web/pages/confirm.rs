//! What needs a fresh sign-in asks again who sits there, and then goes on with what was typed.

use askama::Template;
use axum::Router;
use axum::extract::{Query, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use super::access::{check_password, is_local, later};
use super::passkey::PasskeyPage;
use crate::accounts::Purpose;
use crate::domain::actor::Right;
use crate::domain::sign_in::SignInBy;
use crate::store::factors::Held;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::second::{self, CREDENTIAL, PASSKEY, START, Shown};
use crate::web::tell::list;
use crate::web::typed;
use crate::web::view::{Field, Reference};

/// `/confirm`, and the answer to any form that needs a fresh sign-in and came without one.
#[derive(Template, Debug)]
#[template(path = "pages/confirm.html")]
pub struct ConfirmPage {
    /// Around it.
    pub layout: Layout,
    /// Who they are to be, for the browser's store of passwords.
    pub name: String,
    /// What waits for it, in a sentence.
    pub what: String,
    /// Where the form goes: to where it was going.
    pub action: String,
    /// What was typed before, which goes with it.
    pub carried: Vec<(String, String)>,
    /// By what they can show who they are.
    pub by: Ways,
    /// Why it failed, in words, where that is about no field.
    pub problem: Option<String>,
    /// Back to where they were.
    pub back: Reference,
}

/// By what somebody can show who they are.
#[derive(Clone, Debug)]
pub enum Ways {
    /// By what they keep here.
    Own {
        /// Their password, unless a passkey is all that is asked for. Its value is never filled.
        password: Option<Field>,
        /// A code beside it, where they have a second factor. Its value is never filled.
        code: Option<Field>,
        /// There is a passkey, which is enough alone.
        passkey: bool,
    },
    /// By their provider: its address; and what was typed, which does not come along.
    Provider(String, Vec<(String, String)>),
}

impl Ways {
    fn of(web: &Web, who: &Signed, held: Held, carried: &[(String, String)], back: &str) -> Self {
        if who.entry.by == SignInBy::Oidc {
            return Self::Provider(href(who, back), typed::written(carried.iter().cloned()));
        }
        let code = held.any().then(Field::default).filter(|_| held.takes_codes());
        let password = (!held.any() || code.is_some()).then(Field::default);
        Self::Own { password, code, passkey: held.passkeys > 0 && second::site(web).is_ok() }
    }
}

/// Where somebody can show who they are before they type anything, and comes back to `next`.
fn href(who: &Signed, next: &str) -> String {
    let next: String = url::form_urlencoded::byte_serialize(next.as_bytes()).collect();
    match who.entry.by {
        SignInBy::Password => format!("/confirm?next={next}"),
        SignInBy::Oidc => format!("/login/oidc?confirm=1&next={next}"),
    }
}

/// The same for a page whose form will ask; absent while the sign-in is fresh.
pub(super) fn before(web: &Web, who: &Signed, page: &str) -> Option<String> {
    (!who.fresh(web.engine.ambient().now())).then(|| href(who, page))
}

/// What is about to be done by somebody whose sign-in may not be fresh.
pub(super) struct Asks<'a> {
    /// Where the form went.
    pub(super) action: &'a str,
    /// What it does, in a sentence.
    pub(super) what: &'a str,
    /// The page that the form is on.
    pub(super) back: &'a str,
}

/// Has somebody whose sign-in is not fresh show that it is they who sit there. Absent when they did,
/// now or a moment ago; else the page that asks them, on which everything that was typed goes along.
pub(super) async fn fresh(
    web: &Web,
    who: &mut Signed,
    fields: &Fields,
    asks: &Asks<'_>,
) -> Result<Option<Response>, Failure> {
    if who.fresh(web.engine.ambient().now()) {
        return Ok(None);
    }
    let held = second::held(web, &who.user).await?;
    let carried = fields.without(&["csrf", "password", "code", PASSKEY, CREDENTIAL]);
    let mut page = page(web, who, held, carried, asks).await?;
    let Ways::Own { password, code, passkey } = &mut page.by else { return Ok(Some(unshown(&page))) };
    if *passkey
        && fields.get(PASSKEY) == START
        && let Some(options) = second::ask_passkey(web, &who.session, &who.user).await?
    {
        let ConfirmPage { layout, carried, back, .. } = page;
        return Ok(Some(render(&PasskeyPage::show(layout, asks.action, carried, options, back))));
    }
    let by_passkey = *passkey && !fields.raw(CREDENTIAL).is_empty();
    if !by_passkey {
        let given = fields.raw("password");
        if given.is_empty() || password.is_none() {
            return Ok(Some(unshown(&page)));
        }
        if let Some(code) = code.as_mut().filter(|_| fields.get("code").is_empty()) {
            *code = Field::wrong("", "Give a code too.");
            return Ok(Some(unshown(&page)));
        }
        let name = &who.user.name;
        let checked = check_password(web, name, given.to_owned(), Purpose::Confirm, &who.origin).await?;
        if let Some(words) = checked.words("That is not your password.") {
            *password = Some(Field::wrong("", words));
            return Ok(Some(checked.answer(&page)));
        }
    }
    let mut told = None;
    if held.any() {
        match second::check(web, &who.session, &who.user, fields, Purpose::Confirm, &who.origin).await? {
            Shown::Right(words) => told = words,
            Shown::Wrong(words) => {
                page.problem = Some(words.to_owned());
                return Ok(Some(unshown(&page)));
            }
            Shown::Later(wait) => {
                return Ok(Some(later(wait, |words| {
                    page.problem = Some(words);
                    page
                })));
            }
        }
    }
    who.renew(web).await?;
    if let Some(told) = told {
        who.flash(false, told).await?;
    }
    Ok(None)
}

fn unshown(page: &ConfirmPage) -> Response {
    render_as(StatusCode::UNPROCESSABLE_ENTITY, page)
}

async fn page(
    web: &Web,
    who: &Signed,
    held: Held,
    carried: Vec<(String, String)>,
    asks: &Asks<'_>,
) -> Result<ConfirmPage, Failure> {
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, who.layout("Confirm that it is you", Section::Account).await).await?;
    drop(tx);
    Ok(ConfirmPage {
        layout,
        name: who.user.name.clone(),
        what: asks.what.to_owned(),
        action: asks.action.to_owned(),
        by: Ways::of(web, who, held, &carried, asks.back),
        carried,
        problem: None,
        back: Reference::here("Cancel", asks.back),
    })
}

/// The page's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/confirm", get(ask).post(confirm))
}

const WHAT: &str = "You go on to the page that needs it.";

async fn ask(
    State(web): State<Web>,
    Query(asked): Query<Vec<(String, String)>>,
    who: Signed,
) -> Result<Response, Failure> {
    let next = asked.into_iter().find(|(name, path)| name == "next" && is_local(path));
    let next = next.map_or_else(|| "/".to_owned(), |(_, path)| path);
    let held = second::held(&web, &who.user).await?;
    let asks = Asks { action: "/confirm", what: WHAT, back: &next };
    Ok(render(&page(&web, &who, held, vec![("next".to_owned(), next.clone())], &asks).await?))
}

async fn confirm(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let next = Some(fields.get("next")).filter(|path| is_local(path)).unwrap_or("/").to_owned();
    let asks = Asks { action: "/confirm", what: WHAT, back: &next };
    Ok(match fresh(&web, &mut who, &fields, &asks).await? {
        Some(page) => page,
        None => Redirect::to(&next).into_response(),
    })
}
