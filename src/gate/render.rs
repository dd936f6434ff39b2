//! From work to the exact bytes of what is sent, or asked.

use std::collections::BTreeMap;

use serde_json::Value;
use uuid::Uuid;

use super::{Gate, GateError};
use crate::config::{Asking, Destination, OperationFacts, OperationType, RenderContext, StepType};
use crate::domain::attempt::StoredRequest;
use crate::domain::lookup::Task;
use crate::store::Tx;
use crate::store::operations::{self, StepRow};
use crate::store::work::WorkRow;

/// What is to leave for a row of work.
#[derive(Debug)]
pub(super) enum Rendered {
    /// The first send of its generation: these bytes are kept.
    First(StoredRequest),
    /// What the first send kept.
    Again(StoredRequest),
    /// A question, and what the answer would show of our data.
    Question(Asking),
    /// The step's condition does not hold; why, for people.
    Passed(String),
    /// It cannot be built; why, for people.
    Impossible(String),
}

/// Computes what leaves for each row, or takes what the step's first attempt kept.
pub(super) async fn all(
    gate: &Gate,
    tx: &mut Tx,
    rows: Vec<WorkRow>,
) -> Result<Vec<(WorkRow, Rendered)>, GateError> {
    let later: Vec<Uuid> = rows
        .iter()
        .filter(|row| row.position > 0 && row.method.is_none())
        .map(|row| row.operation_id)
        .collect();
    let earlier = if later.is_empty() { Vec::new() } else { operations::steps(tx, &later).await? };
    let rendered = |row: WorkRow| {
        let rendered = one(gate, &row, &saved(&earlier, &row)).unwrap_or_else(Rendered::Impossible);
        (row, rendered)
    };
    Ok(rows.into_iter().map(rendered).collect())
}

fn one(gate: &Gate, row: &WorkRow, saved: &BTreeMap<String, Value>) -> Result<Rendered, String> {
    if row.task != Task::Send {
        return question(gate, row);
    }
    if row.method.is_some() {
        return Ok(Rendered::Again(stored(row)));
    }
    let (kind, step, destination) = configured(gate, row)?;
    let text = row.payload.as_deref().ok_or("The payload was erased.")?;
    let payload: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
    let context = context(row, kind, &payload, saved);
    if !step.applies(&context).map_err(|error| error.to_string())? {
        return Ok(Rendered::Passed(format!(
            "The condition of \u{201c}{}\u{201d} does not hold.",
            step.name
        )));
    }
    step.request(destination, text, &context).map(Rendered::First).map_err(|error| error.to_string())
}

fn question(gate: &Gate, row: &WorkRow) -> Result<Rendered, String> {
    let (kind, _, destination) = configured(gate, row)?;
    let payload: Value = match &row.payload {
        Some(text) => serde_json::from_str(text).map_err(|error| error.to_string())?,
        // Most questions name nothing but the key.
        None => Value::Null,
    };
    let none = BTreeMap::new();
    match destination.question(&context(row, kind, &payload, &none)) {
        Some(Ok(asking)) => Ok(Rendered::Question(asking)),
        Some(Err(error)) => Err(error.to_string()),
        None => Err(format!("The destination {} can no longer be asked.", destination.name)),
    }
}

fn configured<'g>(
    gate: &'g Gate,
    row: &WorkRow,
) -> Result<(&'g OperationType, &'g StepType, &'g Destination), String> {
    let kind = gate
        .config
        .operations
        .get(&row.kind)
        .ok_or_else(|| format!("The operation type {} is no longer configured.", row.kind))?;
    let step =
        kind.steps.iter().find(|step| step.name == row.step).ok_or_else(|| {
            format!("The type {} no longer has a step \u{201c}{}\u{201d}.", row.kind, row.step)
        })?;
    let destination = gate
        .config
        .destinations
        .get(&row.destination)
        .ok_or_else(|| format!("The destination {} is no longer configured.", row.destination))?;
    Ok((kind, step, destination))
}

fn context<'a>(
    row: &WorkRow,
    kind: &OperationType,
    payload: &'a Value,
    saved: &'a BTreeMap<String, Value>,
) -> RenderContext<'a> {
    RenderContext {
        payload,
        key: row.step_key.to_string(),
        operation: OperationFacts {
            id: row.operation_id,
            key: row.key.clone(),
            kind: kind.name.clone(),
            correlation_id: row.correlation_id.clone(),
            source: row.source.clone(),
        },
        received_at: row.received_at,
        steps: saved,
    }
}

/// What the steps before this one saved, by their names.
pub(super) fn saved(steps: &[StepRow], work: &WorkRow) -> BTreeMap<String, Value> {
    steps
        .iter()
        .filter(|step| step.operation_id == work.operation_id && step.position < work.position)
        .filter_map(|step| Some((step.name.clone(), serde_json::from_str(step.saved.as_deref()?).ok()?)))
        .collect()
}

/// The request that the step's first attempt stored.
pub(super) fn stored(work: &WorkRow) -> StoredRequest {
    StoredRequest {
        method: work.method.clone().unwrap_or_default(),
        url: work.url.clone().unwrap_or_default(),
        headers: work.headers.as_deref().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default(),
        body: if work.body_is_payload == Some(true) { work.payload.clone() } else { work.body.clone() },
    }
}

/// The request that a send would send; why there is none, for people.
pub(super) fn preview(
    gate: &Gate,
    work: &WorkRow,
    saved: &BTreeMap<String, Value>,
) -> Result<StoredRequest, String> {
    match one(gate, work, saved)? {
        Rendered::First(request) | Rendered::Again(request) => Ok(request),
        Rendered::Question(asking) => Ok(asking.request),
        Rendered::Passed(why) | Rendered::Impossible(why) => Err(why),
    }
}

/// Why a first send cannot be built, for people. A step that is passed over sends nothing.
pub(super) fn try_out(gate: &Gate, work: &WorkRow) -> Result<(), String> {
    match one(gate, work, &BTreeMap::new())? {
        Rendered::Impossible(why) => Err(why),
        Rendered::First(_) | Rendered::Again(_) | Rendered::Question(..) | Rendered::Passed(_) => Ok(()),
    }
}
