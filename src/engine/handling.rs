//! Looking after a dead letter without sending anything: who has it, until when it may wait, what is
//! to be known of it, and opening a closed one again.

use std::time::Duration;

use uuid::Uuid;

use super::actions::{ActionError, Request, closed, permitted, reason, remark, take};
use super::thread::Thread;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use crate::domain::operation::{OperationState, StepState};
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::{Commit, StoreError, Tx, accounts, actions, work};

/// The longest time that a dead letter may be out of sight.
pub const MAX_SNOOZE: Duration = Duration::from_hours(90 * 24);

/// The longest note, in characters.
pub const MAX_NOTE: usize = 2_000;

/// Hands a dead letter to an active person, or to nobody. A reason may be given and need not be.
pub async fn assign(
    gate: &Gate,
    letter: Uuid,
    to: Option<&str>,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let why = remark(request.reason)?;
    let subject = format!("assign {letter} {}", to.unwrap_or_default());
    let Some(mut held) = Held::take(gate, letter, request, &subject).await? else { return Ok(()) };
    if let Some(name) = to {
        let user = accounts::user_by_name(&mut held.tx, name).await?;
        if user.is_none_or(|user| user.disabled_at.is_some()) {
            return Err(ActionError::Invalid(format!("nobody who may sign in is called {name:?}")));
        }
    }
    if !dead_letters::assign(&mut held.tx, letter, to).await? {
        return Err(ActionError::NotOpen(held.row.status));
    }
    let result = to.map_or_else(|| "nobody".to_owned(), |name| format!("to {name}"));
    held.done("assign", letter, why, result, String::new(), "assigned").await
}

/// Puts a dead letter out of sight until a moment within the next 90 days, or wakes it up (`None`).
/// A reason may be given and need not be.
pub async fn snooze(
    gate: &Gate,
    letter: Uuid,
    until: Option<Timestamp>,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let words = until.map(Timestamp::rfc3339).unwrap_or_default();
    sleep(gate, letter, until, &words, request).await
}

/// The same from now on. A second click comes a moment later and asks for the same all the same.
pub async fn snooze_for(
    gate: &Gate,
    letter: Uuid,
    span: Duration,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let until = gate.ambient().now().plus(span);
    sleep(gate, letter, Some(until), &format!("for {} s", span.as_secs()), request).await
}

async fn sleep(
    gate: &Gate,
    letter: Uuid,
    until: Option<Timestamp>,
    asked: &str,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let why = remark(request.reason)?;
    let now = gate.ambient().now();
    if until.is_some_and(|until| until <= now) {
        return Err(ActionError::Invalid("the time to snooze it until is over already".to_owned()));
    }
    if until.is_some_and(|until| until > now.plus(MAX_SNOOZE)) {
        return Err(ActionError::Invalid("it can be snoozed for at most 90 days".to_owned()));
    }
    let subject = format!("snooze {letter} {asked}");
    let Some(mut held) = Held::take(gate, letter, request, &subject).await? else { return Ok(()) };
    if !dead_letters::snooze(&mut held.tx, letter, until).await? {
        return Err(ActionError::NotOpen(held.row.status));
    }
    let result = until.map_or_else(|| "awake".to_owned(), |until| format!("until {}", words::moment(until)));
    held.done("snooze", letter, why, result, String::new(), "snoozed").await
}

/// Writes a note into the thread of a dead letter's operation, open or closed. It is never changed.
pub async fn note(gate: &Gate, letter: Uuid, text: &str, request: &Request<'_>) -> Result<(), ActionError> {
    let text = text.trim().replace('\0', "\u{fffd}");
    match text.chars().count() {
        0 => return Err(ActionError::Invalid("a note says something".to_owned())),
        1..=MAX_NOTE => {}
        length => {
            return Err(ActionError::Invalid(format!(
                "the note has {length} characters; at most {MAX_NOTE} are kept"
            )));
        }
    }
    // The same id with other words is another note.
    let subject = format!("note {letter} {text}");
    let Some(mut held) = Held::take(gate, letter, request, &subject).await? else { return Ok(()) };
    let event = EventRow {
        id: gate.ambient().id(),
        operation_id: held.row.operation_id,
        position: Some(held.row.position),
        at: held.now,
        kind: EventKind::Note,
        actor: held.actor.clone(),
        detail: text,
    };
    events::insert(&mut held.tx, std::slice::from_ref(&event)).await?;
    held.done("note", letter, None, "written".to_owned(), String::new(), "written").await
}

/// Opens a closed dead letter again, as a new episode with the facts of the closed one; its id.
/// What is recorded as done stays done: such a one is refused.
pub async fn reopen(gate: &Gate, letter: Uuid, request: &Request<'_>) -> Result<Uuid, ActionError> {
    let why = reason(request.reason)?;
    let taken = Held::taken(gate, letter, request, &format!("reopen {letter}")).await?;
    let mut held = match taken {
        Taken::New(held) => *held,
        Taken::Before(answer) => return Ok(serde_json::from_str(&answer)?),
    };
    let operation = held.row.operation_id;
    let thread = Thread::load(&mut held.tx, operation).await?.ok_or(ActionError::NotFound)?;
    let queued = work::any(&mut held.tx, operation).await?;
    let step = reopenable(&thread, &held.row, queued)?;
    let (certainty, next_action) = known_now(&held.row, step);
    let episode = DeadLetterRow {
        id: gate.ambient().id(),
        status: DeadLetterStatus::Open,
        certainty,
        next_action,
        assignee: None,
        snoozed_until: None,
        opened_at: held.now,
        closed_at: None,
        closed_by: None,
        resolution: None,
        reason: None,
        reference: None,
        ..held.row.clone()
    };
    dead_letters::open(&mut held.tx, &episode).await?;
    let before = format!("dead letter {letter}");
    let answer = serde_json::to_string(&episode.id)?;
    held.done("reopen", episode.id, Some(why), "opened".to_owned(), before, &answer).await?;
    Ok(episode.id)
}

/// Why a closed episode cannot be opened again, for people; absent when it can.
pub async fn stays_closed(
    tx: &mut Tx,
    thread: &Thread,
    row: &DeadLetterRow,
) -> Result<Option<String>, StoreError> {
    let queued = work::any(tx, thread.operation.id).await?;
    Ok(reopenable(thread, row, queued).err().map(|why| why.to_string()))
}

/// What a closed episode's step is known to be, when the episode can be opened again.
fn reopenable(thread: &Thread, row: &DeadLetterRow, queued: bool) -> Result<StepState, ActionError> {
    let settled = |text: &str| Err(ActionError::Settled(text.to_owned()));
    if let Some(live) = thread.live_letter() {
        return settled(if live.id == row.id {
            "it is open, so there is nothing to open again"
        } else {
            "its operation has a dead letter that is open already; act on that one"
        });
    }
    if thread.letters.first().is_some_and(|latest| latest.id != row.id) {
        return settled("its operation had a later dead letter; open that one again");
    }
    if let Some(by) = thread.operation.corrected_by {
        let text = format!("operation {by} took its place; act on that one");
        return Err(ActionError::Settled(text));
    }
    if queued {
        let text = "its operation is in the queue or being sent right now; wait for its outcome";
        return Err(ActionError::Busy(text.to_owned()));
    }
    let step = thread.steps.iter().find(|step| step.position == row.position);
    let state = step.map(|step| step.state).ok_or(ActionError::NotFound)?;
    if row.resolution == Some(Resolution::CompletedAtDestination) {
        return Err(ActionError::Settled(format!(
            "{} What is recorded as done is never sent again. If the record is wrong, hand in a new operation for \
             what is missing, and say so in a note here",
            closed(Resolution::CompletedAtDestination, row)
        )));
    }
    if state.is_over() || thread.operation.stored_state == OperationState::Completed {
        return settled(
            "its step is done or was passed over, so there is nothing left to settle; hand in a new operation for \
             what is missing",
        );
    }
    Ok(state)
}

/// What is known of the effect now, and what to do first: the destination may have been asked since
/// the episode was closed.
fn known_now(row: &DeadLetterRow, step: StepState) -> (Certainty, NextAction) {
    match (step, row.certainty) {
        (StepState::Uncertain, Certainty::MayHaveCompleted)
        | (StepState::Pending | StepState::Failed, Certainty::DefinitelyFailed) => {
            (row.certainty, row.next_action)
        }
        (StepState::Uncertain, _) => (Certainty::MayHaveCompleted, NextAction::CheckDestination),
        _ => (Certainty::DefinitelyFailed, NextAction::Replay),
    }
}

/// A dead letter whose operation is locked, for an action that nobody did before.
struct Held<'a> {
    gate: &'a Gate,
    request: &'a Request<'a>,
    tx: Tx,
    row: DeadLetterRow,
    actor: String,
    now: Timestamp,
}

/// Whether an action is done now or was done before.
enum Taken<'a> {
    New(Box<Held<'a>>),
    /// With this answer.
    Before(String),
}

impl<'a> Held<'a> {
    async fn take(
        gate: &'a Gate,
        letter: Uuid,
        request: &'a Request<'_>,
        subject: &str,
    ) -> Result<Option<Self>, ActionError> {
        Ok(match Self::taken(gate, letter, request, subject).await? {
            Taken::New(held) => Some(*held),
            Taken::Before(_) => None,
        })
    }

    async fn taken(
        gate: &'a Gate,
        letter: Uuid,
        request: &'a Request<'_>,
        subject: &str,
    ) -> Result<Taken<'a>, ActionError> {
        permitted(request.actor, Right::Resolve)?;
        let actor = request.actor.to_string();
        let now = gate.ambient().now();
        let mut tx = gate.db().begin().await?;
        if let Some(answer) = take(&mut tx, &actor, request.action_id, subject, now).await? {
            return Ok(Taken::Before(answer));
        }
        let row = dead_letters::by_id(&mut tx, letter).await?.ok_or(ActionError::NotFound)?;
        work::lock_operation(&mut tx, row.operation_id).await?;
        // Somebody may have acted on it before it was locked.
        let row = dead_letters::by_id(&mut tx, letter).await?.ok_or(ActionError::NotFound)?;
        Ok(Taken::New(Box::new(Self { gate, request, tx, row, actor, now })))
    }

    /// Writes down what was done and to which dead letter, and makes it durable.
    async fn done(
        mut self,
        action: &str,
        letter: Uuid,
        reason: Option<String>,
        result: String,
        detail: String,
        answer: &str,
    ) -> Result<(), ActionError> {
        let operation = self.row.operation_id;
        let entry = AuditRow {
            id: self.gate.ambient().id(),
            at: self.now,
            actor: self.actor.clone(),
            action: action.to_owned(),
            operation_id: Some(operation),
            dead_letter_id: Some(letter),
            subject: None,
            reason,
            result,
            detail,
            origin: self.request.origin.to_owned(),
        };
        audit::insert(&mut self.tx, &entry).await?;
        actions::answer(&mut self.tx, &self.actor, self.request.action_id, operation, answer).await?;
        self.tx.commit(Commit::Action).await?;
        Ok(())
    }
}
