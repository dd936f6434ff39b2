//! A second person's word on an override: somebody asks, and somebody else approves or refuses on the
//! same facts. Once these have changed, nobody can approve what was asked for.

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::actions::{ActionError, OverrideMode, Request, permitted, reason, remark, take};
use super::replay::{Judged, Plan, carry_out, judge};
use crate::domain::actor::{Actor, Right};
use crate::domain::attempt::RequestState;
use crate::domain::dead_letter::DeadLetterStatus;
use crate::domain::verdict::{Verdict, VerdictKind};
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::overrides::{self, Decision, OverrideRow};
use crate::store::{Commit, Tx, accounts, actions, work};

/// What became of an override that somebody asked for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Asked {
    /// It waits for a second person, under this id.
    Waits(Uuid),
    /// It would not be sent, whoever approved it.
    Not(Box<Verdict>),
}

/// What became of a second person's yes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Approved {
    /// It is asked for, or was not let through as things stand and waits on.
    Judged(Box<Verdict>),
    /// It is out of date, and why; it has to be asked for anew.
    Stale(String),
}

/// Asks for an override of a dead letter's operation, which a second person has to approve. With the
/// text of the [`super::facts::Facts`] that somebody had before them it is asked for on these alone.
pub async fn ask(
    gate: &Gate,
    letter: &DeadLetterRow,
    mode: OverrideMode,
    seen: Option<&str>,
    request: &Request<'_>,
) -> Result<Asked, ActionError> {
    permitted(request.actor, Right::Override)?;
    a_person(request.actor)?;
    let reason = reason(request.reason)?;
    let (actor, now) = (request.actor.to_string(), gate.ambient().now());
    let mut tx = gate.db().begin().await?;
    let subject = format!("ask for override {mode} {}", letter.id);
    if let Some(earlier) = take(&mut tx, &actor, request.action_id, &subject, now).await? {
        return Ok(serde_json::from_str(&earlier)?);
    }
    work::lock_operation(&mut tx, letter.operation_id).await?;
    let letter = dead_letters::by_id(&mut tx, letter.id).await?.ok_or(ActionError::NotFound)?;
    let judged =
        judge(gate, &mut tx, letter.operation_id, request.actor, &plan(&letter, mode, &actor)).await?;
    judged.as_seen(seen)?;
    let (result, answer) = if judged.answer.verdict == VerdictKind::Accepted {
        let row = OverrideRow {
            id: gate.ambient().id(),
            operation_id: letter.operation_id,
            dead_letter_id: letter.id,
            mode,
            reason: reason.clone(),
            requested_by: actor.clone(),
            requested_at: now,
            facts: facts(&judged),
            state: RequestState::Waiting,
            decided_by: None,
            decided_at: None,
            word: None,
        };
        if !overrides::insert(&mut tx, &row).await? {
            let text = "an override of this dead letter waits for a second person already";
            return Err(ActionError::Busy(text.to_owned()));
        }
        (RequestState::Waiting.as_str(), Asked::Waits(row.id))
    } else {
        (judged.answer.verdict.as_str(), Asked::Not(Box::new(judged.answer)))
    };
    let note = Note { action: "override_ask", result, detail: format!("mode {mode}") };
    note.write(gate, &mut tx, &letter, Some(reason), request).await?;
    let stored = serde_json::to_string(&answer)?;
    actions::answer(&mut tx, &actor, request.action_id, letter.operation_id, &stored).await?;
    tx.commit(Commit::Action).await?;
    Ok(answer)
}

/// A second person's yes: the override is asked for in the name of whoever wanted it. Their own word
/// on it may be left out.
pub async fn approve(gate: &Gate, id: Uuid, request: &Request<'_>) -> Result<Approved, ActionError> {
    permitted(request.actor, Right::Approve)?;
    a_person(request.actor)?;
    let word = remark(request.reason)?;
    let (actor, now) = (request.actor.to_string(), gate.ambient().now());
    let mut tx = gate.db().begin().await?;
    if let Some(earlier) = take(&mut tx, &actor, request.action_id, &format!("approve {id}"), now).await? {
        return Ok(serde_json::from_str(&earlier)?);
    }
    let (row, letter) = held(&mut tx, id).await?;
    if row.requested_by == actor {
        return Err(ActionError::Forbidden("a second person for this: you asked for it yourself".to_owned()));
    }
    // As they stand now, and not as they stood when the page was asked for.
    if holder(gate, &mut tx, &actor, Right::Approve).await?.is_none() {
        return Err(ActionError::Forbidden(request.actor.needs(Right::Approve)));
    }
    let answer = match standing(gate, &mut tx, &row, &letter, &actor).await? {
        Err(why) => Approved::Stale(why),
        Ok((requester, judged)) => {
            let asked = Request { actor: &requester, reason: &row.reason, ..request.clone() };
            let plan = plan(&letter, row.mode, &actor);
            Approved::Judged(Box::new(carry_out(gate, &mut tx, judged, &plan, &asked).await?))
        }
    };
    let (ends, result, detail, said) = match &answer {
        Approved::Stale(why) => {
            let stale = RequestState::Stale;
            (Some(stale), stale.as_str(), why.clone(), Some(why.as_str()))
        }
        Approved::Judged(verdict) => {
            let detail = format!("asked for by {}", row.requested_by);
            if verdict.verdict == VerdictKind::Accepted {
                let approved = RequestState::Approved;
                (Some(approved), approved.as_str(), detail, word.as_deref())
            } else {
                // Not let through as things stand: it waits on.
                (None, verdict.verdict.as_str(), detail, None)
            }
        }
    };
    if let Some(state) = ends {
        overrides::decide(&mut tx, id, Decision { state, by: &actor, at: now, word: said }).await?;
    }
    Note { action: "override_approve", result, detail }.write(gate, &mut tx, &letter, word, request).await?;
    let stored = serde_json::to_string(&answer)?;
    actions::answer(&mut tx, &actor, request.action_id, row.operation_id, &stored).await?;
    tx.commit(Commit::Action).await?;
    Ok(answer)
}

/// A second person's no, with a reason.
pub async fn refuse(gate: &Gate, id: Uuid, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::Approve)?;
    let why = reason(request.reason)?;
    end(gate, id, RequestState::Refused, Some(why), request).await
}

/// Whoever asked takes it back.
pub async fn withdraw(gate: &Gate, id: Uuid, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::View)?;
    end(gate, id, RequestState::Withdrawn, remark(request.reason)?, request).await
}

async fn end(
    gate: &Gate,
    id: Uuid,
    state: RequestState,
    word: Option<String>,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let (actor, now) = (request.actor.to_string(), gate.ambient().now());
    let mut tx = gate.db().begin().await?;
    if take(&mut tx, &actor, request.action_id, &format!("{state} {id}"), now).await?.is_some() {
        return Ok(());
    }
    let (row, letter) = held(&mut tx, id).await?;
    let own = row.requested_by == actor;
    if own != (state == RequestState::Withdrawn) {
        let who = if own { "a second person for this; you can take it back" } else { "to have asked for it" };
        return Err(ActionError::Forbidden(who.to_owned()));
    }
    let decision = Decision { state, by: &actor, at: now, word: word.as_deref() };
    overrides::decide(&mut tx, id, decision).await?;
    let action = if own { "override_withdraw" } else { "override_refuse" };
    let detail = format!("asked for by {}", row.requested_by);
    Note { action, result: "done", detail }.write(gate, &mut tx, &letter, word, request).await?;
    actions::answer(&mut tx, &actor, request.action_id, row.operation_id, state.as_str()).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}

/// Why a request that waits cannot be approved any more, for people; absent when it can.
pub async fn out_of_date(gate: &Gate, row: &OverrideRow) -> Result<Option<String>, ActionError> {
    let mut tx = gate.db().begin().await?;
    let Some(letter) = dead_letters::by_id(&mut tx, row.dead_letter_id).await? else {
        return Err(ActionError::NotFound);
    };
    Ok(standing(gate, &mut tx, row, &letter, "").await?.err())
}

/// A request that waits, and its dead letter, whose operation is locked from here on.
async fn held(tx: &mut Tx, id: Uuid) -> Result<(OverrideRow, DeadLetterRow), ActionError> {
    let row = overrides::by_id(tx, id).await?.ok_or(ActionError::NotFound)?;
    work::lock_operation(tx, row.operation_id).await?;
    // Somebody may have decided before it was locked.
    let row = overrides::by_id(tx, id).await?.ok_or(ActionError::NotFound)?;
    if row.state != RequestState::Waiting {
        let by = row.decided_by.as_deref().unwrap_or("somebody");
        return Err(ActionError::Settled(format!("this request is {} already, by {by}", row.state)));
    }
    let letter = dead_letters::by_id(tx, row.dead_letter_id).await?.ok_or(ActionError::NotFound)?;
    Ok((row, letter))
}

/// Who wanted it and how it goes now, while it is what they asked for; or why it is not any more.
async fn standing(
    gate: &Gate,
    tx: &mut Tx,
    row: &OverrideRow,
    letter: &DeadLetterRow,
    approver: &str,
) -> Result<Result<(Actor, Judged), String>, ActionError> {
    let Some(requester) = holder(gate, tx, &row.requested_by, Right::Override).await? else {
        return Ok(Err(format!("{} may not override any more", row.requested_by)));
    };
    if letter.status != DeadLetterStatus::Open {
        return Ok(Err(format!("the dead letter is {} meanwhile", letter.status)));
    }
    let judged = judge(gate, tx, row.operation_id, &requester, &plan(letter, row.mode, approver)).await?;
    if let Some(what) = judged.facts.as_ref().and_then(|facts| facts.changed_since(&row.facts)) {
        return Ok(Err(format!("it has changed since it was asked for: {what}")));
    }
    Ok(Ok((requester, judged)))
}

/// Refuses tokens and the command line: the two who decide are two people, and of these names alone
/// it is known that they are.
fn a_person(actor: &Actor) -> Result<(), ActionError> {
    match actor {
        Actor::Person { .. } => Ok(()),
        Actor::Token { .. } | Actor::Cli { .. } => {
            Err(ActionError::Forbidden("to be signed in to the desk: this takes two people".to_owned()))
        }
    }
}

/// The person of this name, while they may sign in and hold a right.
async fn holder(gate: &Gate, tx: &mut Tx, name: &str, right: Right) -> Result<Option<Actor>, ActionError> {
    let user = accounts::user_by_name(tx, name).await?.filter(|user| user.disabled_at.is_none());
    let actor =
        user.map(|user| Actor::Person { role: gate.config().auth.roles.of(&user.role), name: user.name });
    Ok(actor.filter(|actor| actor.may(right)))
}

fn plan<'a>(letter: &DeadLetterRow, mode: OverrideMode, approver: &'a str) -> Plan<'a> {
    Plan { letter: Some(letter.id), approved_by: Some(approver), ..Plan::overriding(mode) }
}

fn facts(judged: &Judged) -> String {
    judged.facts.as_ref().map_or_else(String::new, ToString::to_string)
}

/// What is written down of an act on a request.
struct Note<'a> {
    action: &'a str,
    result: &'a str,
    detail: String,
}

impl Note<'_> {
    async fn write(
        self,
        gate: &Gate,
        tx: &mut Tx,
        letter: &DeadLetterRow,
        reason: Option<String>,
        request: &Request<'_>,
    ) -> Result<(), ActionError> {
        let entry = AuditRow {
            id: gate.ambient().id(),
            at: gate.ambient().now(),
            actor: request.actor.to_string(),
            action: self.action.to_owned(),
            operation_id: Some(letter.operation_id),
            dead_letter_id: Some(letter.id),
            subject: None,
            reason,
            result: self.result.to_owned(),
            detail: self.detail,
            origin: request.origin.to_owned(),
        };
        Ok(audit::insert(tx, &entry).await?)
    }
}
