//! The product's inside on a real database, against a real destination, with a clock that stands
//! still until a test moves it.

use std::path::Path;
use std::sync::{Arc, LazyLock};
use std::time::Duration;

use dead_letter_office::accounts::By;
use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::UnreliableDestination;
use dead_letter_office::domain::actor::{Actor, Role, Standing};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::time::{TestClock, Timestamp};
use dead_letter_office::domain::verdict::Verdict;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, Submission, SubmitError};
use dead_letter_office::engine::actions::{self, ActionError, Request};
use dead_letter_office::engine::thread::Thread;
use dead_letter_office::engine::worker::Worker;
use dead_letter_office::store::Db;
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::databases::TestDatabase;
use super::ledger::Leftovers;

/// Three types of operation, one for each kind of destination.
pub(crate) const KINDS: [&str; 3] = ["keyed", "lookup", "plain"];

pub(crate) struct TestApp {
    pub(crate) engine: Engine,
    pub(crate) worker: Worker,
    pub(crate) destination: UnreliableDestination,
    pub(crate) clock: Arc<TestClock>,
    /// Fails a test that ends with an attempt under way; before the database, which it looks into.
    _leftovers: Leftovers,
    pub(crate) database: TestDatabase,
    pub(super) more: String,
}

impl TestApp {
    pub(crate) async fn start(database: TestDatabase) -> Self {
        Self::configured(database, "").await
    }

    /// With more lines for the configuration's end, in which `{destination}` stands for the address.
    pub(crate) async fn configured(database: TestDatabase, more: &str) -> Self {
        install_crypto();
        let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
        let clock = Arc::new(TestClock::at(Timestamp::parse("2026-11-29T09:00:00Z").unwrap()));
        let engine = engine(&database.url, &destination.base_url(), Arc::clone(&clock), 1, more).await;
        let worker = engine.worker().unwrap();
        Self {
            engine,
            worker,
            destination,
            clock,
            _leftovers: Leftovers::of(&database.url),
            database,
            more: more.to_owned(),
        }
    }

    /// Another node on the same database.
    pub(crate) async fn another_node(&self, seed: u64) -> Engine {
        engine(&self.database.url, &self.destination.base_url(), Arc::clone(&self.clock), seed, &self.more)
            .await
    }

    pub(crate) async fn try_submit(
        &self,
        kind: &str,
        key: &str,
        payload: &str,
    ) -> Result<Accepted, SubmitError> {
        self.engine.intake().submit(submission(kind, key, payload)).await
    }

    /// A new operation under a key.
    pub(crate) async fn submit(&self, kind: &str, key: &str) -> Uuid {
        let payload =
            format!(r#"{{"order_id":"{key}","customer_id":"C-7","email":"anna@example.com","amount":1250}}"#);
        match self.try_submit(kind, key, &payload).await.unwrap() {
            Accepted::Created(new) => new.id,
            Accepted::Duplicate(_) => panic!("{key} was there already"),
        }
    }

    pub(crate) async fn run_until_idle(&mut self) -> usize {
        self.worker.run_until_idle().await.unwrap()
    }

    /// Lets time pass in steps and works through what falls due.
    pub(crate) async fn run_for(&mut self, span: Duration) {
        let step = Duration::from_secs(5);
        let mut passed = Duration::ZERO;
        self.run_until_idle().await;
        while passed < span {
            self.clock.advance(step);
            passed += step;
            self.run_until_idle().await;
        }
    }

    pub(crate) async fn thread(&self, operation: Uuid) -> Thread {
        let mut tx = self.engine.db().read().await.unwrap();
        Thread::load(&mut tx, operation).await.unwrap().expect("the operation")
    }

    pub(crate) async fn state(&self, operation: Uuid) -> OperationState {
        self.thread(operation).await.operation.state()
    }

    pub(crate) async fn replay(&self, operation: Uuid, action_id: &str) -> Result<Verdict, ActionError> {
        self.replay_as(&person("olga", Role::Operator), operation, action_id).await
    }

    pub(crate) async fn replay_as(
        &self,
        actor: &Actor,
        operation: Uuid,
        action_id: &str,
    ) -> Result<Verdict, ActionError> {
        actions::replay(self.engine.gate(), operation, &request(actor, action_id)).await
    }
}

pub(crate) fn request<'a>(actor: &'a Actor, action_id: &'a str) -> Request<'a> {
    Request { actor, action_id, reason: "the CRM is back", origin: "127.0.0.1" }
}

/// What somebody at the server's terminal does.
pub(crate) fn by_root() -> By<'static> {
    static ROOT: LazyLock<Actor> = LazyLock::new(|| Actor::Cli { user: "root".into() });
    By { actor: &ROOT, origin: "cli" }
}

pub(crate) fn person(name: &str, role: impl Into<Standing>) -> Actor {
    Actor::Person { name: name.to_owned(), role: role.into() }
}

pub(crate) fn submission(kind: &str, key: &str, payload: &str) -> Submission {
    Submission {
        kind: kind.to_owned(),
        payload: RawValue::from_string(payload.to_owned()).unwrap(),
        key: Some(key.to_owned()),
        correlation_id: Some(format!("corr-{key}")),
        source: Some("shop".to_owned()),
        by: "token:shop".to_owned(),
    }
}

/// An environment that holds a secret key and nothing else.
pub(crate) fn env(name: &str) -> Option<String> {
    (name == "DLO_SECRET_KEY").then(|| "only for tests ".repeat(4))
}

/// TLS wants to be told once which cryptography to use.
pub(crate) fn install_crypto() {
    let _ = rustls::crypto::ring::default_provider().install_default();
}

async fn engine(database: &str, destination: &str, clock: Arc<TestClock>, seed: u64, more: &str) -> Engine {
    let config = Arc::new(config(database, destination, more));
    let db = Db::open(database).await.unwrap();
    Engine::new(db, config, Ambient::new(clock, StdRng::seed_from_u64(seed)))
}

pub(crate) fn config(database: &str, destination: &str, more: &str) -> Config {
    let destinations: String = KINDS
        .iter()
        .map(|kind| {
            let contract = match *kind {
                "keyed" => r#"key = { header = "Idempotency-Key", window = "24h" }"#,
                "lookup" => {
                    r#"lookup = { path = "/tickets?external_ref={{ key }}", found = "/tickets/0", reference = "/tickets/0/id" }"#
                }
                _ => "",
            };
            format!(
                r#"
[destinations.{kind}]
base_url = "{destination}/{kind}"
timeout = "300ms"
connect_timeout = "200ms"
headers = {{ Authorization = "Bearer planted-credential" }}
{contract}
[operations.{kind}]
search = {{ customer = "/customer_id", order = "/order_id" }}
mask = ["/email"]
[[operations.{kind}.steps]]
name = "create ticket"
destination = "{kind}"
method = "POST"
path = "/tickets"
body = {{ order = "{{{{ payload.order_id }}}}", external_ref = "{{{{ key }}}}", raised_at = "{{{{ received_at }}}}" }}
reference = "/id"
effect = "A ticket"
"#
            )
        })
        .collect();
    let more = more.replace("{destination}", destination);
    let text = format!(
        r#"
[server]
database_url = "{database}"
allow_private_destinations = true
[engine]
lease = "60s"
[retry]
attempts = 5
max_age = "30m"
first_delay = "10s"
factor = 3.0
max_delay = "15m"
{destinations}
{more}
"#
    );
    Config::read(Path::new("dlo.toml"), &text, &env).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}
