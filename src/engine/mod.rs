//! What carries operations out. Automatic retries and people's actions are the same rows of work,
//! and only [`worker`] takes them through the gate to [`send`].

pub mod accept;
pub mod actions;
pub mod approvals;
pub mod ask;
pub mod bulk;
pub mod causes;
pub mod correct;
mod credentials;
pub mod destinations;
mod draft;
pub mod erasure;
pub mod evidence;
pub mod excerpt;
pub mod facts;
pub mod guard;
pub mod handling;
pub mod hooks;
pub mod journal;
pub mod preview;
mod replay;
pub mod report;
mod resolve;
pub mod retention;
pub mod send;
pub mod shown;
pub mod sso;
mod tally;
pub mod thread;
pub mod upkeep;
pub mod views;
pub mod worker;

use std::sync::Arc;

use tokio::sync::{Notify, watch};
use tokio::task::JoinHandle;

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::gate::Gate;
use crate::store::Db;

use accept::Intake;
use hooks::Hooks;
use journal::anchor::Anchor;
use journal::watch::Watch;
use send::{Sender, SenderError};
use worker::Worker;

/// The engine's parts, wired together. Cheap to clone.
#[derive(Clone)]
pub struct Engine {
    gate: Gate,
    intake: Intake,
    hooks: Hooks,
    wake: Arc<Notify>,
}

impl Engine {
    /// Over an open database that has this version's schema.
    pub fn new(db: Db, config: Arc<Config>, ambient: Ambient) -> Self {
        let db =
            db.keyed(config.keyring.clone()).with_roles(config.auth.roles.clone()).within(ambient.clone());
        let wake = Arc::new(Notify::new());
        let node = format!("{}-{}", std::process::id(), &ambient.opaque().simple().to_string()[..8]);
        let intake = Intake::start(db.clone(), Arc::clone(&config), ambient.clone(), Arc::clone(&wake));
        let hooks = Hooks::new(db.clone(), Arc::clone(&config), ambient.clone(), intake.clone());
        Self { gate: Gate::new(db, config, ambient, &node), intake, hooks, wake }
    }

    /// The gate.
    pub fn gate(&self) -> &Gate {
        &self.gate
    }

    /// The way in for operations.
    pub fn intake(&self) -> &Intake {
        &self.intake
    }

    /// The way in for webhooks.
    pub fn hooks(&self) -> &Hooks {
        &self.hooks
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        self.gate.config()
    }

    /// The database.
    pub fn db(&self) -> &Db {
        self.gate.db()
    }

    /// Clock and chance.
    pub fn ambient(&self) -> &Ambient {
        self.gate.ambient()
    }

    /// Tells the worker of this process that there is work.
    pub fn wake(&self) {
        self.wake.notify_one();
    }

    /// A worker for this process.
    pub fn worker(&self) -> Result<Worker, SenderError> {
        let sender = Sender::new(self.config(), self.ambient().clone())?;
        Ok(Worker::new(self.gate.clone(), Arc::new(sender), Arc::clone(&self.wake)))
    }

    /// Runs the worker, the ear for other nodes' words, the upkeep, bulk actions, and what verifies
    /// the audit and tells its head, until told to stop.
    pub fn start(&self, stop: &watch::Receiver<bool>) -> Result<JoinHandle<()>, SenderError> {
        let worker = self.worker()?;
        tokio::spawn(upkeep::listen(self.db().clone(), Arc::clone(&self.wake), stop.clone()));
        tokio::spawn(upkeep::tidy(
            self.db().clone(),
            Arc::clone(self.config()),
            self.ambient().clone(),
            stop.clone(),
        ));
        tokio::spawn(bulk::run(self.gate.clone(), Arc::clone(&self.wake), stop.clone()));
        let watch = Watch::new(self.db().clone(), Arc::clone(self.config()), self.ambient().clone());
        tokio::spawn(watch.run(stop.clone()));
        let anchor = Anchor::new(self.db().clone(), self.config(), self.ambient().clone());
        let (anchor, worker) = (anchor.run(stop.clone()), worker.run(stop.clone()));
        Ok(tokio::spawn(async move {
            tokio::join!(worker, anchor);
        }))
    }
}
