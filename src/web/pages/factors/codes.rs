//! Recovery codes, in the answer to the form that made them: they are kept nowhere they could be
//! read again.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;

use super::layout;
use crate::accounts;
use crate::domain::actor::Right;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::page::{Layout, Section, render};
use crate::web::pages::confirm::{self, Asks};
use crate::web::second::SET_UP;

/// `/account/second-factor/codes`, once.
#[derive(Template, Debug)]
#[template(path = "pages/factor_codes.html")]
pub struct CodesPage {
    /// Around it.
    pub layout: Layout,
    /// Whose they are: it stands on the paper.
    pub name: String,
    /// The codes.
    pub codes: Vec<String>,
}

impl CodesPage {
    /// New codes, where there are some; else the page of the second factor.
    pub(super) async fn or_back(
        web: &Web,
        who: &Signed,
        codes: Option<Vec<String>>,
    ) -> Result<Response, Failure> {
        let Some(codes) = codes else { return Ok(Redirect::to(SET_UP).into_response()) };
        let layout = layout(web, who, "Recovery codes").await?;
        Ok(render(&Self { layout, name: who.user.name.clone(), codes }))
    }
}

/// The codes' routes.
pub(super) fn routes() -> Router<Web> {
    Router::new().route("/account/second-factor/codes", post(make))
}

async fn make(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    let what = "Then new recovery codes take the place of those that you have.";
    let asks = Asks { action: "/account/second-factor/codes", what, back: SET_UP };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    let codes =
        accounts::new_codes(web.engine.db(), web.engine.ambient(), &who.user, &who.by(&actor)).await?;
    CodesPage::or_back(&web, &who, Some(codes)).await
}
