//! How a replay of the first members would go at this moment, without doing anything.

use uuid::Uuid;

use crate::domain::actor::{Actor, Right};
use crate::domain::attempt::Cause;
use crate::domain::verdict::VerdictKind;
use crate::engine::actions::{ActionError, asked, examine};
use crate::gate::Gate;
use crate::store::Tx;
use crate::store::bulk::members;

/// So many members are looked at.
pub const LOOKED_AT: i64 = 50;

/// What the key checks say of the first members that are waiting: how many there are of each
/// verdict, in the order of verdicts.
pub async fn verdicts(
    gate: &Gate,
    tx: &mut Tx,
    bulk: Uuid,
    actor: &Actor,
) -> Result<Vec<(VerdictKind, usize)>, ActionError> {
    let mut counts: Vec<(VerdictKind, usize)> = Vec::new();
    for member in members::due(tx, bulk, i64::MAX, LOOKED_AT).await? {
        let asked = asked(gate, member.operation_id, actor, Cause::Bulk, String::new());
        let verdict = match examine(gate, tx, &asked, actor, Right::Replay).await {
            Ok(examined) => examined.examination.verdict,
            // It was forgotten since.
            Err(ActionError::NotFound) => VerdictKind::Refused,
            Err(error) => return Err(error),
        };
        match counts.iter_mut().find(|(known, _)| *known == verdict) {
            Some((_, count)) => *count += 1,
            None => counts.push((verdict, 1)),
        }
    }
    counts.sort_unstable();
    Ok(counts)
}
