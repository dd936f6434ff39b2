//! What people see and do about destinations: their health, pausing and resuming.

use uuid::Uuid;

use super::actions::{ActionError, Request, permitted, reason, take};
use crate::config::Config;
use crate::domain::actor::Right;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::destinations::{self, HealthRow};
use crate::store::{Commit, StoreError, Tx, actions, work};

/// A destination's health, and what waits for it.
#[derive(Clone, Debug)]
pub struct Standing {
    /// What is stored of it.
    pub health: HealthRow,
    /// Rows of work that wait for it or are being sent.
    pub waiting: i64,
}

/// Every configured destination, by name.
pub async fn standings(tx: &mut Tx, config: &Config) -> Result<Vec<Standing>, StoreError> {
    let known = destinations::all(tx).await?;
    let waiting = work::by_destination(tx).await?;
    let standing = |name: &String| Standing {
        health: known.iter().find(|row| row.name == *name).cloned().unwrap_or_else(|| HealthRow::new(name)),
        waiting: waiting.iter().find(|(known, _)| known == name).map_or(0, |(_, count)| *count),
    };
    Ok(config.destinations.keys().map(standing).collect())
}

/// One configured destination; absent when there is none of that name.
pub async fn standing(tx: &mut Tx, config: &Config, name: &str) -> Result<Option<Standing>, StoreError> {
    Ok(standings(tx, config).await?.into_iter().find(|standing| standing.health.name == name))
}

/// Stops sending to a destination until somebody resumes it.
pub async fn pause(gate: &Gate, name: &str, request: &Request<'_>) -> Result<(), ActionError> {
    change(gate, name, true, request).await
}

/// Sends to a paused destination again.
pub async fn resume(gate: &Gate, name: &str, request: &Request<'_>) -> Result<(), ActionError> {
    change(gate, name, false, request).await
}

async fn change(gate: &Gate, name: &str, pause: bool, request: &Request<'_>) -> Result<(), ActionError> {
    permitted(request.actor, Right::PauseDestination)?;
    let reason = reason(request.reason)?;
    if !gate.config().destinations.contains_key(name) {
        return Err(ActionError::NotFound);
    }
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let action = if pause { "pause" } else { "resume" };
    let mut tx = gate.db().begin().await?;
    if take(&mut tx, &actor, request.action_id, &format!("{action} {name}"), now).await?.is_some() {
        return Ok(());
    }
    let changed = if pause {
        gate.pause(&mut tx, name, &actor, &reason).await?
    } else {
        gate.resume(&mut tx, name).await?
    };
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor: actor.clone(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some(format!("destination:{name}")),
        reason: Some(reason),
        result: if changed { "done" } else { "nothing to do" }.to_owned(),
        detail: format!("destination {name}"),
        origin: request.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    actions::answer(&mut tx, &actor, request.action_id, None::<Uuid>, action).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}
