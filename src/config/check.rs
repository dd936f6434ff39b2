//! What must hold between a type's retries and its destinations' promises.

use std::collections::BTreeMap;

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
