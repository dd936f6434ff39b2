//! Webhook deliveries, counted by source, outcome and hour.

use std::time::Duration;

use sqlx::AssertSqlSafe;

use super::{MAX_ROWS, StoreError, Tx, placeholders};
use crate::domain::time::Timestamp;
use crate::domain::webhook::HookOutcome;

/// How long counts are kept.
pub const KEPT: Duration = Duration::from_hours(30 * 24);

const HOUR: i64 = 3_600_000_000;

stored_as_text!(HookOutcome);

/// So many deliveries of a source had this outcome within an hour.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HookCount {
    /// A configured source's name.
    pub source: String,
    /// What became of them.
    pub outcome: HookOutcome,
    /// The hour's first moment.
    pub hour: Timestamp,
    /// How many.
    pub count: i64,
    /// The last one of them.
    pub last_at: Timestamp,
    /// From where that one came.
    pub last_address: String,
}

from_row!(HookCount { source, outcome, hour, count, last_at, last_address });

/// The first moment of the hour.
pub fn hour_of(at: Timestamp) -> Timestamp {
    Timestamp::from_micros(at.as_micros() - at.as_micros().rem_euclid(HOUR))
}

/// Adds to counts. The rows must differ in source, outcome or hour, and nodes that add at once must
/// bring them in the same order.
pub async fn add(tx: &mut Tx, counts: &[HookCount]) -> Result<(), StoreError> {
    for counts in counts.chunks(MAX_ROWS) {
        let sql = format!(
            "INSERT INTO hook_counts (source, outcome, hour, count, last_at, last_address) VALUES {} \
             ON CONFLICT (source, outcome, hour) DO UPDATE SET \
             count = hook_counts.count + excluded.count, \
             last_address = CASE WHEN excluded.last_at >= hook_counts.last_at \
                 THEN excluded.last_address ELSE hook_counts.last_address END, \
             last_at = CASE WHEN excluded.last_at >= hook_counts.last_at \
                 THEN excluded.last_at ELSE hook_counts.last_at END",
            placeholders(counts.len(), 6)
        );
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for count in counts {
                query = query
                    .bind(&count.source)
                    .bind(count.outcome)
                    .bind(count.hour)
                    .bind(count.count)
                    .bind(count.last_at)
                    .bind(&count.last_address);
            }
            query.execute(c).await?;
        });
    }
    Ok(())
}

/// The counts of the hours after a moment.
pub async fn since(tx: &mut Tx, moment: Timestamp) -> Result<Vec<HookCount>, StoreError> {
    const SQL: &str = "SELECT source, outcome, hour, count, last_at, last_address FROM hook_counts \
        WHERE hour > $1 ORDER BY source, outcome, hour";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(moment).fetch_all(c).await)?)
}

/// When each source last sent something of one outcome, within what is kept.
pub async fn last(tx: &mut Tx, outcome: HookOutcome) -> Result<Vec<(String, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT source, max(last_at) FROM hook_counts WHERE outcome = $1 GROUP BY source";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(outcome).fetch_all(c).await)?)
}

/// Drops the counts of the hours before a moment.
pub async fn delete_before(tx: &mut Tx, moment: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "DELETE FROM hook_counts WHERE hour < $1";
    on!(tx, c => sqlx::query(SQL).bind(moment).execute(c).await?.rows_affected());
    Ok(())
}
