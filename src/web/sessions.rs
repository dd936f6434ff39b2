//! Sign-in sessions in our own database, under the hash of their id: whoever reads the table cannot
//! sign in with it.

use std::fmt;
use std::time::Duration;

use async_trait::async_trait;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use time::OffsetDateTime;
use tower_sessions::SessionStore;
use tower_sessions::session::{Id, Record};
use tower_sessions::session_store::{Error, Result};
use uuid::Uuid;

use crate::domain::ambient::Ambient;
use crate::domain::sign_in::SignInBy;
use crate::domain::time::Timestamp;
use crate::engine::Engine;
use crate::store::sessions::{self, SessionRow};
use crate::store::{Commit, Db, StoreError};

/// The name under which a session keeps whose it is.
pub const USER: &str = "user";
/// The name under which it keeps whose it will be, once they have shown their second factor.
pub const HALF: &str = "half";
/// The name under which it keeps its last use, in microseconds.
pub const SEEN_AT: &str = "seen_at";
/// The name under which it keeps its [`Entry`].
pub const ENTRY: &str = "entry";

/// How somebody came in.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Entry {
    /// What their session is called in lists; it stays when the session goes on under a new token.
    pub id: Uuid,
    /// When they signed in, in microseconds.
    pub began_at: i64,
    /// From where.
    pub address: String,
    /// Their browser, in words.
    pub agent: String,
    /// With what.
    pub by: SignInBy,
}

/// Sessions on a database.
#[derive(Clone)]
pub struct Sessions {
    db: Db,
    ambient: Ambient,
    idle: Duration,
}

impl Sessions {
    /// On an engine's database, lasting as its configuration says.
    pub fn new(engine: &Engine) -> Self {
        let (db, ambient) = (engine.db().clone(), engine.ambient().clone());
        Self { db, ambient, idle: engine.config().auth.idle }
    }

    /// When a session that is written now ends, by our clock: the record's own end is by the
    /// machine's, and a session must not live by one clock and die by another.
    fn ends(&self) -> Timestamp {
        self.ambient.now().plus(self.idle)
    }

    /// 128 random bits.
    fn token(&self) -> Id {
        let mut bits = [0; 16];
        bits.copy_from_slice(&self.ambient.secret()[..16]);
        Id(i128::from_be_bytes(bits))
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

/// Whose it is, or will be once they have shown their second factor: what ends a person's sessions
/// ends those that are half theirs.
fn owner(record: &Record) -> Option<Uuid> {
    record.data.get(USER).or_else(|| record.data.get(HALF))?.as_str()?.parse().ok()
}

fn seen_at(record: &Record) -> Option<Timestamp> {
    record.data.get(SEEN_AT)?.as_i64().map(Timestamp::from_micros)
}

/// What people see of it; absent while it is nobody's yet.
fn listed(record: &Record) -> Option<SessionRow> {
    let entry = Entry::deserialize(record.data.get(ENTRY)?).ok()?;
    Some(SessionRow {
        id: entry.id,
        user_id: record.data.get(USER)?.as_str()?.parse().ok()?,
        began_at: Timestamp::from_micros(entry.began_at),
        seen_at: seen_at(record)?,
        address: entry.address,
        agent: entry.agent,
        signed_in_by: entry.by,
    })
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
        let (data, owner, listed) = (text(record)?, owner(record), listed(record));
        loop {
            // Whoever chose the one that it came with, it is not used.
            record.id = self.token();
            let mut tx = self.db.begin().await.map_err(failed)?;
            let hash = hash(&record.id);
            let added = sessions::insert(&mut tx, &hash, &data, self.ends(), owner, listed.as_ref()).await;
            if added.map_err(failed)? {
                return tx.commit(Commit::Session).await.map_err(failed);
            }
        }
    }

    async fn save(&self, record: &Record) -> Result<()> {
        let mut tx = self.db.begin().await.map_err(failed)?;
        sessions::save(&mut tx, &hash(&record.id), &text(record)?, self.ends(), seen_at(record))
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
