//! Filters that people keep, for themselves or for everybody.

use uuid::Uuid;

use super::actions::{ActionError, Request, permitted, take};
use crate::domain::actor::Right;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::views::{self, ViewRow};
use crate::store::{Commit, Tx, actions};

/// The longest name of a view, in characters.
pub const MAX_NAME: usize = 60;
/// The longest query of a view, in bytes.
const MAX_QUERY: usize = 2_000;
/// Views that one person keeps at most.
const MAX_VIEWS: i64 = 50;

/// Keeps a filter under a name, in the place of the person's earlier one of that name. To share it
/// takes the right to resolve: what everybody sees is everybody's work.
pub async fn save(
    gate: &Gate,
    name: &str,
    query: &str,
    shared: bool,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    permitted(request.actor, if shared { Right::Resolve } else { Right::View })?;
    let name = name.trim();
    let fits = (1..=MAX_NAME).contains(&name.chars().count()) && !name.chars().any(char::is_control);
    if !fits {
        return Err(ActionError::Invalid(format!("a name is one line of 1 to {MAX_NAME} characters")));
    }
    if query.len() > MAX_QUERY {
        return Err(ActionError::Invalid("this filter is too long to be kept".to_owned()));
    }
    let owner = request.actor.to_string();
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await?;
    if take(&mut tx, &owner, request.action_id, &format!("view_save {name}"), now).await?.is_some() {
        return Ok(());
    }
    if views::others_kept_by(&mut tx, &owner, name).await? >= MAX_VIEWS {
        return Err(ActionError::Invalid(format!("you keep {MAX_VIEWS} filters already; drop one first")));
    }
    let view = ViewRow {
        id: gate.ambient().id(),
        owner,
        name: name.to_owned(),
        query: query.to_owned(),
        shared,
        created_at: now,
    };
    views::save(&mut tx, &view).await?;
    let result = if shared { "shared" } else { "kept" };
    record(gate, &mut tx, request, "view_save", result, format!("{name}: {query}")).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}

/// Drops a filter of the person's own.
pub async fn delete(gate: &Gate, view: Uuid, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::View)?;
    let owner = request.actor.to_string();
    let mut tx = gate.db().begin().await?;
    let now = gate.ambient().now();
    if take(&mut tx, &owner, request.action_id, &format!("view_delete {view}"), now).await?.is_some() {
        return Ok(());
    }
    let name = views::delete(&mut tx, view, &owner).await?.ok_or(ActionError::NotFound)?;
    record(gate, &mut tx, request, "view_delete", "dropped", name).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}

async fn record(
    gate: &Gate,
    tx: &mut Tx,
    request: &Request<'_>,
    action: &str,
    result: &str,
    detail: String,
) -> Result<(), ActionError> {
    let actor = request.actor.to_string();
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: actor.clone(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: result.to_owned(),
        detail,
        origin: request.origin.to_owned(),
    };
    audit::insert(tx, &entry).await?;
    actions::answer(tx, &actor, request.action_id, None::<Uuid>, action).await?;
    Ok(())
}
