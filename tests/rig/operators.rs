//! Two operators at the same dead letters at once, and against the engine's own retries.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use rand::RngExt as _;
use rand::rngs::StdRng;
use serde::Serialize;
use serde_json::{Value, json};
use tokio::sync::watch;

use crate::api::{Api, Reply};
use crate::class::Class;
use crate::destination::Destination;

/// What the two did.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct Acts {
    /// Pairs of replays of one dead letter at the same moment.
    pub(crate) pairs: u64,
    /// Actions that were repeated under their id.
    pub(crate) repeated: u64,
    pub(crate) resolved: u64,
    /// Answers to replays by their verdict.
    pub(crate) verdicts: BTreeMap<String, u64>,
}

/// The two operators.
pub(crate) struct Operators {
    api: Arc<Api>,
    destinations: Arc<Vec<Destination>>,
    rng: StdRng,
    count: u64,
    acts: Acts,
}

impl Operators {
    pub(crate) fn new(api: Arc<Api>, destinations: Arc<Vec<Destination>>, rng: StdRng) -> Self {
        Self { api, destinations, rng, count: 0, acts: Acts::default() }
    }

    /// Works until told to stop.
    pub(crate) async fn run(mut self, stop: watch::Receiver<bool>) -> Acts {
        while !*stop.borrow() {
            let class = Class::ALL[self.rng.random_range(0..Class::ALL.len())].letter();
            let list = format!("/api/v1/dead-letters?status=open&type={class}&limit=30");
            if let Reply::Answered(200, body) = self.api.get(self.rng.random_range(0..2), &list).await {
                let letters = body["items"].as_array().cloned().unwrap_or_default();
                for _ in 0..letters.len().min(3) {
                    let letter = &letters[self.rng.random_range(0..letters.len())];
                    if class == Class::Lookup.letter() && self.rng.random_range(0..2) == 0 {
                        self.ask(letter).await;
                    } else if self.rng.random_range(0..6) == 0 {
                        self.resolve(letter).await;
                    } else {
                        self.replay_at_once(letter).await;
                    }
                }
            }
            tokio::time::sleep(Duration::from_millis(self.rng.random_range(100..400))).await;
        }
        self.acts
    }

    /// Both replay it at the same moment, on different nodes; one of them again a little later, when
    /// the engine may be retrying by itself.
    async fn replay_at_once(&mut self, letter: &Value) {
        let Some(id) = letter["id"].as_str() else { return };
        self.count += 3;
        let body = json!({"reason": "the rig has both operators replay it"});
        let ids = [0, 1, 2].map(|more| format!("replay-{}", self.count + more));
        let (first, second) = tokio::join!(
            self.api.act(0, 0, id, "replay", &ids[0], body.clone()),
            self.api.act(1, 1, id, "replay", &ids[1], body.clone()),
        );
        self.acts.pairs += 1;
        self.note(&first, "replay");
        self.note(&second, "replay");
        tokio::time::sleep(Duration::from_millis(self.rng.random_range(0..150))).await;
        let third = self.api.act(0, 0, id, "replay", &ids[2], body.clone()).await;
        self.note(&third, "replay");
        // The same action id again is the first answer again, on whichever node.
        let again = self.api.act(1, 0, id, "replay", &ids[0], body).await;
        self.acts.repeated += 1;
        if let (
            Reply::Answered(before @ (200 | 202 | 409), first),
            Reply::Answered(after @ (200 | 202 | 409), second),
        ) = (&first, &again)
            && (before, first) != (after, second)
        {
            self.api
                .complain(format!("one action id was answered {before} {first} and then {after} {second}"));
        }
    }

    /// Has the destination asked.
    async fn ask(&mut self, letter: &Value) {
        let Some(id) = letter["operation"]["id"].as_str() else { return };
        self.count += 3;
        let node = self.rng.random_range(0..2);
        let reply = self.api.ask(node, id, &format!("ask-{}", self.count)).await;
        self.note(&reply, "question");
        if let Reply::Answered(_, body) = reply
            && let Some(finding) = body["finding"].as_str()
        {
            *self.acts.verdicts.entry(format!("asked: {finding}")).or_default() += 1;
        }
    }

    /// Closes it as an honest operator would: done where the destination has it.
    async fn resolve(&mut self, letter: &Value) {
        let (Some(id), Some(key)) = (letter["id"].as_str(), letter["operation"]["key"].as_str()) else {
            return;
        };
        self.count += 3;
        let body = resolution(&self.destinations, letter, key);
        let reply = self
            .api
            .act(self.rng.random_range(0..2), 1, id, "resolve", &format!("resolve-{}", self.count), body)
            .await;
        self.acts.resolved += u64::from(reply.status() == Some(200));
        self.note(&reply, "resolve");
    }

    fn note(&mut self, reply: &Reply, what: &str) {
        let Reply::Answered(status, body) = reply else { return };
        if !matches!(status, 200 | 202 | 409 | 503) {
            self.api.complain(format!("a {what} was answered {status}: {body}"));
        }
        if let Some(verdict) = body["verdict"].as_str() {
            *self.acts.verdicts.entry(verdict.to_owned()).or_default() += 1;
        }
    }
}

/// How an honest operator closes a dead letter.
pub(crate) fn resolution(destinations: &[Destination], letter: &Value, key: &str) -> Value {
    let kind = letter["operation"]["type"].as_str().unwrap_or_default();
    let there = destinations.iter().find(|known| known.class().letter() == kind);
    match there.and_then(|there| there.reference(key)) {
        Some(reference) => {
            json!({"resolution": "completed_at_destination", "reference": reference, "reason": "seen there"})
        }
        None => json!({"resolution": "not_needed", "reason": "the rig has one closed now and then"}),
    }
}
