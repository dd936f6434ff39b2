//! The key check that every send passes, and the ledger of what was sent.
//!
//! [`Gate::turn`] is one durable commit: it settles the attempts that ended, claims due work, makes
//! the checks and marks what passed as *sending*. Only when that commit stands does it hand out
//! [`Permit`]s, so that no byte leaves before its attempt is on record. No transaction is open
//! while anything is sent.

mod admit;
mod budget;
pub mod checks;
mod consequences;
pub mod examine;
mod finding;
mod health;
mod lanes;
mod ledger;
mod park;
mod permit;
mod pulled;
mod render;
mod settle;
mod steps;
mod withdraw;
mod wording;

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

pub use admit::Admission;
pub use permit::{Claim, Permit, Settlement};
pub use pulled::Heard;

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::operation::IllegalMove;
use crate::domain::time::Timestamp;
use crate::store::{Commit, Db, MAX_ROWS, StoreError, Tx, work};
use admit::Holder;
use budget::Budgets;
use health::Health;
use lanes::{Lanes, Opening};

/// Why a turn could not be made. Nothing of it stands.
#[derive(Debug, thiserror::Error)]
pub enum GateError {
    /// The database said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The stored state allows no such move.
    #[error(transparent)]
    Illegal(#[from] IllegalMove),
}

/// The gate of one process.
#[derive(Clone)]
pub struct Gate {
    db: Db,
    config: Arc<Config>,
    ambient: Ambient,
    node: Arc<str>,
    lanes: Arc<Lanes>,
    budgets: Arc<Budgets>,
}

/// What a turn came to.
#[derive(Debug, Default)]
pub struct Turn {
    /// The right to send, once each.
    pub permits: Vec<Permit>,
    /// Attempts that were settled in it.
    pub settled: usize,
    /// Rows of work that it looked at.
    pub claimed: usize,
    /// There was more in some lane than it was given.
    pub more: bool,
}

impl Gate {
    /// A gate over a database. `node` names the process in the ledger.
    pub fn new(db: Db, config: Arc<Config>, ambient: Ambient, node: &str) -> Self {
        let (lanes, budgets) = (Arc::default(), Arc::default());
        Self { db, config, ambient, node: node.into(), lanes, budgets }
    }

    /// The process's name in the ledger.
    pub fn node(&self) -> &str {
        &self.node
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.db
    }

    /// The configuration.
    pub fn config(&self) -> &Arc<Config> {
        &self.config
    }

    /// Clock and chance.
    pub fn ambient(&self) -> &Ambient {
        &self.ambient
    }

    /// Settles what ended and admits up to `slots` sends, in one commit. `ended` is emptied once
    /// that commit stands; after an error it is as it was, to be settled later.
    pub async fn turn(&self, ended: &mut Vec<Settlement>, slots: usize) -> Result<Turn, GateError> {
        let began = Instant::now();
        let now = self.ambient.now();
        let mut tx = self.db.begin().await?;
        let mut health = Health::load(&mut tx, &self.config).await?;
        let (mut settled, mut noticed) = (0, Vec::new());
        for batch in ended.chunks(MAX_ROWS) {
            let (count, seen) = settle::settle(self, &mut tx, batch).await?;
            settled += count;
            noticed.extend(seen);
        }
        health.lock_for(&mut tx, &self.config, &noticed, slots > 0).await?;
        health.note(self, &mut tx, &noticed).await?;
        let rooms = match slots.min(MAX_ROWS) {
            0 => Vec::new(),
            slots => lanes::rooms(&self.openings(&mut tx, &health, ended, slots, now).await?, now),
        };
        let rows = if rooms.is_empty() { Vec::new() } else { work::due(&mut tx, now, &rooms, &[]).await? };
        let more = lanes::more(&rooms, &rows);
        let rows = lanes::pick(rows, slots.min(MAX_ROWS));
        let claimed = rows.len();
        let holder = Holder { node: &self.node, lease: self.config.engine.lease, began };
        let admissions = admit::admit(self, &mut tx, rows, holder).await?;
        let permits: Vec<Permit> = admissions.into_iter().filter_map(Admission::into_permit).collect();
        let mut taken: BTreeMap<String, usize> = BTreeMap::new();
        for permit in &permits {
            *taken.entry(permit.destination().to_owned()).or_default() += 1;
        }
        health.taken(&self.config, &taken, now);
        health.save(&mut tx).await?;
        tx.commit(Commit::Turn).await?;
        ended.clear();
        Ok(Turn { permits, settled, claimed, more })
    }

    async fn openings(
        &self,
        tx: &mut Tx,
        health: &Health,
        ended: &[Settlement],
        free: usize,
        now: Timestamp,
    ) -> Result<Vec<Opening>, GateError> {
        let limited: Vec<&str> = self
            .config
            .destinations
            .values()
            .filter(|known| known.limit.in_flight.is_some())
            .map(|known| known.name.as_str())
            .collect();
        let everywhere = limited.iter().map(|name| ((*name).to_owned(), 0)).collect();
        let everywhere = work::held(tx, &limited).await?.into_iter().fold(
            everywhere,
            |mut all: HashMap<String, usize>, (lane, count)| {
                all.insert(lane, usize::try_from(count).unwrap_or_default());
                all
            },
        );
        let mut over: BTreeMap<&str, usize> = BTreeMap::new();
        for settlement in ended {
            *over.entry(settlement.held.work.lane.as_str()).or_default() += 1;
        }
        Ok(self.lanes.openings(&self.config, health, &everywhere, &over, free, now))
    }

    /// Asks for one operation's send: the same checks in a commit of their own. A worker that loses
    /// the race is told who won, and the skip is on record.
    pub async fn admit(&self, operation: Uuid) -> Result<Option<Admission>, GateError> {
        let holder = Holder { node: &self.node, lease: self.config.engine.lease, began: Instant::now() };
        let mut tx = self.db.begin().await?;
        let Some(row) = work::one(&mut tx, operation).await? else { return Ok(None) };
        let admissions = admit::admit(self, &mut tx, vec![row], holder).await?;
        tx.commit(Commit::Turn).await?;
        Ok(admissions.into_iter().next())
    }

    /// Settles the attempts whose holders let their lease run out: they may have sent. How many.
    pub async fn sweep(&self) -> Result<usize, GateError> {
        let mut tx = self.db.begin().await?;
        let waiting = work::lanes(&mut tx).await?;
        self.lanes.set_orphans(lanes::orphans(&self.config, waiting));
        let rows = work::expired(&mut tx, self.ambient.now(), MAX_ROWS).await?;
        if rows.is_empty() {
            return Ok(0);
        }
        let count = rows.len();
        settle::lost(self, &mut tx, rows).await?;
        tx.commit(Commit::Sweep).await?;
        Ok(count)
    }

    /// How many operations wait for an attempt or are being sent.
    pub async fn backlog(&self) -> Result<i64, GateError> {
        let mut tx = self.db.read().await?;
        Ok(work::backlog(&mut tx).await?)
    }

    /// When the next piece of work can be taken up by this node, as far as is known: a lane without
    /// room opens when one of its attempts ends, and a paused one when a person says so.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, GateError> {
        let now = self.ambient.now();
        let free = self.config.engine.concurrency.saturating_sub(self.lanes.taken());
        if free == 0 {
            return Ok(None);
        }
        let mut tx = self.db.read().await?;
        let health = Health::load(&mut tx, &self.config).await?;
        let openings = self.openings(&mut tx, &health, &[], free, now).await?;
        let names: Vec<&str> = openings.iter().map(|opening| opening.lane.as_str()).collect();
        let due = work::next_due(&mut tx, &names).await?;
        let from = |lane: &str| openings.iter().find(|opening| opening.lane == lane).map(|known| known.from);
        Ok(due.into_iter().map(|(lane, due)| from(&lane).map_or(due, |from| from.max(due))).min())
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("node", &self.node).finish_non_exhaustive()
    }
}
