//! Looking after members under way: what became of them is read from their dead letters and from
//! what was answered to questions, some at a time.

use crate::domain::bulk::{BulkAction, MemberState};
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::words;
use crate::engine::actions::ActionError;
use crate::gate::Gate;
use crate::store::Commit;
use crate::store::bulk::members::{self, Move, UnderWay};
use crate::store::bulk::{self, BulkRow};

/// Members that are looked at in one step at most.
const MOST: i64 = 500;

/// Looks at the next members under way; of how many it is known now what became of them.
pub(super) async fn follow(gate: &Gate, row: &BulkRow) -> Result<usize, ActionError> {
    let mut tx = gate.db().read().await?;
    let seen = members::under_way(&mut tx, row.id, row.followed, MOST).await?;
    drop(tx);
    let moves: Vec<Move> = seen.iter().filter_map(|member| became(row.action, member)).collect();
    let full = i64::try_from(seen.len()).unwrap_or(MOST) == MOST;
    let place = seen.last().filter(|_| full).map_or(0, |member| member.position);
    if moves.is_empty() && place == row.followed {
        return Ok(0);
    }
    let mut tx = gate.db().begin().await?;
    members::record(&mut tx, row.id, &moves).await?;
    bulk::set_followed(&mut tx, row.id, place).await?;
    tx.commit(Commit::Action).await?;
    Ok(moves.len())
}

/// What became of a member under way, once that is known.
fn became(action: BulkAction, member: &UnderWay) -> Option<Move> {
    let (to, answer) = match action {
        BulkAction::Lookup => heard(member)?,
        BulkAction::Replay | BulkAction::Resolve | BulkAction::Assign => ended(member)?,
    };
    Some(Move { position: member.position, from: MemberState::Sent, to, answer, at: None })
}

fn heard(member: &UnderWay) -> Option<(MemberState, String)> {
    match member.heard {
        Some(symptom) => {
            let said = symptom.finding().map_or("no answer to that", words::finding);
            Some((MemberState::Done, format!("{}.", words::capitalised(said))))
        }
        None if member.queued => None,
        None => Some((MemberState::Failed, "It was not asked after all: something else came first.".into())),
    }
}

fn ended(member: &UnderWay) -> Option<(MemberState, String)> {
    let (to, said) = match (member.status, member.certainty) {
        (Some(DeadLetterStatus::Replaying), _) => return None,
        (Some(DeadLetterStatus::Replayed), _) => (MemberState::Confirmed, "The destination confirmed it."),
        (Some(DeadLetterStatus::Resolved), Some(Certainty::CompletedAtDestination)) => {
            (MemberState::Confirmed, "It is known to be done at the destination.")
        }
        (Some(DeadLetterStatus::Open), _) => {
            (MemberState::Failed, "It failed again; its dead letter says why.")
        }
        (Some(DeadLetterStatus::Resolved | DeadLetterStatus::Corrected), _) => {
            (MemberState::Closed, "A person closed it before anything was confirmed.")
        }
        (None, _) => (MemberState::Closed, "It was forgotten."),
    };
    Some((to, said.to_owned()))
}
