//! The key check that every send passes, and the ledger of what was sent.
//!
//! [`Gate::turn`] is one durable commit: it settles the attempts that ended, claims due work, makes
//! the checks and marks what passed as *sending*. Only when that commit stands does it hand out
//! [`Permit`]s, so that no byte leaves before its attempt is on record. No transaction is open
//! while anything is sent.

mod admit;
pub mod checks;
pub mod examine;
mod ledger;
mod park;
mod permit;
mod settle;
mod wording;

use std::sync::Arc;
use std::time::Instant;

use uuid::Uuid;

pub use admit::Admission;
pub use permit::{Permit, Settlement};

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::operation::IllegalMove;
use crate::domain::time::Timestamp;
use crate::store::{Commit, Db, MAX_ROWS, StoreError, work};

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
}

impl Gate {
    /// A gate over a database. `node` names the process in the ledger.
    pub fn new(db: Db, config: Arc<Config>, ambient: Ambient, node: &str) -> Self {
        Self { db, config, ambient, node: node.into() }
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
        let mut tx = self.db.begin().await?;
        let mut settled = 0;
        for batch in ended.chunks(MAX_ROWS) {
            settled += settle::settle(self, &mut tx, batch).await?;
        }
        let rows = match slots {
            0 => Vec::new(),
            _ => work::due(&mut tx, self.ambient.now(), slots.min(MAX_ROWS)).await?,
        };
        let claimed = rows.len();
        let admissions = admit::admit(self, &mut tx, rows, began).await?;
        tx.commit(Commit::Turn).await?;
        ended.clear();
        let permits = admissions.into_iter().filter_map(Admission::into_permit).collect();
        Ok(Turn { permits, settled, claimed })
    }

    /// Asks for one operation's send: the same checks in a commit of their own. A worker that loses
    /// the race is told who won, and the skip is on record.
    pub async fn admit(&self, operation: Uuid) -> Result<Option<Admission>, GateError> {
        let began = Instant::now();
        let mut tx = self.db.begin().await?;
        let Some(row) = work::one(&mut tx, operation).await? else { return Ok(None) };
        let admissions = admit::admit(self, &mut tx, vec![row], began).await?;
        tx.commit(Commit::Turn).await?;
        Ok(admissions.into_iter().next())
    }

    /// Settles the attempts whose holders let their lease run out: they may have sent. How many.
    pub async fn sweep(&self) -> Result<usize, GateError> {
        let mut tx = self.db.begin().await?;
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

    /// When the next piece of work is due.
    pub async fn next_due(&self) -> Result<Option<Timestamp>, GateError> {
        let mut tx = self.db.read().await?;
        Ok(work::next_due(&mut tx).await?)
    }
}

impl std::fmt::Debug for Gate {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Gate").field("node", &self.node).finish_non_exhaustive()
    }
}
