//! The real ledger, moved as the model is, and compared with it after every move.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::classify::{Answer, Event, Symptom};
use dead_letter_office::domain::dead_letter::{DeadLetterStatus, Resolution};
use dead_letter_office::domain::lookup::Task as Asked;
use dead_letter_office::domain::time::{TestClock, Timestamp};
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode, Resolve};
use dead_letter_office::gate::Permit;
use dead_letter_office::store::work::NewWork;
use dead_letter_office::store::{Commit, Db, dead_letters};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::runtime::Runtime;
use uuid::Uuid;

use super::model::{End, KINDS, LEASE, Model, Move, TIMEOUT, Task, Verdict};
use crate::support::app::{env, person, request, submission};
use crate::support::databases::TestDatabase;
use crate::support::ledger::Raw;

pub(super) struct System {
    runtime: Runtime,
    engine: Engine,
    clock: Arc<TestClock>,
    raw: Raw,
    operations: Vec<Uuid>,
    permits: Vec<Permit>,
    actions: usize,
    _database: TestDatabase,
}

/// More than there is ever to take.
const SLOTS: usize = 64;

const STATE: &str = "SELECT s.destination || ' ' || o.state || ' ' || CAST(s.attempts AS TEXT) || ' ' || \
    CAST(s.generation AS TEXT) || ' ' || coalesce((SELECT w.task || CASE WHEN w.leased_until IS NULL \
    THEN ':free' ELSE ':held' END FROM work w WHERE w.operation_id = o.id), '-') || ' ' || \
    coalesce((SELECT d.status || ':' || d.certainty FROM dead_letters d \
    WHERE d.operation_id = o.id AND d.closed_at IS NULL), '-') \
    FROM operations o JOIN steps s ON s.operation_id = o.id ORDER BY o.key";

impl System {
    pub(super) fn new(runtime: Runtime, database: TestDatabase) -> Self {
        let clock = Arc::new(TestClock::at(Timestamp::parse("2026-11-29T09:00:00Z").unwrap()));
        let (engine, raw) = runtime.block_on(async {
            let db = Db::open(&database.url).await.unwrap();
            let ambient = Ambient::new(clock.clone(), StdRng::seed_from_u64(1));
            let engine = Engine::new(db, Arc::new(config()), ambient);
            (engine, Raw::open(&database.url).await.unwrap())
        });
        Self {
            runtime,
            engine,
            clock,
            raw,
            operations: Vec::new(),
            permits: Vec::new(),
            actions: 0,
            _database: database,
        }
    }

    fn passes(&self, seconds: u64) {
        self.clock.advance(Duration::from_secs(seconds));
    }

    fn action(&mut self) -> String {
        self.actions += 1;
        format!("action {}", self.actions)
    }

    /// Hands an order in; whether it is new.
    fn submits(&mut self, at: usize, kind: &str) -> bool {
        let key = format!("{at:04}");
        let payload = format!("{{\"order\":\"{key}\"}}");
        let intake = self.engine.intake().clone();
        match self.runtime.block_on(intake.submit(submission(kind, &key, &payload))).unwrap() {
            Accepted::Created(new) => {
                self.operations.push(new.id);
                true
            }
            Accepted::Duplicate(id) => {
                assert_eq!(id, self.operations[at]);
                false
            }
        }
    }

    /// Takes what is due, a first part of it with so few slots.
    fn takes(&mut self, slots: usize) -> Vec<Permit> {
        self.passes(2);
        let gate = self.engine.gate();
        let first = self.runtime.block_on(gate.turn(&mut Vec::new(), slots)).unwrap();
        assert!(first.permits.len() <= slots, "{} permits for {slots} slots", first.permits.len());
        let rest = self.runtime.block_on(gate.turn(&mut Vec::new(), SLOTS)).unwrap();
        let mut permits: Vec<Permit> = first.permits.into_iter().chain(rest.permits).collect();
        permits.sort_by_key(|permit| self.operations.iter().position(|id| *id == permit.operation()));
        permits
    }

    fn settles(&mut self, which: usize, end: End) -> usize {
        let permit = self.permits.remove(which);
        let event = event(end, permit.request().method == "GET");
        let settlement = permit.ended(event, self.engine.ambient().now());
        self.runtime.block_on(self.engine.gate().turn(&mut vec![settlement], 0)).unwrap().settled
    }

    fn replays(&mut self, at: usize) -> VerdictKind {
        let (action, olga) = (self.action(), person("olga", Role::Operator));
        let (gate, id, request) = (self.engine.gate(), self.operations[at], request(&olga, &action));
        self.runtime.block_on(actions::replay(gate, id, &request)).unwrap().verdict
    }

    fn overrides(&mut self, at: usize, mode: OverrideMode) -> VerdictKind {
        let (action, anton) = (self.action(), person("anton", Role::Approver));
        let (gate, id, request) = (self.engine.gate(), self.operations[at], request(&anton, &action));
        self.runtime.block_on(actions::override_checks(gate, id, mode, true, &request)).unwrap().verdict
    }

    fn resolves(&mut self, at: usize, done: bool) -> bool {
        let (action, olga) = (self.action(), person("olga", Role::Operator));
        let resolution = if done { Resolution::CompletedAtDestination } else { Resolution::NotNeeded };
        let (id, gate) = (self.operations[at], self.engine.gate());
        self.runtime.block_on(async {
            let mut tx = gate.db().read().await.unwrap();
            let letters = dead_letters::of_operation(&mut tx, id).await.unwrap();
            drop(tx);
            let Some(letter) = letters.first() else { return false };
            let how = Resolve { resolution, reference: None };
            match actions::resolve(gate, letter.id, &how, &request(&olga, &action)).await {
                Ok(()) => true,
                // It is being asked about.
                Err(ActionError::Busy(_)) => false,
                Err(ActionError::NotOpen(status)) => {
                    assert_ne!(status, DeadLetterStatus::Open);
                    false
                }
                Err(other) => panic!("{other}"),
            }
        })
    }

    fn asks(&mut self, at: usize) -> bool {
        let asked = NewWork {
            operation_id: self.operations[at],
            position: 0,
            destination: String::new(),
            lane: String::new(),
            task: Asked::Ask,
            cause: Cause::Replay,
            requested_by: "olga".to_owned(),
            waived: String::new(),
            at: self.engine.ambient().now(),
        };
        let gate = self.engine.gate();
        self.runtime.block_on(async {
            let mut tx = gate.db().begin().await.unwrap();
            let examined = gate.examine(&mut tx, &asked, Ok(())).await.unwrap().unwrap();
            let put = gate.ask(&mut tx, &examined.facts, &asked).await.unwrap();
            tx.commit(Commit::Action).await.unwrap();
            put
        })
    }

    fn pauses(&self, name: &str, pause: bool) {
        let gate = self.engine.gate();
        self.runtime.block_on(async {
            let mut tx = gate.db().begin().await.unwrap();
            if pause {
                gate.pause(&mut tx, name, "olga", "it is being moved").await.unwrap();
            } else {
                gate.resume(&mut tx, name).await.unwrap();
            }
            tx.commit(Commit::Action).await.unwrap();
        });
    }

    pub(super) fn moves(&mut self, model: &Model, step: &Move) {
        let verdict = |kind: VerdictKind| match kind {
            VerdictKind::Accepted => Verdict::Accepted,
            VerdictKind::AlreadyDone => Verdict::AlreadyDone,
            VerdictKind::InFlight => Verdict::InFlight,
            VerdictKind::LookUpFirst => Verdict::LookUpFirst,
            VerdictKind::NeedsOverride => Verdict::NeedsOverride,
            _ => Verdict::Refused,
        };
        match *step {
            Move::Submit(kind) => {
                let at = model.operations.len() - 1;
                assert!(self.submits(at, kind.name()));
            }
            Move::Repeat(which) => {
                let Some(at) = model.at(which) else { return };
                assert!(!self.submits(at, model.operations[at].kind.name()), "stored twice");
            }
            Move::Take(slots) => {
                let permits = self.takes(slots);
                let had = self.permits.len();
                let wanted: Vec<(Uuid, bool)> = model.permits[had..]
                    .iter()
                    .map(|permit| (self.operations[permit.operation], permit.task != Task::Send))
                    .collect();
                let got: Vec<(Uuid, bool)> = permits
                    .iter()
                    .map(|permit| (permit.operation(), permit.request().method == "GET"))
                    .collect();
                assert_eq!(got, wanted, "who may send, and who may ask");
                self.permits.extend(permits);
            }
            Move::Settle(which, end) => {
                if !self.permits.is_empty() {
                    let settled = self.settles(which % self.permits.len(), end);
                    assert_eq!(settled == 1, model.counted, "whether a settlement counts");
                }
            }
            Move::Lapse => {
                self.passes(LEASE + 1);
                self.runtime.block_on(self.engine.gate().sweep()).unwrap();
            }
            Move::Wait => self.clock_follows(model),
            Move::Replay(which) => {
                if let Some(at) = model.at(which) {
                    assert_eq!(Some(verdict(self.replays(at))), model.verdict);
                }
            }
            Move::SameKey(which) => {
                if let Some(at) = model.at(which) {
                    assert_eq!(Some(verdict(self.overrides(at, OverrideMode::SameKey))), model.verdict);
                }
            }
            Move::NewEffect(which) => {
                if let Some(at) = model.at(which) {
                    assert_eq!(Some(verdict(self.overrides(at, OverrideMode::NewEffect))), model.verdict);
                }
            }
            Move::Resolve(which, done) => {
                if let Some(at) = model.at(which) {
                    assert_eq!(self.resolves(at, done), model.counted, "whether a word counts");
                }
            }
            Move::Ask(which) => {
                if let Some(at) = model.at(which)
                    && model.operations[at].kind.name() == "lookup"
                {
                    assert_eq!(self.asks(at), model.counted, "whether it will be asked");
                }
            }
            Move::Pause(kind) => self.pauses(kind.name(), true),
            Move::Resume(kind) => self.pauses(kind.name(), false),
        }
    }

    /// The model decides whether time may pass.
    fn clock_follows(&self, model: &Model) {
        if !model.anybody_holds() {
            self.passes(LEASE + TIMEOUT);
        }
    }

    pub(super) fn agrees(mut self, model: &Model) -> Self {
        let (told, violations) =
            self.runtime.block_on(async { (self.raw.texts(STATE).await, self.raw.violations().await) });
        let wanted: Vec<String> = model.operations.iter().map(|operation| operation.line()).collect();
        assert_eq!(told, wanted, "what the ledger says, and what must be");
        assert!(violations.is_empty(), "{violations:#?}");
        self
    }
}

fn event(end: End, question: bool) -> Event {
    let says = |status, body: &'static str| {
        Event::Answered(Answer { status, body: body.into(), complete: true, ..Answer::default() })
    };
    match (end, question) {
        (End::Yes, false) => says(201, r#"{"id":"T-1"}"#),
        (End::No, false) => says(422, r#"{"message":"no"}"#),
        (End::Yes, true) => says(200, r#"{"things":[{"id":"T-1"}]}"#),
        (End::No, true) => says(200, r#"{"things":[]}"#),
        (End::Unsent, _) => Event::NoAnswer(Symptom::Connect, "refused".into()),
        (End::Throttled, _) => says(429, ""),
        (End::Lost, _) => Event::NoAnswer(Symptom::TimedOut, "no answer".into()),
    }
}

fn config() -> Config {
    let mut text = String::from(
        "[engine]\nlease = \"60s\"\n[retry]\nattempts = 4\nmax_age = \"1000h\"\nfirst_delay = \"1s\"\nfactor = 1.0\nmax_delay = \"1s\"\n",
    );
    for kind in KINDS {
        let (name, promise) = (
            kind.name(),
            match kind.name() {
                "keyed" => "key = { header = \"Idempotency-Key\", window = \"2000h\" }",
                "upsert" => "naturally_idempotent = true",
                "lookup" => "lookup = { path = \"/things?ref={{ key }}\", found = \"/things/0\" }",
                _ => "",
            },
        );
        text += &format!(
            "[destinations.{name}]\nbase_url = \"https://{name}.example\"\ntimeout = \"1s\"\nconnect_timeout = \"500ms\"\n\
             limit = {{ retries_per_minute = 1000000 }}\nbreaker = {{ failures = 1000000 }}\n{promise}\n\
             [operations.{name}]\n[[operations.{name}.steps]]\nname = \"make\"\ndestination = \"{name}\"\n\
             method = \"POST\"\npath = \"/things\"\n"
        );
    }
    Config::read(Path::new("dlo.toml"), &text, &env).unwrap_or_else(|mistakes| panic!("{mistakes}"))
}
