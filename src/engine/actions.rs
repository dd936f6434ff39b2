//! What people do to dead letters. An action never sends: it makes the gate's checks, writes a row
//! of work and an audit entry in one transaction, and answers with a verdict.

use uuid::Uuid;

use super::facts::Facts;
pub use super::preview::preview;
pub use super::resolve::{Resolve, resolve};
use super::thread::Thread;
use crate::domain::actor::{Actor, Right};
pub use crate::domain::attempt::OverrideMode;
use crate::domain::attempt::{Cause, Waiver};
use crate::domain::dead_letter::{DeadLetterStatus, Resolution};
use crate::domain::lookup::Task;
use crate::domain::time::Timestamp;
use crate::domain::verdict::{CheckName, Run, Verdict, VerdictKind};
use crate::domain::words;
use crate::gate::examine::Examined;
use crate::gate::{Gate, GateError};
use crate::store::audit::{self, AuditRow};
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::work::{self, NewWork};
use crate::store::{Commit, StoreError, Tx, actions, causes};

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

/// Has an operation tried again, with its own key, through every check.
pub async fn replay(gate: &Gate, operation: Uuid, request: &Request<'_>) -> Result<Verdict, ActionError> {
    send_again(gate, operation, request, Plan::REPLAY).await
}

/// Has an operation sent although named checks say no. `accept_duplicate` is the person's word
/// that a second effect may come of it.
pub async fn override_checks(
    gate: &Gate,
    operation: Uuid,
    mode: OverrideMode,
    accept_duplicate: bool,
    request: &Request<'_>,
) -> Result<Verdict, ActionError> {
    accepts(accept_duplicate)?;
    let plan = Plan::overriding(mode);
    send_again(gate, operation, request, plan).await
}

fn accepts(duplicate: bool) -> Result<(), ActionError> {
    if duplicate {
        return Ok(());
    }
    let needed = "an override needs your word that a duplicate may come of it (accept_duplicate)";
    Err(ActionError::Invalid(needed.to_owned()))
}

/// The same for the operation of a dead letter. One that a person closed is not sent from a form
/// that was opened before: the word that closed it stands.
pub async fn replay_letter(
    gate: &Gate,
    letter: &DeadLetterRow,
    request: &Request<'_>,
) -> Result<Verdict, ActionError> {
    let plan = Plan { letter: Some(letter.id), ..Plan::REPLAY };
    send_again(gate, letter.operation_id, request, plan).await
}

/// The same for a member of a bulk action. The dead letter that was frozen is meant, and no later one
/// of its operation.
pub(super) async fn replay_member(
    gate: &Gate,
    operation: Uuid,
    letter: Uuid,
    request: &Request<'_>,
) -> Result<Verdict, ActionError> {
    let plan = Plan { cause: Cause::Bulk, letter: Some(letter), ..Plan::REPLAY };
    send_again(gate, operation, request, plan).await
}

/// An override for the operation of a dead letter; as above. With the text of the [`Facts`] that
/// somebody had before them it is done on these alone.
pub async fn override_letter(
    gate: &Gate,
    letter: &DeadLetterRow,
    mode: OverrideMode,
    accept_duplicate: bool,
    seen: Option<&str>,
    request: &Request<'_>,
) -> Result<Verdict, ActionError> {
    accepts(accept_duplicate)?;
    let plan = Plan { seen, letter: Some(letter.id), ..Plan::overriding(mode) };
    send_again(gate, letter.operation_id, request, plan).await
}

/// What is to be sent again, and at whose word.
pub(super) struct Plan<'a> {
    pub(super) cause: Cause,
    pub(super) mode: Option<OverrideMode>,
    /// The dead letter that the person had before them.
    pub(super) letter: Option<Uuid>,
    /// The text of the facts that they had before them.
    pub(super) seen: Option<&'a str>,
    /// The second person who said yes to it.
    pub(super) approved_by: Option<&'a str>,
}

impl Plan<'_> {
    const REPLAY: Self =
        Self { cause: Cause::Replay, mode: None, letter: None, seen: None, approved_by: None };

    pub(super) fn overriding(mode: OverrideMode) -> Self {
        Self { cause: Cause::Override, mode: Some(mode), ..Self::REPLAY }
    }

    fn right(&self) -> Right {
        if self.mode.is_some() { Right::Override } else { Right::Replay }
    }

    /// Why nothing is sent for this dead letter any more.
    fn shut(&self, letter: &DeadLetterRow) -> Option<String> {
        match letter.resolution {
            Some(how) => Some(closed(how, letter)),
            // A replay meets every check of what waits now. Who chose many, or waived a check, did so
            // for this episode: what waits now may be another step.
            None if self.cause != Cause::Replay && letter.closed_at.is_some() => Some(format!(
                "The dead letter that was chosen is {}; what waits now is another one.",
                words::dead_letter_status(letter.status)
            )),
            None => None,
        }
    }
}

/// How a plan would go, on a locked operation.
pub(super) struct Judged {
    asked: NewWork,
    examined: Examined,
    /// The checks that it waives.
    waived: Vec<Waiver>,
    /// What an override of a dead letter is decided on.
    pub(super) facts: Option<Facts>,
    thread: Thread,
    pub(super) answer: Verdict,
}

impl Judged {
    /// Refuses what is not any more as somebody saw it.
    pub(super) fn as_seen(&self, seen: Option<&str>) -> Result<(), ActionError> {
        let changed = self.facts.as_ref().zip(seen).and_then(|(facts, seen)| facts.changed_since(seen));
        changed.map_or(Ok(()), |what| Err(ActionError::Changed(what)))
    }
}

async fn send_again(
    gate: &Gate,
    operation: Uuid,
    request: &Request<'_>,
    plan: Plan<'_>,
) -> Result<Verdict, ActionError> {
    permitted(request.actor, plan.right())?;
    let reason = reason(request.reason)?;
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let subject = match plan.mode {
        Some(mode) => format!("{} {mode} {operation}", plan.cause),
        None => format!("{} {operation}", plan.cause),
    };
    let mut tx = gate.db().begin().await?;
    if let Some(earlier) = take(&mut tx, &actor, request.action_id, &subject, now).await? {
        return Ok(serde_json::from_str(&earlier)?);
    }
    work::lock_operation(&mut tx, operation).await?;
    let judged = judge(gate, &mut tx, operation, request.actor, &plan).await?;
    judged.as_seen(plan.seen)?;
    let why = Request { reason: &reason, ..request.clone() };
    let answer = carry_out(gate, &mut tx, judged, &plan, &why).await?;
    actions::answer(&mut tx, &actor, request.action_id, operation, &serde_json::to_string(&answer)?).await?;
    tx.commit(Commit::Action).await?;
    Ok(answer)
}

/// Judges a plan on a locked operation; nothing is changed.
pub(super) async fn judge(
    gate: &Gate,
    tx: &mut Tx,
    operation: Uuid,
    actor: &Actor,
    plan: &Plan<'_>,
) -> Result<Judged, ActionError> {
    let right = plan.right();
    let mut asked = asked(gate, operation, actor, plan.cause, String::new());
    let strict = examine(gate, tx, &asked, actor, right).await?;
    let thread = Thread::load(tx, operation).await?.ok_or(ActionError::NotFound)?;
    let chosen = thread.letters.iter().find(|letter| Some(letter.id) == plan.letter);
    let mut facts = None;
    let (examined, waived) = match plan.mode {
        None => (strict, Vec::new()),
        Some(mode) => {
            if let Some(letter) = chosen {
                let stand = waivable(&strict, OverrideMode::SameKey);
                let request = gate.request(tx, &strict.facts).await?;
                facts = Some(Facts::of(letter, &thread, &stand, &request));
            }
            let waived = waivable(&strict, mode);
            asked.waived = waived.iter().map(|w| w.as_str()).collect::<Vec<_>>().join(" ");
            (examine(gate, tx, &asked, actor, right).await?, waived)
        }
    };
    let mut answer = verdict(&examined, &thread);
    let accepted = answer.verdict == VerdictKind::Accepted;
    let shut = chosen.and_then(|letter| plan.shut(letter));
    let approval = plan.mode.is_some() && plan.approved_by.is_none();
    let refused = if plan.mode == Some(OverrideMode::SameKey)
        && waived.is_empty()
        && examined.examination.passed()
    {
        Some("No check stands in the way, so there is nothing to override: replay it.".to_owned())
    } else if let (true, Some(why)) = (accepted, shut) {
        Some(why)
    } else if accepted && approval && needs_approval(gate, &thread.operation.kind) {
        Some(format!(
            "An override of {} waits for a second person: ask for it on the desk, where somebody else approves \
                 it.",
            thread.operation.kind
        ))
    } else {
        None
    };
    if let Some(why) = refused {
        answer.verdict = VerdictKind::Refused;
        answer.reason = why;
    }
    Ok(Judged { asked, examined, waived, facts, thread, answer })
}

/// Whether an override of a type's operations waits for a second person's word.
pub fn needs_approval(gate: &Gate, kind: &str) -> bool {
    gate.config().operations.get(kind).is_some_and(|kind| kind.override_approval)
}

/// Does what was judged, and writes down who asked for it with what result.
pub(super) async fn carry_out(
    gate: &Gate,
    tx: &mut Tx,
    judged: Judged,
    plan: &Plan<'_>,
    request: &Request<'_>,
) -> Result<Verdict, ActionError> {
    let Judged { asked, examined, waived, thread, mut answer, facts: _ } = judged;
    let operation = thread.operation.id;
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    if answer.verdict == VerdictKind::Accepted {
        let new_effect = plan.mode == Some(OverrideMode::NewEffect);
        if gate.requeue(tx, &examined.facts, &asked, new_effect).await? {
            dead_letters::replaying(tx, operation).await?;
            causes::replayed(tx, operation, now).await?;
            work::announce(tx).await?;
            answer.reason = String::from(match plan.mode {
                Some(OverrideMode::NewEffect) => "It will be sent under a new key, as a second effect.",
                Some(OverrideMode::SameKey) => {
                    "It will be sent under its own key; the named checks are waived."
                }
                None => "All checks passed: it will be sent with its own key.",
            });
            answer.run = Some(run(operation, &actor, now));
        } else {
            answer.verdict = VerdictKind::InFlight;
            answer.reason = String::from("Somebody else had it tried again a moment ago.");
        }
    }
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor,
        action: plan.cause.as_str().to_owned(),
        operation_id: Some(operation),
        dead_letter_id: thread.live_letter().map(|letter| letter.id),
        subject: None,
        reason: Some(request.reason.to_owned()),
        result: answer.verdict.as_str().to_owned(),
        detail: detail(plan, &waived, &answer),
        origin: request.origin.to_owned(),
    };
    audit::insert(tx, &entry).await?;
    Ok(answer)
}

/// Why nothing is sent for a dead letter that a person closed.
pub fn closed(how: Resolution, letter: &DeadLetterRow) -> String {
    format!(
        "{} closed this dead letter as {}, so nothing is sent from here any more.",
        letter.closed_by.as_deref().unwrap_or("Somebody"),
        how.as_str().replace('_', " ")
    )
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

pub(super) fn verdict(examined: &Examined, thread: &Thread) -> Verdict {
    let mut verdict = examined.verdict(thread.known_result());
    if verdict.verdict == VerdictKind::AlreadyDone {
        verdict.attempt = thread.done_by();
    }
    verdict
}

/// The checks that stand in the way and that an override may waive. A new effect goes out under a
/// new key, so that whatever is unknown of the old one is waived with it.
pub(super) fn waivable(strict: &Examined, mode: OverrideMode) -> Vec<Waiver> {
    let all = [
        (CheckName::KeyWindowOpen, Waiver::KeyWindow),
        (CheckName::OutcomeKnown, Waiver::UnknownOutcome),
        (CheckName::WithinCaps, Waiver::Caps),
    ];
    let stands = |name| strict.examination.checks.iter().any(|check| check.name == name && !check.passed);
    all.into_iter()
        .filter(|(name, _)| mode == OverrideMode::NewEffect || stands(*name))
        .map(|(_, waiver)| waiver)
        .collect()
}

fn run(operation: Uuid, by: &str, since: Timestamp) -> Run {
    Run { by: by.to_owned(), since, url: format!("/operations/{operation}") }
}

fn detail(plan: &Plan<'_>, waived: &[Waiver], answer: &Verdict) -> String {
    let Some(mode) = plan.mode else { return answer.reason.clone() };
    let names: Vec<&str> = waived.iter().map(|waiver| waiver.as_str()).collect();
    let known = answer.known_result.as_ref().map_or("nothing was known of the effect", |known| &known.how);
    let second = plan.approved_by.map(|name| format!("; approved by {name}")).unwrap_or_default();
    format!("mode {mode}; waived: {}; then known: {known}{second}", names.join(", "))
}
