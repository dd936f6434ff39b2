//! Adding a passkey, and removing one.

use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use webauthn_rs::prelude::PasskeyRegistration;

use super::codes::CodesPage;
use super::{FactorsPage, layout, page};
use crate::accounts::passkeys::{self, Added};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::page::{render, render_as};
use crate::web::pages::confirm::{self, Asks};
use crate::web::pages::passkey::PasskeyPage;
use crate::web::second::{self, SET_UP};
use crate::web::view::{Field, Reference};

const PASSKEYS: &str = "/account/second-factor/passkeys";
/// The field with the passkey that a browser made.
const MADE: &str = "made";
/// Under which a session keeps what the browser was asked.
const ASKED: &str = "passkey_new";

/// The passkeys' routes.
pub(super) fn routes() -> Router<Web> {
    Router::new()
        .route("/account/second-factor/passkeys", post(add))
        .route("/account/second-factor/passkeys/{id}/remove", post(remove))
}

/// Asks the browser for a new passkey, and takes its answer.
async fn add(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let what = "Then your browser makes the new passkey.";
    let asks = Asks { action: PASSKEYS, what, back: SET_UP };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let site = second::site(&web).map_err(|why| Failure::Conflict(why.to_string()))?;
    let name = match passkeys::checked_label(fields.get("name")) {
        Ok(name) => name,
        Err(error) => {
            let name = Field::wrong(fields.get("name"), sentence(&error.to_string()));
            let page = FactorsPage { name, ..page(&web, &who).await? };
            return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
    };
    if !fields.raw(MADE).is_empty() {
        return made(&web, &who, &site, &name, &fields).await;
    }
    let asked = passkeys::ask_new(web.engine.db(), &site, &who.user).await?;
    who.session.insert(ASKED, asked.state).await?;
    Ok(render(&PasskeyPage {
        layout: layout(&web, &who, "Make a passkey").await?,
        action: PASSKEYS.to_owned(),
        carried: vec![("name".to_owned(), name)],
        kind: "create",
        options: asked.options,
        field: MADE,
        title: "Make a passkey",
        words: "Ask the browser again",
        back: Reference::here("Cancel", SET_UP),
    }))
}

async fn made(
    web: &Web,
    who: &Signed,
    site: &passkeys::Site,
    name: &str,
    fields: &Fields,
) -> Result<Response, Failure> {
    // An answer is good for one question, right or not.
    let state = who.session.remove::<PasskeyRegistration>(ASKED).await?;
    let actor = who.actor();
    let (db, ambient, by) = (web.engine.db(), web.engine.ambient(), who.by(&actor));
    let added = match &state {
        Some(state) => {
            passkeys::add(db, ambient, site, &who.user, name, (fields.raw(MADE), state), &by).await?
        }
        None => Added::Wrong,
    };
    let Added::Done(codes) = added else {
        who.flash(false, "The passkey was not taken. Nothing was changed; try to add it again.").await?;
        return Ok(Redirect::to(SET_UP).into_response());
    };
    who.flash(true, format!("The passkey {name} is yours: it is asked for after your password.")).await?;
    CodesPage::or_back(web, who, codes).await
}

async fn remove(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let id = id.parse().map_err(|_| Failure::NotFound)?;
    let action = format!("{PASSKEYS}/{id}/remove");
    let asks = Asks { action: &action, what: "Then this passkey opens nothing here any more.", back: SET_UP };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    passkeys::remove(web.engine.db(), web.engine.ambient(), &who.user, id, &who.by(&actor)).await?;
    who.flash(true, "The passkey is removed. Delete it from the device too.").await?;
    Ok(Redirect::to(SET_UP).into_response())
}
