//! A type of operation whose override takes two people: Anton, who asks, and whoever gives their word.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::engine::actions::{ActionError, OverrideMode, Request};
use dead_letter_office::engine::approvals::{self, Approved, Asked};
use dead_letter_office::store::overrides::{self, OverrideRow};
use uuid::Uuid;

use super::app::{TestApp, person, request};

pub(crate) const GUARDED: &str = r#"
[operations.guarded]
search = { order = "/order_id" }
mask = ["/email"]
override_approval = true
[[operations.guarded.steps]]
name = "create ticket"
destination = "plain"
method = "POST"
path = "/tickets"
body = { external_ref = "{{ key }}", mail = "{{ payload.email }}" }
reference = "/id"
effect = "A ticket"
"#;

pub(crate) fn anton() -> Actor {
    person("anton", Role::Approver)
}

pub(crate) fn berta() -> Actor {
    person("berta", Role::Approver)
}

impl TestApp {
    /// One that may have happened where nobody can tell.
    pub(crate) async fn guarded_in_doubt(&mut self, key: &str) -> Uuid {
        self.destination.script("/plain", [Behaviour::CloseAfterRead { effect: true }]);
        let id = self.submit("guarded", key).await;
        self.run_to_the_end().await;
        id
    }

    /// Anton asks for a second effect.
    pub(crate) async fn anton_asks(&self, operation: Uuid, action_id: &str) -> Result<Asked, ActionError> {
        let (letter, anton) = (self.letter(operation).await, anton());
        let asked = request(&anton, action_id);
        approvals::ask(self.engine.gate(), &letter, OverrideMode::NewEffect, None, &asked).await
    }

    /// The same, and it waits for the second person.
    pub(crate) async fn anton_waits(&self, operation: Uuid, action_id: &str) -> Uuid {
        match self.anton_asks(operation, action_id).await.unwrap() {
            Asked::Waits(request) => request,
            Asked::Not(verdict) => panic!("{verdict:?}"),
        }
    }

    pub(crate) async fn approve(
        &self,
        id: Uuid,
        actor: &Actor,
        action_id: &str,
    ) -> Result<Approved, ActionError> {
        let word = Request { reason: "seen in the CRM", ..request(actor, action_id) };
        approvals::approve(self.engine.gate(), id, &word).await
    }

    pub(crate) async fn override_request(&self, id: Uuid) -> OverrideRow {
        let mut tx = self.engine.db().read().await.unwrap();
        overrides::by_id(&mut tx, id).await.unwrap().expect("a request")
    }
}
