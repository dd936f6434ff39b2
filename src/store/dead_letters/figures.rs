//! What the dead letters add up to: on the first page, hour by hour, and where time runs out.

use std::time::Duration;

use uuid::Uuid;

use crate::domain::time::Timestamp;
use crate::store::{StoreError, Tx};

/// The line of figures on the first page.
#[derive(Clone, Copy, Debug)]
pub struct Figures {
    /// Waiting for a person.
    pub open: i64,
    /// Of these: may have completed.
    pub may_have_completed: i64,
    /// The oldest of them.
    pub oldest: Option<Timestamp>,
    /// Open as well, and put off.
    pub snoozed: i64,
    /// Opened in the last day, whatever became of them.
    pub arrived: i64,
    /// Closed in the last day.
    pub handled: i64,
}

from_row!(Figures { open, may_have_completed, oldest, snoozed, arrived, handled });

/// The line of figures on the first page. What was put off is counted by itself.
pub async fn figures(tx: &mut Tx, now: Timestamp) -> Result<Figures, StoreError> {
    const SQL: &str = "SELECT count(*) FILTER (WHERE awake) AS open, \
        count(*) FILTER (WHERE awake AND certainty = 'may_have_completed') AS may_have_completed, \
        min(opened_at) FILTER (WHERE awake) AS oldest, \
        count(*) FILTER (WHERE NOT awake) AS snoozed, \
        (SELECT count(*) FROM dead_letters WHERE opened_at >= $1) AS arrived, \
        (SELECT count(*) FROM dead_letters WHERE closed_at >= $1) AS handled \
        FROM (SELECT certainty, opened_at, snoozed_until IS NULL OR snoozed_until <= $2 AS awake \
        FROM dead_letters WHERE status = 'open') waiting";
    let day_ago = now.minus(Duration::from_hours(24));
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(day_ago).bind(now).fetch_one(c).await)?)
}

/// A dead letter in doubt whose key the destination will soon have forgotten.
#[derive(Clone, Debug)]
pub struct ClosingWindow {
    /// The episode.
    pub id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// The operation's type.
    pub kind: String,
    /// The failing step's name.
    pub step: String,
    /// When the key was first sent.
    pub first_sent_at: Timestamp,
}

from_row!(ClosingWindow { id, operation_id, kind, step, first_sent_at });

/// Those that are open and in doubt at a destination, with keys first sent after `after` and up to
/// `until`: the oldest keys first.
pub async fn closing_windows(
    tx: &mut Tx,
    destination: &str,
    after: Timestamp,
    until: Timestamp,
    most: i64,
) -> Result<Vec<ClosingWindow>, StoreError> {
    // An episode opens after its first send, so that the index on status and time bounds the work.
    const SQL: &str = "SELECT d.id, d.operation_id, d.kind, d.step, r.first_sent_at FROM dead_letters d \
        JOIN steps s ON s.operation_id = d.operation_id AND s.position = d.position \
        JOIN requests r ON r.operation_id = s.operation_id AND r.position = s.position \
        AND r.generation = s.generation \
        WHERE d.status = 'open' AND d.opened_at > $2 AND d.destination = $1 AND s.state = 'uncertain' \
        AND r.first_sent_at > $2 AND r.first_sent_at <= $3 ORDER BY r.first_sent_at, d.id LIMIT $4";
    Ok(on!(tx, c => sqlx::query_as(SQL)
        .bind(destination)
        .bind(after)
        .bind(until)
        .bind(most)
        .fetch_all(c)
        .await)?)
}

/// What came and went in one hour.
#[derive(Clone, Copy, Debug)]
pub struct HourRow {
    /// Hours ago; zero for the last 60 minutes.
    pub ago: i64,
    /// Opened then, whatever became of them.
    pub opened: i64,
    /// Of these: open now, in doubt and not put off.
    pub in_doubt: i64,
    /// Closed then.
    pub closed: i64,
}

from_row!(HourRow { ago, opened, in_doubt, closed });

/// What came and went in each of the last 24 hours; hours without anything are left out.
pub async fn by_hour(tx: &mut Tx, now: Timestamp) -> Result<Vec<HourRow>, StoreError> {
    const SQL: &str = "SELECT ago, CAST(sum(opened) AS BIGINT) AS opened, \
        CAST(sum(in_doubt) AS BIGINT) AS in_doubt, CAST(sum(closed) AS BIGINT) AS closed FROM (\
        SELECT ($1 - opened_at) / 3600000000 AS ago, count(*) AS opened, count(*) FILTER (WHERE \
        status = 'open' AND certainty = 'may_have_completed' \
        AND (snoozed_until IS NULL OR snoozed_until <= $1)) AS in_doubt, 0 AS closed \
        FROM dead_letters WHERE opened_at > $2 AND opened_at <= $1 GROUP BY 1 \
        UNION ALL SELECT ($1 - closed_at) / 3600000000, 0, 0, count(*) FROM dead_letters \
        WHERE closed_at > $2 AND closed_at <= $1 GROUP BY 1) hours GROUP BY ago";
    let day_ago = now.minus(Duration::from_hours(24));
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(now).bind(day_ago).fetch_all(c).await)?)
}
