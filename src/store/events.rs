//! What happened to an operation and is neither an attempt nor a person's action.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{MAX_ROWS, StoreError, Tx, more_placeholders, placeholders};
use crate::domain::time::Timestamp;

text_enum! {
    /// What kind of thing happened.
    pub enum EventKind {
        /// The same submission came again and nothing was done.
        Duplicate = "duplicate",
        /// A lease ran out before its attempt was settled.
        LeaseLost = "lease_lost",
        /// An answer came after its lease had run out: evidence, which changed nothing.
        LateAnswer = "late_answer",
        /// The same, and it said that the effect is there.
        LateDone = "late_done",
        /// What was asked for could not be sent when its turn came.
        NotSent = "not_sent",
        /// The destination was asked and has it.
        Found = "found",
        /// The destination was asked and has other data under our reference.
        FoundOther = "found_other",
        /// The destination was asked and does not have it.
        FoundAbsent = "found_absent",
        /// The destination was asked and could not say, or not yet.
        FoundNothing = "found_nothing",
        /// A program's word on a claim was refused: it named another fence.
        OtherFence = "other_fence",
        /// A step was passed over: its condition did not hold, or it is optional and came to nothing.
        PassedOver = "passed_over",
        /// A person corrected it: another operation took its place.
        Corrected = "corrected",
        /// It takes the place of another operation.
        Corrects = "corrects",
        /// A person wrote something down.
        Note = "note",
        /// What it was about was erased at a person's word.
        Erased = "erased",
    }
}

stored_as_text!(EventKind);

/// An event.
#[derive(Clone, Debug)]
pub struct EventRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Its operation.
    pub operation_id: Uuid,
    /// The step that it is about, where it is about one.
    pub position: Option<i64>,
    /// When.
    pub at: Timestamp,
    /// What.
    pub kind: EventKind,
    /// Who or what caused it.
    pub actor: String,
    /// For people.
    pub detail: String,
}

from_row!(EventRow { id, operation_id, position, at, kind, actor, detail });

/// Adds events.
pub async fn insert(tx: &mut Tx, events: &[EventRow]) -> Result<(), StoreError> {
    for events in events.chunks(MAX_ROWS) {
        let sql = format!(
            "INSERT INTO events (id, operation_id, position, at, kind, actor, detail) VALUES {}",
            placeholders(events.len(), 7)
        );
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for event in events {
                query = query
                    .bind(event.id)
                    .bind(event.operation_id)
                    .bind(event.position)
                    .bind(event.at)
                    .bind(event.kind)
                    .bind(&event.actor)
                    .bind(&event.detail);
            }
            query.execute(c).await?;
        });
    }
    Ok(())
}

/// An operation's events, oldest first.
pub async fn of_operation(tx: &mut Tx, operation: Uuid) -> Result<Vec<EventRow>, StoreError> {
    const SQL: &str = "SELECT id, operation_id, position, at, kind, actor, detail FROM events \
        WHERE operation_id = $1 ORDER BY at, id";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(operation).fetch_all(c).await)?)
}

/// These of an operation's events, and those that say that the effect is there; oldest first.
pub async fn telling(tx: &mut Tx, operation: Uuid, ids: &[Uuid]) -> Result<Vec<EventRow>, StoreError> {
    let wanted = more_placeholders(2, ids.len());
    // The operation's own id is no event's: it keeps the list from being empty.
    let sql = format!(
        "SELECT id, operation_id, position, at, kind, actor, detail FROM events \
         WHERE operation_id = $1 AND (id IN ($1{wanted}) OR kind = 'late_done') ORDER BY at, id"
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(operation);
        for id in ids {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    }))
}
