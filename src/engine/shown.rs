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
    permitted(request.actor, Right::ViewPayload)?;
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let why = reason(request.reason)?;
    let actor = request.actor.to_string();
    let subject = format!("show {operation}");
    if take(&mut tx, &actor, request.action_id, &subject, now).await?.is_some() {
        return Ok(());
    }
    let ends_at = now.plus(LASTS);
    if !shown::begin(&mut tx, session, operation, ends_at).await? {
        return Err(ActionError::Invalid("your session has ended; sign in again".to_owned()));
    }
    let detail = format!("everything, on the pages of the operation until {}", words::moment(ends_at));
    record(gate, &mut tx, operation, request, "view_payload", Some(why), detail).await?;
    actions::answer(&mut tx, &actor, request.action_id, operation, "shown").await?;
    Ok(tx.commit(Commit::Action).await?)
}

/// Hides them again before the time is over. Where they are hidden already, nothing is done.
pub async fn end(
    gate: &Gate,
    operation: Uuid,
    session: &[u8],
    request: &Request<'_>,
) -> Result<(), ActionError> {
    permitted(request.actor, Right::ViewPayload)?;
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let actor = request.actor.to_string();
    let subject = format!("hide {operation}");
    if take(&mut tx, &actor, request.action_id, &subject, now).await?.is_some() {
        return Ok(());
    }
    if shown::end(&mut tx, session, operation, now).await? {
        let detail = "before the time was over".to_owned();
        record(gate, &mut tx, operation, request, "hide_payload", None, detail).await?;
    }
    actions::answer(&mut tx, &actor, request.action_id, operation, "hidden").await?;
    Ok(tx.commit(Commit::Action).await?)
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
