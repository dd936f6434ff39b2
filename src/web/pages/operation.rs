//! One operation: the thread of evidence.

use askama::Template;
use axum::Router;
use axum::extract::{Path, Query, State};
use axum::response::Response;
use axum::routing::get;
use serde::Deserialize;
use uuid::Uuid;

use super::case;
use super::dead_letter::Payload;
use super::shown::{self, Private};
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::operation::OperationState;
use crate::engine::excerpt::Excerpt;
use crate::store::dead_letters::DeadLetterRow;
use crate::store::history::Place;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::{Tale, card, facts, list, sentence, timeline};
use crate::web::timeline::{Entry, Step, What};
use crate::web::view::{Button, Fact, FactValue, Reference, When};

/// One of them.
pub fn routes() -> Router<Web> {
    Router::new().route("/operations/{id}", get(show))
}

/// Which stretch of the history is asked for.
#[derive(Debug, Deserialize)]
pub(super) struct Stretch {
    before: Option<String>,
}

impl Stretch {
    /// The place that it ends at; a text that is none is refused.
    pub(super) fn place(&self) -> Result<Option<Place>, Failure> {
        let wrong = || Failure::BadAddress("before: not a place that a page gave out.".to_owned());
        self.before.as_deref().map(|text| Place::decode(text).ok_or_else(wrong)).transpose()
    }
}

async fn show(
    State(web): State<Web>,
    who: Signed,
    Path(id): Path<String>,
    Query(stretch): Query<Stretch>,
) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    Ok(render(&page(&web, &who, id, stretch.place()?).await?))
}

/// The page, as far as `before`.
async fn page(web: &Web, who: &Signed, id: Uuid, before: Option<Place>) -> Result<OperationPage, Failure> {
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let (seen, role) = (who.seen(now), &who.role);
    let mut tx = web.engine.db().read().await?;
    let excerpt = Excerpt::load(&mut tx, id, before).await?.ok_or(Failure::NotFound)?;
    let thread = &excerpt.thread;
    let masked = Tale::new(config, thread, seen, role);
    let hides = masked.mask.hides_something();
    let private = shown::of(web, &mut tx, who, &masked, None).await?;
    // A browser keeps titles.
    let title = format!("{}: {}", masked.name(), thread.operation.kind);
    let unmasked = private.is_shown();
    let tale = if unmasked { masked.unmasked() } else { masked };
    let layout = who.layout(title, Section::Operations).await.listening(format!("operation:{id}"));
    let layout = list::rail(&mut tx, layout).await?;
    let related = facts::related(&mut tx, config, thread, &tale, None).await?;
    drop(tx);
    let path = format!("/operations/{id}");
    let fields = vec![("csrf", who.csrf.clone()), ("action_id", case::action_id(web, None))];
    let here = thread.live_letter().map(|letter| letter.position);
    let mut all = facts::operation(&tale);
    all.extend(facts::record(&tale));
    let episode = |letter: &DeadLetterRow| Episode {
        href: format!("/dead-letters/{}", letter.id),
        status: letter.status,
        certainty: letter.certainty,
        opened: When::at(letter.opened_at, seen),
    };
    Ok(OperationPage {
        layout,
        private,
        state: thread.operation.state(),
        sentence: sentence::operation(&tale),
        kind: thread.operation.kind.clone(),
        key: tale.mask.text(&thread.operation.key),
        facts: all,
        steps: timeline::steps(&tale, here),
        timeline: timeline::entries(&tale, &excerpt, &path, &who.csrf),
        ask: card::question(&tale, thread.current_step(), fields, None),
        payload: facts::payload(&tale, &who.csrf),
        export: Export {
            href: format!("{path}/evidence.json"),
            lacks: (!role.may(Right::Export)).then(|| labels::lacks(Right::Export, role)),
            private: unmasked,
            hidden: hides && !unmasked,
        },
        episodes: thread.letters.iter().map(episode).collect(),
        related,
        printed: format!(
            "Seen by {} on {}{}. Dead Letter Office {}.",
            who.user.name,
            When::at(now, seen).both,
            if unmasked { ", with private values" } else { "" },
            env!("CARGO_PKG_VERSION"),
        ),
    })
}

/// `/operations/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/operation.html")]
pub struct OperationPage {
    /// Around it.
    pub layout: Layout,
    /// How its private values stand.
    pub private: Private,
    /// What is known of it.
    pub state: OperationState,
    /// "Did we send that?", answered in a sentence.
    pub sentence: String,
    /// The type's name.
    pub kind: String,
    /// The operation's key.
    pub key: String,
    /// Ids, correlation, source, times, digest.
    pub facts: Vec<Fact>,
    /// In order.
    pub steps: Vec<Step>,
    /// Oldest first.
    pub timeline: Vec<Entry>,
    /// Has the destination asked what it knows.
    pub ask: Option<Button>,
    /// Masked where the type says so.
    pub payload: Payload,
    /// All of it as a document.
    pub export: Export,
    /// Episodes in which it waited for a person, newest first.
    pub episodes: Vec<Episode>,
    /// Corrections and operations with the same business ids.
    pub related: Vec<Reference>,
    /// Whose view it is and when it was made: printed at the foot.
    pub printed: String,
}

/// The form that hands the evidence out as JSON.
#[derive(Clone, Debug)]
pub struct Export {
    /// Where it posts to.
    pub href: String,
    /// The right that the reader lacks.
    pub lacks: Option<String>,
    /// What is private in it is shown to the reader at this moment, and may go along.
    pub private: bool,
    /// It is hidden.
    pub hidden: bool,
}

/// One dead letter of this operation.
#[derive(Clone, Debug)]
pub struct Episode {
    /// Its page.
    pub href: String,
    /// Where it stands.
    pub status: DeadLetterStatus,
    /// What was known of the effect.
    pub certainty: Certainty,
    /// When it was opened.
    pub opened: When,
}
