//! Random lives of operations against what must hold in every one of them.

use std::collections::HashMap;
use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::{Cause, Outcome};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::{ActionError, OverrideMode};
use dead_letter_office::engine::correct::{self, CorrectError, Correction};
use dead_letter_office::gate::Settlement;
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::support::app::{KINDS, TestApp, person, request};
use crate::support::databases::TestDatabase;
use crate::support::lives;

/// One random life. Its seed is in every message.
struct Life {
    app: TestApp,
    rng: StdRng,
    seed: u64,
    operations: Vec<(&'static str, Uuid)>,
    /// What lost workers still hold.
    held: Vec<Settlement>,
    /// How often each operation was overridden.
    overridden: HashMap<Uuid, usize>,
    actions: usize,
}

impl Life {
    async fn lead(db: TestDatabase, seed: u64, moves: usize) {
        let app = TestApp::start(db).await;
        let rng = StdRng::seed_from_u64(seed);
        let mut life = Self {
            app,
            rng,
            seed,
            operations: Vec::new(),
            held: Vec::new(),
            overridden: HashMap::new(),
            actions: 0,
        };
        for _ in 0..moves {
            life.turn().await;
            life.check().await;
        }
        life.app.clock.advance(Duration::from_mins(2));
        life.app.resume_all().await;
        life.app.run_to_the_end().await;
        for settlement in std::mem::take(&mut life.held) {
            life.app.settle(settlement).await;
        }
        life.check().await;
    }

    fn pick(&mut self) -> Option<(&'static str, Uuid)> {
        let count = self.operations.len();
        (count > 0).then(|| self.operations[self.rng.random_range(0..count)])
    }

    fn action_id(&mut self) -> String {
        self.actions += 1;
        format!("action {}", self.actions)
    }

    fn behaviour(&mut self) -> Behaviour {
        let effect = self.rng.random_bool(0.5);
        match self.rng.random_range(0..13) {
            0..3 => Behaviour::Ok,
            3 | 4 => Behaviour::CloseAfterRead { effect },
            5 => Behaviour::ResetAfterRead { effect },
            6 => Behaviour::Garbage { effect },
            7 => Behaviour::CutBody { effect: true },
            8 => Behaviour::StatusAfterEffect(500),
            9 => Behaviour::retry_after(429, 20),
            10 => Behaviour::status(422),
            11 => Behaviour::status(421),
            _ => Behaviour::status(401),
        }
    }

    async fn turn(&mut self) {
        let which = self.rng.random_range(0..14);
        let Some((kind, id)) = self.pick().filter(|_| which > 2) else {
            let kind = KINDS[self.rng.random_range(0..KINDS.len())];
            let behaviours: Vec<Behaviour> =
                (0..self.rng.random_range(1..4)).map(|_| self.behaviour()).collect();
            self.app.destination.script(&format!("/{kind}"), behaviours);
            let key = format!("order-{}", self.operations.len());
            self.operations.push((kind, self.app.submit(kind, &key).await));
            return;
        };
        match which {
            3 | 4 => {
                self.app.run_until_idle().await;
            }
            5 | 6 => {
                let seconds = [1, 15, 70, 400, 7_200, 90_000][self.rng.random_range(0..6)];
                self.app.clock.advance(Duration::from_secs(seconds));
                self.app.run_until_idle().await;
            }
            7 => {
                let action = self.action_id();
                let verdict = self.app.replay(id, &action).await.unwrap();
                let again = self.app.replay(id, &action).await.unwrap();
                assert_eq!(verdict, again, "seed {}", self.seed);
            }
            8 => {
                let mode =
                    if self.rng.random_bool(0.5) { OverrideMode::SameKey } else { OverrideMode::NewEffect };
                let action = self.action_id();
                let verdict = self.app.override_checks(id, mode, &action).await;
                if verdict.verdict == VerdictKind::Accepted {
                    *self.overridden.entry(id).or_default() += 1;
                }
            }
            9 => {
                let Some(letter) = self.app.thread(id).await.letters.first().map(|letter| letter.id) else {
                    return;
                };
                let resolution = Resolution::ALL[self.rng.random_range(0..Resolution::ALL.len())];
                let action = self.action_id();
                match self.app.resolve(letter, resolution, None, &action).await {
                    Ok(()) | Err(ActionError::NotOpen(_)) => {}
                    Err(other) => panic!("seed {}: {kind}: {other}", self.seed),
                }
            }
            10 => self.lose_a_worker(id).await,
            11 => {
                self.app.resume_all().await;
            }
            12 => self.correct(kind, id).await,
            _ => {
                if let Some(settlement) = self.held.pop() {
                    self.app.settle(settlement).await;
                }
            }
        }
    }

    /// Somebody hands in other data in an operation's place, where that is allowed.
    async fn correct(&mut self, kind: &'static str, id: Uuid) {
        let key = format!("order-{}", self.operations.len());
        let payload = RawValue::from_string(format!(r#"{{"order_id":"{key}"}}"#)).unwrap();
        let action = self.action_id();
        let actor = person("olga", Role::Operator);
        let correction = Correction { payload, key: Some(key) };
        let gate = self.app.engine.gate();
        match correct::correct(gate, id, correction, &request(&actor, &action)).await {
            Ok(new) => self.operations.push((kind, new)),
            Err(CorrectError::Stands(_)) => {}
            Err(other) => panic!("seed {}: {kind} {id}: {other}", self.seed),
        }
    }

    /// A worker takes its permit, and is held up before or after it sent.
    async fn lose_a_worker(&mut self, id: Uuid) {
        let admission = self.app.engine.gate().admit(id).await.unwrap();
        let Some(permit) = admission.and_then(dead_letter_office::gate::Admission::into_permit) else {
            return;
        };
        if self.rng.random_bool(0.7) {
            let settlement = self.app.send(permit).await;
            self.held.push(settlement);
        }
        if self.rng.random_bool(0.7) {
            self.app.clock.advance(Duration::from_secs(61));
            self.app.run_until_idle().await;
        }
    }

    async fn check(&self) {
        let seed = self.seed;
        let violations = self.app.raw().await.violations().await;
        assert!(violations.is_empty(), "seed {seed}: {violations:?}");
        let mut effects: HashMap<String, usize> = HashMap::new();
        for effect in self.app.destination.effects() {
            if effect.path.starts_with("/keyed/") {
                *effects.entry(effect.key.expect("a key")).or_default() += 1;
            }
        }
        assert!(effects.values().all(|count| *count == 1), "seed {seed}: {effects:?}");
        for (kind, id) in &self.operations {
            self.no_effect_of_what_was_corrected(kind, *id).await;
            match *kind {
                "keyed" => {}
                "lookup" => self.one_effect_a_word(*id).await,
                _ => self.no_resend_without_a_word(kind, *id).await,
            }
        }
    }

    /// Only what cannot have happened is corrected, and it never happens afterwards.
    async fn no_effect_of_what_was_corrected(&self, kind: &str, id: Uuid) {
        let operation = self.app.thread(id).await.operation;
        if operation.corrected_by.is_some() {
            let made = self.effects_of(kind, &operation.key);
            assert_eq!(made, 0, "seed {}: {kind} {id} was corrected and happened", self.seed);
        }
    }

    fn effects_of(&self, kind: &str, key: &str) -> usize {
        let (place, order) = (format!("/{kind}/"), format!("{key:?}"));
        let of_order = |body: &[u8]| String::from_utf8_lossy(body).contains(&order);
        let effects = self.app.destination.effects();
        effects.iter().filter(|effect| effect.path.starts_with(&place) && of_order(&effect.body)).count()
    }

    /// Where the destination can be asked, there is one effect, and one more for each override.
    async fn one_effect_a_word(&self, id: Uuid) {
        let key = self.app.thread(id).await.operation.key;
        let made = self.effects_of("lookup", &key);
        let words = self.overridden.get(&id).copied().unwrap_or_default();
        assert!(made <= 1 + words, "seed {}: {id} had {made} effects for {words} words", self.seed);
    }

    /// After an uncertain attempt only an override sends again, and each override only once.
    async fn no_resend_without_a_word(&self, kind: &str, id: Uuid) {
        let thread = self.app.thread(id).await;
        let mut sent = thread.attempts;
        sent.retain(|attempt| attempt.outcome != Outcome::Skipped);
        // The clock stands still between moves, so that times have no order.
        sent.sort_by_key(|attempt| attempt.number);
        let mut resends = 0;
        for attempt in sent.into_iter().skip_while(|attempt| attempt.outcome != Outcome::Uncertain).skip(1) {
            assert_eq!(attempt.cause, Cause::Override, "seed {}: {kind} {id}", self.seed);
            resends +=
                usize::from(attempt.outcome != Outcome::Throttled && attempt.outcome != Outcome::NotSent);
        }
        let words = self.overridden.get(&id).copied().unwrap_or_default();
        assert!(
            resends <= words,
            "seed {}: {kind} {id} was sent {resends} times for {words} words",
            self.seed
        );
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_lives_keep_every_promise_on_sqlite() {
    for seed in 0..u64::from(lives(20)) {
        Life::lead(TestDatabase::sqlite(), seed, 60).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn random_lives_keep_every_promise_on_postgres() {
    // A move takes several times as long here.
    for seed in 0..u64::from(lives(20) / 5) {
        Life::lead(TestDatabase::postgres().await, seed, 50).await;
    }
}
