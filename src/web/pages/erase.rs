//! Erasing what is known of one subject. The value is never in an address: those are kept in
//! browsers and in logs.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::{IntoResponse as _, Redirect, Response};
use axum::routing::get;

use super::case;
use super::confirm::{self, Asks};
use crate::domain::actor::Right;
use crate::engine::actions::{ActionError, Request};
use crate::engine::erasure::{self, Subject, Survey};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::listing::Choice;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, Reference};

const PATH: &str = "/erase";

/// `/erase`
#[derive(Template, Debug)]
#[template(path = "pages/erase.html")]
pub struct ErasePage {
    /// Around it.
    pub layout: Layout,
    /// The names that operations are searched by.
    pub names: Vec<Choice>,
    /// Whose data.
    pub value: Field,
    /// What was found; absent before anybody looked.
    pub found: Option<Found>,
    /// Where the reader can show who they are first, when their sign-in is not fresh.
    pub confirm: Option<String>,
}

/// What would go, and the form that has it go.
#[derive(Clone, Debug)]
pub struct Found {
    /// "customer"
    pub name: String,
    /// One click erases once.
    pub action_id: String,
    /// Operations that can be erased.
    pub settled: usize,
    /// Operations that have to be settled first.
    pub unsettled: usize,
    /// The first of those.
    pub named: Vec<Reference>,
    /// The value, once more.
    pub again: Field,
    /// In their words.
    pub reason: Field,
}

/// The page's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/erase", get(show).post(act))
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::Erase)?;
    Ok(render(&page(&web, &who, "", Field::default(), None).await?))
}

async fn page(
    web: &Web,
    who: &Signed,
    name: &str,
    value: Field,
    found: Option<Found>,
) -> Result<ErasePage, Failure> {
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, who.layout("Erase", Section::Erase).await).await?;
    let choice =
        |known: &str| Choice { value: known.to_owned(), words: known.to_owned(), chosen: known == name };
    let names = erasure::names(web.engine.config()).into_iter().map(choice).collect();
    Ok(ErasePage { layout, names, value, found, confirm: confirm::before(web, who, PATH) })
}

async fn act(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    who.require(Right::Erase)?;
    let (name, value) = (fields.get("name"), fields.get("value"));
    let subject = match Subject::new(web.engine.config(), name, value) {
        Ok(subject) => subject,
        Err(ActionError::Invalid(why)) => {
            let value = Field { value: value.to_owned(), error: Some(sentence(&why)) };
            let page = page(&web, &who, name, value, None).await?;
            return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
        }
        Err(error) => return Err(error.into()),
    };
    let gate = web.engine.gate();
    let survey = erasure::survey(gate, &subject).await?;
    let asked = fields.get("step") == "erase";
    let found = found(&web, &subject, &fields, &survey, asked);
    let whole = found.again.error.is_none() && found.reason.error.is_none();
    if !asked || !whole {
        let status = if asked { StatusCode::UNPROCESSABLE_ENTITY } else { StatusCode::OK };
        let value = Field { value: subject.value, error: None };
        let page = page(&web, &who, &subject.name, value, Some(found)).await?;
        return Ok(render_as(status, &page));
    }
    let what = format!("Then what is known of this {} is erased.", subject.name);
    let asks = Asks { action: PATH, what: &what, back: PATH };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    let request = Request {
        actor: &actor,
        action_id: &found.action_id,
        reason: &found.reason.value,
        origin: &who.origin,
    };
    let answer = erasure::erase(gate, &subject, &request).await?;
    who.flash(true, format!("Done. {}", sentence(&answer))).await?;
    Ok(Redirect::to(PATH).into_response())
}

fn found(web: &Web, subject: &Subject, fields: &Fields, survey: &Survey, asked: bool) -> Found {
    let typed = fields.get("again");
    let wrong = asked && typed != subject.value;
    let reason = if asked { case::reason(fields) } else { Field::default() };
    let named = survey.named.iter().map(|id| Reference::here(id.to_string(), format!("/operations/{id}")));
    Found {
        name: subject.name.clone(),
        action_id: case::action_id(web, Some(fields)),
        settled: survey.settled,
        unsettled: survey.unsettled,
        named: named.collect(),
        again: Field {
            value: typed.to_owned(),
            error: wrong
                .then(|| "This is not the value above. What is erased cannot be brought back.".to_owned()),
        },
        reason,
    }
}
