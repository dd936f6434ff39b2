//! What an action would meet and send, for the forms that ask for it. Nothing is changed.

use uuid::Uuid;

use super::actions::{ActionError, OverrideMode, asked, examine};
use super::facts::Facts;
use super::replay::{verdict, waivable};
use super::thread::Thread;
use crate::domain::actor::{Actor, Right};
use crate::domain::attempt::{Cause, StoredRequest, Waiver};
use crate::domain::verdict::{CheckName, Verdict};
use crate::gate::Gate;
use crate::gate::examine::NEW_KEY;

/// How an action would go at this moment.
#[derive(Clone, Debug)]
pub struct Preview {
    /// The checks as a replay meets them, and what is known of the effect.
    pub verdict: Verdict,
    /// The checks that stand in the way and that an override may waive.
    pub waivable: Vec<Waiver>,
    /// The checks that stand in the way and that nobody may waive.
    pub firm: Vec<CheckName>,
    /// What would be sent under the present key; or why it cannot be built, for people.
    pub request: Result<StoredRequest, String>,
    /// What would be sent under a new one, for which [`NEW_KEY`] stands.
    pub anew: Result<StoredRequest, String>,
    /// Everything that is known of the operation.
    pub thread: Thread,
}

impl Preview {
    /// As it is for an actor who wants to do what `right` allows.
    pub async fn load(
        gate: &Gate,
        operation: Uuid,
        actor: &Actor,
        right: Right,
    ) -> Result<Self, ActionError> {
        // The facts are read as an action reads them, with the operation locked, and nothing is
        // committed.
        let mut tx = gate.db().begin().await?;
        let asked = asked(gate, operation, actor, Cause::Replay, String::new());
        let examined = examine(gate, &mut tx, &asked, actor, right).await?;
        let thread = Thread::load(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
        let waivable = waivable(&examined, OverrideMode::SameKey);
        let stands = examined.examination.checks.iter().filter(|check| !check.passed);
        let firm = stands
            .map(|check| check.name)
            .filter(|name| waivable.iter().all(|waiver| waiver.as_str() != name.as_str()))
            .collect();
        Ok(Self {
            request: gate.request(&mut tx, &examined.facts).await?,
            anew: gate.request_anew(&mut tx, &examined.facts).await?,
            verdict: verdict(&examined, &thread),
            waivable,
            firm,
            thread,
        })
    }

    /// Whether a key goes out with it, so that it matters which one; also where that is not known.
    pub fn has_key(&self) -> bool {
        let Ok(request) = &self.anew else { return true };
        let mut texts =
            request.headers.iter().map(|(_, value)| value).chain([&request.url]).chain(&request.body);
        texts.any(|text| text.contains(NEW_KEY))
    }

    /// What an override of a dead letter of this operation is decided on; absent when it has none of
    /// this id.
    pub fn facts(&self, letter: Uuid) -> Option<Facts> {
        let letter = self.thread.letters.iter().find(|known| known.id == letter)?;
        Some(Facts::of(letter, &self.thread, &self.waivable, &self.request))
    }
}

/// The checks as a replay would meet them now, and what is known of the effect.
pub async fn preview(gate: &Gate, operation: Uuid, actor: &Actor) -> Result<Verdict, ActionError> {
    Ok(Preview::load(gate, operation, actor, Right::Replay).await?.verdict)
}
