//! Transactions. A person's action and its entry in the audit are one of them, and the chain takes
//! the entry up at the very end.

use std::sync::Arc;

use sqlx::{Postgres, Sqlite, Transaction};

use super::chain::{self, Pending};
use super::{Commit, Moment, StoreError};
use crate::domain::ambient::Ambient;
use crate::domain::keyring::Keyring;

/// A transaction. Dropping it undoes it.
pub struct Tx {
    pub(crate) inner: Inner,
    /// Entries of the audit that have no link yet.
    pub(super) pending: Vec<Pending>,
    pub(super) ambient: Ambient,
    keyring: Option<Arc<Keyring>>,
}

/// On which database.
pub(crate) enum Inner {
    Sqlite(Transaction<'static, Sqlite>),
    Postgres(Transaction<'static, Postgres>),
}

impl Tx {
    pub(super) fn new(inner: Inner, keyring: Option<Arc<Keyring>>, ambient: Ambient) -> Self {
        Self { inner, pending: Vec::new(), ambient, keyring }
    }

    /// Makes it durable, under the name of what it holds.
    ///
    /// Entries of the audit are linked first. The chain's head is the last lock that a transaction
    /// takes and it is held for the commit alone: nobody who holds it waits for anybody. When an
    /// entry cannot be linked, nothing of the transaction happens.
    pub async fn commit(mut self, what: Commit) -> Result<(), StoreError> {
        chain::append(&mut self).await?;
        what.passes(Moment::Before);
        match self.inner {
            Inner::Sqlite(tx) => tx.commit().await?,
            Inner::Postgres(tx) => tx.commit().await?,
        }
        what.passes(Moment::After);
        Ok(())
    }

    /// Undoes it and frees what it held at once; one that is dropped does so a moment later.
    pub async fn undo(self) -> Result<(), StoreError> {
        match self.inner {
            Inner::Sqlite(tx) => tx.rollback().await?,
            Inner::Postgres(tx) => tx.rollback().await?,
        }
        Ok(())
    }

    /// Whether it is on PostgreSQL, for the few statements that must differ.
    pub fn is_postgres(&self) -> bool {
        matches!(self.inner, Inner::Postgres(_))
    }

    /// The keys; an error that names what to do when nobody gave any.
    pub fn keyring(&self) -> Result<&Keyring, StoreError> {
        self.keyring.as_deref().ok_or(StoreError::NoKey)
    }
}
