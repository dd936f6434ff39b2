//! What happens before anybody looks: every kind of thing that a page can show.

use std::time::{Duration, Instant};

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::bulk::{BulkState, Step};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::accept::Submission;
use dead_letter_office::engine::actions::{self, OverrideMode, Request, Resolve, resolve};
use dead_letter_office::engine::approvals::{self, Asked};
use dead_letter_office::engine::bulk::{self, Act, Members, New};
use dead_letter_office::engine::correct::{Correction, correct};
use dead_letter_office::engine::{causes, destinations, handling, views};
use dead_letter_office::gate::Gate;
use dead_letter_office::store::dead_letters::{self, DeadLetterRow};
use serde_json::json;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::support::app::person;
use crate::support::served::Served;

/// How texts from outside read: `text(what, most)` is what stands for `what`, at most that many
/// characters of it.
pub(super) type Texts = fn(&str, usize) -> String;

/// What people and programs usually write.
pub(super) fn plain(what: &str, _: usize) -> String {
    what.to_owned()
}

/// A type whose failures cannot wait, and whose overrides take two people.
pub(super) fn orders(text: Texts) -> String {
    format!(
        r#"
[operations.order]
owner = {owner}
runbook = "https://wiki.example.com/orders?q=%3Cscript%3E"
severity = "critical"
override_approval = true
search = {{ customer = "/customer_id", order = "/order_id" }}
mask = ["/email"]
[[operations.order.steps]]
name = {step}
destination = "plain"
method = "POST"
path = "/orders"
effect = {effect}
reference = "/id"
"#,
        owner = json!(text("Order desk", 60)),
        step = json!(text("book order", 60)),
        effect = json!(text("An order in the warehouse", 200)),
    )
}

pub(super) struct Stage<'s> {
    pub(super) served: &'s Served,
    pub(super) text: Texts,
    /// Who does what has to be done, an approver.
    pub(super) hand: String,
}

impl Stage<'_> {
    pub(super) async fn fail(&self, kind: &str, key: &str, behaviour: Behaviour) -> (Uuid, Uuid) {
        self.fail_at(kind, &format!("/{kind}"), key, behaviour).await
    }

    pub(super) async fn fail_at(
        &self,
        kind: &str,
        path: &str,
        key: &str,
        behaviour: Behaviour,
    ) -> (Uuid, Uuid) {
        self.served.destination.script(path, [behaviour]);
        let operation = self.served.submit(self.submission(kind, key)).await;
        let letter = self.served.wait_for(operation, |thread| Some(thread.live_letter()?.id)).await;
        (operation, letter)
    }

    fn submission(&self, kind: &str, key: &str) -> Submission {
        let text = self.text;
        Submission {
            kind: kind.to_owned(),
            payload: self.payload(key),
            // The end tells keys apart, whatever stands before it.
            key: Some(format!("{}{key}", text("", 200))),
            correlation_id: Some(text("corr-7", 255)),
            source: Some(text("shop", 255)),
            by: "token:shop".to_owned(),
        }
    }

    fn payload(&self, key: &str) -> Box<RawValue> {
        let text = self.text;
        let payload = json!({
            "order_id": text(key, 500),
            "customer_id": text("C-7", 200),
            "email": text("anna@example.com", 300),
            "amount": 1250,
            text("note", 80): [text("Leave it at the door", 3000)],
        });
        RawValue::from_string(payload.to_string()).unwrap()
    }

    /// A refusal in the destination's own words.
    pub(super) fn refusal(&self) -> Behaviour {
        let text = self.text;
        Behaviour::error(422, &text("unknown_customer", 900), &text("There is no customer C-7", 900))
    }

    /// Refused, replayed and confirmed.
    pub(super) async fn replayed(&self, key: &str) -> (Uuid, Uuid) {
        let text = self.text;
        let (operation, letter) = self.fail("keyed", key, Behaviour::status(422)).await;
        let headers = vec![("content-type".into(), "application/json".into())];
        let body = json!({ "id": text("TCK-99", 180) }).to_string();
        self.served.destination.script("/keyed", [Behaviour::Status { code: 201, headers, body }]);
        self.act("The data is right there now", async |gate, request| {
            actions::replay(gate, operation, request).await.unwrap();
        })
        .await;
        self.done(operation).await;
        (operation, letter)
    }

    async fn done(&self, operation: Uuid) {
        let done = |state| matches!(state, OperationState::Completed).then_some(());
        self.served.wait_for(operation, |thread| done(thread.operation.state())).await;
    }

    /// In doubt, looked up by a person and closed.
    pub(super) async fn recorded(&self, key: &str) -> Uuid {
        let text = self.text;
        let (_, letter) = self.fail("plain", key, Behaviour::CloseAfterRead { effect: true }).await;
        let how =
            Resolve { resolution: Resolution::CompletedAtDestination, reference: Some(text("TCK-98", 180)) };
        self.act("Found by hand", async |gate, request| resolve(gate, letter, &how, request).await.unwrap())
            .await;
        letter
    }

    /// Refused, and handed in anew with other data.
    pub(super) async fn corrected(&self, key: &str) -> Uuid {
        let (operation, letter) = self.fail("keyed", key, self.refusal()).await;
        let correction = Correction { payload: self.payload(&format!("{key}-b")), key: None };
        let new = self
            .act("They moved", async |gate, request| {
                correct(gate, operation, correction, request).await.unwrap()
            })
            .await;
        // It is sent, and would take a behaviour that is meant for the next one.
        self.done(new).await;
        letter
    }

    /// Somebody's, with a note; its cause too.
    pub(super) async fn handed_over(&self, letter: Uuid) -> String {
        let text = self.text;
        let cause = self.letter(letter).await.cause;
        self.act("Ben knows them", async |gate, request| {
            handling::assign(gate, letter, Some(&self.hand), request).await.unwrap();
        })
        .await;
        self.act("", async |gate, request| {
            handling::note(gate, letter, &text("I asked them on Monday", 1900), request).await.unwrap();
        })
        .await;
        self.act("", async |gate, request| {
            causes::note(gate, &cause, &text("Their contract ended", 900), request).await.unwrap();
        })
        .await;
        self.act("", async |gate, request| {
            causes::assign(gate, &cause, Some(&self.hand), request).await.unwrap();
        })
        .await;
        cause
    }

    pub(super) async fn put_off(&self, letter: Uuid) {
        let until = self.served.engine.ambient().now().plus(Duration::from_hours(20));
        self.act("They are at it", async |gate, request| {
            handling::snooze(gate, letter, Some(until), request).await.unwrap();
        })
        .await;
    }

    /// Waits for a second person.
    pub(super) async fn asked_for(&self, letter: Uuid) -> Uuid {
        let row = self.letter(letter).await;
        self.act("The customer waits", async |gate, request| {
            match approvals::ask(gate, &row, OverrideMode::NewEffect, None, request).await.unwrap() {
                Asked::Waits(id) => id,
                Asked::Not(verdict) => panic!("{verdict:?}"),
            }
        })
        .await
    }

    /// Its first member is done; it waits for a word before the others.
    pub(super) async fn bulk(&self, letters: &[Uuid]) -> Uuid {
        let text = self.text;
        let new = New {
            name: text("Outage of Monday", 60),
            act: Act::Assign(Some(self.hand.clone())),
            members: Members::Chosen(letters.to_vec()),
            canary: 1,
            per_minute: None,
        };
        let id = self
            .act("Ben has them all", async |gate, request| bulk::create(gate, &new, request).await.unwrap())
            .await;
        self.act("", async |gate, request| {
            bulk::set_going(gate, id, Step::Start, request).await.unwrap();
        })
        .await;
        let start = Instant::now();
        loop {
            let mut tx = self.served.engine.db().read().await.unwrap();
            let row = dead_letter_office::store::bulk::by_id(&mut tx, id).await.unwrap().unwrap();
            drop(tx);
            if row.state == BulkState::Confirm {
                return id;
            }
            assert!(start.elapsed() < Duration::from_secs(15), "{row:?}");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }

    pub(super) async fn pause(&self, destination: &str) {
        self.act("They are at it", async |gate, request| {
            destinations::pause(gate, destination, request).await.unwrap();
        })
        .await;
    }

    /// A filter that everybody sees in the list.
    pub(super) async fn shared_view(&self) {
        let text = self.text;
        self.act("", async |gate, request| {
            views::save(gate, &text("My orders", 60), "type=order", true, request).await.unwrap();
        })
        .await;
    }

    async fn letter(&self, id: Uuid) -> DeadLetterRow {
        let mut tx = self.served.engine.db().read().await.unwrap();
        dead_letters::by_id(&mut tx, id).await.unwrap().expect("a dead letter")
    }

    /// Something that the hand does, for this reason.
    async fn act<T>(&self, reason: &str, act: impl AsyncFnOnce(&Gate, &Request<'_>) -> T) -> T {
        let actor: Actor = person(&self.hand, Role::Approver);
        let action_id = Uuid::new_v4().to_string();
        let reason = if reason.is_empty() { String::new() } else { (self.text)(reason, 900) };
        let request = Request { actor: &actor, action_id: &action_id, reason: &reason, origin: "127.0.0.1" };
        act(self.served.engine.gate(), &request).await
    }
}
