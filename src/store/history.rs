//! The order of everything that happened to one operation, a stretch at a time: a page of evidence
//! reads what it shows and counts the rest, however long the history is.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::attempts::{self, AttemptRow};
use super::audit::{self, AuditRow};
use super::dead_letters::{self, DeadLetterRow};
use super::events::{self, EventRow};
use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// What kind of record stands at a place. Where moments are equal, what causes stands before what
/// follows from it, and so are these numbered.
pub mod rank {
    /// What a person did.
    pub const ACTION: i64 = 1;
    /// A try.
    pub const ATTEMPT: i64 = 2;
    /// What else happened.
    pub const EVENT: i64 = 3;
    /// An episode began.
    pub const OPENED: i64 = 4;
    /// A confirmed replay ended an episode.
    pub const CLOSED: i64 = 5;
}

/// A record's place in the history.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// When.
    pub at: Timestamp,
    /// Of which kind, as [`rank`] numbers them.
    pub rank: i64,
    /// Its own id.
    pub id: Uuid,
}

from_row!(Place { at, rank, id });

impl Place {
    /// As a text for an address.
    pub fn encode(&self) -> String {
        format!("{}.{}.{}", self.at.as_micros(), self.rank, self.id.simple())
    }

    /// From that text; absent when it is none.
    pub fn decode(text: &str) -> Option<Self> {
        let mut parts = text.splitn(3, '.');
        let at = Timestamp::from_micros(parts.next()?.parse().ok()?);
        let (rank, id) = (parts.next()?.parse().ok()?, parts.next()?.parse().ok()?);
        Some(Self { at, rank, id })
    }
}

/// Every record's place. Each branch is one index; a question's findings are told by the question.
const PLACES: &str = "SELECT at, rank, id FROM (\
    SELECT at, CAST(1 AS BIGINT) AS rank, id FROM audit WHERE operation_id = $1 \
    UNION ALL SELECT started_at, CAST(2 AS BIGINT), id FROM attempts WHERE operation_id = $1 \
    UNION ALL SELECT at, CAST(3 AS BIGINT), id FROM events WHERE operation_id = $1 AND kind NOT IN \
        ('found', 'found_other', 'found_absent', 'found_nothing', 'corrected') \
    UNION ALL SELECT opened_at, CAST(4 AS BIGINT), id FROM dead_letters WHERE operation_id = $1 \
    UNION ALL SELECT closed_at, CAST(5 AS BIGINT), id FROM dead_letters \
        WHERE operation_id = $1 AND status = 'replayed') history";

/// How many records there are.
pub async fn count(tx: &mut Tx, operation: Uuid) -> Result<i64, StoreError> {
    let sql = format!("SELECT count(*) FROM ({PLACES}) places");
    Ok(on!(tx, c => sqlx::query_scalar(AssertSqlSafe(sql)).bind(operation).fetch_one(c).await)?)
}

/// How many stand before a place.
pub async fn count_before(tx: &mut Tx, operation: Uuid, place: Place) -> Result<i64, StoreError> {
    let sql = format!("SELECT count(*) FROM ({PLACES} WHERE (at, rank, id) < ($2, $3, $4)) places");
    Ok(on!(tx, c => sqlx::query_scalar(AssertSqlSafe(sql))
        .bind(operation)
        .bind(place.at)
        .bind(place.rank)
        .bind(place.id)
        .fetch_one(c)
        .await)?)
}

/// The first ones, oldest first.
pub async fn first(tx: &mut Tx, operation: Uuid, most: i64) -> Result<Vec<Place>, StoreError> {
    let sql = format!("{PLACES} ORDER BY at, rank, id LIMIT $2");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).bind(most).fetch_all(c).await)?)
}

/// The last ones, or the last ones before a place; oldest first.
pub async fn last(
    tx: &mut Tx,
    operation: Uuid,
    before: Option<Place>,
    most: i64,
) -> Result<Vec<Place>, StoreError> {
    let end =
        before.unwrap_or(Place { at: Timestamp::from_micros(i64::MAX), rank: i64::MAX, id: Uuid::max() });
    let sql =
        format!("{PLACES} WHERE (at, rank, id) < ($2, $3, $4) ORDER BY at DESC, rank DESC, id DESC LIMIT $5");
    let mut places: Vec<Place> = on!(tx, c => sqlx::query_as(AssertSqlSafe(sql))
        .bind(operation)
        .bind(end.at)
        .bind(end.rank)
        .bind(end.id)
        .bind(most)
        .fetch_all(c)
        .await?);
    places.reverse();
    Ok(places)
}

/// What stands at some places.
#[derive(Clone, Debug, Default)]
pub struct Records {
    /// Oldest first.
    pub attempts: Vec<AttemptRow>,
    /// Oldest first.
    pub events: Vec<EventRow>,
    /// Oldest first.
    pub audit: Vec<AuditRow>,
    /// Newest first.
    pub letters: Vec<DeadLetterRow>,
}

/// Reads what stands at these places, of which there are few. Of each answer's body it reads the
/// first `most_body` characters.
pub async fn records(
    tx: &mut Tx,
    operation: Uuid,
    places: &[Place],
    most_body: i64,
) -> Result<Records, StoreError> {
    let of = |wanted: &[i64]| -> Vec<Uuid> {
        let mut ids: Vec<Uuid> =
            places.iter().filter(|place| wanted.contains(&place.rank)).map(|place| place.id).collect();
        ids.sort_unstable();
        ids.dedup();
        ids
    };
    let tries = of(&[rank::ATTEMPT]);
    Ok(Records {
        attempts: attempts::telling(tx, operation, &tries, most_body).await?,
        events: events::telling(tx, operation, &of(&[rank::EVENT])).await?,
        audit: audit::by_ids(tx, &of(&[rank::ACTION])).await?,
        letters: dead_letters::telling(tx, operation, &of(&[rank::OPENED, rank::CLOSED])).await?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_survives_its_text() {
        let place = Place { at: Timestamp::from_micros(-5), rank: rank::EVENT, id: Uuid::from_u128(7) };
        assert_eq!(Place::decode(&place.encode()), Some(place));
        for wrong in ["", "1", "1.2", "x.1.00000000000000000000000000000007", "1.1.zz", "1.1.7.8"] {
            assert_eq!(Place::decode(wrong), None, "{wrong}");
        }
    }
}
