//! The product: acceptance over HTTP, and carrying out.

use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use dead_letter_office::accounts::{self, By};
use dead_letter_office::config::Config;
use dead_letter_office::domain::actor::{Actor, Scope};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::filter::{OperationFilter, Page};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::Submission;
use dead_letter_office::store::{Db, operations};
use serde_json::value::RawValue;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tokio::net::TcpListener;
use tokio::sync::watch;

use super::client::{self, payload};
use super::measure::{Cpu, Figures, peak_memory};
use super::{IN_FLIGHT, OPERATIONS};

/// Makes a database anew on a server.
pub(crate) async fn fresh_postgres(server: &str, name: &str) -> Result<String> {
    let mut admin = PgConnection::connect(server).await?;
    sqlx::query(AssertSqlSafe(format!("DROP DATABASE IF EXISTS {name} WITH (FORCE)")))
        .execute(&mut admin)
        .await?;
    sqlx::query(AssertSqlSafe(format!("CREATE DATABASE {name}"))).execute(&mut admin).await?;
    let mut url: url::Url = server.parse()?;
    url.set_path(name);
    Ok(url.to_string())
}

/// Measures submission and settling on one database.
pub(crate) async fn measure(
    figures: &mut Figures,
    name: &str,
    address: &str,
    destination: &str,
    server: Option<u32>,
) -> Result<()> {
    let config = config(address, destination)?;
    let db = Db::open(address).await?;
    db.migrate().await?;
    let engine = Engine::new(db, Arc::new(config), Ambient::system());
    submit(figures, name, &engine, server).await?;
    // What was submitted over HTTP is the first work; then as much again, handed in directly.
    settle(figures, name, &engine, OPERATIONS * 2, server).await?;
    latency(figures, name, &engine).await?;
    figures.add(format!("{name}: most memory so far"), "MiB", peak_memory()?);
    engine.db().close().await;
    Ok(())
}

fn config(address: &str, destination: &str) -> Result<Config> {
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
reference = "/id"
"#
    );
    Ok(Config::read(Path::new("bench.toml"), &text, &env)?)
}

async fn submit(figures: &mut Figures, name: &str, engine: &Engine, server: Option<u32>) -> Result<()> {
    let actor = Actor::Cli { user: "bench".to_owned() };
    let by = By { actor: &actor, origin: "bench" };
    let token =
        accounts::create_token(engine.db(), engine.ambient(), "bench", Scope::Submit, None, &by).await?;
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let at = listener.local_addr()?.to_string();
    let (stop, stopped) = watch::channel(false);
    let web = tokio::spawn(dead_letter_office::web::serve(engine.clone(), listener, stopped));
    for (what, batched) in [("submitted singly", false), ("submitted in batches", true)] {
        let cpu = Cpu::start(server)?;
        let took = client::submit(&at, &token, what.rsplit(' ').next().unwrap_or(what), batched).await?;
        let (_, used) = cpu.stop()?;
        figures.rate(format!("{name}: {what}"), OPERATIONS, took);
        figures.add(format!("{name}: CPU of one {what}"), "ms", used.as_secs_f64() * 1e3 / OPERATIONS as f64);
    }
    stop.send(true)?;
    web.await??;
    Ok(())
}

async fn settle(
    figures: &mut Figures,
    name: &str,
    engine: &Engine,
    count: usize,
    server: Option<u32>,
) -> Result<()> {
    let cpu = Cpu::start(server)?;
    let (stop, stopped) = watch::channel(false);
    let worker = engine.start(&stopped)?;
    // The queue is empty, or what is left is leased: both end with no row that waits.
    while engine.gate().backlog().await? > 0 {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let (took, used) = cpu.stop()?;
    stop.send(true)?;
    worker.await?;
    let mut tx = engine.db().read().await?;
    let unsettled = OperationFilter { state: Some(OperationState::Pending), ..OperationFilter::default() };
    let left = operations::list(&mut tx, &unsettled, Page::default()).await?.items.len();
    anyhow::ensure!(left == 0, "{left} operations were not carried out");
    figures.rate(format!("{name}: settled"), count, took);
    figures.add(format!("{name}: CPU of one settled"), "ms", used.as_secs_f64() * 1e3 / count as f64);
    Ok(())
}

/// From acceptance of a lone operation to its completion, on an idle engine.
async fn latency(figures: &mut Figures, name: &str, engine: &Engine) -> Result<()> {
    let (stop, stopped) = watch::channel(false);
    let worker = engine.start(&stopped)?;
    tokio::time::sleep(Duration::from_millis(300)).await;
    let mut waits = Vec::new();
    for n in 0..100 {
        let key = format!("alone-{n}");
        let began = Instant::now();
        engine
            .intake()
            .submit(Submission {
                kind: "bench".to_owned(),
                payload: RawValue::from_string(payload(&key))?,
                key: Some(key),
                correlation_id: None,
                source: None,
                by: "bench".to_owned(),
            })
            .await?;
        while engine.gate().backlog().await? > 0 {
            tokio::task::yield_now().await;
        }
        waits.push(began.elapsed().as_secs_f64() * 1e3);
    }
    stop.send(true)?;
    worker.await?;
    waits.sort_by(f64::total_cmp);
    let p99 = waits.get(98).context("a hundred waits")?;
    figures.add(format!("{name}: a lone operation, accepted to completed, median"), "ms", waits[50]);
    figures.add(format!("{name}: a lone operation, accepted to completed, p99"), "ms", *p99);
    Ok(())
}

/// An environment that holds a secret key and nothing else.
pub(crate) fn env(name: &str) -> Option<String> {
    (name == "DLO_SECRET_KEY").then(|| "only for benches ".repeat(4))
}
