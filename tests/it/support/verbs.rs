//! What tests do to a running product, in a word each.

use std::time::Duration;

use dead_letter_office::accounts;
use dead_letter_office::demo::destination::UnreliableDestination;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::filter::{AuditFilter, Page};
use dead_letter_office::domain::time::Timestamp;
use dead_letter_office::domain::verdict::Verdict;
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode, Resolve};
use dead_letter_office::engine::send::Sender;
use dead_letter_office::gate::{Permit, Settlement};
use dead_letter_office::store::audit::{self, AuditRow};
use dead_letter_office::store::dead_letters::DeadLetterRow;
use tokio::net::TcpStream;
use uuid::Uuid;

use super::app::{TestApp, by_root, person, request};
use super::ledger::Raw;

impl TestApp {
    pub(crate) fn now(&self) -> Timestamp {
        self.engine.ambient().now()
    }

    pub(crate) async fn raw(&self) -> Raw {
        Raw::open(&self.database.url).await.unwrap()
    }

    /// An account for somebody who acts below the pages, where nobody signs in.
    pub(crate) async fn add(&self, name: &str, role: Role) {
        let (db, ambient) = (self.engine.db(), self.engine.ambient());
        accounts::add_user(db, ambient, name, role, None, &by_root()).await.unwrap();
    }

    /// Every entry of the audit, oldest first.
    pub(crate) async fn on_record(&self) -> Vec<AuditRow> {
        let mut tx = self.engine.db().read().await.unwrap();
        let page = Page { limit: 500, cursor: None };
        let listed = audit::list(&mut tx, &AuditFilter::default(), page).await.unwrap();
        assert!(listed.older.is_none(), "one page holds them all");
        listed.items.into_iter().rev().map(|entry| entry.row).collect()
    }

    /// Works until nothing is left to do without a person; time jumps to whatever is due next.
    pub(crate) async fn run_to_the_end(&mut self) {
        for _ in 0..100 {
            self.run_until_idle().await;
            let Some(due) = self.engine.gate().next_due().await.unwrap() else { return };
            self.clock.advance(due.since(self.now()));
        }
        panic!("the work never ends");
    }

    /// The newest dead letter of an operation.
    pub(crate) async fn letter(&self, operation: Uuid) -> DeadLetterRow {
        self.thread(operation).await.letters.into_iter().next().expect("a dead letter")
    }

    /// What its attempts came to, in order.
    pub(crate) async fn outcomes(&self, operation: Uuid) -> Vec<Outcome> {
        self.thread(operation).await.attempts.iter().map(|attempt| attempt.outcome).collect()
    }

    pub(crate) async fn override_as(
        &self,
        actor: &Actor,
        operation: Uuid,
        mode: OverrideMode,
        action_id: &str,
    ) -> Result<Verdict, ActionError> {
        actions::override_checks(self.engine.gate(), operation, mode, true, &request(actor, action_id)).await
    }

    pub(crate) async fn override_checks(
        &self,
        operation: Uuid,
        mode: OverrideMode,
        action_id: &str,
    ) -> Verdict {
        self.override_as(&person("anton", Role::Approver), operation, mode, action_id).await.unwrap()
    }

    pub(crate) async fn resolve_as(
        &self,
        actor: &Actor,
        letter: Uuid,
        resolution: Resolution,
        reference: Option<&str>,
        action_id: &str,
    ) -> Result<(), ActionError> {
        let how = Resolve { resolution, reference: reference.map(str::to_owned) };
        actions::resolve(self.engine.gate(), letter, &how, &request(actor, action_id)).await
    }

    pub(crate) async fn resolve(
        &self,
        letter: Uuid,
        resolution: Resolution,
        reference: Option<&str>,
        action_id: &str,
    ) -> Result<(), ActionError> {
        self.resolve_as(&person("olga", Role::Operator), letter, resolution, reference, action_id).await
    }

    /// Resumes every destination that is paused; how many were.
    pub(crate) async fn resume_all(&self) -> usize {
        let mut resumed = 0;
        for name in self.engine.config().destinations.keys() {
            let mut tx = self.engine.db().begin().await.unwrap();
            resumed += usize::from(self.engine.gate().resume(&mut tx, name).await.unwrap());
            tx.commit(dead_letter_office::store::Commit::Action).await.unwrap();
        }
        resumed
    }

    /// Takes an operation's permit, as a worker would.
    pub(crate) async fn take(&self, operation: Uuid) -> Permit {
        let admission = self.engine.gate().admit(operation).await.unwrap().expect("work");
        admission.into_permit().expect("a permit")
    }

    pub(crate) async fn send(&self, permit: Permit) -> Settlement {
        let sender = Sender::new(self.engine.config(), self.engine.ambient().clone()).unwrap();
        sender.send(permit).await
    }

    /// Hands a settlement in; whether it counted.
    pub(crate) async fn settle(&self, settlement: Settlement) -> bool {
        let turn = self.engine.gate().turn(&mut vec![settlement], 0).await.unwrap();
        turn.settled == 1
    }

    /// Ends the destination: its port refuses connections. What it remembers is gone.
    pub(crate) async fn stop_destination(&mut self) {
        let address = self.destination.address();
        let elsewhere = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
        drop(std::mem::replace(&mut self.destination, elsewhere));
        for _ in 0..500 {
            if TcpStream::connect(address).await.is_err() {
                return;
            }
            // The listener closes when its task is next looked at.
            tokio::time::sleep(Duration::from_millis(2)).await;
        }
        panic!("the destination still listens");
    }

    /// Starts a destination without memory where the configuration says.
    pub(crate) async fn start_destination(&mut self) {
        let url = self.engine.config().destinations["keyed"].base_url.as_ref().unwrap();
        let address = (url.host_str().unwrap(), url.port().unwrap());
        let address = tokio::net::lookup_host(address).await.unwrap().next().unwrap();
        self.destination = UnreliableDestination::start(address, 1).await.unwrap();
    }
}
