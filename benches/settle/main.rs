//! How fast operations are accepted and carried out, beside the bare figures of the same machine in
//! the same run: an HTTP client without a store, and commits without anything around them.
//!
//! `benches/run settle` and `benches/run stall` start what is needed and call this. Prints a table, and
//! writes it as JSON.

#![allow(clippy::cast_precision_loss, reason = "counts of a benchmark, far below 2^52")]

mod bare;
mod client;
mod measure;
mod product;
mod server;
mod stall;

use std::path::PathBuf;

use anyhow::{Context, Result, bail};
use measure::{Figure, Figures};

/// Operations in one settle run, requests in one bare run.
const OPERATIONS: usize = 5_000;
/// Attempts in flight, and HTTP clients.
const IN_FLIGHT: usize = 32;
/// Rounds; the table shows medians.
const ROUNDS: usize = 3;

#[tokio::main]
async fn main() -> Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.first().map(String::as_str) {
        Some("destination") => return server::run().await,
        Some("client") => return client::run(&arguments[1..]).await,
        Some("settle" | "stall") | None => {}
        Some(other) => bail!("there is no benchmark {other:?}; there are: settle, stall"),
    }
    let stalls = arguments.first().is_some_and(|what| what == "stall");
    // Nothing to do when another part of the process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let postgres = std::env::var("DLO_BENCH_POSTGRES").ok();
    let folder = tempfile::tempdir().context("a folder for the SQLite files")?;
    let destination = server::Destination::start().await?;
    let mut figures = Figures::default();
    for round in 0..ROUNDS {
        eprintln!("round {} of {ROUNDS}", round + 1);
        let file = |name: &str| format!("sqlite:{}/{name}-{round}.db", folder.path().display());
        if stalls {
            stall::measure(&mut figures, "SQLite", &file("stall"), &destination.url).await?;
            if let Some(server) = &postgres {
                let database = product::fresh_postgres(server, &format!("stall_{round}")).await?;
                stall::measure(&mut figures, "PostgreSQL", &database, &destination.url).await?;
            }
            continue;
        }
        bare::client(&mut figures, &destination.url).await?;
        bare::sqlite(&mut figures, &file("bare")).await?;
        product::measure(&mut figures, "SQLite", &file("product"), &destination.url, None).await?;
        if let Some(server) = &postgres {
            let database = product::fresh_postgres(server, &format!("bench_{round}")).await?;
            bare::postgres(&mut figures, &database).await?;
            let cpu_of = std::env::var("DLO_BENCH_POSTGRES_PID").ok().and_then(|pid| pid.parse().ok());
            product::measure(&mut figures, "PostgreSQL", &database, &destination.url, cpu_of).await?;
        }
    }
    print(&figures, if stalls { "stall" } else { "settle" })
}

fn print(figures: &Figures, benchmark: &str) -> Result<()> {
    let rows: Vec<(&str, Figure)> = figures.medians();
    println!("| what | median | lowest | highest | unit |");
    println!("| --- | ---: | ---: | ---: | --- |");
    for (name, figure) in &rows {
        println!(
            "| {name} | {} | {} | {} | {} |",
            Figure::text(figure.median),
            Figure::text(figure.lowest),
            Figure::text(figure.highest),
            figure.unit
        );
    }
    println!("\n| ratio in this run | |\n| --- | ---: |");
    for (name, above, below) in [
        ("SQLite settle / bare reqwest client", "SQLite: settled", "bare reqwest client"),
        ("PostgreSQL settle / bare reqwest client", "PostgreSQL: settled", "bare reqwest client"),
        ("PostgreSQL settle / SQLite settle", "PostgreSQL: settled", "SQLite: settled"),
        (
            "SQLite submit / bare single commits",
            "SQLite: submitted singly",
            "SQLite: bare commits of one row",
        ),
        (
            "PostgreSQL submit / bare commits on 16 connections",
            "PostgreSQL: submitted singly",
            "PostgreSQL: bare commits of one row, 16 connections",
        ),
        (
            "SQLite batch / bare 100-row commits",
            "SQLite: submitted in batches",
            "SQLite: bare rows, 100 a commit",
        ),
        (
            "PostgreSQL batch / bare 100-row commits",
            "PostgreSQL: submitted in batches",
            "PostgreSQL: bare rows, 100 a commit",
        ),
        (
            "SQLite: p99 of the queue wait, with a stall / without",
            "SQLite: queue wait, another stalled, p99",
            "SQLite: queue wait, nothing else there, p99",
        ),
        (
            "PostgreSQL: p99 of the queue wait, with a stall / without",
            "PostgreSQL: queue wait, another stalled, p99",
            "PostgreSQL: queue wait, nothing else there, p99",
        ),
    ] {
        let of =
            |wanted: &str| rows.iter().find(|(name, _)| *name == wanted).map(|(_, figure)| figure.median);
        if let (Some(above), Some(below)) = (of(above), of(below)) {
            println!("| {name} | {:.2} |", above / below);
        }
    }
    let file = PathBuf::from(
        std::env::var("DLO_BENCH_JSON").unwrap_or_else(|_| format!("target/bench/{benchmark}.json")),
    );
    if let Some(parent) = file.parent() {
        std::fs::create_dir_all(parent)?;
    }
    std::fs::write(&file, serde_json::to_string_pretty(&figures.json())?)?;
    eprintln!("written to {}", file.display());
    Ok(())
}
