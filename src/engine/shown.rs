//! Private values that somebody is shown for a while: to one session, of one operation, with a reason.
//! One entry in the audit covers every look until the time is over.

use std::time::Duration;

use uuid::Uuid;

use super::actions::{ActionError, Request, permitted, reason, take};
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::{Commit, Tx, actions, operations, shown};

/// How long they are shown.
pub const LASTS: Duration = Duration::from_mins(10);

/// Shows an operation's private values to a session, by its hash.
pub async fn begin(
    gate: &Gate,
    operation: Uuid,
    session: &[u8],
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let Some(mut tx) = taken(gate, "show", operation, request).await? else { return Ok(()) };
    let why = reason(request.reason)?;
    let ends_at = gate.ambient().now().plus(LASTS);
    if !shown::begin(&mut tx, session, operation, ends_at).await? {
        return Err(ActionError::Invalid("your session has ended; sign in again".to_owned()));
    }
    let detail = format!("everything, on the pages of the operation until {}", words::moment(ends_at));
    record(gate, &mut tx, operation, request, "view_payload", Some(why), detail).await?;
    done(tx, operation, request, "shown").await
}

/// Hides them again before the time is over. Where they are hidden already, nothing is done.
pub async fn end(
    gate: &Gate,
    operation: Uuid,
    session: &[u8],
    request: &Request<'_>,
) -> Result<(), ActionError> {
    let Some(mut tx) = taken(gate, "hide", operation, request).await? else { return Ok(()) };
    if shown::end(&mut tx, session, operation, gate.ambient().now()).await? {
        let detail = "before the time was over".to_owned();
        record(gate, &mut tx, operation, request, "hide_payload", None, detail).await?;
    }
    done(tx, operation, request, "hidden").await
}

/// Until when a session is shown them; absent when they are hidden.
pub async fn ends_at(
    tx: &mut Tx,
    operation: Uuid,
    session: &[u8],
    now: Timestamp,
) -> Result<Option<Timestamp>, ActionError> {
    Ok(shown::ends_at(tx, session, operation, now).await?)
}

/// Begins an action that whoever asks may do; absent when it was done under this id before.
async fn taken(
    gate: &Gate,
    verb: &str,
    operation: Uuid,
    request: &Request<'_>,
) -> Result<Option<Tx>, ActionError> {
    permitted(request.actor, Right::ViewPayload)?;
    let mut tx = gate.db().begin().await?;
    operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let (actor, subject) = (request.actor.to_string(), format!("{verb} {operation}"));
    let earlier = take(&mut tx, &actor, request.action_id, &subject, gate.ambient().now()).await?;
    Ok(earlier.is_none().then_some(tx))
}

async fn done(mut tx: Tx, operation: Uuid, request: &Request<'_>, answer: &str) -> Result<(), ActionError> {
    actions::answer(&mut tx, &request.actor.to_string(), request.action_id, operation, answer).await?;
    Ok(tx.commit(Commit::Action).await?)
}

async fn record(
    gate: &Gate,
    tx: &mut Tx,
    operation: Uuid,
    request: &Request<'_>,
    action: &str,
    why: Option<String>,
    detail: String,
) -> Result<(), ActionError> {
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: request.actor.to_string(),
        action: action.to_owned(),
        operation_id: Some(operation),
        dead_letter_id: None,
        subject: None,
        reason: why,
        result: "done".to_owned(),
        detail,
        origin: request.origin.to_owned(),
    };
    Ok(audit::insert(tx, &entry).await?)
}
