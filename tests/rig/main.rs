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
mod load;
mod node;
mod odd;
mod operators;
mod postgres;
mod probes;
mod report;
mod settings;
mod wire;

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::{Context as _, Result, bail};
use dead_letter_office::domain::ambient::Ambient;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::watch;

use api::{Api, Tokens};
use audit::Findings;
use chaos::{Amount, Chaos, Done, SERVING};
use class::Class;
use destination::Destination;
use load::Book;
use node::Node;
use odd::Odd;
use operators::Operators;
use postgres::{Postgres, free_port};
use report::{Check, Machine, Report, Run};

/// How much is done.
struct Size {
    name: &'static str,
    amount: Amount,
    race_rounds: usize,
    /// Requests that are put off, of each kind.
    waits: usize,
}

const SHORT: Size = Size {
    name: "short",
    amount: Amount { kills: 5, walks: 1, freezes: 3, outages: 1, replays: 3 },
    race_rounds: 60,
    waits: 3,
};

const FULL: Size = Size {
    name: "full",
    amount: Amount { kills: 100, walks: 4, freezes: 55, outages: 12, replays: 40 },
    race_rounds: 10_000,
    waits: 25,
};

/// The short run's seed: its order of events is the same every time.
const FIXED_SEED: u64 = 2_611_29;

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    if arguments.iter().any(|argument| argument == "--list") {
        // A test runner that asks: this is one program, and started by itself.
        return ExitCode::SUCCESS;
    }
    let size = if arguments.iter().any(|argument| argument == "full") { &FULL } else { &SHORT };
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
    let only = std::env::var("DLO_RIG_DATABASE").ok();
    let mut databases = Vec::new();
    for name in ["sqlite", "postgres"] {
        if only.as_ref().is_none_or(|only| only == name) {
            eprintln!("{name}");
            databases.push(on(name, size, seed).await.with_context(|| format!("on {name}"))?);
        }
    }
    if databases.is_empty() {
        bail!("DLO_RIG_DATABASE is sqlite or postgres, or absent");
    }
    let report = Report {
        size: size.name,
        seed,
        machine: Machine::here(),
        commit: report::commit(),
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

/// Everything on one database.
async fn on(name: &str, size: &Size, seed: u64) -> Result<Run> {
    let began = Instant::now();
    let temporary = tempfile::tempdir()?;
    let folder = match std::env::var_os("DLO_RIG_KEEP") {
        Some(keep) => PathBuf::from(keep).join(name),
        None => temporary.path().to_owned(),
    };
    std::fs::create_dir_all(&folder)?;
    let server = if name == "postgres" { Some(Postgres::start()?) } else { None };
    let (database, product) = match &server {
        Some(server) => (server.url(), server.version()?),
        None => (format!("sqlite://{}/dlo.db", folder.display()), "SQLite".to_owned()),
    };
    let mut destinations = Vec::new();
    for (number, class) in (1..).zip(Class::ALL) {
        destinations.push(Destination::start(class, &folder, seed ^ (number << 32)).await?);
    }
    let destinations = Arc::new(destinations);
    let odd = Odd::start().await?;
    std::fs::write(folder.join("dlo.toml"), settings::configuration(&database, &destinations, &odd))?;
    command(&folder, &["migrate"])?;
    let tokens = Tokens {
        submit: token(&folder, "submitter", "submit")?,
        operators: [token(&folder, "first", "operate")?, token(&folder, "second", "operate")?],
    };
    let mut nodes = Vec::new();
    for name in ["node-a", "node-b"] {
        let mut node = Node::new(name, &folder, free_port()?);
        node.start(None)?;
        node.ready(&api::client()?).await?;
        nodes.push(node);
    }
    let api = Arc::new(Api::new(nodes.iter().map(Node::base_url).collect(), tokens)?);
    let book = Arc::new(Book::default());

    let (wrong_commands, killed_commands) = probes::commands(&folder, seed)?;
    let redirects = probes::redirects(&api, &odd).await?;
    let margins = probes::waits(&api, &odd, size.waits).await?;
    let raced = Instant::now();
    probes::race(&api, &book, size.race_rounds).await?;
    eprintln!("  {} races in {:.0} s", size.race_rounds, raced.elapsed().as_secs_f64());
    let raced = api.complaints().len();

    let mut chaos = Chaos {
        api: Arc::clone(&api),
        nodes,
        postgres: server,
        destinations: Arc::clone(&destinations),
        book: Arc::clone(&book),
        folder: folder.clone(),
        rng: StdRng::seed_from_u64(seed),
        done: Done { kills: killed_commands, ..Done::default() },
    };
    let acts = storm(&mut chaos, size, seed).await?;
    audit::quiet(&api).await?;
    let accepted = book.all();
    let findings = audit::compare(&api, &accepted, &destinations, &chaos.done.woken).await?;
    let panicked = panics(&chaos.nodes)?;
    let complaints = api.complaints();
    let mut facts = findings.facts.clone();
    facts.extend(wrong_commands.iter().chain(&complaints).chain(&panicked).cloned());
    let mut checks = class_checks(&findings);
    let mut check = |name: &str, holds: bool, found: String| {
        checks.push(Check { name: name.to_owned(), holds, found });
    };
    let api_wrong = complaints.len() - raced;
    check("every race of 16 made one operation", raced == 0, format!("{} rounds, {raced} wrong", size.race_rounds));
    check("every attempt of a step sent the same bytes", findings.differed == 0, format!("{} differ", findings.differed));
    check("the API answered as it should through all of it", api_wrong == 0, format!("{api_wrong} wrong"));
    check("no node panicked or ended by itself", panicked.is_empty(), format!("{} lines", panicked.len()));
    check("commands that were killed did all or nothing", wrong_commands.is_empty(), format!("{killed_commands} kills"));
    check("a redirect makes one request", redirects.is_empty(), format!("wrong: {redirects:?}"));
    let earliest = margins.iter().min().copied();
    check("Retry-After is kept", earliest.is_some_and(|ms| ms >= 0), format!("earliest at {earliest:?} ms of {}", margins.len()));
    let labels = SERVING.len() * 2;
    let reached = chaos.done.labelled.len();
    check("every labelled moment was died at", reached == labels, format!("{reached} of {labels}"));
    Ok(Run {
        database: product,
        seconds: began.elapsed().as_secs_f64(),
        chaos: chaos.done.clone(),
        operators: acts,
        resubmitted: book.repeated.load(Ordering::Relaxed),
        race_rounds: size.race_rounds,
        earliest_after_wait_ms: earliest,
        classes: findings.counts,
        checks,
        facts,
    })
}

/// Load, operators and chaos at once, until the chaos is over.
async fn storm(chaos: &mut Chaos, size: &Size, seed: u64) -> Result<operators::Acts> {
    let (stop, stopped) = watch::channel(false);
    for destination in chaos.destinations.iter() {
        destination.fail(true);
    }
    let clients = load::start(&chaos.api, &chaos.book, seed, &stopped);
    let rng = StdRng::seed_from_u64(seed ^ 0xF1F1);
    let operators = Operators::new(Arc::clone(&chaos.api), Arc::clone(&chaos.destinations), rng);
    let operators = tokio::spawn(operators.run(stopped));
    let ended = chaos.run(size.amount).await;
    for destination in chaos.destinations.iter() {
        destination.fail(false);
    }
    stop.send_replace(true);
    ended?;
    clients.join_all().await;
    Ok(operators.await?)
}

/// What has to hold of each class.
fn class_checks(findings: &Findings) -> Vec<Check> {
    let mut checks = Vec::new();
    for (class, counts) in &findings.counts {
        let of = format!("of {} accepted", counts.accepted);
        for (what, count) in
            [("lost", counts.lost), ("duplicated", counts.duplicated), ("unexpected", counts.unexpected)]
        {
            checks.push(Check {
                name: format!("class {class}: 0 {what}"),
                holds: count == 0 && counts.completed > 0,
                found: format!("{count} {of}"),
            });
        }
    }
    checks
}

/// Lines in the nodes' logs that no crash excuses.
fn panics(nodes: &[Node]) -> Result<Vec<String>> {
    let mut found = Vec::new();
    for node in nodes {
        let text = std::fs::read_to_string(node.log())?;
        let bad = |line: &&str| line.contains("panicked") || line.contains("allows no such move");
        found.extend(text.lines().filter(bad).map(|line| format!("{}: {line}", node.name)));
    }
    Ok(found)
}

fn command(folder: &Path, arguments: &[&str]) -> Result<String> {
    let out = node::run(folder, arguments, None)?;
    if !out.status.success() {
        bail!("dlo {arguments:?}: {}", String::from_utf8_lossy(&out.stderr));
    }
    Ok(String::from_utf8(out.stdout)?)
}

fn token(folder: &Path, name: &str, scope: &str) -> Result<String> {
    Ok(command(folder, &["token", "create", name, "--scope", scope])?.trim().to_owned())
}
