//! nora, who does not exist: what she did with dead letters before anybody signs in. She goes
//! through the engine as a person at the desk does.

use std::time::Duration;

use uuid::Uuid;

use super::people::COLLEAGUE;
use super::weather::Deed;
use crate::domain::actor::Actor;
use crate::domain::attempt::OverrideMode;
use crate::domain::bulk::Step;
use crate::domain::dead_letter::Resolution;
use crate::engine::actions::{self, ActionError, Request, Resolve};
use crate::engine::bulk::{self, Act, Members, New};
use crate::engine::{Engine, approvals, causes, handling};
use crate::store::dead_letters::DeadLetterRow;

/// Until when a dead letter is put off.
const TOMORROW: Duration = Duration::from_hours(20);

/// Acts as a person who knew what to do.
pub(super) struct Colleague<'a> {
    engine: &'a Engine,
    actor: Actor,
}

impl<'a> Colleague<'a> {
    pub(super) fn new(engine: &'a Engine) -> Self {
        let (name, role) = COLLEAGUE;
        Self { engine, actor: Actor::Person { name: name.to_owned(), role: role.into() } }
    }

    /// Does one thing about one open dead letter, unless somebody was faster.
    pub(super) async fn does(&self, deed: Deed, letter: &DeadLetterRow) -> Result<(), ActionError> {
        match deed {
            // Many are replayed together, and looking leaves nothing behind.
            Deed::ReplayMany | Deed::Look => Ok(()),
            Deed::Replay => self.replay(letter.operation_id).await,
            Deed::Resolve => self.resolve(letter.id).await,
            Deed::Assign => self.assign(letter.id).await,
            Deed::Snooze => self.snooze(letter.id).await,
            Deed::Note => self.note(letter.id).await,
            Deed::Explain => self.explain(&letter.cause).await,
            Deed::AskOverride => self.ask_override(letter).await,
        }
        .or_else(outrun)
    }

    /// Replays dead letters as one bulk action.
    pub(super) async fn replays(&self, letters: Vec<Uuid>) -> Result<(), ActionError> {
        self.replay_many(letters).await.or_else(outrun)
    }

    async fn replay(&self, operation: Uuid) -> Result<(), ActionError> {
        let id = self.action_id();
        let why = "The customer was missing in the helpdesk; Sales added them this morning.";
        actions::replay(self.engine.gate(), operation, &self.request(&id, why)).await?;
        self.engine.wake();
        Ok(())
    }

    async fn replay_many(&self, letters: Vec<Uuid>) -> Result<(), ActionError> {
        let new = New {
            name: "Receipts without a template".to_owned(),
            act: Act::Replay,
            members: Members::Chosen(letters),
            canary: 0,
            per_minute: None,
        };
        let (create, start) = (self.action_id(), self.action_id());
        let why = "Marketing published the receipt template again.";
        let gate = self.engine.gate();
        let id = bulk::create(gate, &new, &self.request(&create, why)).await?;
        bulk::set_going(gate, id, Step::Start, &self.request(&start, why)).await
    }

    async fn resolve(&self, letter: Uuid) -> Result<(), ActionError> {
        let id = self.action_id();
        let how = Resolve { resolution: Resolution::CompletedAtDestination, reference: None };
        let why = "The customer says on the phone that the receipt is there; the mailer gave no id.";
        actions::resolve(self.engine.gate(), letter, &how, &self.request(&id, why)).await
    }

    async fn assign(&self, letter: Uuid) -> Result<(), ActionError> {
        let id = self.action_id();
        let why = "The customer rings back today; ask whether the receipt is there.";
        handling::assign(self.engine.gate(), letter, Some("oscar"), &self.request(&id, why)).await
    }

    async fn snooze(&self, letter: Uuid) -> Result<(), ActionError> {
        let id = self.action_id();
        let tomorrow = self.engine.ambient().now().plus(TOMORROW);
        let why = "The customer has a new card from tomorrow.";
        handling::snooze(self.engine.gate(), letter, Some(tomorrow), &self.request(&id, why)).await
    }

    async fn note(&self, letter: Uuid) -> Result<(), ActionError> {
        let id = self.action_id();
        let text = "I asked the mailer's support whether this one went out. They answer within a day.";
        handling::note(self.engine.gate(), letter, text, &self.request(&id, "")).await
    }

    async fn explain(&self, cause: &str) -> Result<(), ActionError> {
        let (note, assign) = (self.action_id(), self.action_id());
        let text = "Customers who ordered as guests are missing in the helpdesk. Sales adds them every morning; \
                    replay after that.";
        let gate = self.engine.gate();
        causes::note(gate, cause, text, &self.request(&note, "")).await?;
        causes::assign(gate, cause, Some(COLLEAGUE.0), &self.request(&assign, "")).await
    }

    async fn ask_override(&self, letter: &DeadLetterRow) -> Result<(), ActionError> {
        let id = self.action_id();
        let why = "The bank shows no charge for this order, and the customer agrees to be charged again.";
        let request = self.request(&id, why);
        approvals::ask(self.engine.gate(), letter, OverrideMode::NewEffect, None, &request).await?;
        Ok(())
    }

    fn action_id(&self) -> String {
        self.engine.ambient().opaque().to_string()
    }

    fn request<'r>(&'r self, action_id: &'r str, reason: &'r str) -> Request<'r> {
        Request { actor: &self.actor, action_id, reason, origin: "127.0.0.1" }
    }
}

/// Somebody at the desk may have settled it first: that ends nothing. A ledger that fails does.
fn outrun(error: ActionError) -> Result<(), ActionError> {
    match error {
        ActionError::Gate(_) | ActionError::Answer(_) => Err(error),
        refused => {
            tracing::info!(reason = %refused, "the demo's colleague came too late");
            Ok(())
        }
    }
}
