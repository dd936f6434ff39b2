//! The form that closes a dead letter.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use super::case::{self, Case};
use crate::domain::actor::Right;
use crate::domain::dead_letter::{DeadLetterStatus, Resolution};
use crate::domain::words;
use crate::engine::actions::{self, Request as Asked, Resolve};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::known::Knowledge;
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::{Tale, card, list, sentence};
use crate::web::view::{Field, Reference};

/// `/dead-letters/{id}/resolve`
#[derive(Template, Debug)]
#[template(path = "pages/resolve.html")]
pub struct ResolvePage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click closes once.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// What is sent for it afterwards, or that nothing is.
    pub after: String,
    /// It records that the step was done, and offers nothing else.
    pub record: bool,
    /// What was chosen and typed, and what is wrong with it.
    pub typed: Typed,
    /// Why the form is closed: a missing right, an episode that is closed already.
    pub closed: Option<String>,
}

/// What was chosen and typed.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// The chosen one.
    pub chosen: Option<Resolution>,
    /// Why none or the wrong one was chosen.
    pub chosen_error: Option<String>,
    /// The id at the destination.
    pub reference: Field,
    /// It has none there.
    pub no_reference: bool,
    /// In their words.
    pub reason: Field,
}

impl Typed {
    fn read(fields: &Fields) -> Self {
        let chosen: Option<Resolution> = fields.get("resolution").parse().ok();
        let no_reference = fields.ticked("no_reference");
        let text = fields.get("reference");
        let error = if text.chars().count() > 200 || text.chars().any(char::is_control) {
            Some("A reference is one line of at most 200 characters.".to_owned())
        } else if chosen == Some(Resolution::CompletedAtDestination) && text.is_empty() && !no_reference {
            Some("Give the id that it has there, or tick that it has none.".to_owned())
        } else {
            None
        };
        Self {
            chosen,
            chosen_error: chosen.is_none().then(|| "Say how it was settled.".to_owned()),
            reference: Field { value: text.to_owned(), error },
            no_reference,
            reason: case::reason(fields),
        }
    }

    /// What is wrong, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        [
            ("resolution-1", self.chosen_error.as_deref()),
            ("reference", self.reference.error.as_deref()),
            ("reason", self.reason.error.as_deref()),
        ]
        .into_iter()
        .filter_map(|(id, error)| Some((id, error?)))
        .collect()
    }
}

impl ResolvePage {
    /// What the page is called: as the button that led to it.
    pub fn title(&self) -> &'static str {
        title(self.record)
    }

    fn hint(&self) -> &'static str {
        if self.record {
            "The id that it has there, such as TCK-99"
        } else {
            "For \u{201c}Completed at the destination\u{201d}: the id that it has there, such as TCK-99"
        }
    }

    /// All four: when it is the right one, and whether it is chosen.
    pub fn choices(&self) -> Vec<(Resolution, &'static str, bool)> {
        let choice = |&each: &Resolution| (each, labels::resolution(each), self.typed.chosen == Some(each));
        Resolution::ALL.iter().map(choice).collect()
    }
}

fn title(record: bool) -> &'static str {
    if record { "Record as completed" } else { "Resolve" }
}

/// The form's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters/{id}/resolve", get(form).post(resolve))
}

async fn form(
    State(web): State<Web>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    who: Signed,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    // A button that knows the answer fills it in; the person still says why.
    let asked = list::parameters(query.as_deref());
    let asked = |name: &str| asked.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
    let typed = Typed {
        chosen: asked("resolution").and_then(|word| word.parse().ok()),
        reference: Field::of(asked("reference").unwrap_or_default()),
        ..Typed::default()
    };
    let record = typed.chosen == Some(Resolution::CompletedAtDestination);
    let action_id = case::action_id(&web, None);
    Ok(render(&page(&web, &who, &id, action_id, typed, record).await?))
}

async fn page(
    web: &Web,
    who: &Signed,
    id: &str,
    action_id: String,
    typed: Typed,
    record: bool,
) -> Result<ResolvePage, Failure> {
    let case = Case::load(web, who, id, Right::Resolve).await?;
    let layout = case.layout(web, who, title(record)).await?;
    let tale = case.tale(web, who);
    let letter = &case.letter;
    let closed = if !who.role.may(Right::Resolve) {
        Some(labels::lacks(Right::Resolve, &who.role))
    } else if letter.status == DeadLetterStatus::Open {
        None
    } else {
        Some(format!("It is {} already.", words::dead_letter_status(letter.status)))
    };
    Ok(ResolvePage {
        layout,
        back: case.back(&tale),
        action: format!("{}/resolve", case.path()),
        action_id,
        sentence: case.sentence(&tale),
        knowledge: card::knowledge(&tale),
        after: after(&tale, letter.position, record),
        record,
        typed,
        closed,
    })
}

/// What is sent afterwards: what is recorded as done lets the steps behind it go on.
fn after(tale: &Tale<'_>, position: i64, record: bool) -> String {
    match (goes_on(tale, position), record) {
        (None, _) => "Nothing is sent and nothing is deleted.".to_owned(),
        (Some(then), true) => format!("{then} Nothing is deleted."),
        (Some(then), false) => format!(
            "\u{201c}{}\u{201d}: {then} Closed in any other way, nothing is sent. Nothing is deleted.",
            words::resolution(Resolution::CompletedAtDestination).label,
        ),
    }
}

/// With what the operation goes on where a step is recorded as done; absent where no step is left.
fn goes_on(tale: &Tale<'_>, position: i64) -> Option<String> {
    let left = tale.thread.steps.iter().any(|step| step.position > position && !step.state.is_over());
    left.then(|| sentence::recorded(tale, position, false))
}

async fn resolve(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::Resolve)?;
    let letter = case::letter(&web, &id).await?;
    let action_id = case::action_id(&web, Some(&fields));
    let typed = Typed::read(&fields);
    let (Some(resolution), true) = (typed.chosen, typed.problems().is_empty()) else {
        let page = page(&web, &who, &id, action_id, typed, fields.ticked("record")).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let actor = who.actor();
    let asked =
        Asked { actor: &actor, action_id: &action_id, reason: &typed.reason.value, origin: &who.origin };
    let reference = Some(typed.reference.value).filter(|text| !text.is_empty());
    let case = Case::load(&web, &who, &id, Right::Resolve).await?;
    let tale = case.tale(&web, &who);
    let after = match resolution {
        Resolution::CompletedAtDestination
            if tale.thread.steps.iter().any(|step| step.position > letter.position) =>
        {
            sentence::recorded(&tale, letter.position, false)
        }
        _ => "Nothing was sent for it.".to_owned(),
    };
    actions::resolve(web.engine.gate(), letter.id, &Resolve { resolution, reference }, &asked).await?;
    // The next step of an operation goes on when this one is recorded as done.
    web.engine.wake();
    let label = words::resolution(resolution).label.to_lowercase();
    who.flash(true, format!("Closed as \u{201c}{label}\u{201d}. {after}")).await?;
    Ok(Redirect::to(&format!("/dead-letters/{}", letter.id)).into_response())
}
