//! The machine's own figures: what the product's are measured against.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use anyhow::Result;
use sqlx::postgres::PgPoolOptions;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use std::str::FromStr;

use super::client::payload;
use super::measure::Figures;
use super::{IN_FLIGHT, OPERATIONS};

/// POSTs of 1 KB without a store.
pub(crate) async fn client(figures: &mut Figures, url: &str) -> Result<()> {
    let client = reqwest::Client::builder().no_proxy().tcp_nodelay(true).build()?;
    let next = Arc::new(AtomicUsize::new(0));
    let count = OPERATIONS * 4;
    let began = Instant::now();
    let tasks: Vec<_> = (0..IN_FLIGHT)
        .map(|_| {
            let (client, next, url) = (client.clone(), Arc::clone(&next), url.to_owned());
            tokio::spawn(async move {
                while next.fetch_add(1, Ordering::Relaxed) < count {
                    let response = client.post(&url).body(payload("bare")).send().await?;
                    response.bytes().await?;
                }
                Ok::<_, reqwest::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    figures.rate("bare reqwest client", count, began.elapsed());
    Ok(())
}

const TABLE: &str = "CREATE TABLE IF NOT EXISTS bare (id BIGINT PRIMARY KEY, body TEXT NOT NULL)";

fn insert(first: usize, rows: usize) -> String {
    let body = payload("bare");
    let values: Vec<String> = (first..first + rows).map(|id| format!("({id}, '{body}')")).collect();
    format!("INSERT INTO bare VALUES {}", values.join(","))
}

/// Commits on SQLite with `synchronous=FULL`.
pub(crate) async fn sqlite(figures: &mut Figures, address: &str) -> Result<()> {
    let options = SqliteConnectOptions::from_str(address)?
        .create_if_missing(true)
        .journal_mode(SqliteJournalMode::Wal)
        .synchronous(SqliteSynchronous::Full);
    let pool = SqlitePoolOptions::new().max_connections(1).connect_with(options).await?;
    sqlx::query(TABLE).execute(&pool).await?;
    let began = Instant::now();
    let mut id = 0;
    while began.elapsed() < Duration::from_secs(1) {
        sqlx::query(AssertSqlSafe(insert(id, 1))).persistent(false).execute(&pool).await?;
        id += 1;
    }
    figures.rate("SQLite: bare commits of one row", id, began.elapsed());
    let (began, first) = (Instant::now(), id);
    while began.elapsed() < Duration::from_secs(1) {
        sqlx::query(AssertSqlSafe(insert(id, 100))).persistent(false).execute(&pool).await?;
        id += 100;
    }
    figures.rate("SQLite: bare rows, 100 a commit", id - first, began.elapsed());
    Ok(())
}

/// Commits on PostgreSQL as it is by default.
pub(crate) async fn postgres(figures: &mut Figures, address: &str) -> Result<()> {
    const CONNECTIONS: usize = 16;
    let pool = PgPoolOptions::new().max_connections(16).min_connections(16).connect(address).await?;
    sqlx::query(TABLE).execute(&pool).await?;
    let next = Arc::new(AtomicUsize::new(0));
    let began = Instant::now();
    let tasks: Vec<_> = (0..CONNECTIONS)
        .map(|_| {
            let (pool, next) = (pool.clone(), Arc::clone(&next));
            tokio::spawn(async move {
                let mut connection = pool.acquire().await?;
                let body = payload("bare");
                while began.elapsed() < Duration::from_secs(2) {
                    let id = next.fetch_add(1, Ordering::Relaxed);
                    sqlx::query("INSERT INTO bare VALUES ($1, $2)")
                        .bind(i64::try_from(id).unwrap_or(i64::MAX))
                        .bind(&body)
                        .execute(&mut *connection)
                        .await?;
                }
                Ok::<_, sqlx::Error>(())
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    let mut id = next.load(Ordering::Relaxed);
    figures.rate("PostgreSQL: bare commits of one row, 16 connections", id, began.elapsed());
    let mut one = PgConnection::connect(address).await?;
    let (began, first) = (Instant::now(), id);
    while began.elapsed() < Duration::from_secs(1) {
        sqlx::query(AssertSqlSafe(insert(id, 100))).persistent(false).execute(&mut one).await?;
        id += 100;
    }
    figures.rate("PostgreSQL: bare rows, 100 a commit", id - first, began.elapsed());
    sqlx::query("DROP TABLE bare").execute(&pool).await?;
    pool.close().await;
    Ok(())
}
