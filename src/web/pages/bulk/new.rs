//! The form that freezes the members of a new bulk action. Nothing is done to them by it.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use super::super::case;
use super::which::{Which, in_words};
use super::{PATH, dead_letters};
use crate::domain::actor::Right;
use crate::domain::bulk::BulkAction;
use crate::domain::dead_letter::Resolution;
use crate::domain::words;
use crate::engine::actions::{ActionError, Request};
use crate::engine::bulk::{self, Act, MAX_NAME, MOST_PER_MINUTE, New};
use crate::store::accounts;
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::labels::{self, Mark as _};
use crate::web::listing::Select;
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::Field;

/// From so many members on, a replay tries one first unless a person says otherwise.
const CANARY_FROM: usize = 6;

/// `/bulk/new`
#[derive(Template, Debug)]
#[template(path = "pages/bulk_new.html")]
pub struct BulkNewPage {
    /// Around it.
    pub layout: Layout,
    /// What is done.
    pub action: BulkAction,
    /// "Replay", and what that means.
    pub title: words::Label,
    /// "1,234 dead letters".
    pub count: String,
    /// The filter in words; empty where rows were ticked.
    pub filter: Vec<(String, String)>,
    /// The filter's query string and the ids, as the form repeats them.
    pub fields: (String, String),
    /// The list that it came from.
    pub back: String,
    /// One click freezes once.
    pub action_id: String,
    /// What was typed, and what is wrong with it.
    pub typed: Typed,
    /// Whom it can be assigned to.
    pub people: Select,
    /// Why there is no form.
    pub shut: Option<String>,
}

/// What was chosen and typed.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// What people will call it.
    pub name: Field,
    /// In their words.
    pub reason: Field,
    /// So many first.
    pub canary: Field,
    /// Members a minute.
    pub speed: Field,
    /// The chosen one.
    pub resolution: Option<Resolution>,
    /// Why none or the wrong one was chosen.
    pub resolution_error: Option<String>,
    /// They have no reference there.
    pub no_reference: bool,
    /// Who is to have them; empty for nobody.
    pub assignee: String,
    /// Why the engine did not take it.
    pub refused: Option<String>,
}

impl Typed {
    fn read(fields: &Fields, action: BulkAction) -> Self {
        let resolution: Option<Resolution> = fields.get("resolution").parse().ok();
        let no_reference = fields.ticked("no_reference");
        let resolution_error = match (action, resolution) {
            (BulkAction::Resolve, None) => Some("Say how they were settled."),
            (BulkAction::Resolve, Some(Resolution::CompletedAtDestination)) if !no_reference => Some(
                "Many at once have no one reference: tick that the reason says why there is none, or record \
                 each by itself.",
            ),
            _ => None,
        };
        let name = fields.get("name");
        let name_error = match name.chars().count() {
            0 => Some("Give it a name that others will know it by.".to_owned()),
            1..=MAX_NAME => None,
            _ => Some(format!("A name has at most {MAX_NAME} characters.")),
        };
        Self {
            name: Field { value: name.to_owned(), error: name_error },
            reason: case::reason(fields),
            canary: number(fields.get("canary"), 0, i64::MAX, "A whole number, or empty for none."),
            speed: number(
                fields.get("speed"),
                1,
                MOST_PER_MINUTE,
                "A whole number from 1 to 60,000, or empty for as fast as it goes.",
            ),
            resolution,
            resolution_error: resolution_error.map(str::to_owned),
            no_reference,
            assignee: fields.get("assignee").to_owned(),
            refused: None,
        }
    }

    /// What is wrong, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        [
            ("meant", self.refused.as_deref()),
            ("name", self.name.error.as_deref()),
            ("resolution-1", self.resolution_error.as_deref()),
            ("canary", self.canary.error.as_deref()),
            ("speed", self.speed.error.as_deref()),
            ("reason", self.reason.error.as_deref()),
        ]
        .into_iter()
        .filter_map(|(id, error)| Some((id, error?)))
        .collect()
    }

    fn act(&self, action: BulkAction) -> Act {
        match action {
            BulkAction::Replay => Act::Replay,
            BulkAction::Resolve => Act::Resolve(self.resolution.unwrap_or(Resolution::NotNeeded)),
            BulkAction::Assign => Act::Assign(Some(self.assignee.clone()).filter(|name| !name.is_empty())),
            BulkAction::Lookup => Act::Lookup,
        }
    }
}

fn number(text: &str, least: i64, most: i64, wrong: &str) -> Field {
    match text.parse::<i64>() {
        _ if text.is_empty() => Field::default(),
        Ok(number) if (least..=most).contains(&number) => Field::of(text),
        _ => Field::wrong(text, wrong),
    }
}

impl BulkNewPage {
    /// All four: when it is the right one, and whether it is chosen.
    pub fn choices(&self) -> Vec<(Resolution, &'static str, bool)> {
        let choice =
            |&each: &Resolution| (each, labels::resolution(each), self.typed.resolution == Some(each));
        Resolution::ALL.iter().map(choice).collect()
    }

    /// Members are closed.
    pub fn resolves(&self) -> bool {
        self.action == BulkAction::Resolve
    }

    /// Members are given to somebody.
    pub fn assigns(&self) -> bool {
        self.action == BulkAction::Assign
    }
}

pub(super) fn routes() -> Router<Web> {
    Router::new().route("/bulk/new", get(form).post(freeze))
}

/// What is to be done; a replay where nothing is said.
fn action(text: &str) -> Result<BulkAction, Failure> {
    match text.trim() {
        "" => Ok(BulkAction::Replay),
        word => word.parse().map_err(|error| Failure::BadAddress(format!("{error}."))),
    }
}

async fn form(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let given = list::parameters(query.as_deref());
    let asked = |name: &str| given.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value);
    let action = action(asked("action"))?;
    let which = Which::read(&given, &who)?;
    let typed = Typed { canary: Field::of(asked("canary").trim()), ..Typed::default() };
    let first = asked("canary").trim().is_empty();
    let mut page = page(&web, &who, action, &which, case::action_id(&web, None), typed).await?;
    if first && action == BulkAction::Replay && page.1 >= CANARY_FROM {
        page.0.typed.canary = Field::of("1");
    }
    Ok(render(&page.0))
}

/// The form, and how many are meant.
async fn page(
    web: &Web,
    who: &Signed,
    action: BulkAction,
    which: &Which,
    action_id: String,
    typed: Typed,
) -> Result<(BulkNewPage, usize), Failure> {
    let now = web.engine.ambient().now();
    let title = words::bulk_action(action);
    let layout = who.layout(format!("{} many", title.label), Section::Bulk).await;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let count = if which.shut().is_some() { 0 } else { which.count(&mut tx).await? };
    let filter = match which {
        Which::All(filter) => in_words(&mut tx, filter, who.seen(now)).await?,
        Which::Ticked(_) | Which::Nothing => Vec::new(),
    };
    let users = accounts::users(&mut tx).await?;
    drop(tx);
    let roles = &web.engine.config().auth.roles;
    let people = users
        .into_iter()
        .filter(|user| user.disabled_at.is_none() && roles.of(&user.role).may(Right::Resolve));
    let people = people.map(|user| (user.name.clone(), user.name));
    let chosen = Some(typed.assignee.as_str()).filter(|name| !name.is_empty());
    let people = list::select("assignee", "Who is to have them", "Nobody", people, chosen);
    let role = &who.role;
    let missing = [Right::Bulk, action.right()].into_iter().find(|right| !role.may(*right));
    let shut = match (which.shut(), missing) {
        (Some(why), _) => Some(why.to_owned()),
        (None, Some(right)) => Some(labels::lacks(right, role)),
        (None, None) if count == 0 => Some("Nothing matches this filter now.".to_owned()),
        (None, None) => None,
    };
    let page = BulkNewPage {
        layout,
        action,
        title,
        count: dead_letters(count),
        filter,
        fields: which.fields(),
        back: which.list(),
        action_id,
        typed,
        people,
        shut,
    };
    Ok((page, count))
}

async fn freeze(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let action = action(fields.get("action"))?;
    who.require(Right::Bulk)?;
    who.require(action.right())?;
    let which = Which::posted(&fields, who.now)?;
    let action_id = case::action_id(&web, Some(&fields));
    let typed = Typed::read(&fields, action);
    if which.shut().is_some() || !typed.problems().is_empty() {
        let (page, _) = page(&web, &who, action, &which, action_id, typed).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let new = New {
        name: typed.name.value.clone(),
        act: typed.act(action),
        members: which.clone().members(),
        canary: typed.canary.value.parse().unwrap_or(0),
        per_minute: typed.speed.value.parse().ok(),
    };
    let actor = who.actor();
    let request =
        Request { actor: &actor, action_id: &action_id, reason: &typed.reason.value, origin: &who.origin };
    match bulk::create(web.engine.gate(), &new, &request).await {
        Ok(id) => Ok(Redirect::to(&format!("{PATH}/{id}")).into_response()),
        Err(ActionError::Invalid(why)) => {
            let typed = Typed { refused: Some(sentence(&why)), ..typed };
            let (page, _) = page(&web, &who, action, &which, action_id, typed).await?;
            Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page))
        }
        Err(error) => Err(error.into()),
    }
}
