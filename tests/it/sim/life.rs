//! One life: what is submitted, what the nodes do, what befalls them, and how it ends.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::engine::Engine;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use uuid::Uuid;

use super::destination::one_of;
use super::faults::{Blow, Ended, live};
use super::node::{Base, Node};
use super::world::{World, config};

/// Something that somebody wants done.
#[derive(Debug)]
pub(super) struct Order {
    pub(super) kind: &'static str,
    /// What it is known as once its sender was told that it is stored.
    pub(super) id: Option<Uuid>,
    /// How often a person had it sent against the checks.
    pub(super) words: usize,
    /// A person's word that a step was done stands in place of the effect.
    pub(super) vouched: bool,
}

/// A node's work as the driver polls it.
pub(super) type Act<T> = Pin<Box<dyn Future<Output = T>>>;

pub(super) struct Life {
    pub(super) world: Arc<World>,
    pub(super) base: Base,
    pub(super) rng: StdRng,
    /// By the key under which they are submitted.
    pub(super) orders: BTreeMap<String, Order>,
    /// Counts what needs a name of its own.
    names: usize,
    nodes: Vec<Node>,
    config: Arc<Config>,
}

/// Nodes that share the database.
const NODES: usize = 2;

impl Life {
    pub(super) async fn begin(base: Base, world: Arc<World>, seed: u64) -> Self {
        let mut life = Self {
            world,
            base,
            rng: StdRng::seed_from_u64(seed),
            orders: BTreeMap::new(),
            names: 0,
            nodes: Vec::new(),
            config: Arc::new(config()),
        };
        for _ in 0..NODES {
            let node = life.a_node().await;
            life.nodes.push(node);
        }
        life
    }

    /// Leads it through so many turns, lets everything recover, and judges what came of it.
    pub(super) async fn lead(mut self, turns: usize) {
        for _ in 0..turns {
            self.turn().await;
        }
        self.recover().await;
        self.judge().await;
        for node in std::mem::take(&mut self.nodes) {
            node.end().await;
        }
    }

    async fn turn(&mut self) {
        match self.rng.random_range(0..24) {
            0..4 => self.submits_anew().await,
            4 => self.submits_again().await,
            5..12 => self.works().await,
            12..16 => {
                let seconds = one_of(&mut self.rng, &[1, 12, 35, 75, 200, 200, 1_000, 9_000]);
                self.passes(Duration::from_secs(seconds));
            }
            16 | 17 => self.thaws().await,
            18 => self.dies().await,
            19 => self.has_it_replayed().await,
            20 | 21 => self.has_it_overridden().await,
            22 => self.closes_a_letter().await,
            _ => match self.rng.random_range(0..4) {
                0 => self.pauses().await,
                1 => self.asks().await,
                _ => self.resumes().await,
            },
        }
    }

    fn passes(&self, span: Duration) {
        self.world.tell(format!("{} s pass", span.as_secs()));
        self.world.clock.advance(span);
    }

    async fn a_node(&mut self) -> Node {
        let seed = self.rng.random();
        Node::start(&self.base, &self.config, &self.world, seed).await
    }

    /// A node that does not stand still, if there is one.
    fn awake(&mut self) -> Option<usize> {
        let awake: Vec<usize> = (0..NODES).filter(|n| self.nodes[*n].frozen.is_none()).collect();
        (!awake.is_empty()).then(|| one_of(&mut self.rng, &awake))
    }

    pub(super) fn a_name(&mut self, what: &str) -> String {
        self.names += 1;
        format!("{what}-{}", self.names)
    }

    pub(super) fn all_stand_still(&self) -> bool {
        self.nodes.iter().all(|node| node.frozen.is_some())
    }

    /// When the node that acts next is killed, if it is.
    fn blow(&mut self) -> Option<Blow> {
        let awaits = self.rng.random_range(0..40);
        let commits = self.rng.random_range(0..4);
        let falls = self.rng.random_bool(0.2) && self.world.lock().trouble > 0.0;
        falls.then_some(Blow { commits: if self.base.repeats() { commits } else { 0 }, awaits })
    }

    async fn replace(&mut self, n: usize) {
        self.world.tell(format!("node {n} is killed; another takes its place"));
        let node = self.a_node().await;
        std::mem::replace(&mut self.nodes[n], node).end().await;
    }

    /// Has a node do something; nothing comes of it where the node is killed meanwhile.
    pub(super) async fn through_a_node<T>(&mut self, act: impl FnOnce(Engine) -> Act<T>) -> Option<T> {
        let n = self.awake()?;
        let blow = self.blow();
        let fate = Arc::clone(&self.nodes[n].fate);
        fate.decree(blow);
        let mut act = act(self.nodes[n].engine.clone());
        let ended = live(&fate, &mut act, self.nodes[n].at_rest()).await;
        drop(act);
        fate.decree(None);
        match ended {
            Ended::Done(value) => Some(value),
            Ended::Killed | Ended::Frozen => {
                self.replace(n).await;
                None
            }
        }
    }

    /// A node does what is due.
    async fn works(&mut self) {
        let Some(n) = self.awake() else { return };
        self.world.tell(format!("node {n} works"));
        let mut worker = self.nodes[n].worker.take().expect("it is awake");
        let round = Box::pin(async move {
            let made = worker.run_until_idle().await;
            (worker, made)
        });
        self.lives(n, round).await;
    }

    async fn lives(&mut self, n: usize, mut round: super::node::Round) {
        let blow = self.blow();
        let fate = Arc::clone(&self.nodes[n].fate);
        fate.decree(blow);
        let ended = live(&fate, &mut round, self.nodes[n].at_rest()).await;
        fate.decree(None);
        match ended {
            Ended::Done((worker, made)) => {
                made.expect("the ledger can be written");
                self.nodes[n].worker = Some(worker);
            }
            Ended::Frozen => {
                self.world.tell(format!("node {n} stands still"));
                self.nodes[n].frozen = Some(round);
            }
            Ended::Killed => {
                drop(round);
                self.replace(n).await;
            }
        }
    }

    /// A node that stood still goes on where it was.
    async fn thaws(&mut self) {
        let Some(n) = (0..NODES).find(|n| self.nodes[*n].frozen.is_some()) else { return };
        let round = self.nodes[n].frozen.take().expect("it stands still");
        self.world.tell(format!("node {n} goes on"));
        self.nodes[n].fate.thaw();
        self.lives(n, round).await;
    }

    async fn dies(&mut self) {
        let n = self.rng.random_range(0..NODES);
        self.replace(n).await;
    }

    /// No trouble any more: everybody who waits for an answer gets one, and what is due is done, as
    /// long as anything falls due.
    async fn recover(&mut self) {
        self.world.tell("all is well from here");
        self.world.calm();
        while self.nodes.iter().any(|node| node.frozen.is_some()) {
            self.thaws().await;
        }
        self.submits_what_is_unanswered().await;
        self.passes(Duration::from_mins(3));
        self.resumes().await;
        for _ in 0..300 {
            self.works().await;
            let Some(due) = self.nodes[0].engine.gate().next_due().await.unwrap() else { return };
            // The slowest clock of all has to come to it.
            let wait = due.since(self.nodes[0].engine.ambient().now()) + 2 * super::world::SKEW;
            self.passes(wait);
        }
        panic!("the work never ends");
    }
}
