//! What the commands stand on: the configuration, the database, and who asks.

use std::path::Path;
use std::sync::Arc;

use anyhow::{Context as _, bail};
use uuid::Uuid;

use crate::accounts::{self, By};
use crate::config::{Config, ConfigError, Draft, Server, Stored};
use crate::domain::actor::Actor;
use crate::domain::ambient::Ambient;
use crate::engine::thread::{self, Thread};
use crate::engine::{Engine, actions};
use crate::store::Db;

/// Where commands come from, in the audit.
pub(super) const ORIGIN: &str = "command line";

/// An open database of this version.
pub(super) struct Context {
    pub(super) config: Arc<Config>,
    pub(super) db: Db,
    pub(super) ambient: Ambient,
    pub(super) actor: Actor,
}

impl Context {
    /// Reads the configuration and opens the database, which must have this version's schema. What
    /// is to be `on_record` needs a secret key.
    pub(super) async fn open(path: &Path, on_record: bool) -> anyhow::Result<Self> {
        let config = Arc::new(config(path).await?);
        if on_record {
            need_key(&config)?;
        }
        let db = open_database(&config).await?;
        ready(&db).await?;
        Ok(Self { config, db, ambient: Ambient::system(), actor: actor() })
    }

    pub(super) async fn close(&self) {
        self.db.close().await;
    }

    pub(super) fn by(&self) -> By<'_> {
        By { actor: &self.actor, origin: ORIGIN }
    }

    pub(super) fn public_url(&self) -> &str {
        self.config.server.public_url.as_str()
    }

    /// An engine that only accepts and acts: nothing of it sends.
    pub(super) fn engine(&self) -> Engine {
        Engine::new(self.db.clone(), Arc::clone(&self.config), self.ambient.clone())
    }

    /// The operation that a key, an operation's id or a dead letter's id names.
    pub(super) async fn find(&self, named: &str) -> anyhow::Result<Uuid> {
        let mut tx = self.db.read().await?;
        // PostgreSQL can neither store nor compare a NUL.
        match thread::find(&mut tx, &named.replace('\0', "\u{fffd}")).await? {
            Some(id) => Ok(id),
            None => bail!("there is no operation or dead letter {named:?}"),
        }
    }

    pub(super) async fn thread(&self, operation: Uuid) -> anyhow::Result<Thread> {
        let mut tx = self.db.read().await?;
        Thread::load(&mut tx, operation).await?.context("the operation is gone")
    }

    /// An action of this actor's that nobody has asked for yet.
    pub(super) fn request<'a>(&'a self, action_id: &'a str, reason: &'a str) -> actions::Request<'a> {
        actions::Request { actor: &self.actor, action_id, reason, origin: ORIGIN }
    }
}

/// Refuses, with exit code 2, where nothing could be put on record.
pub(super) fn need_key(config: &Config) -> anyhow::Result<()> {
    if config.keyring.is_some() {
        return Ok(());
    }
    let help = "there is no secret key, and without one nothing can be put on record: make one with \
                `openssl rand -base64 32 > dlo.key`, and name it in the file, secret_key_file = \"dlo.key\" \
                under [server], or set DLO_SECRET_KEY or DLO_SECRET_KEY_FILE";
    bail!(super::Usage(help.to_owned()))
}

/// The configuration, with what the environment overrides, before its stored secrets are there.
pub(super) fn draft(path: &Path) -> Result<Draft, ConfigError> {
    Draft::load(path, &env)
}

/// The configuration, with what the environment overrides and with its secrets. The database is asked
/// only for one that takes some from there.
pub(super) async fn config(path: &Path) -> anyhow::Result<Config> {
    let draft = draft(path)?;
    let stored = if draft.named().is_empty() { Stored::new() } else { stored(&draft).await? };
    Ok(draft.complete(&env, &stored)?)
}

/// None in a database that is not there yet, or is older than stored secrets.
async fn stored(draft: &Draft) -> anyhow::Result<Stored> {
    let why = "the configuration takes secrets from the database";
    let db = match open_there(draft.server()).await.context(why) {
        Ok(db) => db.keyed(draft.keyring().cloned()),
        Err(error) if error.is::<NotThere>() => return Ok(Stored::new()),
        Err(error) => return Err(error),
    };
    let names = draft.named().iter().map(|(name, _)| name.as_str());
    let stored = match db.version().await {
        Ok(version) if version < accounts::SECRETS_SINCE => Ok(Stored::new()),
        Ok(_) => accounts::open_secrets(&db, names).await,
        Err(error) => Err(error),
    };
    db.close().await;
    stored.context(why)
}

fn env(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

pub(super) async fn open_database(config: &Config) -> anyhow::Result<Db> {
    let db = Db::open(&config.server.database_url).await.context("the database cannot be opened")?;
    Ok(db.keyed(config.keyring.clone()).with_roles(config.auth.roles.clone()))
}

/// A database's file that nobody has made yet.
#[derive(Debug, thiserror::Error)]
#[error("there is no database yet: run `dlo migrate` or `dlo serve` first")]
struct NotThere;

/// The database, which is not made when it is not there.
pub(super) async fn open_there(server: &Server) -> anyhow::Result<Db> {
    if !Db::is_there(&server.database_url) {
        return Err(NotThere.into());
    }
    Db::open(&server.database_url).await.context("the database cannot be opened")
}

/// Refuses, and closes, a database that has not this version's schema.
pub(super) async fn ready(db: &Db) -> anyhow::Result<()> {
    let (stored, ours) = (db.version().await?, Db::newest_version());
    if stored == ours {
        return Ok(());
    }
    db.close().await;
    bail!(match stored {
        0 => "the database is empty: run `dlo migrate` or `dlo serve` first".to_owned(),
        older if older < ours => {
            format!("the database has version {older} and this program needs {ours}: run `dlo migrate` first")
        }
        newer => format!("the database has version {newer}, made by a newer program than this ({ours})"),
    })
}

/// Whoever sits at this command line.
pub(super) fn actor() -> Actor {
    let user = whoami::username().unwrap_or_else(|_| "unknown".to_owned());
    Actor::Cli { user: super::text::clean(&user) }
}

/// The link that a one-time secret opens.
pub(super) fn setup_link(config: &Config, secret: &str) -> String {
    format!("{}/setup/{secret}", config.server.public_url.as_str().trim_end_matches('/'))
}
