//! What submits the demo's operations.

use std::sync::Arc;
use std::time::Duration;

use rand::RngExt;
use tokio::sync::watch;
use tokio::time::{Instant, sleep};
use uuid::Uuid;

use super::colleague::Colleague;
use super::destination::{UnreliableDestination, demo_behaviours};
use super::goods::{Good, Warehouse};
use super::weather::{Deed, Scene, aftermath, storm, weather};
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::filter::DeadLetterFilter;
use crate::engine::Engine;
use crate::engine::accept::{Accepted, SubmitError};
use crate::engine::actions::ActionError;
use crate::store::StoreError;
use crate::store::dead_letters::{self, DeadLetterRow};

/// Operations beside those of the storm, for a list that is worth filtering.
const OTHERS: usize = 24;
/// As many open dead letters as a person still reads; then the weather is calm until some are
/// settled.
const MOST_OPEN: i64 = 40;
/// How long the colleague waits for their dead letters.
const PATIENCE: Duration = Duration::from_mins(2);

/// What stops the shop.
#[derive(Debug, thiserror::Error)]
pub enum ShopError {
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// What the colleague did could not be written down.
    #[error(transparent)]
    Action(#[from] ActionError),
}

/// Submits operations for ever.
pub struct Shop {
    engine: Engine,
    destination: Arc<UnreliableDestination>,
    warehouse: Warehouse,
}

impl Shop {
    pub(super) fn new(engine: Engine, destination: Arc<UnreliableDestination>) -> Self {
        let warehouse = Warehouse::new(engine.ambient());
        Self { engine, destination, warehouse }
    }

    /// Works until told to stop.
    pub async fn open(mut self, mut stop: watch::Receiver<bool>) -> Result<(), ShopError> {
        tokio::select! {
            ended = self.work() => ended,
            // A stopper that is gone stops as well.
            _ = stop.wait_for(|stop| *stop) => Ok(()),
        }
    }

    async fn work(&mut self) -> Result<(), ShopError> {
        self.storm().await?;
        let mut calm = None;
        loop {
            let wanted = self.open_letters().await? >= MOST_OPEN;
            if calm != Some(wanted) {
                calm = Some(wanted);
                for (path, mix) in weather(wanted) {
                    self.destination.default_behaviour(path, mix);
                }
            }
            let good = self.warehouse.any();
            self.submit(&good).await;
            // Senders repeat themselves, and now and then they do it wrongly.
            match self.warehouse.rng.random_range(0..40) {
                0..2 => drop(self.submit(&good).await),
                2 => drop(self.submit(&good.altered()).await),
                _ => {}
            }
            sleep(Duration::from_millis(self.warehouse.rng.random_range(1_000..2_000))).await;
        }
    }

    /// Everything at once, among others.
    async fn storm(&mut self) -> Result<(), ShopError> {
        for (path, mix) in demo_behaviours() {
            self.destination.default_behaviour(path, mix);
        }
        let handled = self.play(storm()).await;
        let mut repeated = Vec::new();
        for count in 0..OTHERS {
            let good = self.warehouse.any();
            self.submit(&good).await;
            if count % 8 == 0 {
                repeated.push(good);
            }
        }
        for good in repeated {
            self.submit(&good).await;
            self.submit(&good.altered()).await;
        }
        let colleague = Colleague::new(&self.engine);
        let (many, alone): (Vec<_>, Vec<_>) =
            handled.into_iter().partition(|(_, deed)| *deed == Deed::ReplayMany);
        let mut letters = Vec::new();
        for (operation, _) in many {
            letters.extend(self.letter_of(operation).await?.map(|letter| letter.id));
        }
        colleague.replays(letters).await?;
        for (operation, deed) in alone {
            if let Some(letter) = self.letter_of(operation).await? {
                colleague.does(deed, &letter).await?;
            }
        }
        self.play(aftermath()).await;
        Ok(())
    }

    /// Submits each, and gives back what a colleague has to do about them.
    async fn play(&mut self, scenes: Vec<Scene>) -> Vec<(Uuid, Deed)> {
        let mut handled = Vec::new();
        for Scene { kind, meets, colleague } in scenes {
            let good = self.warehouse.good(kind);
            self.destination.script(&good.path(), meets);
            if let (Some(id), Some(deed)) = (self.submit(&good).await, colleague) {
                handled.push((id, deed));
            }
        }
        handled
    }

    /// The operation's id when it is new. The shop's own mistakes are part of the show.
    async fn submit(&self, good: &Good) -> Option<Uuid> {
        match self.engine.intake().submit(good.submission()?).await {
            Ok(Accepted::Created(new)) => Some(new.id),
            Ok(Accepted::Duplicate(_)) | Err(SubmitError::KeyReused { .. }) => None,
            Err(error) => {
                tracing::warn!(error = &error as &dyn std::error::Error, "the shop could not submit");
                None
            }
        }
    }

    /// The open dead letter of an operation, once there is one.
    async fn letter_of(&self, operation: Uuid) -> Result<Option<DeadLetterRow>, ShopError> {
        let start = Instant::now();
        while start.elapsed() < PATIENCE {
            let mut tx = self.engine.db().read().await?;
            let letters = dead_letters::of_operation(&mut tx, operation).await?;
            drop(tx);
            if let Some(letter) = letters.into_iter().find(|letter| letter.status == DeadLetterStatus::Open) {
                return Ok(Some(letter));
            }
            sleep(Duration::from_millis(200)).await;
        }
        Ok(None)
    }

    async fn open_letters(&self) -> Result<i64, ShopError> {
        let filter = DeadLetterFilter { status: Some(DeadLetterStatus::Open), ..DeadLetterFilter::default() };
        let mut tx = self.engine.db().read().await?;
        Ok(dead_letters::count(&mut tx, &filter, MOST_OPEN).await?)
    }
}
