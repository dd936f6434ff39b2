//! What open pages are told of: how much waits, and when things they show last changed.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// The moments at which the dead letters that wait were opened, newest first.
pub async fn newest(tx: &mut Tx, now: Timestamp, most: i64) -> Result<Vec<Timestamp>, StoreError> {
    const SQL: &str = "SELECT opened_at FROM dead_letters \
        WHERE status = 'open' AND (snoozed_until IS NULL OR snoozed_until <= $1) \
        ORDER BY opened_at DESC, id DESC LIMIT $2";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(now).bind(most).fetch_all(c).await)?)
}

/// When each of these operations last changed: an attempt that began or ended, an event, or a
/// person's action. Operations that do not exist are left out.
pub async fn changes(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    if operations.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<String> = (1..=operations.len()).map(|place| format!("${place}")).collect();
    let sql = format!(
        "SELECT o.id, (SELECT max(at) FROM (SELECT o.received_at AS at \
         UNION ALL SELECT max(started_at) FROM attempts WHERE operation_id = o.id \
         UNION ALL SELECT max(ended_at) FROM attempts WHERE operation_id = o.id \
         UNION ALL SELECT max(at) FROM events WHERE operation_id = o.id \
         UNION ALL SELECT max(at) FROM audit WHERE operation_id = o.id) moments) \
         FROM operations o WHERE o.id IN ({})",
        places.join(",")
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for operation in operations {
            query = query.bind(*operation);
        }
        query.fetch_all(c).await
    })?)
}
