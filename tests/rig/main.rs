//! The crash rig: real processes over real databases, killed, frozen and cut off while they work,
//! against destinations that keep every effect on disk. Afterwards everything is counted.
//!
//! `cargo test --test rig` is the short run, of some two minutes; `tests/run rig` the full one.
//! `DLO_RIG_SEED` repeats the order of a run's events (the processes' own timing is nobody's to
//! repeat); `DLO_RIG_DATABASE=sqlite` or `postgres` runs one database only, and `DLO_RIG_KEEP` names a
//! folder in which the nodes' logs, their database and the destinations' files stay.

mod api;
mod audit;
mod chaos;
mod class;
mod destination;
mod effects;
mod labels;
mod load;
mod node;
mod odd;
mod operators;
mod postgres;
mod probes;
mod report;
mod run;
mod settings;
mod stage;
mod wire;

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context as _, Result, bail};
use dead_letter_office::domain::ambient::Ambient;

use chaos::Amount;
use report::{Machine, Report};

/// How much is done.
struct Size {
    name: &'static str,
    amount: Amount,
    race_rounds: usize,
    /// Requests that are put off, of each kind.
    waits: usize,
    /// Kills and freezes below which a run proves too little.
    least: (u64, u64),
}

const SHORT: Size = Size {
    name: "short",
    amount: Amount { kills: 5, walks: 1, freezes: 3, outages: 1, replays: 3 },
    race_rounds: 60,
    waits: 3,
    least: (25, 3),
};

const FULL: Size = Size {
    name: "full",
    amount: Amount { kills: 100, walks: 4, freezes: 55, outages: 12, replays: 40 },
    race_rounds: 10_000,
    waits: 25,
    least: (200, 50),
};

/// The short run's seed: its order of events is the same every time.
const FIXED_SEED: u64 = 20_261_129;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        // A test runner that asks: this is one program, and started by itself.
        return ExitCode::SUCCESS;
    }
    let named: Vec<&String> = arguments.iter().filter(|argument| !argument.starts_with('-')).collect();
    let size = match named.as_slice() {
        [] => &SHORT,
        [one] if *one == FULL.name => &FULL,
        _ => {
            eprintln!("the rig takes \"full\", or nothing for the short run");
            return ExitCode::FAILURE;
        }
    };
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(3).enable_all().build();
    match runtime.context("a runtime").and_then(|runtime| runtime.block_on(all(size))) {
        Ok(report) => tell(&report),
        Err(error) => {
            println!("the rig broke off: {error:?}");
            println!("test result: FAILED. 0 passed; 1 failed");
            ExitCode::FAILURE
        }
    }
}

/// The closing lines, in the form that test programs use.
fn tell(report: &Report) -> ExitCode {
    let checks = || report.databases.iter().flat_map(|run| run.checks.iter());
    for run in &report.databases {
        for check in &run.checks {
            let (word, found) = (if check.holds { "ok" } else { "FAILED" }, &check.found);
            println!("test {}: {} ... {word} ({found})", run.database, check.name);
        }
        for fact in &run.facts {
            println!("  {}: {fact}", run.database);
        }
    }
    let failed = checks().filter(|check| !check.holds).count();
    let passed = checks().count() - failed;
    let word = if failed == 0 { "ok" } else { "FAILED" };
    println!("seed {}", report.seed);
    println!("test result: {word}. {passed} passed; {failed} failed");
    if failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

async fn all(size: &Size) -> Result<Report> {
    // Nothing to do when another part of the process was first.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let seed = match std::env::var("DLO_RIG_SEED") {
        Ok(text) => text.parse().context("DLO_RIG_SEED is a whole number")?,
        Err(_) if size.name == SHORT.name => FIXED_SEED,
        Err(_) => rand::random::<u32>().into(),
    };
    eprintln!("{} run, seed {seed}", size.name);
    // Now: who goes on working in the checkout meanwhile changes nothing of what runs.
    let commit = report::commit();
    let only = std::env::var("DLO_RIG_DATABASE").ok();
    let mut databases = Vec::new();
    for name in ["sqlite", "postgres"] {
        if only.as_ref().is_none_or(|only| only == name) {
            eprintln!("{name}");
            databases.push(run::on(name, size, seed).await.with_context(|| format!("on {name}"))?);
        }
    }
    if databases.is_empty() {
        bail!("DLO_RIG_DATABASE is sqlite or postgres, or absent");
    }
    let report = Report {
        size: size.name,
        seed,
        machine: Machine::here(),
        commit,
        date: Ambient::system().now().to_string().chars().take(10).collect(),
        databases,
    };
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    report.write(&root.join("target/rig/report.json"))?;
    if size.name == FULL.name && only.is_none() {
        report.write_into(&root.join("README.md"))?;
    }
    Ok(report)
}
