//! The form that hands in other data in a dead letter's place. First it shows old and new side by
//! side and stores nothing; then, with a reason, it makes the new operation.

use askama::Template;
use axum::Router;
use axum::extract::{Path, RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::case::{self, Case};
use crate::domain::actor::Right;
use crate::engine::actions::Request;
use crate::engine::correct::{self, CorrectError, Correction, KeyFrom, Outlook, Uncorrectable};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::labels;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::change::{self, Row};
use crate::web::tell::fields::{self, Kind, Leaf};
use crate::web::tell::mask::HIDDEN;
use crate::web::tell::{Tale, list};
use crate::web::typed;
use crate::web::view::{Button, Field, Reference, grouped};

/// Larger payloads, in bytes, are for programs: a form of them would be refused for its size.
const MOST_EDITED: usize = 64 * 1024;

/// More values than this are not shown where they stay as they are.
const MOST_COMPARED: usize = 200;

/// What a form sends that is no part of the correction itself.
const NOT_CARRIED: [&str; 4] = ["csrf", "action_id", "step", "reason"];

/// `/dead-letters/{id}/correct`
#[derive(Template, Debug)]
#[template(path = "pages/correct.html")]
pub struct CorrectPage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one correction.
    pub action_id: String,
    /// What happened, from the catalogue.
    pub sentence: String,
    /// The payload; or why it cannot be corrected here.
    pub edit: Result<Edit, Shut>,
    /// What was typed meanwhile, where it cannot be corrected here any more.
    pub typed: Vec<(String, String)>,
    /// A key of one's own; empty for the one that is made.
    pub key: Field,
    /// What is wrong, with the id of the field.
    pub problems: Vec<(String, String)>,
}

/// The payload as it is edited.
#[derive(Clone, Debug)]
pub enum Edit {
    /// One field a value; and the address of the same as JSON.
    Fields(Vec<Input>, String),
    /// As JSON; how many private values are left out of it.
    Json(Field, usize),
}

/// A value of the payload.
#[derive(Clone, Debug)]
pub struct Input {
    /// Unique on the page.
    pub id: String,
    /// What the form calls it.
    pub name: String,
    /// The names on the way to it.
    pub label: String,
    /// What it takes.
    pub kind: Kind,
    /// It is private: empty, it stays as it is.
    pub private: bool,
    /// What was typed, and what is wrong with it.
    pub field: Field,
}

impl Input {
    /// The ids of what explains the field, for `aria-describedby`; empty when nothing does.
    fn described(&self) -> String {
        let hint = (self.private || self.kind == Kind::Null).then(|| format!("{}-hint", self.id));
        let wrong = self.field.error.is_some().then(|| format!("{}-wrong", self.id));
        hint.into_iter().chain(wrong).collect::<Vec<_>>().join(" ")
    }
}

/// Why nothing can be corrected here.
#[derive(Clone, Debug)]
pub struct Shut {
    /// In a sentence that says what else to do.
    pub why: String,
    /// What would help.
    pub instead: Vec<Button>,
}

/// Old and new side by side, before anything is stored.
#[derive(Template, Debug)]
#[template(path = "pages/correct_compare.html")]
pub struct ComparePage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one correction.
    pub action_id: String,
    /// The values of either payload: of many, those that change.
    pub rows: Vec<Row>,
    /// So many more stay as they are.
    pub unlisted: usize,
    /// The key as it is.
    pub old_key: String,
    /// The new operation's.
    pub new_key: String,
    /// Why it differs.
    pub why_key: &'static str,
    /// What was typed, carried on as it was.
    pub carried: Vec<(String, String)>,
    /// In their words.
    pub reason: Field,
}

impl ComparePage {
    /// How many values differ, in words.
    pub fn changes(&self) -> String {
        match self.rows.iter().filter(|row| row.changed).count() {
            1 => "1 value changes".to_owned(),
            n => format!("{n} values change"),
        }
    }

    /// What is not listed, in words.
    pub fn others(&self) -> Option<String> {
        let words = |n| format!("{} more values stay as they are and are not listed.", grouped(n));
        (self.unlisted > 0).then(|| words(self.unlisted))
    }
}

/// What a form says of the correction.
struct Typed {
    /// The new payload; or what is wrong, with the id of the field.
    payload: Result<Box<RawValue>, Vec<(String, String)>>,
    key: Option<String>,
}

impl Typed {
    fn read(tale: &Tale<'_>, text: &str, sent: &Fields) -> Self {
        let leaves = fields::leaves(text, &tale.mask);
        let built = match leaves {
            Some(leaves) if !sent.ticked("json") => {
                let typed = |pointer: &str| {
                    let name = format!("f{pointer}");
                    sent.ticked(&name).then(|| sent.raw(&name).to_owned())
                };
                fields::rebuilt(text, &leaves, typed).map_err(|wrong| {
                    let place = |pointer: &str| leaves.iter().position(|leaf| leaf.pointer == pointer);
                    let id = |pointer: &str| format!("field-{}", place(pointer).unwrap_or_default() + 1);
                    wrong.into_iter().map(|(pointer, why)| (id(&pointer), why)).collect()
                })
            }
            _ if sent.ticked("json") => fields::completed(sent.raw("json"), text, &tale.mask)
                .map_err(|why| vec![("json".to_owned(), why)]),
            // A form that was sent without the payload changes nothing of it.
            _ => Ok(text.to_owned()),
        };
        let payload = built.and_then(|text| {
            RawValue::from_string(text)
                .map_err(|error| vec![("json".to_owned(), sentence(&error.to_string()))])
        });
        let key = sent.get("key");
        Self { payload, key: (!key.is_empty()).then(|| key.to_owned()) }
    }

    fn correction(&self) -> Option<Correction> {
        let payload = self.payload.as_ref().ok()?.clone();
        Some(Correction { payload, key: self.key.clone() })
    }
}

/// The form's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters/{id}/correct", get(form).post(correct))
}

async fn form(
    State(web): State<Web>,
    Path(id): Path<String>,
    RawQuery(query): RawQuery,
    who: Signed,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let as_json = list::parameters(query.as_deref()).contains(&("as".to_owned(), "json".to_owned()));
    let case = Case::load(&web, &who, &id, Right::Correct).await?;
    let page = page(&web, &who, &case, None, as_json, Vec::new()).await?;
    Ok(render(&page))
}

async fn page(
    web: &Web,
    who: &Signed,
    case: &Case,
    sent: Option<&Fields>,
    as_json: bool,
    problems: Vec<(String, String)>,
) -> Result<CorrectPage, Failure> {
    let layout = case.layout(web, who, "Correct").await?;
    let tale = case.tale(web, who);
    let shut = if who.role.may(Right::Correct) {
        let obstacle =
            correct::obstacle(web.engine.gate(), case.letter.operation_id).await.map_err(failure)?;
        obstacle.map(|why| tale.mask.text(&sentence(&why.to_string())))
    } else {
        Some(labels::lacks(Right::Correct, &who.role))
    };
    let edit = match shut {
        Some(why) => Err(why),
        None => edit(case, &tale, sent, as_json, &problems),
    };
    let wrong_key = problems.iter().find(|(id, _)| id == "key").map(|(_, why)| why.clone());
    let typed = match (&edit, sent) {
        (Err(_), Some(sent)) => typed::written(sent.without(&[])),
        _ => Vec::new(),
    };
    Ok(CorrectPage {
        typed,
        layout,
        back: case.back(&tale),
        action: format!("{}/correct", case.path()),
        action_id: case::action_id(web, sent),
        sentence: case.sentence(&tale),
        edit: edit.map_err(|why| {
            let instead = case.instead(web, who, &tale);
            let other = |button: &Button| !button.href.ends_with("/correct");
            Shut { why, instead: instead.into_iter().filter(other).collect() }
        }),
        key: Field { value: sent.map_or("", |sent| sent.get("key")).to_owned(), error: wrong_key },
        problems,
    })
}

/// The payload to be edited; or why it cannot be.
fn edit(
    case: &Case,
    tale: &Tale<'_>,
    sent: Option<&Fields>,
    as_json: bool,
    problems: &[(String, String)],
) -> Result<Edit, String> {
    let Some(text) = &case.preview.thread.payload else {
        return Err(
            "Its payload was erased, so there is nothing to correct. Hand in a new operation.".to_owned()
        );
    };
    if text.len() > MOST_EDITED {
        return Err("Its payload is too large for a form. Send the correction by the API.".to_owned());
    }
    let wrong = |id: &str| problems.iter().find(|(known, _)| known == id).map(|(_, why)| why.clone());
    let leaves = fields::leaves(text, &tale.mask).filter(|_| !as_json);
    if let Some(leaves) = leaves {
        let input = |(number, leaf): (usize, Leaf)| {
            let (id, name) = (format!("field-{number}"), format!("f{}", leaf.pointer));
            let typed = sent.filter(|sent| sent.ticked(&name)).map(|sent| sent.raw(&name).to_owned());
            let field = Field { value: typed.unwrap_or(leaf.value), error: wrong(&id) };
            Input { id, name, label: leaf.label, kind: leaf.kind, private: leaf.private, field }
        };
        let place = format!("{}/correct?as=json", case.path());
        return Ok(Edit::Fields((1..).zip(leaves).map(input).collect(), place));
    }
    let Some((shown, left_out)) = fields::editable(text, &tale.mask) else {
        return Err(
            "Its payload holds private values in a list, which a form cannot leave out. Send the correction \
                    by the API."
                .to_owned(),
        );
    };
    let typed = sent.filter(|sent| sent.ticked("json")).map(|sent| sent.raw("json").to_owned());
    Ok(Edit::Json(Field { value: typed.unwrap_or(shown), error: wrong("json") }, left_out))
}

async fn correct(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { who, fields: sent } = posted;
    who.require(Right::Correct)?;
    let case = Case::load(&web, &who, &id, Right::Correct).await?;
    let (operation, gate) = (case.letter.operation_id, web.engine.gate());
    let text = case.preview.thread.payload.clone().unwrap_or_default();
    let typed = Typed::read(&case.tale(&web, &who), &text, &sent);
    let again = async |status: StatusCode, problems: Vec<(String, String)>| {
        let page = page(&web, &who, &case, Some(&sent), sent.ticked("json"), problems).await?;
        Ok(render_as(status, &page))
    };
    let correction = match (typed.correction(), sent.get("step")) {
        (None, _) => {
            let problems = typed.payload.err().unwrap_or_default();
            return again(StatusCode::UNPROCESSABLE_ENTITY, problems).await;
        }
        (Some(_), "edit") => return again(StatusCode::OK, Vec::new()).await,
        (Some(correction), _) => correction,
    };
    let actor = who.actor();
    let mut reason = Field::default();
    if sent.get("step") == "confirm" {
        reason = case::reason(&sent);
    }
    if sent.get("step") == "confirm" && reason.error.is_none() {
        let action_id = case::action_id(&web, Some(&sent));
        let request =
            Request { actor: &actor, action_id: &action_id, reason: &reason.value, origin: &who.origin };
        return match correct::correct(gate, operation, correction, &request).await {
            Ok(new) => done(&web, &who, new).await,
            Err(error) => {
                let problems = problems(&case.tale(&web, &who), error)?;
                again(StatusCode::UNPROCESSABLE_ENTITY, problems).await
            }
        };
    }
    let new = correction.payload.get().to_owned();
    match correct::preview(gate, operation, correction, &actor).await {
        Ok(outlook) => {
            let status = match reason.error {
                Some(_) => StatusCode::UNPROCESSABLE_ENTITY,
                None => StatusCode::OK,
            };
            let page = compare(&web, &who, &case, &sent, (&text, &new), outlook, reason).await?;
            Ok(render_as(status, &page))
        }
        Err(error) => {
            let problems = problems(&case.tale(&web, &who), error)?;
            again(StatusCode::UNPROCESSABLE_ENTITY, problems).await
        }
    }
}

async fn done(web: &Web, who: &Signed, new: Uuid) -> Result<Response, Failure> {
    web.engine.wake();
    let text = "This is the corrected operation. It is in the queue and not sent yet; what comes back appears below.";
    who.flash(true, text).await?;
    Ok(Redirect::to(&format!("/operations/{new}")).into_response())
}

async fn compare(
    web: &Web,
    who: &Signed,
    case: &Case,
    sent: &Fields,
    (old, new): (&str, &str),
    outlook: Outlook,
    reason: Field,
) -> Result<ComparePage, Failure> {
    let layout = case.layout(web, who, "Compare the correction").await?;
    let tale = case.tale(web, who);
    let mut rows = change::rows(old, new, &tale.mask);
    let all = rows.len();
    if all > MOST_COMPARED {
        rows.retain(|row| row.changed);
    }
    Ok(ComparePage {
        layout,
        back: case.back(&tale),
        action: format!("{}/correct", case.path()),
        action_id: case::action_id(web, Some(sent)),
        unlisted: all - rows.len(),
        rows,
        old_key: tale.mask.text(&case.preview.thread.operation.key),
        new_key: tale.mask.text(&outlook.key),
        why_key: match outlook.from {
            KeyFrom::Given => "You chose it.",
            KeyFrom::Derived => "The type makes the key of facts in the payload, and these changed.",
            KeyFrom::Numbered => {
                "The key is taken by the operation as it is, so that the correction gets a number behind it."
            }
        },
        carried: sent.without(&NOT_CARRIED),
        reason,
    })
}

/// What stands in the way of a correction, with the id of the field that it is about.
fn problems(tale: &Tale<'_>, error: CorrectError) -> Result<Vec<(String, String)>, Failure> {
    let about = |id: &str, why: String| vec![(id.to_owned(), tale.mask.text(&sentence(&why)))];
    Ok(match error {
        CorrectError::Action(error) => return Err(error.into()),
        CorrectError::Submission(error) => about("payload", error.to_string()),
        CorrectError::Stands(Uncorrectable::Unchanged) => {
            about("payload", "nothing is changed: change a value, or replay it as it is".to_owned())
        }
        CorrectError::Stands(Uncorrectable::Masked) => about(
            "payload",
            format!(
                "{HIDDEN} stands for a private value and is not it: leave the value empty, or out of the JSON, and \
                 it is kept as it is"
            ),
        ),
        CorrectError::Stands(why) => about("payload", why.to_string()),
        taken @ CorrectError::KeyTaken { .. } => about("key", taken.to_string()),
    })
}

fn failure(error: CorrectError) -> Failure {
    match error {
        CorrectError::Action(error) => error.into(),
        other => Failure::Conflict(sentence(&other.to_string())),
    }
}
