//! One dead letter: what happened, and the safest next step.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::http::StatusCode;
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use super::case;
use super::handling::{self, Handling};
use super::operation::Stretch;
use super::shown::{self, Private};
use super::verdict::VerdictView;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use crate::domain::operation::Severity;
use crate::domain::words;
use crate::engine::excerpt::Excerpt;
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::destinations;
use crate::store::history::Place;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::known::Knowledge;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render_as};
use crate::web::tell::{Tale, card, facts, list, sentence, timeline};
use crate::web::timeline::{Entry, Step, What};
use crate::web::view::{Button, Fact, FactValue, Long, Reference, When};

/// One of them.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters/{id}", get(show))
}

async fn show(
    State(web): State<Web>,
    who: Signed,
    Path(id): Path<String>,
    Query(stretch): Query<Stretch>,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let before = stretch.place()?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    page(&web, &who, id, before, StatusCode::OK, None).await
}

/// The page; `sent` is a form of it that could not be taken.
pub(super) async fn page(
    web: &Web,
    who: &Signed,
    id: Uuid,
    before: Option<Place>,
    status: StatusCode,
    sent: Option<&handling::Sent>,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let letter = dead_letters::by_id(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let excerpt = Excerpt::load(&mut tx, letter.operation_id, before).await?.ok_or(Failure::NotFound)?;
    let thread = &excerpt.thread;
    let tale = Tale::new(config, thread, who.seen(now), &who.role);
    let private = shown::of(web, &mut tx, who, &tale, Some(id)).await?;
    let title = format!("{}: {}", tale.name(), words::step_name(&letter.step));
    let layout = who.layout(title, Section::DeadLetters).await;
    let layout = layout.listening(format!("operation:{}", letter.operation_id));
    let layout = list::rail(&mut tx, layout).await?;
    let tale = if private.is_shown() { tale.unmasked() } else { tale };
    let related = facts::related(&mut tx, config, thread, &tale, Some(id)).await?;
    let handling = handling::load(web, &mut tx, who, thread, &letter, sent).await?;
    let paused = letter.status == DeadLetterStatus::Open
        && tale.destination(&letter.destination).is_some()
        && destinations::all(&mut tx)
            .await?
            .iter()
            .any(|row| row.name == letter.destination && row.paused_at.is_some());
    drop(tx);
    let [sentence, next_step] = sentence::dead_letter_now(&tale, &letter);
    let step = tale.step(letter.position);
    let mut knowledge = card::knowledge_of(&tale, step);
    if letter.status == DeadLetterStatus::Open {
        let fields = vec![("csrf", who.csrf.clone()), ("action_id", case::action_id(web, None))];
        knowledge.ask = card::question(&tale, step, fields, Some(letter.id));
    }
    let (buttons, more) = card::buttons(&tale, &letter, &knowledge, paused);
    // Every action stands in the one bar.
    knowledge.ask = None;
    let page = DeadLetterPage {
        layout,
        certainty: letter.certainty,
        status: letter.status,
        severity: letter.severity,
        opened: When::at(letter.opened_at, tale.seen()),
        sentence: Long::line(sentence),
        next_step: match letter.status {
            DeadLetterStatus::Replaying => {
                "It is being tried again now. The attempt appears below when it ends.".to_owned()
            }
            _ if paused => {
                let place = words::capitalised(&words::destination_name(&letter.destination));
                format!("{place} is paused: nothing is sent there until it is resumed. {next_step}")
            }
            _ => next_step,
        },
        overridden: sentence::overridden(&tale, &letter),
        verdict: None,
        closed: closed(&letter, &tale),
        knowledge,
        buttons,
        handling,
        more,
        steps: timeline::steps(&tale, Some(letter.position)),
        timeline: timeline::entries(&tale, &excerpt, &format!("/dead-letters/{id}"), &who.csrf),
        facts: facts::operation(&tale),
        promise: facts::promise(&tale, step),
        payload: facts::payload(&tale, &who.csrf),
        private,
        related,
        operation: Reference::here(
            "The whole operation, to print",
            format!("/operations/{}", letter.operation_id),
        ),
    };
    Ok(render_as(status, &page))
}

fn closed(letter: &DeadLetterRow, tale: &Tale<'_>) -> Option<Closed> {
    let at = letter.closed_at?;
    let reference = letter.reference.as_deref().map(|text| tale.mask.text(text));
    let reason = letter.reason.as_deref().map(|text| tale.mask.text(text));
    Some(Closed {
        resolution: letter.resolution,
        by: letter.closed_by.clone().unwrap_or_else(|| "the engine".to_owned()),
        at: When::at(at, tale.seen()),
        reason: match (reason, reference) {
            (Some(reason), Some(reference)) => Some(Long::line(format!("{reason} (reference {reference})"))),
            (Some(text), None) => Some(Long::line(text)),
            (None, Some(reference)) => Some(Long::line(format!("Reference there: {reference}"))),
            (None, None) => None,
        },
        then: (letter.resolution == Some(Resolution::CompletedAtDestination))
            .then(|| sentence::recorded(tale, letter.position, true)),
        correction: tale
            .thread
            .operation
            .corrected_by
            .filter(|_| letter.status == DeadLetterStatus::Corrected)
            .map(|id| Reference::here("The correction that took its place", format!("/operations/{id}"))),
    })
}

/// `/dead-letters/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/dead_letter.html")]
pub struct DeadLetterPage {
    /// Around it.
    pub layout: Layout,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// Where the episode stands.
    pub status: DeadLetterStatus,
    /// How much it matters.
    pub severity: Severity,
    /// When it was opened.
    pub opened: When,
    /// What happened, from the catalogue.
    pub sentence: Long,
    /// The safest next step, from the catalogue.
    pub next_step: String,
    /// That a person had it sent in spite of a check, and what that may mean.
    pub overridden: Option<String>,
    /// The answer to what was just asked for.
    pub verdict: Option<VerdictView>,
    /// How it was closed; absent while it is open.
    pub closed: Option<Closed>,
    /// What the destination knows.
    pub knowledge: Knowledge,
    /// The first one is what the card advises. Empty when nothing is left to do.
    pub buttons: Vec<Button>,
    /// Who has it, until when it may wait, and the small forms of the bar.
    pub handling: Handling,
    /// Under "More": override and what else is rare.
    pub more: Vec<Button>,
    /// In order.
    pub steps: Vec<Step>,
    /// Oldest first.
    pub timeline: Vec<Entry>,
    /// Business ids, key, correlation id, references, owner, runbook.
    pub facts: Vec<Fact>,
    /// What the destination promises, and when its key window closes.
    pub promise: Vec<Fact>,
    /// Masked where the type says so.
    pub payload: Payload,
    /// How its private values stand.
    pub private: Private,
    /// Same order, same customer, corrections, earlier episodes.
    pub related: Vec<Reference>,
    /// The operation's own page.
    pub operation: Reference,
}

impl DeadLetterPage {
    /// Everything that can be or could be pressed in the bar.
    fn locked(&self) -> Vec<Button> {
        self.buttons.iter().chain(&self.handling.locked).cloned().collect()
    }

    /// Severe enough to be said.
    pub fn loud(&self) -> bool {
        self.severity >= Severity::High
    }
}

/// How an episode ended.
#[derive(Clone, Debug)]
pub struct Closed {
    /// In what way.
    pub resolution: Option<Resolution>,
    /// By whom.
    pub by: String,
    /// When.
    pub at: When,
    /// In their words.
    pub reason: Option<Long>,
    /// What that means for the steps behind it.
    pub then: Option<String>,
    /// The operation that took its place.
    pub correction: Option<Reference>,
}

/// The payload as far as the reader may see it.
#[derive(Clone, Debug)]
pub struct Payload {
    /// Pretty-printed; `None` when it was erased.
    pub text: Option<Long>,
    /// "2 fields are masked."; or why it is gone.
    pub note: Option<String>,
    /// To have all of it as a file, which is audited.
    pub whole: Option<Button>,
}

impl Payload {
    /// The right that the reader lacks for what stands below it.
    pub fn needs<'a>(&'a self, private: &'a Private) -> Option<&'a str> {
        match private {
            Private::Locked(needs) => Some(needs),
            _ => self.whole.as_ref()?.needs.as_deref(),
        }
    }
}
