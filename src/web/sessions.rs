//! Sign-in sessions in our own database, under the hash of their id: whoever reads the table cannot
//! sign in with it.

use std::fmt;

use async_trait::async_trait;
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tower_sessions::SessionStore;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};
use uuid::Uuid;

use super::guard::IDLE;
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::store::{Commit, Db, StoreError, sessions};

/// The name under which a session keeps whose it is.
pub const USER: &str = "user";
/// The name under which it keeps whose it will be, once they have shown their second factor.
pub const HALF: &str = "half";

/// Sessions on a database.
#[derive(Clone)]
pub struct Sessions {
    db: Db,
    ambient: Ambient,
}

impl Sessions {
    /// On this database.
    pub fn new(db: Db, ambient: Ambient) -> Self {
        Self { db, ambient }
    }

    /// When a session that is written now ends, by our clock: the record's own end is by the
    /// machine's, and a session must not live by one clock and die by another.
    fn ends(&self) -> Timestamp {
        self.ambient.now().plus(IDLE)
    }
}

impl fmt::Debug for Sessions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Sessions")
    }
}

/// What a session is stored under.
pub fn hash(id: &Id) -> [u8; 32] {
    Sha256::digest(id.0.to_be_bytes()).into()
}

fn owner(record: &Record) -> Option<Uuid> {
    // What ends a person's sessions ends those that are half theirs.
    record.data.get(USER).or_else(|| record.data.get(HALF))?.as_str()?.parse().ok()
}

fn text(record: &Record) -> Result<String> {
    serde_json::to_string(&record.data).map_err(|error| Error::Encode(error.to_string()))
}

#[allow(clippy::needless_pass_by_value, reason = "the shape that map_err takes")]
fn failed(error: StoreError) -> Error {
    Error::Backend(error.to_string())
}

#[async_trait]
impl SessionStore for Sessions {
    async fn create(&self, record: &mut Record) -> Result<()> {
        let data = text(record)?;
        loop {
            let mut tx = self.db.begin().await.map_err(failed)?;
            let added = sessions::insert(&mut tx, &hash(&record.id), owner(record), &data, self.ends())
                .await
                .map_err(failed)?;
            if added {
                return tx.commit(Commit::Session).await.map_err(failed);
            }
            record.id = Id::default();
        }
    }

    async fn save(&self, record: &Record) -> Result<()> {
        let mut tx = self.db.begin().await.map_err(failed)?;
        sessions::save(&mut tx, &hash(&record.id), owner(record), &text(record)?, self.ends())
            .await
            .map_err(failed)?;
        tx.commit(Commit::Session).await.map_err(failed)
    }

    async fn load(&self, id: &Id) -> Result<Option<Record>> {
        let mut tx = self.db.read().await.map_err(failed)?;
        let found = sessions::load(&mut tx, &hash(id), self.ambient.now()).await.map_err(failed)?;
        let Some((data, ends)) = found else { return Ok(None) };
        let data = serde_json::from_str(&data).map_err(|error| Error::Decode(error.to_string()))?;
        let expiry_date: OffsetDateTime = ends.utc();
        Ok(Some(Record { id: *id, data, expiry_date }))
    }

    async fn delete(&self, id: &Id) -> Result<()> {
        let mut tx = self.db.begin().await.map_err(failed)?;
        sessions::delete(&mut tx, &hash(id)).await.map_err(failed)?;
        tx.commit(Commit::Session).await.map_err(failed)
    }
}
