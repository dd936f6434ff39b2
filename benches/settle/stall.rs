//! One destination stalls at its timeout while thousands of operations wait for it: how long another
//! destination's operations wait in the queue, beside the same without the stall.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use dead_letter_office::config::Config;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, Submission};
use dead_letter_office::store::{Db, attempts, operations};
use serde_json::value::RawValue;
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::client::payload;
use super::measure::Figures;
use super::{IN_FLIGHT, OPERATIONS};

use crate::product::env;

/// Operations whose wait is looked at, one after the other.
const LOOKED_AT: usize = 300;

/// Measures on one database, first without the stall and then with it.
pub(crate) async fn measure(
    figures: &mut Figures,
    name: &str,
    address: &str,
    destination: &str,
) -> Result<()> {
    // Connections are taken and never answered.
    let silent = TcpListener::bind("127.0.0.1:0").await?;
    let config = config(address, destination, &format!("http://{}", silent.local_addr()?))?;
    let db = Db::open(address).await?;
    db.migrate().await?;
    let engine = Engine::new(db, Arc::new(config), Ambient::system());
    let (stop, stopped) = watch::channel(false);
    let worker = engine.start(&stopped)?;
    waits(figures, &format!("{name}: queue wait, nothing else there"), &engine, "calm").await?;
    let stalled = 2 * OPERATIONS;
    for n in 0..stalled {
        drop(engine.intake().enqueue(submission("stalled", &format!("stalled-{n}"))?).await?);
    }
    // All slots that it may have are taken.
    tokio::time::sleep(Duration::from_secs(1)).await;
    waits(figures, &format!("{name}: queue wait, another stalled"), &engine, "beside").await?;
    let left = engine.gate().backlog().await?;
    ensure!(left > i64::try_from(stalled / 2)?, "only {left} still waited: it was no stall to the end");
    figures.add(format!("{name}: operations that waited for the stalled one"), "", left as f64);
    stop.send(true)?;
    worker.await?;
    engine.db().close().await;
    Ok(())
}

fn config(address: &str, destination: &str, silent: &str) -> Result<Config> {
    let text = format!(
        r#"
[server]
database_url = "{address}"
allow_private_destinations = true
[engine]
concurrency = {IN_FLIGHT}
[destinations.bench]
base_url = "{destination}"
key = {{ header = "Idempotency-Key", window = "24h" }}
[[operations.bench.steps]]
name = "post"
destination = "bench"
method = "POST"
path = "/"
# The circuit would open and end the stall: it is the claiming that is looked at.
[destinations.stalled]
base_url = "{silent}"
timeout = "5s"
breaker = {{ failures = 1000000 }}
[[operations.stalled.steps]]
name = "post"
destination = "stalled"
method = "POST"
path = "/"
"#
    );
    Ok(Config::read(Path::new("bench.toml"), &text, &env)?)
}

fn submission(kind: &str, key: &str) -> Result<Submission> {
    Ok(Submission {
        kind: kind.to_owned(),
        payload: RawValue::from_string(payload(key))?,
        key: Some(key.to_owned()),
        correlation_id: None,
        source: None,
        by: "bench".to_owned(),
    })
}

/// From acceptance to the beginning of the first attempt, by the ledger's own times.
async fn waits(figures: &mut Figures, what: &str, engine: &Engine, prefix: &str) -> Result<()> {
    let mut waits = Vec::with_capacity(LOOKED_AT);
    for n in 0..LOOKED_AT {
        let accepted = engine.intake().submit(submission("bench", &format!("{prefix}-{n}"))?).await?;
        let Accepted::Created(new) = accepted else { anyhow::bail!("a key came twice") };
        let began = Instant::now();
        loop {
            let mut tx = engine.db().read().await?;
            let row = operations::by_id(&mut tx, new.id).await?.context("the operation")?;
            if row.completed_at.is_some() {
                let first = attempts::of_operation(&mut tx, new.id).await?;
                let first = first.first().context("an attempt")?;
                waits.push(first.started_at.since(new.received_at).as_secs_f64() * 1e3);
                break;
            }
            drop(tx);
            ensure!(began.elapsed() < Duration::from_secs(20), "{prefix}-{n} was not carried out");
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    }
    waits.sort_by(f64::total_cmp);
    figures.add(format!("{what}, median"), "ms", waits[LOOKED_AT / 2]);
    figures.add(format!("{what}, p99"), "ms", waits[LOOKED_AT * 99 / 100]);
    Ok(())
}
