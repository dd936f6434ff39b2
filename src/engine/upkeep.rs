//! What keeps a long-running process in order: hearing of other nodes' work, and tidying up.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::{Notify, watch};

use super::retention::Round;
use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::store::{Db, StoreError, work};

/// How often a node asks whether tidying up is due.
const ASK_EVERY: Duration = Duration::from_mins(1);
const AFTER_FAILURE: Duration = Duration::from_secs(2);
/// The least time between two steps.
const PAUSE: Duration = Duration::from_millis(5);

/// Wakes the worker when another node says that it put in work. Without it the worker would find
/// that work at its next look, half a second later.
pub async fn listen(db: Db, wake: Arc<Notify>, mut stop: watch::Receiver<bool>) {
    let hear = async {
        while let Err(error) = work::hear(&db, || wake.notify_one()).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "not hearing other nodes");
            tokio::time::sleep(AFTER_FAILURE).await;
        }
    };
    tokio::select! {
        () = hear => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Tidies up now and then, on one node at a time.
pub async fn tidy(db: Db, config: Arc<Config>, ambient: Ambient, mut stop: watch::Receiver<bool>) {
    let tidying = async {
        loop {
            if let Err(error) = round(&db, &config, &ambient).await {
                tracing::warn!(error = &error as &dyn std::error::Error, "tidying up was broken off");
            }
            tokio::time::sleep(ASK_EVERY).await;
        }
    };
    tokio::select! {
        () = tidying => {}
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

async fn round(db: &Db, config: &Arc<Config>, ambient: &Ambient) -> Result<(), StoreError> {
    let Some(mut round) = Round::begin(db, config, ambient).await? else { return Ok(()) };
    let (mut erased, mut forgotten) = (0, 0);
    let mut began = Instant::now();
    while let Some(step) = round.step().await? {
        erased += step.erased;
        forgotten += step.forgotten;
        // As long as the step took: others have the database half of the time at least.
        tokio::time::sleep(began.elapsed().max(PAUSE)).await;
        began = Instant::now();
    }
    if erased + forgotten > 0 {
        tracing::info!(erased, forgotten, "operations whose retention ended");
        db.empty_log().await?;
    }
    Ok(())
}
