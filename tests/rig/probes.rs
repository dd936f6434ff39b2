//! Questions with one right answer, asked while nothing is broken.

use std::os::unix::process::ExitStatusExt as _;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dead_letter_office::store::{Commit, Moment};
use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::task::JoinSet;

use crate::api::{Api, Reply};
use crate::class::Class;
use crate::load::{Accepted, Book};
use crate::node::{armed, run};
use crate::odd::{Odd, REDIRECTS, WAITS};

/// Submitters of one key.
pub(crate) const RACERS: usize = 16;
/// Rounds at once.
const TRACKS: usize = 6;

/// Sixteen submit the same at once, `rounds` times; each operation goes into the book. What was
/// answered otherwise than one 201 and fifteen 200 is put on record.
pub(crate) async fn race(api: &Arc<Api>, book: &Arc<Book>, rounds: usize) -> Result<()> {
    let mut tracks = JoinSet::new();
    for track in 0..TRACKS {
        let (api, book) = (Arc::clone(api), Arc::clone(book));
        tracks.spawn(async move {
            for round in (track..rounds).step_by(TRACKS) {
                race_once(&api, &book, round).await;
            }
        });
    }
    while let Some(ended) = tracks.join_next().await {
        ended?;
    }
    Ok(())
}

async fn race_once(api: &Arc<Api>, book: &Book, round: usize) {
    let class = Class::ALL[round % Class::ALL.len()];
    let key = format!("{}-race-{round}", class.letter());
    let mut racers = JoinSet::new();
    for racer in 0..RACERS {
        let (api, key) = (Arc::clone(api), key.clone());
        racers.spawn(async move { api.submit(racer % 2, class.letter(), &key).await });
    }
    let mut ids = Vec::new();
    let mut created = 0;
    while let Some(reply) = racers.join_next().await {
        match reply {
            Ok(Reply::Answered(status @ (200 | 201), body)) => {
                created += u32::from(status == 201);
                ids.push(body["id"].as_str().unwrap_or_default().to_owned());
            }
            other => api.complain(format!("a racer for {key} was answered {other:?}")),
        }
    }
    ids.dedup();
    match ids.as_slice() {
        [id] if created == 1 => book.add(Accepted { class, key, id: id.clone() }),
        _ => api.complain(format!("the race for {key} made {created} operations, with the ids {ids:?}")),
    }
}

/// Each redirect is answered once, and nothing follows it; the statuses of those that are wrong.
pub(crate) async fn redirects(api: &Api, odd: &Odd) -> Result<Vec<u16>> {
    let kinds = REDIRECTS.map(|status| format!("redirect-{status}"));
    for kind in &kinds {
        hand_in(api, kind, kind).await?;
    }
    until(Duration::from_secs(30), || {
        REDIRECTS.iter().all(|status| odd.requests(&format!("/redirect/{status}")) > 0)
    })
    .await;
    // A second request would come within a few retries.
    tokio::time::sleep(Duration::from_secs(2)).await;
    let wrong = |status: &u16| odd.requests(&format!("/redirect/{status}")) != 1;
    let mut wrong: Vec<u16> = REDIRECTS.into_iter().filter(wrong).collect();
    if odd.requests("/led-here") > 0 {
        wrong.push(0);
    }
    Ok(wrong)
}

/// How much later than asked each put-off request came, in ms; none may be missing or negative.
pub(crate) async fn waits(api: &Api, odd: &Odd, each: usize) -> Result<Vec<i64>> {
    for number in 0..each {
        for how in WAITS {
            hand_in(api, &format!("wait-{how}"), &format!("wait-{how}-{number}")).await?;
        }
    }
    let wanted = each * WAITS.len();
    until(Duration::from_mins(1), || odd.margins().len() >= wanted).await;
    let margins = odd.margins();
    if margins.len() < wanted {
        bail!("{} of {wanted} requests that were put off came again", margins.len());
    }
    Ok(margins)
}

async fn hand_in(api: &Api, kind: &str, key: &str) -> Result<()> {
    match api.submit(0, kind, key).await {
        Reply::Answered(201, _) => Ok(()),
        other => bail!("{key} was answered {other:?}"),
    }
}

async fn until(patience: Duration, reached: impl Fn() -> bool) {
    let began = Instant::now();
    while !reached() && began.elapsed() < patience {
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
}

/// Kills commands at their commits: before it nothing of them stands, after it all does. What is
/// wrong, and how many were killed.
pub(crate) fn commands(folder: &Path, seed: u64) -> Result<(Vec<String>, u64)> {
    let mut rng = StdRng::seed_from_u64(seed);
    let (mut wrong, mut kills) = (Vec::new(), 0);
    for commit in [Commit::Token, Commit::Account, Commit::Link] {
        for moment in [Moment::Before, Moment::After] {
            let name = format!("{commit}-{moment}-{}", rng.random_range(0..1_000_000));
            let arguments: Vec<&str> = match commit {
                Commit::Token => vec!["token", "create", &name, "--scope", "read"],
                _ => vec!["user", "add", &name, "--role", "viewer"],
            };
            let killed = run(folder, &arguments, Some(&armed(commit, moment, 1)))?;
            if killed.status.signal() != Some(9) {
                wrong
                    .push(format!("{arguments:?} armed with {commit}.{moment} ended with {}", killed.status));
            }
            kills += 1;
            // A name is taken once it stands; a person stands before their link is made.
            let stands = moment == Moment::After || commit == Commit::Link;
            let again = run(folder, &arguments, None)?;
            if again.status.success() == stands {
                wrong.push(format!(
                    "{arguments:?}, killed {moment} its commit, ended with {} when repeated",
                    again.status
                ));
            }
        }
    }
    Ok((wrong, kills))
}
