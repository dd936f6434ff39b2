//! Nodes that kill themselves at labelled moments, and what brings them there.

use std::os::unix::process::ExitStatusExt as _;
use std::time::{Duration, Instant};

use anyhow::Result;
use dead_letter_office::store::{Commit, Moment};
use rand::RngExt as _;
use rustix::process::Signal;
use serde_json::json;

use crate::api::Reply;
use crate::chaos::Chaos;
use crate::node::armed;
use crate::operators::resolution;

/// The commits that a serving node makes; the others are made by commands, and walked in a probe.
pub(crate) const SERVING: [Commit; 9] = [
    Commit::Turn,
    Commit::Sweep,
    Commit::Submissions,
    Commit::Action,
    Commit::Resolve,
    Commit::Hooks,
    Commit::Tidy,
    Commit::Session,
    Commit::Tries,
];

/// How often a label is tried: whether work leads there is partly chance.
const TRIES: u32 = 3;
/// How long an armed node may take to reach its moment.
const TO_REACH: Duration = Duration::from_secs(10);

impl Chaos {
    /// Has a node killed at a label.
    pub(crate) async fn walk_to(
        &mut self,
        one: usize,
        other: usize,
        commit: Commit,
        moment: Moment,
    ) -> Result<()> {
        for _ in 0..TRIES {
            if self.die_at(one, other, commit, moment).await? {
                break;
            }
        }
        Ok(())
    }

    /// Starts a node that will kill itself at a label, and sees to it that it gets there; whether it
    /// did.
    async fn die_at(&mut self, one: usize, other: usize, commit: Commit, moment: Moment) -> Result<bool> {
        let most = match commit {
            Commit::Turn => 40,
            Commit::Submissions => 15,
            Commit::Action => 3,
            _ => 1,
        };
        let nth = self.rng.random_range(1..=most);
        // Leases run out only where somebody died, and whoever sweeps first leaves nothing to sweep.
        let alone = commit == Commit::Sweep;
        if alone {
            self.until_sending().await;
            self.kill(other)?;
        }
        self.kill(one)?;
        self.stage.nodes[one].start(Some(&armed(commit, moment, nth)))?;
        let began = Instant::now();
        while began.elapsed() < TO_REACH && self.stage.nodes[one].ended()?.is_none() {
            self.provoke(one, commit).await;
            tokio::time::sleep(Duration::from_millis(60)).await;
        }
        let ended = self.stage.nodes[one].kill()?;
        self.done.kills += 1;
        let label = format!("{commit}.{moment}");
        let reached = ended.is_some_and(|status| status.signal() == Some(Signal::KILL.as_raw()));
        if let Some(status) = ended.filter(|_| !reached) {
            self.stage.api.complain(format!("a node that was to die at {label} ended with {status}"));
        }
        let tally = if reached { &mut self.done.labelled } else { &mut self.done.unreached };
        *tally.entry(label).or_default() += 1;
        if alone {
            self.start(other).await?;
        }
        self.start(one).await?;
        Ok(reached)
    }

    /// Waits a little until something is being sent: whoever dies then leaves a lease behind.
    async fn until_sending(&self) {
        let began = Instant::now();
        while began.elapsed() < Duration::from_secs(3) {
            let running = self.stage.api.get(0, "/api/v1/operations?state=running&limit=1").await;
            if matches!(running, Reply::Answered(200, body) if body["items"][0].is_object()) {
                return;
            }
        }
    }

    /// Does what leads to a commit that the load alone makes too seldom.
    async fn provoke(&mut self, node: usize, commit: Commit) {
        match commit {
            Commit::Session | Commit::Tries => {
                self.stage.api.sign_in(node).await;
            }
            Commit::Hooks => self.stage.api.forged_delivery(node).await,
            Commit::Action | Commit::Resolve => self.act_on_any(node, commit).await,
            _ => {}
        }
    }

    async fn act_on_any(&mut self, node: usize, commit: Commit) {
        let api = &self.stage.api;
        let Reply::Answered(200, body) = api.get(node, "/api/v1/dead-letters?status=open&limit=20").await
        else {
            return;
        };
        let Some(letters) = body["items"].as_array().filter(|letters| !letters.is_empty()) else { return };
        let letter = &letters[self.rng.random_range(0..letters.len())];
        let id = letter["id"].as_str().unwrap_or_default();
        let action = format!("provoked-{}", self.rng.random::<u64>());
        if commit == Commit::Action {
            api.act(node, 0, id, "replay", &action, json!({"reason": "to reach a label"})).await;
        } else {
            let key = letter["operation"]["key"].as_str().unwrap_or_default();
            let body = resolution(&self.stage.destinations, letter, key);
            api.act(node, 0, id, "resolve", &action, body).await;
        }
    }
}
