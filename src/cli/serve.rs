//! `dlo serve`.

use std::fmt::Write as _;
use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use clap::ValueEnum;
use tokio::net::TcpListener;

use super::context::{self, ORIGIN, config, open_database, setup_link};
use super::run::Run;
use super::text::{clean, print};
use crate::accounts::{self, By, Keys};
use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::engine::Engine;
use crate::engine::journal::start::started;
use crate::store::Db;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Run only this part; the others run on other nodes
    #[arg(long, value_enum)]
    only: Option<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Part {
    /// The desk and the API
    Web,
    /// What carries operations out
    Engine,
}

pub(super) async fn run(path: &Path, args: &Args) -> anyhow::Result<()> {
    let config = Arc::new(config(path).await?);
    context::need_key(&config)?;
    let listener = if args.only == Some(Part::Engine) {
        None
    } else {
        let address = config.server.listen;
        let bound = TcpListener::bind(address).await;
        Some(bound.with_context(|| format!("cannot listen on {address}"))?)
    };
    let db = open_database(&config).await?;
    let (before, after) = db.migrate().await.context("the database cannot be brought to this version")?;
    if before != after {
        tracing::info!(before, after, "the database was brought to this version");
    }
    let ambient = Ambient::system();
    started(&db, &config, &ambient, &context::actor().to_string(), ORIGIN).await?;
    say_missing(&db).await?;
    let mut page = format!(
        "Dead Letter Office {} on {}, schema version {after}.\n",
        env!("CARGO_PKG_VERSION"),
        db.product()
    );
    let invitation = match &listener {
        Some(listener) => {
            writeln!(page, "Desk: {} (listening on {})", config.server.public_url, listener.local_addr()?)?;
            invitation(&config, &db, &ambient).await?
        }
        None => String::new(),
    };
    let engine = Engine::new(db, Arc::clone(&config), ambient);
    let mut run = Run::new(engine)?;
    if args.only != Some(Part::Web) {
        run.add_engine()?;
        let (types, slots) = (config.operations.len(), config.engine.concurrency);
        writeln!(page, "Engine: {types} operation types, up to {slots} attempts at once.")?;
    }
    page.push_str(&invitation);
    if let Some(listener) = listener {
        run.add_web(listener);
    }
    print(&page)?;
    run.until_stopped().await
}

/// Says which keys are not here that something stored needs. Everything else goes on without them.
async fn say_missing(db: &Db) -> anyhow::Result<()> {
    let mut tx = db.read().await?;
    for words in Keys::look(&mut tx, db.keyring()?).await?.missing() {
        tracing::error!("{}", clean(&words));
    }
    Ok(())
}

/// The one-time link that makes the first account, while there is none.
async fn invitation(config: &Config, db: &Db, ambient: &Ambient) -> anyhow::Result<String> {
    let actor = context::actor();
    let secret = accounts::first_link(db, ambient, &By { actor: &actor, origin: ORIGIN }).await?;
    Ok(secret.map_or_else(String::new, |secret| {
        format!(
            "Nobody can sign in yet. This link makes the first account, an admin; it works once, for 30 \
             minutes:\n  {}\n",
            setup_link(config, &secret)
        )
    }))
}
