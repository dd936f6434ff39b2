//! What every proof does on its stage: hand in, count, compare, close.

use anyhow::Context as _;
use tokio::time::sleep;
use uuid::Uuid;

use super::Scene;
use crate::domain::classify::{Action, Answer, Event, classify};
use crate::domain::time::{Clock, SystemClock};
use crate::drill::evidence::{Case, Effects, OperationEvidence};
use crate::drill::proxy::Passage;
use crate::drill::stage::QUIET;
use crate::engine::accept::Accepted;

impl Scene<'_> {
    pub(super) async fn submit(&mut self) -> anyhow::Result<Uuid> {
        match self.stage.submit(self.stage.submission(&self.name, &self.name)?).await? {
            Accepted::Created(new) => {
                self.operations.push(new.id);
                Ok(new.id)
            }
            Accepted::Duplicate(id) => anyhow::bail!("operation {id} has the key of a new one"),
        }
    }

    /// A refusal that this destination's contract gives one meaning.
    pub(super) fn status_for(&self, action: Action) -> anyhow::Result<u16> {
        let usual: &[u16] = if action == Action::Retry { &[423, 421, 425] } else { &[422, 400, 418] };
        let contract = self.stage.subject.contract();
        let means = |status: u16| {
            let answer = Answer { status, headers: Vec::new(), body: bytes::Bytes::new(), complete: true };
            classify(contract, &Event::Answered(answer), SystemClock.now()).action == action
        };
        let status = usual.iter().copied().find(|status| means(*status));
        status.context("the file gives every refusal that a drill uses another meaning")
    }

    pub(super) fn sends(&self) -> Vec<Passage> {
        self.stage.proxy.since(self.from).into_iter().filter(|passage| !passage.asks).collect()
    }

    pub(super) fn reached(&self) -> usize {
        self.sends().iter().filter(|send| send.reached()).count()
    }

    /// Every send of one operation is the same, and so is its key.
    pub(super) fn same_request(&mut self, sends: &[Passage]) {
        let Some(first) = sends.first() else { return };
        let same = |send: &Passage| {
            (&send.method, &send.path, &send.body) == (&first.method, &first.path, &first.body)
        };
        self.case.expect("Every send was the same request", true, sends.iter().all(same));
        if let Some(key) = &first.key {
            let other = sends.iter().find(|send| send.key.as_ref() != Some(key));
            let found = other.map_or(Some(key), |send| send.key.as_ref());
            self.case.expect(
                "Every send bore the same key",
                key.clone(),
                found.map_or("none", String::as_str),
            );
        }
    }

    pub(super) async fn nothing_more_is_sent(&mut self) {
        let before = self.sends().len();
        sleep(QUIET).await;
        self.case.expect("Sends in the time after that", 0, self.sends().len() - before);
    }

    pub(super) fn one_effect(&mut self) {
        self.effects(1, "Effects at the destination");
    }

    pub(super) fn effects(&mut self, expected: usize, what: &str) {
        let effects = match &self.stage.destination {
            Some(ours) => {
                let own = |body: &[u8]| String::from_utf8_lossy(body).contains(&self.name);
                let count = ours.effects().iter().filter(|effect| own(&effect.body)).count();
                let how = "By the built-in destination's own account of everything that happened there.";
                Effects { count: Some(count), how: how.to_owned() }
            }
            None => Effects::seen(&self.stage.proxy.since(self.from)),
        };
        if let Some(count) = effects.count {
            self.case.expect(what, expected, count);
        }
        self.case.effects = Some(effects);
    }

    /// Adds the records, and says what came of it.
    pub(super) async fn close(mut self, done: anyhow::Result<()>) -> Case {
        let mut broke = done.err().map(|error| format!("{error:#}"));
        for id in &self.operations {
            match self.stage.thread(*id).await {
                Ok(thread) => self.case.operations.push(OperationEvidence::of(&thread)),
                Err(error) => broke = broke.or(Some(format!("{error:#}"))),
            }
        }
        self.case.requests = self.stage.proxy.since(self.from);
        self.case.conclude(broke);
        self.case
    }
}
