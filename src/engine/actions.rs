//! What people do to dead letters. An action never sends: it makes the gate's checks, writes a row
//! of work and an audit entry in one transaction, and answers with a verdict.

use uuid::Uuid;

pub use super::preview::preview;
pub use super::replay::{closed, needs_approval, override_checks, override_letter, replay, replay_letter};
pub use super::resolve::{Resolve, resolve};
use crate::domain::actor::{Actor, Right};
use crate::domain::attempt::Cause;
pub use crate::domain::attempt::OverrideMode;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::lookup::Task;
use crate::domain::time::Timestamp;
use crate::gate::examine::Examined;
use crate::gate::{Gate, GateError};
use crate::store::work::NewWork;
use crate::store::{StoreError, Tx, actions};

/// The longest reason, in characters.
pub const MAX_REASON: usize = 1_000;

/// Who does it, why, and under which id.
#[derive(Clone, Debug)]
pub struct Request<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// The same id again returns the first answer and does nothing.
    pub action_id: &'a str,
    /// Why, in their words.
    pub reason: &'a str,
    /// From where: an address, or the command line.
    pub origin: &'a str,
}

/// Why an action was not done. Nothing was changed.
#[derive(Debug, thiserror::Error)]
pub enum ActionError {
    /// They may not.
    #[error("you need {0}")]
    Forbidden(String),
    /// There is no such thing.
    #[error("there is no such operation or dead letter")]
    NotFound,
    /// Something that was given cannot be taken.
    #[error("{0}")]
    Invalid(String),
    /// The action id was used for something else.
    #[error("this action id was used for another action; send a new one")]
    IdReused,
    /// It cannot be done at this moment.
    #[error("{0}")]
    Busy(String),
    /// It is closed, or being tried again.
    #[error("this dead letter is {0}, so this cannot be done with it now")]
    NotOpen(DeadLetterStatus),
    /// It is not any more what was shown to whoever decided on it; the text says in what.
    #[error("this has changed since you opened the form: {0}")]
    Changed(String),
    /// What was settled before stands; the text says what can be done instead.
    #[error("{0}")]
    Settled(String),
    /// The ledger said no.
    #[error(transparent)]
    Gate(#[from] GateError),
    /// An answer that was stored cannot be read.
    #[error("the stored answer of this action cannot be read")]
    Answer(#[from] serde_json::Error),
}

impl From<StoreError> for ActionError {
    fn from(error: StoreError) -> Self {
        Self::Gate(error.into())
    }
}

pub(super) fn permitted(actor: &Actor, right: Right) -> Result<(), ActionError> {
    if actor.may(right) { Ok(()) } else { Err(ActionError::Forbidden(actor.needs(right))) }
}

/// A reason as it is stored: one is required.
pub(super) fn reason(text: &str) -> Result<String, ActionError> {
    let text = text.trim().replace('\0', "\u{fffd}");
    match text.chars().count() {
        0 => {
            Err(ActionError::Invalid("a reason is required: say why, for whoever reads it later".to_owned()))
        }
        1..=MAX_REASON => Ok(text),
        length => Err(ActionError::Invalid(format!(
            "the reason has {length} characters; at most {MAX_REASON} are kept"
        ))),
    }
}

/// A reason that may be left out.
pub(super) fn remark(text: &str) -> Result<Option<String>, ActionError> {
    if text.trim().is_empty() { Ok(None) } else { reason(text).map(Some) }
}

pub(super) async fn take(
    tx: &mut Tx,
    actor: &str,
    action_id: &str,
    subject: &str,
    at: Timestamp,
) -> Result<Option<String>, ActionError> {
    let length = action_id.chars().count();
    if length == 0 || length > 200 || action_id.chars().any(char::is_control) {
        return Err(ActionError::Invalid("an action id is a line of 1 to 200 characters".to_owned()));
    }
    let subject = subject.replace('\0', "\u{fffd}");
    match actions::take(tx, actor, action_id, &subject, at).await? {
        None => Ok(None),
        Some(earlier) if earlier.subject.is_empty() => Err(ActionError::Settled(
            "This was done before. What was answered then quoted somebody who was erased since.".to_owned(),
        )),
        Some(earlier) if earlier.subject == subject => Ok(Some(earlier.answer)),
        Some(_) => Err(ActionError::IdReused),
    }
}

pub(super) fn asked(gate: &Gate, operation: Uuid, actor: &Actor, cause: Cause, waived: String) -> NewWork {
    NewWork {
        operation_id: operation,
        // The gate takes the step that is not done, and its destination.
        position: 0,
        destination: String::new(),
        lane: String::new(),
        task: Task::Send,
        cause,
        requested_by: actor.to_string(),
        waived,
        at: gate.ambient().now(),
    }
}

pub(super) async fn examine(
    gate: &Gate,
    tx: &mut Tx,
    asked: &NewWork,
    actor: &Actor,
    right: Right,
) -> Result<Examined, ActionError> {
    let allowed = if actor.may(right) { Ok(()) } else { Err(actor.needs(right)) };
    gate.examine(tx, asked, allowed).await?.ok_or(ActionError::NotFound)
}
