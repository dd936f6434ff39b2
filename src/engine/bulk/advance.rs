//! Moving a bulk action on once nothing is left to do in its state.

use uuid::Uuid;

use super::{stretch, word};
use crate::domain::bulk::BulkState;
use crate::engine::actions::ActionError;
use crate::gate::Gate;
use crate::store::bulk::members;
use crate::store::{Commit, audit, bulk};

/// Moves it on where that is due; whether it was.
pub(super) async fn advance(gate: &Gate, id: Uuid) -> Result<bool, ActionError> {
    let mut tx = gate.db().read().await?;
    let Some(row) = bulk::by_id(&mut tx, id).await? else { return Ok(false) };
    let left = members::left(&mut tx, id, stretch::up_to(&row)).await?;
    drop(tx);
    let nothing_left = !left.waiting && !left.sent;
    match row.state {
        BulkState::Canary if !left.waiting => {
            let mut tx = gate.db().begin().await?;
            let moved = bulk::move_on(&mut tx, id, BulkState::Canary, BulkState::Confirm).await?;
            tx.commit(Commit::Action).await?;
            Ok(moved)
        }
        BulkState::Running if nothing_left => {
            let now = gate.ambient().now();
            let mut tx = gate.db().begin().await?;
            let ended = bulk::end(&mut tx, id, now).await?;
            if ended {
                let progress = members::progress(&mut tx, &[id]).await?;
                let came_to = progress.first().map(|(_, progress)| progress.words(row.action));
                let entry = word::itself(gate, id, "bulk_end", "ended", &came_to.unwrap_or_default());
                audit::insert(&mut tx, &entry).await?;
            }
            tx.commit(Commit::Action).await?;
            Ok(ended)
        }
        BulkState::Cancelled if !left.sent => {
            let mut tx = gate.db().begin().await?;
            bulk::unwatch(&mut tx, id).await?;
            tx.commit(Commit::Action).await?;
            Ok(false)
        }
        _ => Ok(false),
    }
}
