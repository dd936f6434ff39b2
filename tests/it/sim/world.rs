//! What all nodes of a life share: the time, the destinations, chance, and the chronicle.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::domain::time::{Clock, TestClock, Timestamp};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use super::destination::{Destinations, Plan};

use crate::support::app::env;

/// How long a worker may hold its work without a word.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// The longest that an exchange with any destination takes.
pub(super) const TIMEOUT: Duration = Duration::from_secs(10);

/// A request that was held up for this long before it arrived comes too late for any promise: some
/// node may have taken its lease for over, and the question that came to nothing may have been asked.
pub(super) const TOO_LATE: Duration = Duration::from_secs(40);

/// How far a node's clock is off at most, either way.
pub(super) const SKEW: Duration = Duration::from_secs(5);

/// Kinds of destinations, each with an operation type of one step; `pair` has two steps.
pub(super) const KINDS: [&str; 6] = ["keyed", "upsert", "lookup", "both", "plain", "pair"];

/// Everything outside the nodes.
pub(super) struct World {
    pub(super) clock: Arc<TestClock>,
    state: Mutex<State>,
}

pub(super) struct State {
    pub(super) destinations: Destinations,
    /// Decides what becomes of requests.
    pub(super) rng: StdRng,
    /// How likely a request meets trouble; zero once the life is over.
    pub(super) trouble: f64,
    pub(super) chronicle: Vec<String>,
}

impl World {
    pub(super) fn new(seed: u64) -> Self {
        let mut rng = StdRng::seed_from_u64(seed ^ 0x5eed);
        let trouble = rng.random_range(0.1..0.8);
        let start = Timestamp::parse("2026-11-29T09:00:00Z").unwrap();
        Self {
            clock: Arc::new(TestClock::at(start)),
            state: Mutex::new(State {
                destinations: Destinations::default(),
                rng,
                trouble,
                chronicle: Vec::new(),
            }),
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// From now on requests meet no trouble.
    pub(super) fn calm(&self) {
        self.lock().trouble = 0.0;
    }

    /// What becomes of the next request.
    pub(super) fn plan(&self, question: bool) -> Plan {
        let mut state = self.lock();
        let trouble = state.trouble;
        if state.rng.random_bool(trouble) { Plan::drawn(&mut state.rng, question) } else { Plan::Ok }
    }

    /// Notes what happened, for whoever reads a life that went wrong.
    pub(super) fn tell(&self, text: impl Into<String>) {
        let line = format!("{} {}", self.now(), text.into());
        self.lock().chronicle.push(line);
    }

    pub(super) fn chronicle(&self) -> Vec<String> {
        self.lock().chronicle.clone()
    }
}

/// The configuration of every node.
pub(super) fn config() -> Config {
    let mut text = String::from(
        r#"
[engine]
lease = "60s"
concurrency = 4
[retry]
attempts = 5
max_age = "30m"
first_delay = "10s"
factor = 3.0
max_delay = "15m"
"#,
    );
    for (kind, promise) in [
        ("keyed", r#"key = { header = "Idempotency-Key", window = "2h" }"#.to_owned()),
        ("upsert", "naturally_idempotent = true".to_owned()),
        ("lookup", LOOKUP.to_owned()),
        ("both", format!("key = {{ header = \"Idempotency-Key\", window = \"5m\" }}\n{LOOKUP}")),
        ("plain", String::new()),
    ] {
        text += &format!(
            "[destinations.{kind}]\nbase_url = \"https://{kind}.example\"\ntimeout = \"10s\"\nconnect_timeout = \"5s\"\n{promise}\n"
        );
        text += &format!("[operations.{kind}]\n{}", step(kind, kind, "make", ""));
    }
    text += "[operations.pair]\n";
    text += &step("pair", "lookup", "reserve", "save = { id = \"/id\" }\n");
    text += &step("pair", "plain", "make", "");
    Config::read(std::path::Path::new("dlo.toml"), &text, &env)
        .unwrap_or_else(|mistakes| panic!("{mistakes}\n{text}"))
}

const LOOKUP: &str = r#"lookup = { path = "/things?ref={{ key }}", found = "/things/0", reference = "/things/0/id", max_lag = "2m" }"#;

fn step(kind: &str, destination: &str, name: &str, more: &str) -> String {
    let method = if destination == "upsert" { "PUT" } else { "POST" };
    format!(
        r#"[[operations.{kind}.steps]]
name = "{name}"
destination = "{destination}"
method = "{method}"
path = "/things"
body = {{ ref = "{{{{ key }}}}", order = "{{{{ payload.order }}}}", step = "{name}" }}
reference = "/id"
{more}"#
    )
}
