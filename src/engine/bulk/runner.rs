//! What carries bulk actions on, on every node that runs the engine.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::{advance, follow, stretch};
use crate::engine::actions::ActionError;
use crate::gate::Gate;
use crate::store::bulk::{self, BulkRow};

/// How often a node looks when there is nothing to do.
const LOOK_EVERY: Duration = Duration::from_millis(500);
/// The least time between two turns.
const PAUSE: Duration = Duration::from_millis(5);

/// Carries every bulk action on by a stretch; in how many ways something moved. One that is in
/// trouble keeps no other one waiting: the first trouble is told once all had their turn.
pub async fn turn(gate: &Gate) -> Result<usize, ActionError> {
    let mut tx = gate.db().read().await?;
    let watched = bulk::watched(&mut tx).await?;
    drop(tx);
    let (mut moved, mut trouble) = (0, None);
    for row in watched {
        match carry_on(gate, &row).await {
            Ok(count) => moved += count,
            Err(error) => trouble = trouble.or(Some(error)),
        }
    }
    trouble.map_or(Ok(moved), Err)
}

async fn carry_on(gate: &Gate, row: &BulkRow) -> Result<usize, ActionError> {
    let acted = stretch::stretch(gate, row).await?;
    let recovered = stretch::recover(gate, row).await?;
    let followed = follow::follow(gate, row).await?;
    let advanced = advance::advance(gate, row.id).await?;
    Ok(acted + recovered + followed + usize::from(advanced))
}

/// Takes turns until told to stop, and tells the worker of this process when there may be work.
pub async fn run(gate: Gate, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) {
    let running = async {
        loop {
            let began = Instant::now();
            let moved = turn(&gate).await.unwrap_or_else(|error| {
                tracing::warn!(error = &error as &dyn std::error::Error, "bulk actions were held up");
                0
            });
            if moved == 0 {
                tokio::time::sleep(LOOK_EVERY).await;
            } else {
                wake.notify_one();
                // As long as the turn took: others have the database half of the time at least.
                tokio::time::sleep(began.elapsed().max(PAUSE)).await;
            }
        }
    };
    tokio::select! {
        () = running => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}
