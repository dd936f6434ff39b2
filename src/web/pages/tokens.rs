//! With what programs call the API.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};
use uuid::Uuid;

use super::confirm::{self, Asks};
use crate::accounts::{self, AccountError};
use crate::domain::actor::{Right, Scope};
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::accounts::{TokenRow, tokens as stored};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, Seen, When};

/// How long a new token may work, in days; zero for one that works until it is revoked.
const SPANS: [(u64, &str); 5] =
    [(7, "7 days"), (30, "30 days"), (90, "90 days"), (365, "a year"), (0, "until it is revoked")];
/// What is chosen at first.
const USUAL: u64 = 90;

const PATH: &str = "/tokens";

/// `/tokens`
#[derive(Template, Debug)]
#[template(path = "pages/tokens.html")]
pub struct TokensPage {
    /// Around it.
    pub layout: Layout,
    /// Those that work first, then by name.
    pub rows: Vec<TokenView>,
    /// One that was made just now, shown this once: its name and its secret.
    pub made: Option<(String, String)>,
    /// The name of a new one, as typed.
    pub name: Field,
    /// What it can be for.
    pub scopes: Vec<Choice>,
    /// How long it can work.
    pub spans: Vec<Choice>,
    /// Where the reader can show who they are first, when their sign-in is not fresh.
    pub confirm: Option<String>,
}

/// One token.
#[derive(Clone, Debug)]
pub struct TokenView {
    /// Its name.
    pub name: String,
    /// What it is for.
    pub scope: Scope,
    /// Who made it.
    pub by: String,
    /// When.
    pub since: When,
    /// Its last use, to the minute.
    pub used: Option<When>,
    /// Whether it works.
    pub state: TokenState,
}

/// Whether a token works.
#[derive(Clone, Debug)]
pub enum TokenState {
    /// It does.
    Works {
        /// Until when; absent for one that works until it is revoked.
        until: Option<When>,
        /// Where the form goes that revokes it.
        revoke: String,
    },
    /// Its time is over, since then.
    Lapsed(When),
    /// Somebody revoked it, then.
    Revoked(When),
}

/// The page's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/tokens", get(show).post(create)).route("/tokens/{id}/revoke", post(revoke))
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::ManageTokens)?;
    Ok(render(&page(&web, &who).await?))
}

async fn page(web: &Web, who: &Signed) -> Result<TokensPage, Failure> {
    let now = web.engine.ambient().now();
    let mut tx = web.engine.db().read().await?;
    let mut rows = stored(&mut tx).await?;
    let layout = list::rail(&mut tx, who.layout("Tokens", Section::Tokens).await).await?;
    drop(tx);
    rows.sort_by_key(|row| !works(row, now));
    Ok(TokensPage {
        layout,
        rows: rows.into_iter().map(|row| token(row, who.seen(now))).collect(),
        made: None,
        name: Field::default(),
        scopes: scopes(Scope::Submit),
        spans: spans(USUAL),
        confirm: confirm::before(web, who, PATH),
    })
}

fn works(row: &TokenRow, now: Timestamp) -> bool {
    row.revoked_at.is_none() && row.expires_at.is_none_or(|end| end > now)
}

fn token(row: TokenRow, seen: Seen) -> TokenView {
    let at = |moment| When::at(moment, seen);
    let state = match (row.revoked_at, row.expires_at) {
        (Some(moment), _) => TokenState::Revoked(at(moment)),
        (None, Some(end)) if end <= seen.now => TokenState::Lapsed(at(end)),
        (None, end) => TokenState::Works { until: end.map(at), revoke: format!("/tokens/{}/revoke", row.id) },
    };
    TokenView {
        scope: row.scope,
        since: at(row.created_at),
        used: row.last_used_at.map(at),
        state,
        name: row.name,
        by: row.created_by,
    }
}

/// All scopes, one of them chosen.
pub fn scopes(chosen: Scope) -> Vec<Choice> {
    let choice = |&each: &Scope| {
        let words::Label { label, explanation } = words::scope(each);
        Choice { value: each.to_string(), words: format!("{label}. {explanation}"), chosen: each == chosen }
    };
    Scope::ALL.iter().map(choice).collect()
}

/// How long a token may work, one of them chosen.
pub fn spans(chosen: u64) -> Vec<Choice> {
    let choice = |(days, words): (u64, &str)| Choice {
        value: days.to_string(),
        words: words.to_owned(),
        chosen: days == chosen,
    };
    SPANS.map(choice).into()
}

async fn create(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    who.require(Right::ManageTokens)?;
    let unknown = |_| Failure::BadForm(StatusCode::UNPROCESSABLE_ENTITY);
    let scope: Scope = fields.get("scope").parse().map_err(unknown)?;
    let Some((days, _)) = SPANS.into_iter().find(|(days, _)| fields.get("days") == days.to_string()) else {
        return Err(Failure::BadForm(StatusCode::UNPROCESSABLE_ENTITY));
    };
    let asks = Asks { action: PATH, what: "Then you see the new token.", back: PATH };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let lasts = (days > 0).then(|| Duration::from_hours(24 * days));
    let name = fields.get("name");
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    match accounts::create_token(db, ambient, name, scope, lasts, &who.by(&actor)).await {
        // It is shown in the answer itself: it is kept nowhere it could be read again.
        Ok(secret) => {
            let made = Some((name.to_owned(), secret));
            Ok(render(&TokensPage { made, ..page(&web, &who).await? }))
        }
        Err(error @ AccountError::Name(_)) => {
            let name = Field::wrong(name, sentence(&error.to_string()));
            let again = page(&web, &who).await?;
            let again = TokensPage { name, scopes: scopes(scope), spans: spans(days), ..again };
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &again))
        }
        Err(error) => Err(error.into()),
    }
}

async fn revoke(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let who = posted.who;
    who.require(Right::ManageTokens)?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    let row = stored(&mut tx).await?.into_iter().find(|row| row.id == id).ok_or(Failure::NotFound)?;
    drop(tx);
    let actor = who.actor();
    let (db, ambient) = (web.engine.db(), web.engine.ambient());
    let text = match accounts::revoke_token(db, ambient, &row.name, &who.by(&actor)).await {
        Ok(()) => format!("The token {} no longer works.", row.name),
        Err(AccountError::Unknown(_)) => format!("The token {} was revoked already.", row.name),
        Err(error) => return Err(error.into()),
    };
    web.tokens.forget();
    who.flash(true, text).await?;
    Ok(Redirect::to(PATH).into_response())
}
