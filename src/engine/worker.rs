//! The ledger loop: settle what ended, claim what is due, send what the gate permits.
//!
//! One loop a process, so that one durable commit carries the settlements that arrived while the
//! last one was being written, and the claims for the slots they left. No slot sleeps: an attempt
//! that has to wait is a row with a time, and the loop wakes for the earliest.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, watch};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;

use super::send::Sender;
use crate::gate::{Gate, GateError, Permit, Settlement, Turn};

/// How long the loop waits after the database failed it.
const AFTER_FAILURE: Duration = Duration::from_millis(500);

/// How long it waits when nothing is known to be due: work may be put in by another process.
const POLL: Duration = Duration::from_millis(500);

/// How long a turn waits at most for as many attempts to end as did before the last one. Attempts
/// that began together end together; without the wait the first to end would have a commit to
/// itself, and the others would queue behind it.
const GATHER: Duration = Duration::from_millis(1);

/// What takes a permitted request to its destination, once, and says what happened.
pub trait Carry: Send + Sync + 'static {
    /// Ends with the permit given back. Dropped before that, its attempt counts as lost.
    fn carry(&self, permit: Permit) -> impl Future<Output = Settlement> + Send;
}

impl Carry for Sender {
    async fn carry(&self, permit: Permit) -> Settlement {
        self.send(permit).await
    }
}

/// One process's worker.
pub struct Worker<C = Sender> {
    gate: Gate,
    carrier: Arc<C>,
    wake: Arc<Notify>,
    slots: usize,
    sends: JoinSet<Settlement>,
    ended: Vec<Settlement>,
    /// Attempts that the last turn settled.
    last: usize,
}

impl<C: Carry> Worker<C> {
    /// A worker that is told through `wake` when work was put in.
    pub fn new(gate: Gate, carrier: Arc<C>, wake: Arc<Notify>) -> Self {
        let slots = gate.config().engine.concurrency;
        Self { gate, carrier, wake, slots, sends: JoinSet::new(), ended: Vec::new(), last: 0 }
    }

    /// Works until told to stop; then claims nothing more, and returns when every attempt under way
    /// has ended and is settled.
    pub async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let sweep_every = (self.gate.config().engine.lease / 4).max(Duration::from_millis(250));
        let mut sweep_at = Instant::now();
        loop {
            let stopping = *stop.borrow();
            if stopping && self.sends.is_empty() && self.ended.is_empty() {
                return;
            }
            if Instant::now() >= sweep_at {
                self.sweep().await;
                sweep_at = Instant::now() + sweep_every;
            }
            let slots = if stopping { 0 } else { self.free() };
            let wait = match self.turn(slots).await {
                Ok(turn) if turn.more && turn.claimed > 0 => continue,
                Ok(_) => self.until_due().await,
                Err(error) => {
                    tracing::error!(
                        error = &error as &dyn std::error::Error,
                        "the ledger could not be written"
                    );
                    AFTER_FAILURE
                }
            };
            let until = (Instant::now() + wait).min(sweep_at);
            tokio::select! {
                Some(ended) = self.sends.join_next() => {
                    self.take(ended);
                    self.gather().await;
                }
                () = self.wake.notified(), if !stopping => {}
                () = tokio::time::sleep_until(until) => {}
                changed = stop.changed(), if !stopping => {
                    if changed.is_err() {
                        // Whoever could tell us to stop is gone: so is our reason to run.
                        return;
                    }
                }
            }
            self.take_ready();
        }
    }

    /// Does everything that is due at this moment and returns when nothing is; for tests and for
    /// commands that do one thing and end. How many attempts were made.
    pub async fn run_until_idle(&mut self) -> Result<usize, GateError> {
        let mut made = 0;
        loop {
            self.take_ready();
            self.gate.sweep().await?;
            let turn = self.turn(self.free()).await?;
            made += turn.settled;
            if let Some(ended) = self.sends.join_next().await {
                self.take(ended);
            } else if turn.claimed == 0 && turn.settled == 0 && self.ended.is_empty() {
                return Ok(made);
            }
        }
    }

    fn free(&self) -> usize {
        self.slots.saturating_sub(self.sends.len())
    }

    /// Waits a moment for more attempts to end, where the last turn had several.
    async fn gather(&mut self) {
        let until = Instant::now() + GATHER;
        while self.ended.len() < self.last && !self.sends.is_empty() {
            match tokio::time::timeout_at(until, self.sends.join_next()).await {
                Ok(Some(ended)) => self.take(ended),
                Ok(None) | Err(_) => return,
            }
        }
    }

    fn take_ready(&mut self) {
        while let Some(ended) = self.sends.try_join_next() {
            self.take(ended);
        }
    }

    fn take(&mut self, ended: Result<Settlement, JoinError>) {
        match ended {
            Ok(settlement) => self.ended.push(settlement),
            // Its attempt stays marked as sending until the lease runs out, and is uncertain then.
            Err(error) => tracing::error!(error = &error as &dyn std::error::Error, "a send broke off"),
        }
    }

    async fn turn(&mut self, slots: usize) -> Result<Turn, GateError> {
        if slots == 0 && self.ended.is_empty() {
            return Ok(Turn::default());
        }
        let settling = self.ended.len();
        let mut turn = self.gate.turn(&mut self.ended, slots).await?;
        if settling > 0 {
            self.last = settling;
        }
        for permit in turn.permits.drain(..) {
            let carrier = Arc::clone(&self.carrier);
            self.sends.spawn(async move { carrier.carry(permit).await });
        }
        Ok(turn)
    }

    async fn sweep(&self) {
        match self.gate.sweep().await {
            Ok(0) => {}
            Ok(count) => tracing::warn!(count, "leases ran out; what they were sending may have happened"),
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "leases could not be checked");
            }
        }
    }

    /// How long until something is due.
    async fn until_due(&self) -> Duration {
        if self.free() == 0 {
            return POLL;
        }
        match self.gate.next_due().await {
            Ok(Some(due)) => due.since(self.gate.ambient().now()).min(POLL),
            Ok(None) => POLL,
            Err(_) => AFTER_FAILURE,
        }
    }
}
