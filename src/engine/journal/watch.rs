//! Verifies the chain by itself now and then, on one node at a time and in small steps.

use std::error::Error as StdError;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tokio::sync::watch;

use super::anchor::{self, Anchored, whole};
use super::verify::{NEXT, Outcome, Walk};
use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::key::hex;
use crate::store::{Commit, Db, StoreError, checks};

/// A node that is not heard of for so long has given the duty up.
const HELD: Duration = Duration::from_mins(2);
/// How often it says that it has it.
const SAID_EVERY: Duration = Duration::from_secs(30);
/// How often a node asks whether the duty is due.
const ASK_EVERY: Duration = Duration::from_mins(1);
/// The least time between two steps.
const PAUSE: Duration = Duration::from_millis(5);

/// One node's part in it.
pub struct Watch {
    db: Db,
    config: Arc<Config>,
    ambient: Ambient,
    /// It looked for the duty before.
    began: bool,
    /// Where the last whole walk of this process ended: a memory that is not in the database.
    last: Option<Anchored>,
}

impl Watch {
    /// Nothing is walked yet.
    pub fn new(db: Db, config: Arc<Config>, ambient: Ambient) -> Self {
        Self { db, config, ambient, began: false, last: None }
    }

    /// Walks the chain whenever that is due, until told to stop; never, where the configuration says so.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let watching = async {
            loop {
                if let Err(error) = self.round().await {
                    tracing::warn!(error = &error as &dyn StdError, "verifying the audit was broken off");
                }
                tokio::time::sleep(ASK_EVERY).await;
            }
        };
        tokio::select! {
            () = watching => {}
            _ = stop.wait_for(|stop| *stop) => {}
        }
    }

    /// One walk of the whole chain; absent when it is not due, or another node walks. At a start it is
    /// due: this process knows of none before.
    pub async fn round(&mut self) -> Result<Option<Outcome>, StoreError> {
        let Some(every) = self.config.audit.verify_every else { return Ok(None) };
        let now = self.ambient.now();
        let mut tx = self.db.begin().await?;
        // What is held is due within this time. Clocks of two nodes may differ by as much.
        let latest = if self.began { now.plus(every).plus(HELD) } else { now.plus(HELD) };
        self.began = true;
        let ours = checks::claim(&mut tx, now, now.plus(HELD), latest).await?;
        tx.commit(Commit::Tidy).await?;
        if !ours {
            return Ok(None);
        }
        let (told, missing) = self.told().await;
        let mut walk = Walk::new(&self.db, told)?;
        let mut said = now;
        let outcome = loop {
            let began = Instant::now();
            if let Some(outcome) = walk.step().await? {
                break outcome;
            }
            if self.ambient.now().since(said) > SAID_EVERY {
                said = self.ambient.now();
                let mut tx = self.db.begin().await?;
                checks::due_again(&mut tx, said.plus(HELD)).await?;
                tx.commit(Commit::Tidy).await?;
            }
            // As long as the step took: others have the database half of the time at least.
            tokio::time::sleep(began.elapsed().max(PAUSE)).await;
        };
        self.end(&outcome, missing, every).await?;
        Ok(Some(outcome))
    }

    /// What is known of the chain outside the database, and why something of that could not be read.
    async fn told(&self) -> (Vec<Anchored>, Option<String>) {
        let mut told: Vec<Anchored> = self.last.iter().cloned().collect();
        let Some(path) = self.config.audit.anchor_file.clone() else { return (told, None) };
        match tokio::task::spawn_blocking(move || anchor::told(&path)).await {
            Ok(Ok(lines)) => {
                told.extend(lines.unwrap_or_default());
                (told, None)
            }
            Ok(Err(error)) => (told, Some(whole(&error))),
            Err(error) => (told, Some(whole(&error))),
        }
    }

    /// Tells what the walk came to: the log, the page that tells how things stand, and the next walk.
    async fn end(
        &mut self,
        outcome: &Outcome,
        missing: Option<String>,
        every: Duration,
    ) -> Result<(), StoreError> {
        let now = self.ambient.now();
        for fault in &outcome.faults {
            tracing::error!("{fault}");
        }
        let mut tx = self.db.begin().await?;
        outcome.note(&mut tx, now).await?;
        match missing {
            _ if !outcome.is_whole() => {
                tracing::error!("the audit does not fit its chain in {}: {NEXT}", outcome.places());
            }
            // The chain is whole in itself, and whether its end was cut off is not known.
            Some(why) => {
                tracing::error!("{why}");
                checks::failed(&mut tx, checks::VERIFY, now, &why).await?;
            }
            None => {
                tracing::info!(entries = outcome.links, "the audit is whole");
                let head = outcome.head.as_ref();
                self.last = head.map(|head| Anchored { at: Some(now), seq: head.seq, mac: hex(&head.mac) });
            }
        }
        checks::due_again(&mut tx, now.plus(every)).await?;
        tx.commit(Commit::Tidy).await
    }
}
