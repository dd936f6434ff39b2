//! What senders and support staff do, whatever becomes of the node that they do it through: who gets
//! no answer does the same again.

use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::dead_letter::{DeadLetterStatus, Resolution};
use dead_letter_office::domain::lookup::Task;
use dead_letter_office::domain::verdict::{Verdict, VerdictKind};
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, SubmitError};
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode, Resolve};
use dead_letter_office::store::Commit;
use dead_letter_office::store::dead_letters;
use dead_letter_office::store::work::NewWork;
use rand::RngExt;
use uuid::Uuid;

use super::destination::one_of;
use super::life::{Act, Life, Order};
use super::world::KINDS;
use crate::support::app::{person, request, submission};

impl Life {
    pub(super) async fn submits_anew(&mut self) {
        let kind = one_of(&mut self.rng, &KINDS);
        let key = self.a_name(kind);
        self.orders.insert(key.clone(), Order { kind, id: None, words: 0, vouched: false });
        self.submits(&key).await;
    }

    /// A known order comes again, mostly as it was.
    pub(super) async fn submits_again(&mut self) {
        let Some(key) = self.an_order() else { return };
        if self.rng.random_bool(0.7) {
            return self.submits(&key).await;
        }
        let kind = self.orders[&key].kind;
        let answer = self.hands_in(kind, key.clone(), "{\"order\":\"another\"}".to_owned()).await;
        match answer {
            None => {}
            Some(Err(SubmitError::KeyReused { first, .. })) => {
                let known = *self.orders.get_mut(&key).unwrap().id.get_or_insert(first);
                assert_eq!(known, first, "{key} is another operation now");
            }
            // The order itself never came through; this one has its key.
            Some(Ok(Accepted::Created(_))) => {
                self.orders.remove(&key);
            }
            Some(other) => panic!("{key} with other data: {other:?}"),
        }
    }

    pub(super) async fn submits_what_is_unanswered(&mut self) {
        let unanswered: Vec<String> =
            self.orders.iter().filter(|(_, order)| order.id.is_none()).map(|(key, _)| key.clone()).collect();
        for key in unanswered {
            self.submits(&key).await;
        }
    }

    async fn submits(&mut self, key: &str) {
        let kind = self.orders[key].kind;
        let answer = self.hands_in(kind, key.to_owned(), format!("{{\"order\":\"{key}\"}}")).await;
        let Some(answer) = answer else { return };
        let (id, new) = match answer {
            Ok(Accepted::Created(new)) => (new.id, true),
            Ok(Accepted::Duplicate(id)) => (id, false),
            // Other data took its key before it came through, and nobody heard.
            Err(SubmitError::KeyReused { .. }) if self.orders[key].id.is_none() => {
                self.orders.remove(key);
                return;
            }
            Err(other) => panic!("{key} is not stored: {other}"),
        };
        self.world.tell(format!("{key} is stored as {id}"));
        let order = self.orders.get_mut(key).unwrap();
        assert!(!new || order.id.is_none(), "{key} was stored, and is stored a second time");
        assert_eq!(*order.id.get_or_insert(id), id, "{key} is another operation now");
    }

    async fn hands_in(
        &mut self,
        kind: &'static str,
        key: String,
        payload: String,
    ) -> Option<Result<Accepted, SubmitError>> {
        self.through_a_node(move |engine| {
            Box::pin(async move { engine.intake().submit(submission(kind, &key, &payload)).await })
        })
        .await
    }

    fn an_order(&mut self) -> Option<String> {
        let count = self.orders.len();
        (count > 0).then(|| {
            let which = self.rng.random_range(0..count);
            self.orders.keys().nth(which).unwrap().clone()
        })
    }

    /// An order whose sender knows that it is stored.
    fn a_stored_order(&mut self) -> Option<(String, Uuid)> {
        let key = self.an_order()?;
        let id = self.orders[&key].id?;
        Some((key, id))
    }

    /// Does it until there is an answer: through another node, under the same action id, whenever
    /// the last was killed meanwhile.
    async fn insists<T>(&mut self, act: impl Fn(Engine) -> Act<T>) -> Option<T> {
        for _ in 0..20 {
            if let Some(answer) = self.through_a_node(&act).await {
                return Some(answer);
            }
        }
        None
    }

    pub(super) async fn has_it_replayed(&mut self) {
        let (Some((key, id)), action) = (self.a_stored_order(), self.a_name("action")) else { return };
        let verdict = self
            .insists(move |engine| {
                let action = action.clone();
                Box::pin(async move {
                    let olga = person("olga", Role::Operator);
                    actions::replay(engine.gate(), id, &request(&olga, &action)).await
                })
            })
            .await;
        self.heard(&key, "replay", verdict);
    }

    pub(super) async fn has_it_overridden(&mut self) {
        let (Some((key, id)), action) = (self.a_stored_order(), self.a_name("action")) else { return };
        if self.all_stand_still() {
            return;
        }
        let mode = one_of(&mut self.rng, &[OverrideMode::SameKey, OverrideMode::NewEffect]);
        let verdict = self
            .insists(move |engine| {
                let action = action.clone();
                Box::pin(async move {
                    let anton = person("anton", Role::Approver);
                    let request = request(&anton, &action);
                    actions::override_checks(engine.gate(), id, mode, true, &request).await
                })
            })
            .await;
        match self.heard(&key, mode.as_str(), verdict) {
            Some(VerdictKind::Accepted) => self.orders.get_mut(&key).unwrap().words += 1,
            // Nobody heard the answer: it may have been accepted.
            None => panic!("{key}: no node answers"),
            Some(_) => {}
        }
    }

    fn heard(
        &self,
        key: &str,
        what: &str,
        answer: Option<Result<Verdict, ActionError>>,
    ) -> Option<VerdictKind> {
        let verdict = answer?.expect("an action gets a verdict").verdict;
        self.world.tell(format!("{what} of {key}: {verdict}"));
        Some(verdict)
    }

    pub(super) async fn closes_a_letter(&mut self) {
        let (Some((key, id)), action) = (self.a_stored_order(), self.a_name("action")) else { return };
        let resolution = one_of(&mut self.rng, Resolution::ALL);
        let answer = self
            .insists(move |engine| {
                let action = action.clone();
                Box::pin(async move {
                    let mut tx = engine.db().read().await.unwrap();
                    let letters = dead_letters::of_operation(&mut tx, id).await.unwrap();
                    drop(tx);
                    // After a lost answer it is closed, and the same word gets the same answer.
                    let letter =
                        letters.iter().find(|l| l.status == DeadLetterStatus::Open).or(letters.first());
                    let letter = letter?.id;
                    let how = Resolve { resolution, reference: None };
                    let olga = person("olga", Role::Operator);
                    Some(actions::resolve(engine.gate(), letter, &how, &request(&olga, &action)).await)
                })
            })
            .await;
        match answer.flatten() {
            None | Some(Err(ActionError::NotOpen(_) | ActionError::Busy(_))) => {}
            Some(Ok(())) => {
                self.world.tell(format!("{key} is closed as {resolution}"));
                let done = resolution == Resolution::CompletedAtDestination;
                self.orders.get_mut(&key).unwrap().vouched |= done;
            }
            Some(Err(other)) => panic!("{key}: {other}"),
        }
    }

    /// A person has a destination asked about an operation.
    pub(super) async fn asks(&mut self) {
        let Some((key, id)) = self.a_stored_order() else { return };
        if !matches!(self.orders[&key].kind, "lookup" | "both" | "pair") {
            return;
        }
        let asked = self
            .through_a_node(move |engine| {
                Box::pin(async move {
                    let gate = engine.gate();
                    let asked = question(id, &person("olga", Role::Operator), &engine);
                    let mut tx = gate.db().begin().await.unwrap();
                    let examined = gate.examine(&mut tx, &asked, Ok(())).await.unwrap().unwrap();
                    // The second step of some goes where nobody can be asked.
                    let put = examined.facts.destination != "plain"
                        && gate.ask(&mut tx, &examined.facts, &asked).await.unwrap();
                    tx.commit(Commit::Action).await.is_ok() && put
                })
            })
            .await;
        self.world.tell(format!("{key} is asked about: {asked:?}"));
    }

    pub(super) async fn pauses(&mut self) {
        let name = one_of(&mut self.rng, &KINDS[..5]);
        self.world.tell(format!("{name} is paused"));
        self.through_a_node(move |engine| {
            Box::pin(async move {
                let mut tx = engine.db().begin().await.unwrap();
                engine.gate().pause(&mut tx, name, "olga", "it is being moved").await.unwrap();
                tx.commit(Commit::Action).await.is_ok()
            })
        })
        .await;
    }

    /// Every destination that is paused takes requests again.
    pub(super) async fn resumes(&mut self) {
        self.world.tell("all destinations are resumed");
        for name in &KINDS[..5] {
            self.insists(move |engine| {
                Box::pin(async move {
                    let mut tx = engine.db().begin().await.unwrap();
                    engine.gate().resume(&mut tx, name).await.unwrap();
                    tx.commit(Commit::Action).await.is_ok()
                })
            })
            .await;
        }
    }
}

fn question(operation: Uuid, by: &Actor, engine: &Engine) -> NewWork {
    NewWork {
        operation_id: operation,
        position: 0,
        destination: String::new(),
        lane: String::new(),
        task: Task::Ask,
        cause: Cause::Replay,
        requested_by: by.to_string(),
        waived: String::new(),
        at: engine.ambient().now(),
    }
}
