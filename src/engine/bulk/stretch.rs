//! Taking up a stretch of a bulk action's members: one node at a time, at the speed that was asked
//! for.

use std::time::Duration;

use super::{act, who, word};
use crate::domain::bulk::BulkState;
use crate::domain::time::Timestamp;
use crate::engine::actions::ActionError;
use crate::gate::Gate;
use crate::store::bulk::members::{self, Move};
use crate::store::bulk::{self, BulkRow};
use crate::store::{Commit, Tx, actions};

/// Members of one stretch at most: what is done to them is recorded together.
const MOST: i64 = 50;
/// A node that is not heard of for so long has given its stretch up.
const LEASE: Duration = Duration::from_mins(1);
/// Speed that was not used up is kept for so long.
const BURST: Duration = Duration::from_secs(1);

/// The place up to which members may be taken up now.
pub(super) fn up_to(row: &BulkRow) -> i64 {
    match row.state {
        BulkState::Canary | BulkState::Confirm => row.canary,
        BulkState::Preview | BulkState::Running | BulkState::Ended | BulkState::Cancelled => row.members,
    }
}

/// Acts on the next members where that may be done now; how many.
pub(super) async fn stretch(gate: &Gate, row: &BulkRow) -> Result<usize, ActionError> {
    let now = gate.ambient().now();
    if !row.state.acts() || row.paused_at.is_some() || row.next_at > now {
        return Ok(0);
    }
    let mut tx = gate.db().read().await?;
    let waits = members::left(&mut tx, row.id, up_to(row)).await?.waiting;
    drop(tx);
    // While what was sent is waited for, there is nothing to write.
    if !waits {
        return Ok(0);
    }
    let (most, next_at) = allowance(row, now);
    let mut tx = gate.db().begin().await?;
    if !bulk::lease(&mut tx, row, now, now.plus(LEASE), next_at).await? {
        return Ok(0);
    }
    let due = members::due(&mut tx, row.id, up_to(row), most).await?;
    tx.commit(Commit::Action).await?;
    let fence = row.fence + 1;
    let (mut moves, mut trouble, mut shut): (Vec<Move>, _, _) = (Vec::with_capacity(due.len()), None, None);
    for member in due {
        let mut tx = gate.db().read().await?;
        let goes_on = bulk::goes_on(&mut tx, row.id, fence).await?;
        drop(tx);
        if !goes_on {
            break;
        }
        // What they may do counts at this moment, not when the stretch began.
        let actor = match who::acting(gate, row).await? {
            Ok(actor) => actor,
            Err(why) => {
                shut = Some(why);
                break;
            }
        };
        match act::member(gate, row, member, &actor).await {
            Ok(became) => moves.push(became),
            // The right went between the look and the act.
            Err(ActionError::Forbidden(needs)) => {
                shut = Some(format!("{actor} may not do this any more: it takes {needs}"));
                break;
            }
            Err(error) => {
                trouble = Some(error);
                break;
            }
        }
    }
    let mut tx = gate.db().begin().await?;
    members::record(&mut tx, row.id, &moves).await?;
    bulk::release(&mut tx, row.id, fence).await?;
    tx.commit(Commit::Action).await?;
    if let Some(why) = shut {
        word::pause_itself(gate, row.id, &why).await?;
    }
    trouble.map_or(Ok(moves.len()), Err)
}

/// Records what a node did that died after acting and before recording, where nobody acts again now:
/// the bulk action was cancelled or paused meanwhile. Of how many members.
pub(super) async fn recover(gate: &Gate, row: &BulkRow) -> Result<usize, ActionError> {
    let now = gate.ambient().now();
    let lapsed = row.leased_until.is_some_and(|until| until <= now);
    if !lapsed || (row.state != BulkState::Cancelled && row.paused_at.is_none()) {
        return Ok(0);
    }
    let mut tx = gate.db().begin().await?;
    let found = catch_up(&mut tx, row, now).await?;
    tx.commit(Commit::Action).await?;
    Ok(found)
}

/// Records what was done to members under a lease that lapsed, by the answers that were stored, and
/// ends the lease. Of how many members.
pub(super) async fn catch_up(tx: &mut Tx, row: &BulkRow, now: Timestamp) -> Result<usize, ActionError> {
    let Some(actor) = row.acts_as.as_deref() else { return Ok(0) };
    let mut moves = Vec::new();
    for due in members::due(tx, row.id, row.members, MOST).await? {
        // One whose answer was erased is asked for again, and refused since it was taken.
        let done = actions::find(tx, actor, &act::action_id(row, due)).await?;
        if let Some(done) = done.filter(|done| !done.subject.is_empty()) {
            moves.push(act::answered(row, due, &done.answer, now)?);
        }
    }
    members::record(tx, row.id, &moves).await?;
    bulk::release(tx, row.id, row.fence).await?;
    Ok(moves.len())
}

/// How many members the speed allows now, and when it allows the one behind them.
fn allowance(row: &BulkRow, now: Timestamp) -> (i64, Timestamp) {
    let Some(per_minute) = row.per_minute else { return (MOST, row.next_at) };
    let each = 60_000_000 / per_minute.max(1);
    let from = row.next_at.max(now.minus(BURST)).as_micros();
    let allowed = (1 + (now.as_micros() - from) / each.max(1)).clamp(1, MOST);
    (allowed, Timestamp::from_micros(from + allowed * each))
}
