//! Acting on one member, by the engine's function for one dead letter.

use super::create::Act;
use super::subject;
use crate::domain::actor::Actor;
use crate::domain::bulk::MemberState;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::domain::words;
use crate::engine::actions::{self, ActionError, Request, Resolve};
use crate::engine::ask::{self, Question};
use crate::engine::{handling, replay};
use crate::gate::{Gate, GateError};
use crate::store::bulk::BulkRow;
use crate::store::bulk::members::{Due, Move};
use crate::store::dead_letters;

/// The id under which a member is acted on. The same whichever node does it, and however often: a
/// node that died between acting and recording leaves a member that is answered as before.
pub(super) fn action_id(row: &BulkRow, due: Due) -> String {
    format!("{}:{}", subject(row.id), due.position)
}

/// Acts on a member; what became of it. An error says nothing of the member: it is still waiting.
pub(super) async fn member(gate: &Gate, row: &BulkRow, due: Due, actor: &Actor) -> Result<Move, ActionError> {
    let (origin, action_id) = (subject(row.id), action_id(row, due));
    let request = Request { actor, action_id: &action_id, reason: &row.reason, origin: &origin };
    let now = gate.ambient().now();
    let act = Act::of(row);
    let done = match &act {
        Act::Replay => {
            replay::replay_member(gate, due.operation_id, due.dead_letter_id, &request).await.map(replayed)
        }
        Act::Resolve(resolution) => {
            let how = Resolve { resolution: *resolution, reference: None };
            let closed = actions::resolve(gate, due.dead_letter_id, &how, &request).await;
            closed.map(|()| (MemberState::Done, done(&act)))
        }
        Act::Assign(to) => {
            let handed = handling::assign(gate, due.dead_letter_id, to.as_deref(), &request).await;
            handed.map(|()| (MemberState::Done, done(&act)))
        }
        Act::Lookup => return looked_up(gate, due, &request).await,
    };
    moved(due, done.map(|(state, answer)| (state, answer, now)))
}

/// What became of a member that was acted on and not recorded, by the answer that was stored.
pub(super) fn answered(row: &BulkRow, due: Due, answer: &str, now: Timestamp) -> Result<Move, ActionError> {
    let act = Act::of(row);
    let became = match &act {
        Act::Replay => {
            let (state, answer) = replayed(serde_json::from_str(answer)?);
            (state, answer, now)
        }
        Act::Lookup => asked(&serde_json::from_str(answer)?),
        Act::Resolve(_) | Act::Assign(_) => (MemberState::Done, done(&act), now),
    };
    moved(due, Ok(became))
}

/// What is said of a member with which all was done at once.
fn done(act: &Act) -> String {
    match act {
        Act::Resolve(resolution) => {
            format!("Closed as \u{201c}{}\u{201d}.", words::resolution(*resolution).label.to_lowercase())
        }
        Act::Assign(Some(name)) => format!("{name} has it now."),
        Act::Assign(None) => "Nobody has it now.".to_owned(),
        Act::Replay | Act::Lookup => String::new(),
    }
}

/// A question that was put. What is answered to it is looked for from its own moment on.
fn asked(question: &Question) -> (MemberState, String, Timestamp) {
    let name = words::capitalised(&words::destination_name(&question.destination));
    (MemberState::Sent, format!("{name} was asked."), question.since)
}

/// Asks about a member that is still open.
async fn looked_up(gate: &Gate, due: Due, request: &Request<'_>) -> Result<Move, ActionError> {
    let mut tx = gate.db().read().await?;
    let letter = dead_letters::by_id(&mut tx, due.dead_letter_id).await?;
    drop(tx);
    let question = match letter {
        Some(letter) if letter.closed_at.is_some() => Err(ActionError::NotOpen(letter.status)),
        Some(_) => ask::ask(gate, due.operation_id, request).await,
        None => Err(ActionError::NotFound),
    };
    moved(due, question.map(|question| asked(&question)))
}

fn replayed(verdict: Verdict) -> (MemberState, String) {
    let state = match verdict.verdict {
        VerdictKind::Accepted => MemberState::Sent,
        VerdictKind::AlreadyDone => MemberState::AlreadyDone,
        VerdictKind::InFlight
        | VerdictKind::LookUpFirst
        | VerdictKind::NeedsOverride
        | VerdictKind::Refused => MemberState::Refused,
    };
    (state, verdict.reason)
}

/// What a refusal of one member says of it. A right that is missing and a database that does not
/// answer say nothing of a member; whatever else stands in the way of one must not hold the others up.
fn moved(due: Due, done: Result<(MemberState, String, Timestamp), ActionError>) -> Result<Move, ActionError> {
    let (to, answer, at) = match done {
        Ok((to, answer, at)) => (to, answer, Some(at)),
        Err(error) => {
            let to = match &error {
                ActionError::NotOpen(DeadLetterStatus::Open | DeadLetterStatus::Replaying)
                | ActionError::NotFound
                | ActionError::Invalid(_)
                | ActionError::IdReused
                | ActionError::Busy(_)
                | ActionError::Settled(_)
                | ActionError::Changed(_)
                | ActionError::Answer(_)
                | ActionError::Gate(GateError::Illegal(_)) => MemberState::Refused,
                ActionError::NotOpen(_) => MemberState::AlreadyDone,
                ActionError::Forbidden(_) | ActionError::Gate(GateError::Store(_)) => return Err(error),
            };
            (to, sentence(&error), None)
        }
    };
    Ok(Move { position: due.position, from: MemberState::Waiting, to, answer, at })
}

fn sentence(error: &ActionError) -> String {
    let text = words::capitalised(&error.to_string());
    if text.ends_with('.') { text } else { text + "." }
}
