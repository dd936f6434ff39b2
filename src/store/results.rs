//! What many operations came to, for lists.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{MAX_ROWS, StoreError, Tx, placeholders};

/// The answer that completed an operation's last step.
#[derive(Clone, Debug)]
pub struct ResultRow {
    /// The operation.
    pub operation_id: Uuid,
    /// The step's place.
    pub position: i64,
    /// The answer's status.
    pub status: Option<i64>,
    /// Its body, as far as it is kept.
    pub answer_body: Option<String>,
}

from_row!(ResultRow { operation_id, position, status, answer_body });

/// The answers of those that were answered, earlier steps first, so that the last one counts.
pub async fn of(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<ResultRow>, StoreError> {
    let mut found = Vec::new();
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!(
            "SELECT operation_id, position, status, answer_body FROM attempts WHERE outcome = 'done' \
             AND operation_id IN {} ORDER BY operation_id, position, started_at",
            placeholders(1, ids.len())
        );
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, ResultRow>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// The episodes that are not closed: operation and dead letter.
pub async fn live_letters(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<(Uuid, Uuid)>, StoreError> {
    let mut found = Vec::new();
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!(
            "SELECT operation_id, id FROM dead_letters WHERE closed_at IS NULL AND operation_id IN {}",
            placeholders(1, ids.len())
        );
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, (Uuid, Uuid)>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}
