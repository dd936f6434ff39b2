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
pub async fn operations(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT o.id, (SELECT max(at) FROM (SELECT o.received_at AS at \
         UNION ALL SELECT max(started_at) FROM attempts WHERE operation_id = o.id \
         UNION ALL SELECT max(ended_at) FROM attempts WHERE operation_id = o.id \
         UNION ALL SELECT max(at) FROM events WHERE operation_id = o.id \
         UNION ALL SELECT max(at) FROM audit WHERE operation_id = o.id) moments) \
         FROM operations o WHERE o.id IN";
    changes(tx, SQL, operations).await
}

/// When each of these bulk actions last changed: it was made, paused or ended, or something became
/// of a member. Those that do not exist are left out.
pub async fn bulks(tx: &mut Tx, bulks: &[Uuid]) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    // Who starts it or lets it go on leaves a line in the audit too, but its members tell that soon.
    const SQL: &str = "SELECT b.id, (SELECT max(at) FROM (SELECT b.created_at AS at \
         UNION ALL SELECT b.started_at UNION ALL SELECT b.paused_at UNION ALL SELECT b.ended_at \
         UNION ALL SELECT max(at) FROM bulk_members WHERE bulk_id = b.id) moments) \
         FROM bulks b WHERE b.id IN";
    changes(tx, SQL, bulks).await
}

/// `sql` up to the list of ids.
async fn changes(tx: &mut Tx, sql: &'static str, ids: &[Uuid]) -> Result<Vec<(Uuid, Timestamp)>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let places: Vec<String> = (1..=ids.len()).map(|place| format!("${place}")).collect();
    let sql = format!("{sql} ({})", places.join(","));
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for id in ids {
            query = query.bind(*id);
        }
        query.fetch_all(c).await
    })?)
}
