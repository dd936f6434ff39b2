//! Acting on one member, by the engine's function for one dead letter.

use super::create::Act;
use super::subject;
use crate::domain::actor::Actor;
use crate::domain::bulk::MemberState;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::domain::words;
use crate::engine::actions::{self, ActionError, Request, Resolve};
use crate::engine::{ask, handling};
use crate::gate::Gate;
use crate::store::bulk::BulkRow;
use crate::store::bulk::members::{Due, Move};
use crate::store::dead_letters;

/// Acts on a member; what became of it. An error says nothing of the member: it is still waiting.
pub(super) async fn member(gate: &Gate, row: &BulkRow, due: Due, actor: &Actor) -> Result<Move, ActionError> {
    let origin = subject(row.id);
    // The same id whichever node acts, and however often: a node that died between acting and
    // recording leaves a member that is answered as before.
    let action_id = format!("{origin}:{}", due.position);
    let request = Request { actor, action_id: &action_id, reason: &row.reason, origin: &origin };
    let now = gate.ambient().now();
    let done = match Act::of(row) {
        Act::Replay => {
            actions::replay_member(gate, due.operation_id, due.dead_letter_id, &request).await.map(replayed)
        }
        Act::Resolve(resolution) => {
            let how = Resolve { resolution, reference: None };
            let label = words::resolution(resolution).label.to_lowercase();
            let said = format!("Closed as \u{201c}{label}\u{201d}.");
            let closed = actions::resolve(gate, due.dead_letter_id, &how, &request).await;
            closed.map(|()| (MemberState::Done, said))
        }
        Act::Assign(to) => {
            let handed = handling::assign(gate, due.dead_letter_id, to.as_deref(), &request).await;
            let said =
                to.map_or_else(|| "Nobody has it now.".to_owned(), |name| format!("{name} has it now."));
            handed.map(|()| (MemberState::Done, said))
        }
        Act::Lookup => return looked_up(gate, due, &request).await,
    };
    moved(due, done.map(|(state, answer)| (state, answer, now)))
}

/// Asks about a member that is still open.
async fn looked_up(gate: &Gate, due: Due, request: &Request<'_>) -> Result<Move, ActionError> {
    let now = gate.ambient().now();
    let mut tx = gate.db().read().await?;
    let letter = dead_letters::by_id(&mut tx, due.dead_letter_id).await?;
    drop(tx);
    let asked = match letter {
        Some(letter) if letter.closed_at.is_some() => Err(ActionError::NotOpen(letter.status)),
        Some(_) => ask::ask(gate, due.operation_id, request).await,
        None => Err(ActionError::NotFound),
    };
    moved(
        due,
        asked.map(|question| {
            let name = words::destination_name(&question.destination);
            let said = format!("{} was asked.", words::capitalised(&name));
            // What it answers is looked for from the moment of the question on.
            (MemberState::Sent, said, question.since.min(now))
        }),
    )
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
/// answer say nothing of a member.
fn moved(
    due: Due,
    done: Result<(MemberState, String, crate::domain::time::Timestamp), ActionError>,
) -> Result<Move, ActionError> {
    let (to, answer, at) = match done {
        Ok((to, answer, at)) => (to, answer, Some(at)),
        Err(error) => {
            let to = match &error {
                ActionError::NotOpen(DeadLetterStatus::Open | DeadLetterStatus::Replaying)
                | ActionError::NotFound
                | ActionError::Invalid(_)
                | ActionError::IdReused
                | ActionError::Busy(_)
                | ActionError::Settled(_) => MemberState::Refused,
                ActionError::NotOpen(_) => MemberState::AlreadyDone,
                ActionError::Forbidden(_) | ActionError::Gate(_) | ActionError::Answer(_) => {
                    return Err(error);
                }
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
