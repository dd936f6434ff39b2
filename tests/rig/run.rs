//! One run on one database: questions while nothing is broken, the storm, the count.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Instant;

use anyhow::Result;
use rand::SeedableRng as _;
use rand::rngs::StdRng;
use tokio::sync::watch;

use crate::Size;
use crate::audit::{self, Findings};
use crate::chaos::{Chaos, Done};
use crate::labels::SERVING;
use crate::load;
use crate::node::Node;
use crate::operators::{Acts, Operators};
use crate::probes;
use crate::report::{Check, Run};
use crate::stage::Stage;

/// What the questions with one right answer brought.
struct Calm {
    /// Commands that were killed and did neither all nor nothing.
    commands: Vec<String>,
    commands_killed: u64,
    /// Redirects that did not make exactly one request.
    redirects: Vec<u16>,
    /// How much later than asked each put-off request came, in ms.
    margins: Vec<i64>,
    /// Complaints of the races.
    raced: usize,
}

/// Everything on one database.
pub(crate) async fn on(name: &str, size: &Size, seed: u64) -> Result<Run> {
    let began = Instant::now();
    let stage = Stage::set(name, seed).await?;
    let calm = ask(&stage, size, seed).await?;
    let (api, book, product) = (Arc::clone(&stage.api), Arc::clone(&stage.book), stage.product.clone());
    let mut chaos = Chaos {
        stage,
        rng: StdRng::seed_from_u64(seed),
        done: Done { kills: calm.commands_killed, ..Done::default() },
    };
    let operators = storm(&mut chaos, size, seed).await?;
    let left = audit::quiet(&api).await;
    let findings = audit::compare(&api, &book.all(), &chaos.stage.destinations, &chaos.done.woken).await?;
    let panics = panics(&chaos.stage.nodes)?;
    let complaints = api.complaints();
    let mut checks = class_checks(&findings);
    let wrong = complaints.len() - calm.raced;
    let answered = ("the API answered as it should through all of it", wrong == 0, format!("{wrong} wrong"));
    let alive = ("no node panicked", panics.is_empty(), format!("{} lines", panics.len()));
    checks.extend(calm_checks(&calm, &findings, size));
    checks.extend(storm_checks(&chaos.done, size));
    let ended = ("what was accepted came to its end", left == 0, format!("{left} did not"));
    checks.extend([answered, alive, ended].map(|(name, holds, found)| Check {
        name: name.to_owned(),
        holds,
        found,
    }));
    let mut facts = findings.facts;
    facts.extend(calm.commands.into_iter().chain(complaints).chain(panics));
    Ok(Run {
        database: product,
        seconds: began.elapsed().as_secs_f64(),
        chaos: chaos.done.clone(),
        operators,
        resubmitted: book.repeated.load(Ordering::Relaxed),
        race_rounds: size.race_rounds,
        earliest_after_wait_ms: calm.margins.iter().min().copied(),
        classes: findings.counts,
        checks,
        facts,
    })
}

async fn ask(stage: &Stage, size: &Size, seed: u64) -> Result<Calm> {
    let (commands, commands_killed) = probes::commands(&stage.folder, seed)?;
    let redirects = probes::redirects(&stage.api, &stage.odd).await?;
    let margins = probes::waits(&stage.api, &stage.odd, size.waits).await?;
    let began = Instant::now();
    probes::race(&stage.api, &stage.book, size.race_rounds).await?;
    eprintln!("  {} races in {:.0} s", size.race_rounds, began.elapsed().as_secs_f64());
    Ok(Calm { commands, commands_killed, redirects, margins, raced: stage.api.complaints().len() })
}

/// Load, operators and chaos at once, until the chaos is over.
async fn storm(chaos: &mut Chaos, size: &Size, seed: u64) -> Result<Acts> {
    let (stop, stopped) = watch::channel(false);
    for destination in chaos.stage.destinations.iter() {
        destination.fail(true);
    }
    let clients = load::start(&chaos.stage.api, &chaos.stage.book, seed, &stopped);
    let rng = StdRng::seed_from_u64(seed ^ 0xF1F1);
    let operators = Operators::new(Arc::clone(&chaos.stage.api), Arc::clone(&chaos.stage.destinations), rng);
    let operators = tokio::spawn(operators.run(stopped));
    let ended = chaos.run(size.amount).await;
    for destination in chaos.stage.destinations.iter() {
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

fn calm_checks(calm: &Calm, findings: &Findings, size: &Size) -> Vec<Check> {
    let Calm { commands, commands_killed, redirects, margins, raced } = calm;
    let earliest = margins.iter().min().copied();
    let differed = findings.differed;
    [
        (
            "every race of 16 made one operation",
            *raced == 0,
            format!("{} rounds, {raced} wrong", size.race_rounds),
        ),
        ("every attempt of a step sent the same bytes", differed == 0, format!("{differed} differ")),
        (
            "commands that were killed did all or nothing",
            commands.is_empty(),
            format!("{commands_killed} kills, {} wrong", commands.len()),
        ),
        ("a redirect makes one request", redirects.is_empty(), format!("wrong: {redirects:?}")),
        (
            "Retry-After is kept",
            earliest.is_some_and(|ms| ms >= 0),
            format!("the earliest of {} at {} ms", margins.len(), earliest.unwrap_or(i64::MIN)),
        ),
    ]
    .map(|(name, holds, found)| Check { name: name.to_owned(), holds, found })
    .into()
}

fn storm_checks(done: &Done, size: &Size) -> Vec<Check> {
    let (labels, reached) = (SERVING.len() * 2, done.labelled.len());
    let enough = done.kills >= size.least.0 && done.freezes >= size.least.1;
    [
        ("enough was killed and frozen", enough, format!("{} kills, {} freezes", done.kills, done.freezes)),
        ("every labelled moment was died at", reached == labels, format!("{reached} of {labels}")),
    ]
    .map(|(name, holds, found)| Check { name: name.to_owned(), holds, found })
    .into()
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
