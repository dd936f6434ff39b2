//! What people say to a bulk action: start, go on, pause, cancel.

use uuid::Uuid;

use super::{stretch, subject};
use crate::domain::actor::Right;
use crate::domain::bulk::{BulkState, Step};
use crate::domain::time::Timestamp;
use crate::engine::actions::{ActionError, Request, permitted, remark, take};
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::bulk::{self, BulkRow, members};
use crate::store::{Commit, Tx, actions};

/// A person's word, in a transaction of its own. Dropping it undoes it.
pub(super) struct Word<'a> {
    gate: &'a Gate,
    request: &'a Request<'a>,
    pub(super) tx: Tx,
    actor: String,
    now: Timestamp,
}

/// Whether the word is said for the first time.
pub(super) enum Begun<'a> {
    New(Word<'a>),
    /// Under this action id it was said before; what was answered.
    Before(String),
}

impl<'a> Word<'a> {
    pub(super) async fn begin(
        gate: &'a Gate,
        request: &'a Request<'_>,
        subject: &str,
    ) -> Result<Begun<'a>, ActionError> {
        let actor = request.actor.to_string();
        let now = gate.ambient().now();
        let mut tx = gate.db().begin().await?;
        if let Some(answer) = take(&mut tx, &actor, request.action_id, subject, now).await? {
            return Ok(Begun::Before(answer));
        }
        Ok(Begun::New(Self { gate, request, tx, actor, now }))
    }

    /// Writes down what was said and makes it durable.
    pub(super) async fn done(
        mut self,
        id: Uuid,
        action: &str,
        reason: Option<String>,
        result: &str,
        detail: String,
    ) -> Result<(), ActionError> {
        let entry = AuditRow {
            id: self.gate.ambient().id(),
            at: self.now,
            actor: self.actor.clone(),
            action: action.to_owned(),
            operation_id: None,
            dead_letter_id: None,
            subject: Some(subject(id)),
            reason,
            result: result.to_owned(),
            detail,
            origin: self.request.origin.to_owned(),
        };
        audit::insert(&mut self.tx, &entry).await?;
        let answer = serde_json::to_string(&id)?;
        actions::answer(&mut self.tx, &self.actor, self.request.action_id, None::<Uuid>, &answer).await?;
        self.tx.commit(Commit::Action).await?;
        Ok(())
    }
}

/// Starts a bulk action, lets the others follow the first few, or goes on where it was paused. From
/// now on it acts in this person's name.
pub async fn set_going(gate: &Gate, id: Uuid, step: Step, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::Bulk)?;
    let Begun::New(mut word) = Word::begin(gate, request, &format!("bulk_{step} {id}")).await? else {
        return Ok(());
    };
    let row = bulk::by_id(&mut word.tx, id).await?.ok_or(ActionError::NotFound)?;
    permitted(request.actor, row.action.right())?;
    let (from, to) = match step {
        Step::Start if row.canary > 0 => (BulkState::Preview, BulkState::Canary),
        Step::Start => (BulkState::Preview, BulkState::Running),
        Step::Confirm => (BulkState::Confirm, BulkState::Running),
        Step::Resume => (row.state, row.state),
    };
    if step == Step::Confirm && members::left(&mut word.tx, id, row.canary).await?.sent {
        return Err(ActionError::Busy(
            "what became of the first ones is not known yet; confirm when it is".to_owned(),
        ));
    }
    let actor = word.actor.clone();
    let changed = match step {
        Step::Resume => {
            settle_lease(&mut word, &row).await?;
            bulk::resume(&mut word.tx, &row, &actor, word.now).await?
        }
        Step::Start | Step::Confirm => bulk::set_going(&mut word.tx, id, from, to, &actor, word.now).await?,
    };
    if !changed {
        let row = bulk::by_id(&mut word.tx, id).await?.unwrap_or(row);
        return Err(ActionError::Busy(format!("this bulk action {}", stands(&row))));
    }
    let why = (step != Step::Resume).then(|| row.reason.clone());
    word.done(id, &format!("bulk_{step}"), why, to.as_str(), row.name).await
}

/// Members are acted on under action ids of whoever set it going: what was done in another's name is
/// recorded first, or it would be done again in this one's.
async fn settle_lease(word: &mut Word<'_>, row: &BulkRow) -> Result<(), ActionError> {
    let Some(until) = row.leased_until.filter(|_| row.acts_as.as_ref() != Some(&word.actor)) else {
        return Ok(());
    };
    if until > word.now {
        let who = row.acts_as.as_deref().unwrap_or("somebody");
        return Err(ActionError::Busy(format!(
            "what was done in the name of {who} is being written down; let it go on in a minute"
        )));
    }
    stretch::catch_up(&mut word.tx, row, word.now).await?;
    Ok(())
}

/// Stops taking members up until somebody lets it go on. A reason may be given and need not be.
pub async fn pause(gate: &Gate, id: Uuid, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::Bulk)?;
    let why = remark(request.reason)?;
    let Begun::New(mut word) = Word::begin(gate, request, &format!("bulk_pause {id}")).await? else {
        return Ok(());
    };
    let row = bulk::by_id(&mut word.tx, id).await?.ok_or(ActionError::NotFound)?;
    let actor = word.actor.clone();
    if !bulk::pause(&mut word.tx, id, &actor, why.as_deref(), word.now).await? {
        return Err(ActionError::Busy(format!("this bulk action {}", stands(&row))));
    }
    word.done(id, "bulk_pause", why, "paused", row.name).await
}

/// Ends a bulk action: members that are waiting are left alone, and what is under way is looked
/// after to its end. A reason may be given and need not be.
pub async fn cancel(gate: &Gate, id: Uuid, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::Bulk)?;
    let why = remark(request.reason)?;
    let Begun::New(mut word) = Word::begin(gate, request, &format!("bulk_cancel {id}")).await? else {
        return Ok(());
    };
    let row = bulk::by_id(&mut word.tx, id).await?.ok_or(ActionError::NotFound)?;
    if !bulk::cancel(&mut word.tx, id, word.now).await? {
        return Err(ActionError::Busy(format!("this bulk action {}", stands(&row))));
    }
    word.done(id, "bulk_cancel", why, "cancelled", row.name).await
}

/// Pauses a bulk action by itself and says why; nothing when it is paused or over.
pub(super) async fn pause_itself(gate: &Gate, id: Uuid, why: &str) -> Result<(), ActionError> {
    const ITSELF: &str = "engine";
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    if !bulk::pause(&mut tx, id, ITSELF, Some(why), now).await? {
        return Ok(());
    }
    audit::insert(&mut tx, &itself(gate, id, "bulk_pause", "paused", why)).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}

/// What the engine writes down of a bulk action by itself.
pub(super) fn itself(gate: &Gate, id: Uuid, action: &str, result: &str, detail: &str) -> AuditRow {
    AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: "engine".to_owned(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some(subject(id)),
        reason: None,
        result: result.to_owned(),
        detail: detail.to_owned(),
        origin: "engine".to_owned(),
    }
}

fn stands(row: &BulkRow) -> &'static str {
    if row.paused_at.is_some() {
        return "is paused; let it go on first";
    }
    match row.state {
        BulkState::Preview => "was not started yet",
        BulkState::Canary => "acts on its first members already",
        BulkState::Confirm => "waits for somebody to confirm its first members",
        BulkState::Running => "is running already",
        BulkState::Ended => "has ended",
        BulkState::Cancelled => "was cancelled",
    }
}
