//! The form that waives a check.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::get;

use super::case::{self, Case};
use super::confirm::{self, Asks};
use crate::domain::actor::Right;
use crate::domain::attempt::Waiver;
use crate::domain::contract::Class;
use crate::domain::operation::StepState;
use crate::domain::verdict::CheckName;
use crate::domain::words::{self, Settles};
use crate::engine::actions::{self, ActionError, OverrideMode, Request as Asked};
use crate::engine::approvals;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::overrides;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Fields, Posted, Signed};
use crate::web::known::{CheckRow, Knowledge};
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::{Tale, card};
use crate::web::timeline::Request;
use crate::web::view::{Field, Reference};

/// `/dead-letters/{id}/override`
#[derive(Template, Debug)]
#[template(path = "pages/override.html")]
pub struct OverridePage {
    /// Around it.
    pub layout: Layout,
    /// The dead letter.
    pub back: Reference,
    /// Where the form goes.
    pub action: String,
    /// One click is one override.
    pub action_id: String,
    /// The version of the facts that the page shows.
    pub facts: String,
    /// In what these have changed since an earlier page, on which somebody just decided.
    pub changed: Option<String>,
    /// What is at stake.
    pub stakes: Stakes,
    /// A second person has to approve it before anything is sent.
    pub approval: bool,
    /// A key goes out with it, so that it matters which one.
    pub has_key: bool,
    /// What `same_key` would do here, in a sentence.
    pub same_key: String,
    /// What `new_effect` would do here, in a sentence.
    pub new_effect: String,
    /// What has to be typed.
    pub short_id: String,
    /// What was chosen and typed, and what is wrong with it.
    pub typed: Typed,
    /// Where the reader can show who they are first, when their sign-in is not fresh.
    pub confirm: Option<String>,
    /// Why the form is closed: a right, an episode that is closed, a check that nobody may waive.
    pub closed: Option<String>,
}

/// What is at stake in an override: the same for whoever asks and whoever approves.
#[derive(Clone, Debug)]
pub struct Stakes {
    /// What happened, from the catalogue.
    pub sentence: String,
    /// The checks that would be waived, each with what it found.
    pub waives: Vec<Waived>,
    /// What a duplicate would mean: "A second ticket in the CRM for order 10443."
    pub duplicate: String,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// Every check and how it goes now.
    pub checks: Vec<CheckRow>,
    /// What will be sent; or why it cannot be built.
    pub request: Result<Request, String>,
    /// It is what is sent under a new key.
    pub anew: bool,
    /// What a replay without an override would do, where no check stands in its way.
    pub safe: String,
}

impl Stakes {
    /// `mode` is what is asked for, where that is chosen already.
    pub(super) fn of(case: &Case, tale: &Tale<'_>, mode: Option<OverrideMode>) -> Self {
        let knowledge = card::knowledge(tale);
        let checks = case.checks(tale);
        let found = |waiver: Waiver| {
            let check = checks.iter().find(|check| check.name.as_str() == waiver.as_str());
            check.map(|check| check.detail.clone()).unwrap_or_default()
        };
        let waivable = case.preview.waivable.iter();
        let anew = mode == Some(OverrideMode::NewEffect);
        Self {
            sentence: case.sentence(tale),
            waives: waivable.map(|&waiver| Waived { waiver, detail: found(waiver) }).collect(),
            duplicate: duplicate(tale, &knowledge.destination),
            request: if anew { case.anew(tale) } else { case.request(tale) },
            anew,
            safe: safe(case, tale, mode, &knowledge.destination),
            checks,
            knowledge,
        }
    }
}

/// What was chosen and typed.
#[derive(Clone, Debug, Default)]
pub struct Typed {
    /// The chosen mode: `same_key`, `new_effect` or nothing yet.
    pub mode: Field,
    /// The operation's short id.
    pub short_id: Field,
    /// In their words.
    pub reason: Field,
    /// Whether the box was ticked, and what is wrong with it.
    pub accept: Field,
}

impl Typed {
    fn read(fields: &Fields, letter: &DeadLetterRow) -> Self {
        let field = |value: &str, fits: bool, error: &str| Field {
            value: value.to_owned(),
            error: (!fits).then(|| error.to_owned()),
        };
        let (mode, typed) = (fields.get("mode"), fields.get("typed"));
        let known = mode.parse::<OverrideMode>().is_ok();
        let accepts = fields.get("accept_duplicate") == "true";
        let wanted = short_id(letter);
        let fits = typed.eq_ignore_ascii_case(&wanted);
        Self {
            mode: field(mode, known, "Choose the key that it goes out under."),
            short_id: field(typed, fits, &format!("That is not {wanted}.")),
            reason: case::reason(fields),
            accept: field(
                if accepts { "true" } else { "" },
                accepts,
                "Tick this: nothing is sent twice without your word.",
            ),
        }
    }
}

impl OverridePage {
    /// What to type, so that nobody confirms the wrong operation.
    pub fn type_this(&self) -> String {
        format!("Type {} to confirm which operation you mean", self.short_id)
    }

    /// What is wrong, with the id of the field.
    pub fn problems(&self) -> Vec<(&'static str, &str)> {
        [
            ("mode-same", &self.typed.mode),
            ("reason", &self.typed.reason),
            ("typed", &self.typed.short_id),
            ("accept", &self.typed.accept),
        ]
        .into_iter()
        .filter_map(|(id, field)| Some((id, field.error.as_deref()?)))
        .collect()
    }
}

/// A check that would be waived.
#[derive(Clone, Debug)]
pub struct Waived {
    /// Which.
    pub waiver: Waiver,
    /// What it found.
    pub detail: String,
}

impl Waived {
    /// The check as the question that it answers.
    pub fn words(&self) -> &'static str {
        labels::waiver(self.waiver)
    }
}

/// The end of an operation's id. The beginning is the time, which operations of one minute share.
fn short_id(letter: &DeadLetterRow) -> String {
    let id = letter.operation_id.simple().to_string();
    id[id.len() - 8..].to_owned()
}

/// The form's routes.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters/{id}/override", get(form).post(override_checks))
}

async fn form(State(web): State<Web>, Path(id): Path<String>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let action_id = case::action_id(&web, None);
    Ok(render(&page(&web, &who, &id, action_id, Typed::default()).await?))
}

async fn page(
    web: &Web,
    who: &Signed,
    id: &str,
    action_id: String,
    typed: Typed,
) -> Result<OverridePage, Failure> {
    let case = Case::load(web, who, id, Right::Override).await?;
    let layout = case.layout(web, who, "Send again anyway").await?;
    let tale = case.tale(web, who);
    let stakes = Stakes::of(&case, &tale, None);
    let waivable = &case.preview.waivable;
    let destination = &stakes.knowledge.destination;
    let approval = actions::needs_approval(web.engine.gate(), &tale.thread.operation.kind);
    let waits = if approval { waiting(web, &case).await? } else { None };
    let has_key = case.preview.has_key();
    // Without a key there is one way to send it, which a replay takes as well.
    let needless = (!has_key && waivable.is_empty()).then(|| NEEDLESS.to_owned());
    Ok(OverridePage {
        layout,
        back: case.back(&tale),
        action: format!("{}/override", case.path()),
        action_id,
        facts: case.preview.facts(case.letter.id).map_or_else(String::new, |facts| facts.to_string()),
        changed: None,
        approval,
        has_key,
        same_key: match card::class(&tale, tale.thread.current_step()) {
            _ if waivable.is_empty() => NEEDLESS.to_owned(),
            Some(Class::Keyed) => {
                format!("If it happened before, {destination} still recognises the key and does nothing.")
            }
            Some(Class::Idempotent) => format!("Repeating it changes nothing at {destination}."),
            _ => format!(
                "{} does not recognise a repeat: if it happened before, it happens twice.",
                words::capitalised(destination)
            ),
        },
        new_effect: format!(
            "The new key takes the old one\u{2019}s place, so that {destination} takes it for something new: if it \
             happened before, it happens twice."
        ),
        short_id: short_id(&case.letter),
        typed,
        confirm: confirm::before(web, who, &format!("{}/override", case.path())),
        closed: case.shut(&tale).or(waits).or(needless),
        stakes,
    })
}

const NEEDLESS: &str = "No check stands in the way of this: replay it, without an override.";

/// What a replay under the same key would do where no check stands in its way, and what a new key
/// would.
fn safe(case: &Case, tale: &Tale<'_>, mode: Option<OverrideMode>, destination: &str) -> String {
    if case.preview.firm.iter().any(|name| *name != CheckName::Allowed) {
        return "No check that can be waived stands in the way at this moment.".to_owned();
    }
    let step = tale.thread.current_step();
    let why = match card::settles(tale, step) {
        _ if step.is_none_or(|step| step.state != StepState::Uncertain) => {
            "nothing that was sent is unaccounted for".to_owned()
        }
        Some(Settles::SameKey) => format!("{destination} recognises the key and does nothing twice"),
        _ => format!("repeating it changes nothing at {destination}"),
    };
    let replay = format!("A replay under the same key passes every check at this moment: {why}.");
    match mode {
        Some(OverrideMode::SameKey) => format!("{replay} It needs no override."),
        Some(OverrideMode::NewEffect) => format!(
            "{replay} What is asked for is a new key: {destination} takes it for something new, and it can cause a \
             second effect."
        ),
        None => format!(
            "{replay} Under a new key {destination} takes it for something new: it can cause a second effect."
        ),
    }
}

/// Why nobody needs to ask: somebody did.
async fn waiting(web: &Web, case: &Case) -> Result<Option<String>, Failure> {
    let mut tx = web.engine.db().read().await?;
    let row = overrides::waiting_for(&mut tx, case.letter.id).await?;
    Ok(row.map(|row| {
        format!(
            "{} asked for this override already; it waits for a second person on the page Approvals.",
            row.requested_by
        )
    }))
}

/// What a second effect would be, in the words of the type.
fn duplicate(tale: &Tale<'_>, destination: &str) -> String {
    let step = tale.thread.current_step();
    let name = step.map_or("", |step| step.name.as_str());
    let steps = tale.kind().map_or(&[][..], |kind| &kind.steps);
    let effect = steps.iter().find(|known| known.name == name).and_then(|known| known.effect.as_deref());
    let twice = if let Some(effect) = effect {
        format!("If it happened before, this happens a second time at {destination}: {effect}")
    } else {
        let step = words::quoted(&words::step_name(name));
        format!("If it happened before, {step} happens a second time at {destination}")
    };
    format!("{}, for {}.", twice.trim_end_matches('.'), tale.name())
}

async fn override_checks(
    State(web): State<Web>,
    Path(id): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    let Posted { mut who, fields } = posted;
    who.require(Right::Override)?;
    let letter = case::letter(&web, &id).await?;
    let action_id = case::action_id(&web, Some(&fields));
    let typed = Typed::read(&fields, &letter);
    let wrong = [&typed.mode, &typed.short_id, &typed.reason, &typed.accept];
    let (Ok(mode), false) =
        (typed.mode.value.parse::<OverrideMode>(), wrong.iter().any(|field| field.error.is_some()))
    else {
        let page = page(&web, &who, &id, action_id, typed).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    };
    let path = format!("/dead-letters/{}/override", letter.id);
    let what = format!("Then the override of {} goes on as you filled it in.", short_id(&letter));
    let asks = Asks { action: &path, what: &what, back: &path };
    if let Some(page) = confirm::fresh(&web, &mut who, &fields, &asks).await? {
        return Ok(page);
    }
    let actor = who.actor();
    let asked =
        Asked { actor: &actor, action_id: &action_id, reason: &typed.reason.value, origin: &who.origin };
    let (gate, seen) = (web.engine.gate(), Some(fields.get("facts")));
    let outcome = if actions::needs_approval(gate, &letter.kind) {
        approvals::ask(gate, &letter, mode, seen, &asked).await
    } else {
        let sent = actions::override_letter(gate, &letter, mode, true, seen, &asked).await;
        sent.map(|verdict| approvals::Asked::Not(Box::new(verdict)))
    };
    match outcome {
        Ok(approvals::Asked::Waits(request)) => {
            who.flash(true, "Nothing is sent yet: your request waits for a second person.").await?;
            Ok(Redirect::to(&format!("/approvals/{request}")).into_response())
        }
        Ok(approvals::Asked::Not(verdict)) => case::answer(&web, &who, &id, *verdict).await,
        // Their word was on other facts: they have to give it anew.
        Err(ActionError::Changed(what)) => {
            let typed = Typed { accept: Field::default(), ..typed };
            let fresh = page(&web, &who, &id, action_id, typed).await?;
            let fresh = OverridePage { changed: Some(what), ..fresh };
            Ok(render_as(StatusCode::CONFLICT, &fresh))
        }
        Err(error) => Err(error.into()),
    }
}
