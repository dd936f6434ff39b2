//! What must hold between a type's retries and its destinations' promises.

use std::collections::BTreeMap;
use std::time::Duration;

use super::destination::Destination;
use super::operation::OperationType;
use super::reader::Notes;
use super::words::duration_text;

/// Refuses retries that outlast the window in which a destination recognises a repeat: the last
/// of them would be a second effect or a dead letter that nothing needed.
pub(super) fn windows(
    notes: &Notes<'_>,
    destinations: &BTreeMap<String, Destination>,
    operations: &BTreeMap<String, OperationType>,
) {
    for operation in operations.values() {
        let shortest = operation
            .steps
            .iter()
            .filter_map(|step| destinations.get(&step.destination))
            .filter(|destination| {
                !destination.contract.naturally_idempotent && destination.contract.lookup.is_none()
            })
            .filter_map(|destination| {
                let window = destination.contract.key.as_ref()?.window;
                let usable = window.saturating_sub(destination.contract.margin());
                // A window of no use is a mistake of its own, or promises nothing on purpose.
                (!usable.is_zero()).then_some((usable, window, destination))
            })
            .min_by_key(|(usable, ..)| *usable);
        let Some((usable, window, destination)) = shortest else { continue };
        if operation.retry.max_age > usable {
            notes.mistake(
                &format!("operations.{}.retry.max_age", operation.name),
                format!(
                    "{} is longer than \"{}\" can be trusted to recognise a repeat: its window of {} less {} for \
                     one exchange and for clocks; write at most \"{}\", or give it a lookup",
                    duration_text(operation.retry.max_age),
                    destination.name,
                    duration_text(window),
                    duration_text(destination.contract.margin()),
                    duration_text(usable),
                ),
            );
        }
    }
}

/// Refuses to forget a key while it can still be of use: while a destination recognises it, while an
/// operation is tried by itself, or before its payload is erased.
pub(super) fn key_retention(
    notes: &Notes<'_>,
    retention: Option<Duration>,
    destinations: &BTreeMap<String, Destination>,
    operations: &BTreeMap<String, OperationType>,
) {
    let Some(retention) = retention else { return };
    let at = |table: &str, name: &str, key: &str| format!("{table}.{name}.{key}");
    let windows = destinations.values().filter_map(|known| {
        Some((known.contract.key.as_ref()?.window, at("destinations", &known.name, "key.window")))
    });
    let kept =
        operations.values().filter_map(|kind| Some((kind.retain?, at("operations", &kind.name, "retain"))));
    let tried =
        operations.values().map(|kind| (kind.retry.max_age, at("operations", &kind.name, "retry.max_age")));
    let longest = windows.chain(kept).chain(tried).max_by_key(|(span, _)| *span);
    match longest {
        Some((span, what)) if retention < span => notes.mistake(
            "engine.key_retention",
            format!(
                "{} is shorter than {what}, which is {}: the key would be forgotten while it still counts; write \
                 at least \"{}\", or leave it out to keep keys for ever",
                duration_text(retention),
                duration_text(span),
                duration_text(span),
            ),
        ),
        _ if retention.is_zero() => notes.mistake("engine.key_retention", "must be longer than 0s"),
        _ => {}
    }
}
