//! One process: the product's engine and worker over connections of its own, and what carries its
//! requests.

use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::classify::{Answer, Event, Symptom};
use dead_letter_office::domain::time::{Clock, Timestamp};
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::worker::{Carry, Worker};
use dead_letter_office::gate::{GateError, Permit, Settlement};
use dead_letter_office::store::{Db, Pools};
use rand::SeedableRng;
use rand::rngs::StdRng;
use sqlx::sqlite::{SqliteConnectOptions, SqliteJournalMode, SqlitePoolOptions, SqliteSynchronous};
use tokio::sync::Notify;

use super::destination::{Plan, Where, bare};
use super::faults::Fate;
use super::world::{LEASE, SKEW, TIMEOUT, TOO_LATE, World};
use crate::support::databases::TestDatabase;

/// What a worker's round ends with: the worker, to go on with.
pub(super) type Round = Pin<Box<dyn Future<Output = (Worker<Carrier>, Result<usize, GateError>)>>>;

/// A process that is up.
pub(super) struct Node {
    pub(super) engine: Engine,
    pub(super) fate: Arc<Fate>,
    /// Absent while it is out in a round.
    pub(super) worker: Option<Worker<Carrier>>,
    /// The round in which it stands still.
    pub(super) frozen: Option<Round>,
}

impl Node {
    pub(super) async fn start(base: &Base, config: &Arc<Config>, world: &Arc<World>, seed: u64) -> Self {
        let fate = Arc::new(Fate::default());
        let db = base.open(&fate).await;
        let skew = Duration::from_micros(seed % (2 * SKEW.as_micros() as u64));
        let clock = NodeClock { world: Arc::clone(world), ahead: skew };
        let ambient = Ambient::new(Arc::new(clock), StdRng::seed_from_u64(seed));
        let engine = Engine::new(db, Arc::clone(config), ambient);
        let carrier =
            Carrier { world: Arc::clone(world), fate: Arc::clone(&fate), ambient: engine.ambient().clone() };
        let worker = Worker::new(engine.gate().clone(), Arc::new(carrier), Arc::new(Notify::new()));
        Self { engine, fate, worker: Some(worker), frozen: None }
    }

    /// Whether it has no transaction open.
    pub(super) fn at_rest(&self) -> impl Fn() -> bool + use<> {
        let db = self.engine.db().clone();
        move || match &db.pools {
            Pools::Sqlite { write, .. } => write.num_idle() == write.size() as usize,
            Pools::Postgres(pool) => pool.num_idle() == pool.size() as usize,
        }
    }

    /// Ends it: what it had in memory is gone, and its connections with their transactions are closed.
    pub(super) async fn end(self) {
        let Self { engine, worker, frozen, .. } = self;
        let db = engine.db().clone();
        drop((engine, worker, frozen));
        db.close().await;
    }
}

/// A clock that is a little off.
struct NodeClock {
    world: Arc<World>,
    /// Beyond the slowest of all clocks.
    ahead: Duration,
}

impl Clock for NodeClock {
    fn now(&self) -> Timestamp {
        self.world.now().plus(self.ahead).minus(SKEW)
    }
}

/// Carries requests to the destinations of this world.
pub(super) struct Carrier {
    world: Arc<World>,
    fate: Arc<Fate>,
    ambient: Ambient,
}

impl Carry for Carrier {
    async fn carry(&self, permit: Permit) -> Settlement {
        let began = self.world.now();
        let question = permit.request().method == "GET";
        let plan = self.world.plan(question);
        self.world.tell(format!(
            "{} {} to {}: {plan:?}",
            permit.request().method,
            permit.request().body.as_deref().unwrap_or(&permit.request().url),
            permit.destination()
        ));
        let event = self.fares(&permit, plan, began).await;
        permit.ended(event, self.ambient.now())
    }
}

impl Carrier {
    async fn fares(&self, permit: &Permit, plan: Plan, began: Timestamp) -> Event {
        match plan {
            Plan::Ok => Event::Answered(self.arrives(permit, began)),
            Plan::Unsent(symptom) => Event::NoAnswer(symptom, "it did not leave".into()),
            Plan::Lost { symptom, effect } => {
                if effect {
                    self.arrives(permit, began);
                }
                Event::NoAnswer(symptom, "no answer".into())
            }
            Plan::Says { status, effect, wait } => {
                if effect {
                    self.arrives(permit, began);
                }
                bare(status, wait)
            }
            Plan::CutBody => {
                let answer = self.arrives(permit, began);
                Event::Answered(Answer { complete: false, body: answer.body.slice(..3), ..answer })
            }
            Plan::Freezes(Where::AfterArrival) => {
                let answer = self.arrives(permit, began);
                self.fate.freeze().await;
                Event::Answered(answer)
            }
            Plan::Freezes(place) => {
                self.fate.freeze().await;
                let held_up = self.world.now().since(began);
                // What the sender asks a clock that never stands still, just before the bytes leave.
                if place == Where::BeforeLooking && held_up > LEASE.saturating_sub(TIMEOUT) {
                    return Event::NoAnswer(Symptom::LostBeforeSending, "the lease was nearly over".into());
                }
                Event::Answered(self.arrives(permit, began))
            }
            Plan::Crashes(place) => {
                if place == Where::AfterArrival {
                    self.arrives(permit, began);
                }
                self.fate.kill();
                std::future::pending().await
            }
        }
    }

    /// The request arrives and is answered.
    fn arrives(&self, permit: &Permit, began: Timestamp) -> Answer {
        let now = self.world.now();
        let late = now.since(began) > TOO_LATE;
        let mut state = self.world.lock();
        let state = &mut *state;
        let before = state.destinations.effects.len();
        let answer =
            state.destinations.takes(permit.destination(), permit.request(), now, late, &mut state.rng);
        if let Some(made) = state.destinations.effects.get(before) {
            let line = format!("{now} happens: {}", made.line());
            state.chronicle.push(line);
        }
        answer
    }
}

/// Where the nodes of a life keep what they know.
pub(super) struct Base(TestDatabase);

impl Base {
    pub(super) async fn new(sqlite: bool) -> Self {
        Self(if sqlite { TestDatabase::sqlite() } else { TestDatabase::postgres().await })
    }

    pub(super) fn url(&self) -> &str {
        &self.0.url
    }

    /// Whether the awaits of a node come in the same order whenever a life is led.
    pub(super) fn repeats(&self) -> bool {
        self.0.file().is_some()
    }

    /// Connections of one node's own. On SQLite they ask its fate before each commit, and do not wait
    /// for the disk: what a killed process has written survives it.
    async fn open(&self, fate: &Arc<Fate>) -> Db {
        let Some(file) = self.0.file() else { return Db::open(self.url()).await.unwrap() };
        let options = SqliteConnectOptions::new()
            .filename(file)
            .journal_mode(SqliteJournalMode::Wal)
            .synchronous(SqliteSynchronous::Off)
            .busy_timeout(Duration::from_secs(10))
            .statement_cache_capacity(1024);
        let fate = Arc::clone(fate);
        let write = SqlitePoolOptions::new()
            .max_connections(1)
            .after_connect(move |connection, _| {
                let fate = Arc::clone(&fate);
                Box::pin(async move {
                    connection.lock_handle().await?.set_commit_hook(move || fate.commits());
                    Ok(())
                })
            })
            .connect_lazy_with(options.clone());
        let read = SqlitePoolOptions::new().max_connections(1).connect_lazy_with(options.read_only(true));
        Pools::Sqlite { write, read }.into()
    }
}
