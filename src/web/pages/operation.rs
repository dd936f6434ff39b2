//! One operation: the thread of evidence.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use super::case;
use super::dead_letter::Payload;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::operation::OperationState;
use crate::engine::thread::Thread;
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::{Tale, card, facts, list, sentence, timeline};
use crate::web::timeline::{Entry, Step, What};
use crate::web::view::{Button, Fact, FactValue, Reference, When};

/// One of them.
pub fn routes() -> Router<Web> {
    Router::new().route("/operations/{id}", get(show))
}

async fn show(State(web): State<Web>, who: Signed, Path(id): Path<String>) -> Result<Response, Failure> {
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let thread = Thread::load(&mut tx, id).await?.ok_or(Failure::NotFound)?;
    let tale = Tale::new(config, &thread, now, who.user.role);
    let title = format!("{}: {}", tale.name(), thread.operation.kind);
    let layout = who.layout(title, Section::Operations).await.listening(format!("operation:{id}"));
    let layout = list::rail(&mut tx, layout).await?;
    let related = facts::related(&mut tx, config, &thread, &tale, None).await?;
    drop(tx);
    let fields = vec![("csrf", who.csrf.clone()), ("action_id", case::action_id(&web, None))];
    let here = thread.live_letter().map(|letter| letter.position);
    let mut all = facts::operation(&tale);
    all.extend(facts::record(&tale));
    let episode = |letter: &crate::store::dead_letters::DeadLetterRow| Episode {
        href: format!("/dead-letters/{}", letter.id),
        status: letter.status,
        certainty: letter.certainty,
        opened: When::at(letter.opened_at, now),
    };
    Ok(render(&OperationPage {
        layout,
        state: thread.operation.state(),
        sentence: sentence::operation(&tale),
        kind: thread.operation.kind.clone(),
        key: tale.mask.text(&thread.operation.key),
        facts: all,
        steps: timeline::steps(&tale, here),
        timeline: timeline::entries(&tale),
        ask: card::question(&tale, thread.current_step(), fields, None),
        payload: facts::payload(&tale),
        episodes: thread.letters.iter().map(episode).collect(),
        related,
        printed: format!("Seen by {} on {}.", who.user.name, When::at(now, now).full),
    }))
}

/// `/operations/{id}`
#[derive(Template, Debug)]
#[template(path = "pages/operation.html")]
pub struct OperationPage {
    /// Around it.
    pub layout: Layout,
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
    /// Episodes in which it waited for a person, newest first.
    pub episodes: Vec<Episode>,
    /// Corrections and operations with the same business ids.
    pub related: Vec<Reference>,
    /// Whose view it is and when it was made: printed at the foot.
    pub printed: String,
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
