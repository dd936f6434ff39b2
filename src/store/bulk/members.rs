//! The members of bulk actions: frozen once, and what became of each.

use std::time::Duration;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::domain::attempt::Outcome;
use crate::domain::bulk::{MemberState, Progress};
use crate::domain::classify::Symptom;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::store::bulk::BulkRow;
use crate::store::filters::{self, bind_all, bind_values};
use crate::store::{MAX_ROWS, StoreError, Tx, placeholders};

/// The longest that a transaction is taken to last.
const SLOWEST: Duration = Duration::from_mins(1);

/// Freezes every dead letter that the filter means, by the very conditions of the list; how many.
pub async fn freeze(tx: &mut Tx, bulk: Uuid, filter: &DeadLetterFilter) -> Result<i64, StoreError> {
    let mut conditions = filters::dead_letters(filter);
    let clause = conditions.clause().to_owned();
    let id = conditions.id(bulk);
    let sql = format!(
        "INSERT INTO bulk_members (bulk_id, position, dead_letter_id, operation_id, state) \
         SELECT {id}, row_number() OVER (ORDER BY d.opened_at, d.id), d.id, d.operation_id, 'waiting' \
         FROM dead_letters d{clause}"
    );
    let frozen = on!(tx, c => {
        bind_values(sqlx::query(AssertSqlSafe(sql)), conditions.values()).execute(c).await?.rows_affected()
    });
    Ok(count(frozen))
}

/// Freezes dead letters that were chosen one by one; how many of them there are.
pub async fn freeze_chosen(tx: &mut Tx, bulk: Uuid, letters: &[Uuid]) -> Result<i64, StoreError> {
    let mut frozen = 0;
    for part in letters.chunks(MAX_ROWS) {
        let list: Vec<String> = (3..part.len() + 3).map(|place| format!("${place}")).collect();
        let sql = format!(
            "INSERT INTO bulk_members (bulk_id, position, dead_letter_id, operation_id, state) \
             SELECT $1, $2 + row_number() OVER (ORDER BY d.opened_at, d.id), d.id, d.operation_id, 'waiting' \
             FROM dead_letters d WHERE d.id IN ({})",
            list.join(",")
        );
        frozen += on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql)).bind(bulk).bind(frozen);
            for id in part {
                query = query.bind(*id);
            }
            count(query.execute(c).await?.rows_affected())
        });
    }
    Ok(frozen)
}

/// Freezes another bulk action's members that were refused or failed again; how many.
pub async fn freeze_again(tx: &mut Tx, bulk: Uuid, of: Uuid) -> Result<i64, StoreError> {
    const SQL: &str = "INSERT INTO bulk_members (bulk_id, position, dead_letter_id, operation_id, state) \
        SELECT $1, row_number() OVER (ORDER BY position), dead_letter_id, operation_id, 'waiting' \
        FROM bulk_members WHERE bulk_id = $2 AND state IN ($3, $4)";
    let [one, other] = MemberState::AGAIN;
    let frozen = on!(tx, c => sqlx::query(SQL)
        .bind(bulk)
        .bind(of)
        .bind(one)
        .bind(other)
        .execute(c)
        .await?
        .rows_affected());
    Ok(count(frozen))
}

/// How many dead letters the filter means that were opened since members were frozen and are none,
/// counted up to `most`. One whose transaction ended after the freezing may have been opened a moment
/// before it.
pub async fn arrived(
    tx: &mut Tx,
    bulk: &BulkRow,
    filter: &DeadLetterFilter,
    most: i64,
) -> Result<i64, StoreError> {
    let since = bulk.created_at.minus(SLOWEST);
    let filter =
        DeadLetterFilter { from: Some(filter.from.map_or(since, |from| from.max(since))), ..filter.clone() };
    let mut conditions = filters::dead_letters(&filter);
    let clause = conditions.clause().to_owned();
    let id = conditions.id(bulk.id);
    let sql = format!(
        "SELECT count(*) FROM (SELECT 1 FROM dead_letters d{clause} AND NOT EXISTS (SELECT 1 FROM bulk_members m \
         WHERE m.operation_id = d.operation_id AND m.bulk_id = {id} AND m.dead_letter_id = d.id) LIMIT {most}) counted"
    );
    let (count,): (i64,) = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_one(c).await?
    });
    Ok(count)
}

fn count(rows: u64) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// How many members of each of these bulk actions are in each state.
pub async fn progress(tx: &mut Tx, bulks: &[Uuid]) -> Result<Vec<(Uuid, Progress)>, StoreError> {
    let mut found: Vec<(Uuid, Progress)> = bulks.iter().map(|id| (*id, Progress::default())).collect();
    if bulks.is_empty() {
        return Ok(found);
    }
    let sql = format!(
        "SELECT bulk_id, state, count(*) FROM bulk_members WHERE bulk_id IN {} GROUP BY bulk_id, state",
        placeholders(1, bulks.len())
    );
    let rows: Vec<(Uuid, MemberState, i64)> = on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for id in bulks {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    });
    for (bulk, state, members) in rows {
        if let Some((_, progress)) = found.iter_mut().find(|(id, _)| *id == bulk) {
            progress.add(state, usize::try_from(members).unwrap_or(0));
        }
    }
    Ok(found)
}

/// What is left of a bulk action.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Left {
    /// Members among the first ones to which nothing was done.
    pub waiting: bool,
    /// Members under way.
    pub sent: bool,
}

from_row!(Left { waiting, sent });

/// What is left among the members up to a place, and of those under way.
pub async fn left(tx: &mut Tx, bulk: Uuid, up_to: i64) -> Result<Left, StoreError> {
    const SQL: &str = "SELECT \
        EXISTS (SELECT 1 FROM bulk_members WHERE bulk_id = $1 AND state = 'waiting' AND position <= $2) AS waiting, \
        EXISTS (SELECT 1 FROM bulk_members WHERE bulk_id = $1 AND state = 'sent') AS sent";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(bulk).bind(up_to).fetch_one(c).await)?)
}

/// A member to act on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Due {
    /// From 1.
    pub position: i64,
    /// Its dead letter.
    pub dead_letter_id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
}

from_row!(Due { position, dead_letter_id, operation_id });

/// The next members to which nothing was done, up to a place.
pub async fn due(tx: &mut Tx, bulk: Uuid, up_to: i64, most: i64) -> Result<Vec<Due>, StoreError> {
    const SQL: &str = "SELECT position, dead_letter_id, operation_id FROM bulk_members \
        WHERE bulk_id = $1 AND state = 'waiting' AND position <= $2 ORDER BY position LIMIT $3";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(bulk).bind(up_to).bind(most).fetch_all(c).await)?)
}

/// A member under way, and how its case stands.
#[derive(Clone, Copy, Debug)]
pub struct UnderWay {
    /// From 1.
    pub position: i64,
    /// Where its dead letter stands; absent once that is forgotten.
    pub status: Option<DeadLetterStatus>,
    /// What is known of the effect.
    pub certainty: Option<Certainty>,
    /// Something is still to be done with its operation.
    pub queued: bool,
    /// What its destination answered when it was asked since.
    pub heard: Option<Symptom>,
}

from_row!(UnderWay { position, status, certainty, queued, heard });

/// Members under way behind a place.
pub async fn under_way(tx: &mut Tx, bulk: Uuid, after: i64, most: i64) -> Result<Vec<UnderWay>, StoreError> {
    const SQL: &str = "SELECT m.position, d.status, d.certainty, \
        EXISTS (SELECT 1 FROM work w WHERE w.operation_id = m.operation_id) AS queued, \
        (SELECT a.symptom FROM attempts a WHERE a.operation_id = m.operation_id AND a.started_at >= m.at \
            AND a.cause = 'lookup' AND a.outcome <> $4 ORDER BY a.started_at, a.id LIMIT 1) AS heard \
        FROM bulk_members m LEFT JOIN dead_letters d ON d.id = m.dead_letter_id \
        WHERE m.bulk_id = $1 AND m.state = 'sent' AND m.position > $2 ORDER BY m.position LIMIT $3";
    Ok(on!(tx, c => sqlx::query_as(SQL)
        .bind(bulk)
        .bind(after)
        .bind(most)
        .bind(Outcome::Running)
        .fetch_all(c)
        .await)?)
}

/// What became of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Move {
    /// From 1.
    pub position: i64,
    /// What it was.
    pub from: MemberState,
    /// What it is.
    pub to: MemberState,
    /// What was answered, for people.
    pub answer: String,
    /// When it was acted on; the moment of an earlier step stays where it is absent.
    pub at: Option<Timestamp>,
}

/// Records what became of members; those that somebody else moved before are left as they are.
pub async fn record(tx: &mut Tx, bulk: Uuid, moves: &[Move]) -> Result<(), StoreError> {
    for part in moves.chunks(MAX_ROWS) {
        let sql = format!(
            "WITH v (bulk, place, was, now_is, said, moment) AS (VALUES {}) UPDATE bulk_members \
             SET state = v.now_is, answer = v.said, at = coalesce(v.moment, at) FROM v \
             WHERE bulk_id = v.bulk AND position = v.place AND state = v.was",
            placeholders(part.len(), 6)
        );
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for row in part {
                query = query
                    .bind(bulk)
                    .bind(row.position)
                    .bind(row.from)
                    .bind(row.to)
                    .bind(&row.answer)
                    .bind(row.at);
            }
            query.execute(c).await?;
        });
    }
    Ok(())
}

/// A member for a list.
#[derive(Clone, Debug)]
pub struct MemberRow {
    /// From 1.
    pub position: i64,
    /// Its dead letter.
    pub dead_letter_id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// What became of it.
    pub state: MemberState,
    /// What was answered, unless erased.
    pub answer: Option<String>,
    /// When it was acted on.
    pub at: Option<Timestamp>,
    /// Its operation's type; absent once that is forgotten.
    pub kind: Option<String>,
}

from_row!(MemberRow { position, dead_letter_id, operation_id, state, answer, at, kind });

/// Where a stretch of members begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// Those behind a place.
    After(i64),
    /// Those before it.
    Before(i64),
}

/// A stretch of members, in the order of their places: all, or those in one state.
pub async fn list(
    tx: &mut Tx,
    bulk: Uuid,
    state: Option<MemberState>,
    from: Place,
    most: i64,
) -> Result<Vec<MemberRow>, StoreError> {
    let (way, order, place) = match from {
        Place::After(place) => (">", "", place),
        Place::Before(place) => ("<", " DESC", place),
    };
    let of_state = if state.is_some() { " AND m.state = $4" } else { "" };
    let sql = format!(
        "SELECT m.position, m.dead_letter_id, m.operation_id, m.state, m.answer, m.at, o.kind \
         FROM bulk_members m LEFT JOIN operations o ON o.id = m.operation_id \
         WHERE m.bulk_id = $1 AND m.position {way} $2{of_state} ORDER BY m.position{order} LIMIT $3"
    );
    let mut rows: Vec<MemberRow> = on!(tx, c => {
        let query = sqlx::query_as(AssertSqlSafe(sql)).bind(bulk).bind(place).bind(most);
        match state {
            Some(state) => query.bind(state).fetch_all(c).await?,
            None => query.fetch_all(c).await?,
        }
    });
    if matches!(from, Place::Before(_)) {
        rows.reverse();
    }
    Ok(rows)
}
