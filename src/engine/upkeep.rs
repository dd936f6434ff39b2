//! What keeps a long-running process in order: hearing of other nodes' work, and dropping what has
//! lapsed.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};

use crate::domain::ambient::Ambient;
use crate::store::{Commit, Db, StoreError, hooks, sessions, work};

const TIDY_EVERY: Duration = Duration::from_mins(5);
const AFTER_FAILURE: Duration = Duration::from_secs(2);

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

/// Drops lapsed sessions and old counts now and then.
pub async fn tidy(db: Db, ambient: Ambient, mut stop: watch::Receiver<bool>) {
    loop {
        if let Err(error) = drop_sessions(&db, &ambient).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "lapsed sessions were not dropped");
        }
        if let Err(error) = drop_counts(&db, &ambient).await {
            tracing::warn!(error = &error as &dyn std::error::Error, "old counts were not dropped");
        }
        tokio::select! {
            () = tokio::time::sleep(TIDY_EVERY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn drop_sessions(db: &Db, ambient: &Ambient) -> Result<(), StoreError> {
    loop {
        let mut tx = db.begin().await?;
        let dropped = sessions::delete_expired(&mut tx, ambient.now()).await?;
        tx.commit(Commit::Tidy).await?;
        if dropped == 0 {
            return Ok(());
        }
    }
}

/// Drops the counts of webhook deliveries that are older than is kept.
async fn drop_counts(db: &Db, ambient: &Ambient) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    hooks::delete_before(&mut tx, ambient.now().minus(hooks::KEPT)).await?;
    tx.commit(Commit::Tidy).await
}
