//! What is done to the nodes and their database while they work.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Result, bail};
use dead_letter_office::store::{Commit, Moment};
use rand::RngExt as _;
use rand::rngs::StdRng;
use rand::seq::SliceRandom as _;
use rustix::process::Signal;
use serde::Serialize;

use crate::effects::now_ms;
use crate::labels::SERVING;
use crate::node::run;
use crate::settings::LEASE;
use crate::stage::Stage;

/// How much is done.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Amount {
    /// Kills at random moments.
    pub(crate) kills: usize,
    /// Rounds over every labelled moment.
    pub(crate) walks: usize,
    pub(crate) freezes: usize,
    /// Crashes of PostgreSQL.
    pub(crate) outages: usize,
    /// Replays of what the engine is working on.
    pub(crate) replays: usize,
}

#[derive(Clone, Copy, Debug)]
enum Event {
    Kill,
    Labelled(Commit, Moment),
    Freeze,
    Outage,
    Refusal,
    Replay,
}

/// What was done.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Done {
    /// Processes that were killed, at random and at labels.
    pub(crate) kills: u64,
    /// Of them, those that killed themselves at a label; by label.
    pub(crate) labelled: BTreeMap<String, u64>,
    /// Labels that an armed node did not reach in time.
    pub(crate) unreached: BTreeMap<String, u64>,
    pub(crate) freezes: u64,
    /// When a frozen node went on, in ms since 1970.
    #[serde(skip)]
    pub(crate) woken: Vec<u64>,
    pub(crate) outages: u64,
    pub(crate) refusals: u64,
    /// Answers to replays from the command line against automatic retries.
    pub(crate) replays: u64,
}

/// Chaos, and what it is done to.
pub(crate) struct Chaos {
    pub(crate) stage: Stage,
    pub(crate) rng: StdRng,
    pub(crate) done: Done,
}

impl Chaos {
    /// Does it all, in an order that the seed decides.
    pub(crate) async fn run(&mut self, amount: Amount) -> Result<()> {
        let mut events = vec![Event::Kill; amount.kills];
        for _ in 0..amount.walks {
            events.extend(
                SERVING.iter().flat_map(|commit| Moment::ALL.iter().map(|at| Event::Labelled(*commit, *at))),
            );
        }
        events.extend(vec![Event::Freeze; amount.freezes]);
        events.extend(vec![Event::Outage; if self.stage.postgres.is_some() { amount.outages } else { 0 }]);
        events.extend(vec![Event::Refusal; amount.freezes / 2 + 1]);
        events.extend(vec![Event::Replay; amount.replays]);
        events.shuffle(&mut self.rng);
        let total = events.len();
        for (index, event) in events.into_iter().enumerate() {
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(50..350))).await;
            self.happen(event).await?;
            if (index + 1) % 25 == 0 {
                eprintln!(
                    "  {} of {total} events; {} kills, {} freezes",
                    index + 1,
                    self.done.kills,
                    self.done.freezes
                );
            }
        }
        Ok(())
    }

    async fn happen(&mut self, event: Event) -> Result<()> {
        let (one, other) = if self.rng.random() { (0, 1) } else { (1, 0) };
        match event {
            Event::Kill => {
                self.kill(one)?;
                // Now and then nobody is left.
                if self.rng.random_range(0..4) == 0 {
                    self.kill(other)?;
                    self.start(other).await?;
                }
                self.start(one).await
            }
            Event::Labelled(commit, moment) => self.walk_to(one, other, commit, moment).await,
            Event::Freeze => self.freeze(one, other).await,
            Event::Outage => self.outage().await,
            Event::Refusal => {
                let destination =
                    &self.stage.destinations[self.rng.random_range(0..self.stage.destinations.len())];
                destination.refuse_for(Duration::from_millis(self.rng.random_range(100..600))).await?;
                self.done.refusals += 1;
                Ok(())
            }
            Event::Replay => self.replay_against_retry(),
        }
    }

    pub(crate) fn kill(&mut self, node: usize) -> Result<()> {
        let node = &mut self.stage.nodes[node];
        if let Some(status) = node.kill()? {
            let log = node.log();
            self.stage.api.complain(format!(
                "{} had ended by itself with {status}; see {}",
                node.name,
                log.display()
            ));
        }
        self.done.kills += 1;
        Ok(())
    }

    pub(crate) async fn start(&mut self, node: usize) -> Result<()> {
        let node = &mut self.stage.nodes[node];
        node.start(None)?;
        node.ready(&self.stage.api.http).await
    }

    /// Stops a node for longer than its lease; sometimes the other one dies meanwhile.
    async fn freeze(&mut self, one: usize, other: usize) -> Result<()> {
        self.stage.nodes[one].signal(Signal::STOP)?;
        let past_lease = LEASE + Duration::from_millis(self.rng.random_range(200..1_200));
        let until = Instant::now() + past_lease;
        if self.rng.random_range(0..4) == 0 {
            tokio::time::sleep(past_lease / 2).await;
            self.kill(other)?;
            self.start(other).await?;
        }
        tokio::time::sleep(until.saturating_duration_since(Instant::now())).await;
        self.stage.nodes[one].signal(Signal::CONT)?;
        self.done.woken.push(now_ms());
        self.done.freezes += 1;
        Ok(())
    }

    async fn outage(&mut self) -> Result<()> {
        let Some(postgres) = &self.stage.postgres else { return Ok(()) };
        self.stage.api.outage(true);
        if self.rng.random() {
            postgres.crash()?;
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(100..1_500))).await;
            postgres.up()?;
        } else {
            postgres.kill_a_child(self.rng.random_range(0..100))?;
            tokio::time::sleep(Duration::from_millis(500)).await;
        }
        self.stage.api.outage(false);
        self.done.outages += 1;
        // A node that starts while the server recovers gives up, and says so; the next events wait for it.
        let began = Instant::now();
        while self.stage.api.get(0, "/readyz").await.status() != Some(200)
            || self.stage.api.get(1, "/readyz").await.status() != Some(200)
        {
            if began.elapsed() > Duration::from_secs(40) {
                bail!("a node did not come back after PostgreSQL did");
            }
            tokio::time::sleep(Duration::from_millis(100)).await;
        }
        Ok(())
    }

    /// `dlo replay` of an operation that the engine has just begun with.
    fn replay_against_retry(&mut self) -> Result<()> {
        let Some(recent) = self.stage.book.recent(self.rng.random_range(0..10)) else { return Ok(()) };
        let out = run(
            &self.stage.folder,
            &["replay", &recent.key, "--reason", "the rig replays what is under way"],
            None,
        )?;
        if !matches!(out.status.code(), Some(0 | 1)) {
            let error = String::from_utf8_lossy(&out.stderr);
            self.stage.api.complain(format!("dlo replay {} ended with {}: {error}", recent.key, out.status));
        }
        self.done.replays += 1;
        Ok(())
    }
}
