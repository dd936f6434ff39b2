//! Corrections: an operation with other data takes the place of one that failed. The data of neither
//! is ever changed.

use serde_json::value::RawValue;
use uuid::Uuid;

use super::accept::{SubmitError, given_key};
use super::actions::{self, ActionError, Request, permitted, reason, take};
use super::draft::{Draft, Origin};
use super::thread::Thread;
use crate::domain::actor::{Actor, Right};
use crate::domain::attempt::Outcome;
use crate::domain::operation::{NewOperation, OperationState, StepState};
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::gate::{Gate, GateError};
use crate::store::audit::{self, AuditRow};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::operations::OperationRow;
use crate::store::work::WorkRow;
use crate::store::{Commit, StoreError, Tx, actions as answered, dead_letters, erasure, operations, work};

/// Numbered keys that are tried before a person is asked for one.
const MOST_NUMBERS: u32 = 100;

/// What takes an operation's place.
#[derive(Clone, Debug)]
pub struct Correction {
    /// JSON, kept to the byte.
    pub payload: Box<RawValue>,
    /// Absent: the one that the type derives, or the operation's own with a number behind it.
    pub key: Option<String>,
}

/// Why an operation cannot be corrected as things stand. Nothing was changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Uncorrectable {
    /// It is done.
    #[error(
        "it is completed, so there is nothing to correct; hand in a new operation for what has to change"
    )]
    Completed,
    /// A send of it is under way.
    #[error("it is being sent right now, asked for by {by}, since {}; wait for its outcome", words::moment(*.since))]
    InFlight {
        /// Who asked for it.
        by: String,
        /// Since when.
        since: Timestamp,
    },
    /// It may be sent at any moment.
    #[error(
        "it is in the queue and may be sent at any moment; wait for its outcome, or pause its destination first"
    )]
    Queued,
    /// Somebody corrected it.
    #[error("it was corrected already: operation {0} took its place; correct that one")]
    Corrected(Uuid),
    /// A second operation could be a second effect.
    #[error(
        "its step \u{201c}{step}\u{201d} may have happened, so a corrected operation could be a second effect; have \
         the destination asked first, or resolve its dead letter"
    )]
    MayHaveHappened {
        /// The step's name.
        step: String,
    },
    /// Something of it is done, and a correction begins anew.
    #[error(
        "its step \u{201c}{step}\u{201d} is done{}, and a correction starts every step anew: it would be done twice; \
         hand in what is left as an operation of its own, and resolve this one",
        reference.as_ref().map(|id| format!(" (as {id})")).unwrap_or_default()
    )]
    StepDone {
        /// The step's name.
        step: String,
        /// The id over there.
        reference: Option<String>,
    },
    /// A person's word settled it otherwise.
    #[error("{0}")]
    Closed(String),
    /// What stands for a private value on a page would be sent as the value.
    #[error("the payload holds {}, which stands for a private value; write the value itself", words::HIDDEN)]
    Masked,
    /// The data is what it was.
    #[error("nothing is changed: the payload is the one that it has; replay it instead")]
    Unchanged,
}

/// Why a correction was not made. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum CorrectError {
    /// As for every action.
    #[error(transparent)]
    Action(#[from] ActionError),
    /// No operation can be made of what was sent.
    #[error(transparent)]
    Submission(#[from] SubmitError),
    /// The operation stands in the way.
    #[error(transparent)]
    Stands(#[from] Uncorrectable),
    /// The key is another operation's.
    #[error("the key {key:?} is operation {first}'s already; leave the key out, or choose another")]
    KeyTaken {
        /// The key.
        key: String,
        /// Whose it is.
        first: Uuid,
    },
}

impl From<StoreError> for CorrectError {
    fn from(error: StoreError) -> Self {
        Self::Action(error.into())
    }
}

impl From<GateError> for CorrectError {
    fn from(error: GateError) -> Self {
        Self::Action(error.into())
    }
}

/// Accepts an operation with other data in the place of one that failed or waits for its next try,
/// and ends that one; the new operation's id. All its steps begin anew, under keys of their own.
pub async fn correct(
    gate: &Gate,
    operation: Uuid,
    correction: Correction,
    request: &Request<'_>,
) -> Result<Uuid, CorrectError> {
    permitted(request.actor, Right::Correct)?;
    let reason = reason(request.reason)?;
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    let row = operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let draft = Draft::read(gate.config(), &row.kind, correction.payload)?;
    let wanted = correction.key.as_deref().unwrap_or_default();
    // The same id with other data is another action.
    let subject = format!("correct {operation} {} {wanted}", draft.digest.hex());
    if let Some(earlier) = take(&mut tx, &actor, request.action_id, &subject, now).await? {
        return Ok(serde_json::from_str(&earlier).map_err(ActionError::from)?);
    }
    let Placed { thread, waiting, new, .. } =
        place(gate, &mut tx, operation, &draft, correction.key, request.actor).await?;
    if let Some(facts) = &waiting {
        let last = thread.attempts.iter().rev().find(|attempt| {
            attempt.position == facts.position
                && attempt.asked.is_none()
                && attempt.outcome != Outcome::Skipped
        });
        gate.withdraw(&mut tx, facts, last).await?;
    }
    gate.replace(&mut tx, operation, new.id).await?;
    dead_letters::corrected(&mut tx, operation, &actor, &reason, now).await?;
    let event = |operation_id, kind, detail| EventRow {
        id: gate.ambient().id(),
        operation_id,
        position: None,
        at: now,
        kind,
        actor: actor.clone(),
        detail,
    };
    let told = [
        event(
            operation,
            EventKind::Corrected,
            format!("Corrected by operation {} ({actor}: {reason})", new.id),
        ),
        event(new.id, EventKind::Corrects, format!("Corrects operation {operation} ({actor}: {reason})")),
    ];
    events::insert(&mut tx, &told).await?;
    let letter = dead_letters::of_operation(&mut tx, operation).await?.into_iter().next();
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor: actor.clone(),
        action: "correct".to_owned(),
        operation_id: Some(operation),
        dead_letter_id: letter.map(|letter| letter.id),
        subject: None,
        reason: Some(reason),
        result: "corrected".to_owned(),
        detail: format!("by operation {}", new.id),
        origin: request.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    let answer = serde_json::to_string(&new.id).map_err(ActionError::from)?;
    answered::answer(&mut tx, &actor, request.action_id, operation, &answer).await?;
    work::announce(&mut tx).await?;
    tx.commit(Commit::Action).await?;
    Ok(new.id)
}

/// What a correction would make at this moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Outlook {
    /// The new operation's key.
    pub key: String,
    /// Why it is that one.
    pub from: KeyFrom,
}

/// Where the key of a corrected operation comes from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KeyFrom {
    /// A person chose it.
    Given,
    /// The type makes it of facts in the payload, and they changed.
    Derived,
    /// The operation's own, with a number behind it.
    Numbered,
}

/// How a correction would go, or why it would not: the very steps of one, and nothing is kept.
pub async fn preview(
    gate: &Gate,
    operation: Uuid,
    correction: Correction,
    actor: &Actor,
) -> Result<Outlook, CorrectError> {
    permitted(actor, Right::Correct)?;
    let mut tx = gate.db().begin().await?;
    let row = operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let draft = Draft::read(gate.config(), &row.kind, correction.payload)?;
    let placed = place(gate, &mut tx, operation, &draft, correction.key, actor).await?;
    Ok(Outlook { key: placed.new.key.as_str().to_owned(), from: placed.from })
}

/// What stands in the way of any correction at this moment.
pub async fn obstacle(gate: &Gate, operation: Uuid) -> Result<Option<Uncorrectable>, CorrectError> {
    let mut tx = gate.db().begin().await?;
    Ok(stand(gate, &mut tx, operation).await?.0.err())
}

/// Whether an operation can be corrected, with its thread and the row of work that waits for it. It
/// is locked.
async fn stand(
    gate: &Gate,
    tx: &mut Tx,
    operation: Uuid,
) -> Result<(Result<(), Uncorrectable>, Thread, Option<WorkRow>), CorrectError> {
    work::lock_operation(tx, operation).await?;
    let free = work::seize(tx, operation).await?;
    let thread = Thread::load(tx, operation).await?.ok_or(ActionError::NotFound)?;
    let waiting = if free { work::one(tx, operation).await? } else { None };
    let stands = in_the_way(&thread, free, waiting.as_ref(), gate.ambient().now());
    Ok((stands, thread, waiting))
}

/// An operation that is stored in another's place, and what that one was.
struct Placed {
    thread: Thread,
    waiting: Option<WorkRow>,
    new: NewOperation,
    from: KeyFrom,
}

async fn place(
    gate: &Gate,
    tx: &mut Tx,
    operation: Uuid,
    draft: &Draft<'_>,
    key: Option<String>,
    actor: &Actor,
) -> Result<Placed, CorrectError> {
    let (stands, thread, waiting) = stand(gate, tx, operation).await?;
    stands?;
    if draft.digest == thread.operation.digest {
        return Err(Uncorrectable::Unchanged.into());
    }
    let was_there = thread.payload.as_deref().is_some_and(|payload| payload.contains(words::HIDDEN));
    if draft.holds_mask() && !was_there {
        return Err(Uncorrectable::Masked.into());
    }
    let origin = || Origin {
        correlation_id: thread.operation.correlation_id.clone(),
        source: thread.operation.source.clone(),
        by: actor.to_string(),
        corrects: Some(operation),
    };
    let (from, keys) = keys(draft, key, &thread.operation)?;
    let new = store(gate, tx, draft, keys, origin).await?;
    // A slip in the data is told to whoever made it, not to the next person who finds a dead letter.
    gate.try_out(tx, new.id, actor).await?.map_err(SubmitError::Malformed)?;
    Ok(Placed { thread, waiting, new, from })
}

/// What stands in the way of a correction, if anything: only what cannot have happened, and is not
/// about to, can be replaced.
fn in_the_way(
    thread: &Thread,
    free: bool,
    waiting: Option<&WorkRow>,
    now: Timestamp,
) -> Result<(), Uncorrectable> {
    let row = &thread.operation;
    if let Some(by) = row.corrected_by {
        return Err(Uncorrectable::Corrected(by));
    }
    if row.stored_state == OperationState::Completed {
        return Err(Uncorrectable::Completed);
    }
    if !free {
        return Err(Uncorrectable::Queued);
    }
    if let Some(work) = waiting {
        if work.leased_until.is_some() {
            let by = work.live_by.as_ref().unwrap_or(&work.requested_by).clone();
            return Err(Uncorrectable::InFlight { by, since: work.live_since.unwrap_or(now) });
        }
        let due = row.due_at.is_none_or(|due| due <= now);
        if due && work.paused_at.is_none() {
            return Err(Uncorrectable::Queued);
        }
    }
    for step in &thread.steps {
        // One that was passed over may have come to something before that.
        let doubted = thread
            .attempts
            .iter()
            .any(|attempt| attempt.position == step.position && attempt.outcome == Outcome::Uncertain);
        let step_done =
            || Uncorrectable::StepDone { step: step.name.clone(), reference: step.reference.clone() };
        match step.state {
            // Whether repeating a done step with other data does harm is for nobody to guess, even
            // where its destination converges: it may converge on another thing.
            StepState::Completed => return Err(step_done()),
            StepState::Uncertain => {
                return Err(Uncorrectable::MayHaveHappened { step: step.name.clone() });
            }
            StepState::Skipped if doubted => {
                return Err(Uncorrectable::MayHaveHappened { step: step.name.clone() });
            }
            // An answer that came late may say so.
            StepState::Pending | StepState::Failed if thread.knowledge_of(step).is_done() => {
                return Err(step_done());
            }
            StepState::Pending | StepState::Failed | StepState::Skipped => {}
        }
    }
    // A person's word ended the last episode: by other means it may well have happened.
    let closed = thread.letters.first().filter(|letter| waiting.is_none() && letter.closed_at.is_some());
    match closed.and_then(|letter| Some((letter, letter.resolution?))) {
        Some((letter, how)) => {
            Err(Uncorrectable::Closed(actions::closed(how, letter).trim_end_matches('.').to_owned()))
        }
        None => Ok(()),
    }
}

/// The keys that the new operation may get, of which it gets the first that is free, and where they
/// come from.
fn keys(
    draft: &Draft<'_>,
    given: Option<String>,
    old: &OperationRow,
) -> Result<(KeyFrom, Vec<String>), SubmitError> {
    // In any case: a payload without the facts of its key is no payload of this type.
    let derived = draft.derived_key()?;
    let derived = derived.map(|key| key.as_str().to_owned()).filter(|key| *key != old.key);
    Ok(match (given, derived) {
        (Some(key), _) => (KeyFrom::Given, vec![key]),
        (None, Some(key)) => (KeyFrom::Derived, vec![key]),
        (None, None) => {
            let numbered = |number| format!("{}:c{number}", unnumbered(old));
            (KeyFrom::Numbered, (1..=MOST_NUMBERS).map(numbered).collect())
        }
    })
}

/// The key that a chain of corrections began with.
fn unnumbered(old: &OperationRow) -> &str {
    let numbered = old.key.rsplit_once(":c").filter(|(_, number)| {
        old.corrects.is_some() && !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit())
    });
    numbered.map_or(&old.key, |(key, _)| key)
}

/// Stores the new operation under the first key that is free.
async fn store(
    gate: &Gate,
    tx: &mut Tx,
    draft: &Draft<'_>,
    keys: Vec<String>,
    origin: impl Fn() -> Origin,
) -> Result<NewOperation, CorrectError> {
    let mut taken = String::new();
    for key in keys {
        let new = draft.operation(gate.ambient(), given_key(key.clone())?, origin());
        if !operations::insert(tx, &[&new]).await?.is_empty() {
            return Ok(new);
        }
        taken = key;
    }
    // It was there a moment ago; if it is gone, the same action finds it free.
    let first = match operations::by_key(tx, &taken).await? {
        Some(row) => row.id,
        None => erasure::named(tx, &[&taken]).await?.remove(&taken).ok_or(SubmitError::Unavailable)?,
    };
    Err(CorrectError::KeyTaken { key: taken, first })
}
