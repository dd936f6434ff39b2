//! Which operations are a subject's, and what else in them is personal.

use std::collections::{BTreeSet, HashSet};

use serde_json::Value;
use uuid::Uuid;

use super::super::actions::ActionError;
use super::Subject;
use crate::gate::Gate;
use crate::store::retention::{self, Task};
use crate::store::{erasure, operations};

/// Operations that are looked at, or erased, at a time.
pub(super) const STEP: usize = 50;

/// Some of a subject's operations.
pub(super) struct Stretch {
    /// Those that nothing more is to be done with.
    pub(super) over: Vec<Uuid>,
    /// Those that stay for now.
    pub(super) kept: Vec<Uuid>,
    /// The last of all of them.
    pub(super) last: Uuid,
}

/// The operations of a subject behind an id; absent when there are no more.
pub(super) async fn stretch(
    gate: &Gate,
    subject: &Subject,
    after: Uuid,
) -> Result<Option<Stretch>, ActionError> {
    // A transaction that may write: whoever is busy with one of them is seen.
    let mut tx = gate.db().begin().await?;
    let mut found = erasure::of_subject(&mut tx, (&subject.name, &subject.value), after, STEP).await?;
    let over = retention::over(&mut tx, Task::Forget, &found).await?;
    tx.undo().await?;
    let Some(last) = found.last().copied() else { return Ok(None) };
    found.retain(|id| !over.contains(id));
    Ok(Some(Stretch { over, kept: found, last }))
}

/// A subject's operations as they stood at the beginning.
pub(super) struct Gathered {
    /// Those that go.
    pub(super) settled: HashSet<Uuid>,
    /// Those that stay, with all that is written of them.
    pub(super) kept: HashSet<Uuid>,
    /// What tells of whom they are: the subject's value, and the masked values of those that go,
    /// which people may have quoted.
    pub(super) values: BTreeSet<String>,
}

impl Gathered {
    /// Whether an operation is one of the subject's: what is written of it goes, or stays, with it.
    pub(super) fn holds(&self, operation: Uuid) -> bool {
        self.settled.contains(&operation) || self.kept.contains(&operation)
    }
}

/// Looks through a subject's operations.
pub(super) async fn gather(gate: &Gate, subject: &Subject) -> Result<Gathered, ActionError> {
    let mut found =
        Gathered { settled: HashSet::new(), kept: HashSet::new(), values: [subject.value.clone()].into() };
    let mut after = Uuid::nil();
    while let Some(stretch) = stretch(gate, subject, after).await? {
        after = stretch.last;
        let mut tx = gate.db().read().await?;
        let rows = operations::by_ids(&mut tx, &stretch.over).await?;
        let payloads = operations::payloads(&mut tx, &stretch.over, i64::MAX).await?;
        tx.undo().await?;
        for (id, text) in payloads {
            let kind = rows.iter().find(|row| row.id == id).map(|row| row.kind.as_str());
            let Some(kind) = kind.and_then(|kind| gate.config().operations.get(kind)) else { continue };
            let Ok(payload) = serde_json::from_str::<Value>(&text) else { continue };
            for value in kind.mask.iter().filter_map(|pointer| payload.pointer(pointer)) {
                texts(value, &mut found.values);
            }
        }
        found.settled.extend(stretch.over);
        found.kept.extend(stretch.kept);
    }
    Ok(found)
}

/// The texts and numbers in a value.
fn texts(value: &Value, into: &mut BTreeSet<String>) {
    match value {
        Value::String(text) if !text.trim().is_empty() => {
            into.insert(text.trim().to_owned());
        }
        Value::Number(number) => {
            into.insert(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| texts(item, into)),
        Value::Object(members) => members.values().for_each(|member| texts(member, into)),
        _ => {}
    }
}
