//! Closing a dead letter.

use uuid::Uuid;

use super::actions::{ActionError, Request, asked, examine, permitted, reason, take};
use crate::domain::actor::Right;
use crate::domain::attempt::Cause;
use crate::domain::dead_letter::Resolution;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::dead_letters::{self, Closing};
use crate::store::{Commit, actions, work};

/// How a dead letter is closed.
#[derive(Clone, Debug)]
pub struct Resolve {
    /// How.
    pub resolution: Resolution,
    /// The id over there.
    pub reference: Option<String>,
}

/// Closes a dead letter at a person's word. `completed_at_destination` also records the effect, so
/// that nothing will send it again.
pub async fn resolve(
    gate: &Gate,
    letter: Uuid,
    how: &Resolve,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    permitted(request.actor, Right::Resolve)?;
    let reason = reason(request.reason)?;
    let reference = how.reference.as_deref().map(str::trim).filter(|text| !text.is_empty());
    if let Some(text) = reference
        && (text.chars().count() > 200 || text.chars().any(char::is_control))
    {
        return Err(ActionError::Invalid("a reference is one line of at most 200 characters".to_owned()));
    }
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    let subject = format!("resolve {} {letter}", how.resolution);
    if take(&mut tx, &actor, request.action_id, &subject, now).await?.is_some() {
        return Ok(());
    }
    let row = dead_letters::by_id(&mut tx, letter).await?.ok_or(ActionError::NotFound)?;
    work::lock_operation(&mut tx, row.operation_id).await?;
    let asked = asked(gate, row.operation_id, request.actor, Cause::Replay, String::new());
    let examined = examine(gate, &mut tx, &asked, request.actor, Right::Resolve).await?;
    let closing =
        Closing { id: letter, resolution: how.resolution, reason: &reason, reference, by: &actor, at: now };
    if !dead_letters::resolve(&mut tx, &closing).await? {
        // It was read before the operation was locked; somebody may have acted in between.
        let now = dead_letters::by_id(&mut tx, letter).await?;
        return Err(ActionError::NotOpen(now.map_or(row.status, |row| row.status)));
    }
    // The answer to a question that is out would be written over the person's word.
    if how.resolution == Resolution::CompletedAtDestination && examined.facts.queued_at.is_some() {
        let text =
            "the destination is being asked about it; wait for its answer, then close this dead letter";
        return Err(ActionError::Busy(text.to_owned()));
    }
    if how.resolution == Resolution::CompletedAtDestination {
        gate.record_done(&mut tx, &examined.facts, reference).await?;
        work::announce(&mut tx).await?;
    }
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor: actor.clone(),
        action: "resolve".to_owned(),
        operation_id: Some(row.operation_id),
        dead_letter_id: Some(letter),
        subject: None,
        reason: Some(reason),
        result: how.resolution.as_str().to_owned(),
        detail: reference.map(|text| format!("reference {text}")).unwrap_or_default(),
        origin: request.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    actions::answer(&mut tx, &actor, request.action_id, row.operation_id, "resolved").await?;
    tx.commit(Commit::Resolve).await?;
    Ok(())
}
