//! What the gate judges a row of work by: the row itself, its operation and step, and what was sent
//! so far.

use sqlx::{AssertSqlSafe, Postgres, Transaction};
use uuid::Uuid;

use super::{NewWork, lock};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::key::{DestinationKey, PayloadDigest};
use crate::domain::lookup::Task;
use crate::domain::operation::{OperationState, StepState};
use crate::domain::time::Timestamp;
use crate::store::{Inner, StoreError, Tx};

/// Everything the gate needs to judge one row of work, read in one statement.
#[derive(Clone, Debug)]
pub struct WorkRow {
    /// Its operation.
    pub operation_id: Uuid,
    /// The step's place.
    pub position: i64,
    /// Why it is to be sent.
    pub cause: Cause,
    /// Who asked.
    pub requested_by: String,
    /// Words of the waived checks, separated by spaces.
    pub waived: String,
    /// When the round began.
    pub since: Timestamp,
    /// Sends used up in this round.
    pub tries: i64,
    /// Uncertain outcomes in this round.
    pub doubts: i64,
    /// Times in this round that it was put off without using up an attempt.
    pub waits: i64,
    /// Who takes it.
    pub lane: String,
    /// A send, or a question.
    pub task: Task,
    /// Questions asked in this round.
    pub asks: i64,
    /// Who wants the next question asked; absent where the engine does.
    pub asked_by: Option<String>,
    /// When the send is due that a question came before.
    pub resume_at: Option<Timestamp>,
    /// The last try was cut off on our side.
    pub lost: bool,
    /// Counts the claims.
    pub fence: i64,
    /// The attempt that holds it.
    pub attempt_id: Option<Uuid>,
    /// Until when.
    pub leased_until: Option<Timestamp>,
    /// The operation's key.
    pub key: String,
    /// Its type.
    pub kind: String,
    /// Its stored state.
    pub state: OperationState,
    /// Of its payload.
    pub digest: PayloadDigest,
    /// The caller's own.
    pub correlation_id: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// The operation that corrects it.
    pub corrected_by: Option<Uuid>,
    /// When it was accepted.
    pub received_at: Timestamp,
    /// Its payload, unless erased.
    pub payload: Option<String>,
    /// How many steps it has.
    pub steps: i64,
    /// The step's name.
    pub step: String,
    /// The step's destination.
    pub destination: String,
    /// What is known of the step.
    pub step_state: StepState,
    /// The key that the destination sees.
    pub step_key: DestinationKey,
    /// From 1.
    pub generation: i64,
    /// Attempts made at the step.
    pub attempts: i64,
    /// What the last one came to.
    pub last_outcome: Option<Outcome>,
    /// When the last send began that may have happened.
    pub doubt_at: Option<Timestamp>,
    /// The step's reference over there.
    pub reference: Option<String>,
    /// When this generation was first sent.
    pub first_sent_at: Option<Timestamp>,
    /// Its stored request's method; the others below are there when it is.
    pub method: Option<String>,
    /// Absolute.
    pub url: Option<String>,
    /// JSON array of pairs.
    pub headers: Option<String>,
    /// The body is the payload.
    pub body_is_payload: Option<bool>,
    /// The body, unless it is the payload.
    pub body: Option<String>,
    /// The step's attempt under way.
    pub live_attempt: Option<Uuid>,
    /// When it began.
    pub live_since: Option<Timestamp>,
    /// Who asked for it.
    pub live_by: Option<String>,
    /// For a row that only stands for one: since when a real one waits its turn.
    pub queued_at: Option<Timestamp>,
    /// Since when the destination is paused.
    pub paused_at: Option<Timestamp>,
    /// Who paused it.
    pub paused_by: Option<String>,
    /// Why.
    pub pause_reason: Option<String>,
}

from_row!(WorkRow {
    operation_id,
    position,
    cause,
    requested_by,
    waived,
    since,
    tries,
    doubts,
    waits,
    lane,
    task,
    asks,
    asked_by,
    resume_at,
    lost,
    fence,
    attempt_id,
    leased_until,
    key,
    kind,
    state,
    digest,
    correlation_id,
    source,
    corrected_by,
    received_at,
    payload,
    steps,
    step,
    destination,
    step_state,
    step_key,
    generation,
    attempts,
    last_outcome,
    doubt_at,
    reference,
    first_sent_at,
    method,
    url,
    headers,
    body_is_payload,
    body,
    live_attempt,
    live_since,
    live_by,
    queued_at,
    paused_at,
    paused_by,
    pause_reason,
});

impl WorkRow {
    /// Whether the round has had a try, be it one that was put off.
    pub fn begun(&self) -> bool {
        self.tries + self.waits > 0
    }
}

/// What the gate reads. `w` is a row of work, or stands for one that a person asks for.
const FACTS: &str = "o.key, o.kind, o.state, o.digest, o.correlation_id, o.source, o.corrected_by, o.received_at, \
    p.body AS payload, (SELECT count(*) FROM steps n WHERE n.operation_id = o.id) AS steps, s.name AS step, \
    s.destination, s.state AS step_state, s.key AS step_key, s.generation, s.attempts, s.last_outcome, \
    s.doubt_at, s.reference, r.first_sent_at, r.method, r.url, r.headers, r.body_is_payload, r.body, \
    a.id AS live_attempt, a.started_at AS live_since, a.requested_by AS live_by, \
    d.paused_at, d.paused_by, d.pause_reason";

const JOINS: &str = "LEFT JOIN payloads p ON p.operation_id = o.id \
    LEFT JOIN requests r ON r.operation_id = o.id AND r.position = s.position AND r.generation = s.generation \
    LEFT JOIN attempts a ON a.operation_id = o.id AND a.position = s.position \
        AND a.generation = s.generation AND a.outcome = 'running' \
    LEFT JOIN destinations d ON d.name = s.destination";

fn select_work(condition: &str) -> String {
    format!(
        "SELECT w.operation_id, w.position, w.cause, w.requested_by, w.waived, w.since, w.tries, w.doubts, w.waits, \
         w.lane, w.task, w.asks, w.asked_by, w.resume_at, w.lost, w.fence, w.attempt_id, w.leased_until, {FACTS}, CAST(NULL AS BIGINT) AS queued_at FROM work w \
         JOIN operations o ON o.id = w.operation_id \
         JOIN steps s ON s.operation_id = w.operation_id AND s.position = w.position {JOINS} WHERE {condition}"
    )
}

/// How many rows of work one lane may be given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    /// The lane.
    pub lane: String,
    /// At most so many; at least 1.
    pub most: usize,
}

/// Due work that nobody holds, oldest first within each lane; no lane waits for another, and what is
/// for the destinations in `except` is passed over.
pub async fn due(
    tx: &mut Tx,
    now: Timestamp,
    rooms: &[Room],
    except: &[String],
) -> Result<Vec<WorkRow>, StoreError> {
    match &mut tx.inner {
        // SQLite knows no LATERAL: one part a lane.
        Inner::Sqlite(inner) => {
            let passed: Vec<String> =
                (0..except.len()).map(|index| format!("${}", 2 * rooms.len() + 2 + index)).collect();
            let passed = match passed.len() {
                0 => String::new(),
                _ => format!(" AND destination NOT IN ({})", passed.join(",")),
            };
            let part = |index: usize| {
                let (lane, most) = (2 * index + 2, 2 * index + 3);
                format!(
                    "SELECT operation_id FROM (SELECT operation_id FROM work WHERE leased_until IS NULL \
                     AND lane = ${lane} AND due_at <= $1{passed} ORDER BY due_at, operation_id LIMIT ${most})"
                )
            };
            let parts: Vec<String> = (0..rooms.len()).map(part).collect();
            let sql = select_work(&format!("w.operation_id IN ({})", parts.join(" UNION ALL ")));
            let mut query = sqlx::query_as(AssertSqlSafe(sql)).bind(now);
            for room in rooms {
                query = query.bind(&room.lane).bind(count(room.most));
            }
            for destination in except {
                query = query.bind(destination);
            }
            Ok(query.fetch_all(&mut **inner).await?)
        }
        Inner::Postgres(inner) => {
            const SQL: &str = "SELECT w.operation_id FROM unnest($2::text[], $3::bigint[]) room (lane, most) \
                CROSS JOIN LATERAL (SELECT operation_id FROM work WHERE leased_until IS NULL \
                AND lane = room.lane AND due_at <= $1 AND destination <> ALL($4::text[]) \
                ORDER BY due_at, operation_id LIMIT room.most \
                FOR UPDATE SKIP LOCKED) w";
            let lanes: Vec<&str> = rooms.iter().map(|room| room.lane.as_str()).collect();
            let most: Vec<i64> = rooms.iter().map(|room| count(room.most)).collect();
            let query = sqlx::query_scalar(SQL).bind(now).bind(lanes).bind(most).bind(except);
            let ids: Vec<Uuid> = query.fetch_all(&mut **inner).await?;
            facts(inner, ids).await
        }
    }
}

/// Work whose holder let its lease run out.
pub async fn expired(tx: &mut Tx, now: Timestamp, limit: usize) -> Result<Vec<WorkRow>, StoreError> {
    const CHOSEN: &str =
        "SELECT operation_id FROM work WHERE leased_until < $1 ORDER BY leased_until, operation_id LIMIT $2";
    match &mut tx.inner {
        Inner::Sqlite(inner) => {
            let sql = select_work(&format!("w.operation_id IN ({CHOSEN})"));
            let query = sqlx::query_as(AssertSqlSafe(sql)).bind(now).bind(count(limit));
            Ok(query.fetch_all(&mut **inner).await?)
        }
        Inner::Postgres(inner) => {
            let locked = format!("{CHOSEN} FOR UPDATE SKIP LOCKED");
            let query = sqlx::query_scalar(AssertSqlSafe(locked)).bind(now).bind(count(limit));
            let ids: Vec<Uuid> = query.fetch_all(&mut **inner).await?;
            facts(inner, ids).await
        }
    }
}

/// What is known of locked rows. On PostgreSQL that takes a statement of its own, which sees what
/// stands once the locks are held: one statement for both would join a locked row to what the others
/// were when it began. On SQLite the transaction is the only writer, so that one statement does.
async fn facts(
    inner: &mut Transaction<'static, Postgres>,
    ids: Vec<Uuid>,
) -> Result<Vec<WorkRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = select_work("w.operation_id = ANY($1)");
    Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(ids).fetch_all(&mut **inner).await?)
}

fn count(rows: usize) -> i64 {
    i64::try_from(rows).unwrap_or(i64::MAX)
}

/// One operation's row of work, locked.
pub async fn one(tx: &mut Tx, operation: Uuid) -> Result<Option<WorkRow>, StoreError> {
    lock(tx, "SELECT 1 FROM work WHERE operation_id = $1 FOR UPDATE", operation).await?;
    let sql = select_work("w.operation_id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_optional(c).await)?)
}

/// The same facts for an operation without a row of work, as though `asked` stood in the table: the
/// first step that is not completed, or the last one.
pub async fn as_if(tx: &mut Tx, asked: &NewWork) -> Result<Option<WorkRow>, StoreError> {
    let sql = format!(
        "SELECT o.id AS operation_id, s.position, $2 AS cause, $3 AS requested_by, $4 AS waived, \
         $5 AS since, $6 AS tries, $6 AS doubts, $6 AS waits, $7 AS lane, \
         $8 AS task, $6 AS asks, w.asked_by, w.resume_at, $9 AS lost, $6 AS fence, w.attempt_id, w.leased_until, {FACTS}, \
         w.requested_at AS queued_at FROM operations o JOIN steps s ON s.operation_id = o.id LEFT JOIN work w ON w.operation_id = o.id \
         {JOINS} WHERE o.id = $1 ORDER BY (s.state IN ('completed', 'skipped')), \
         CASE WHEN s.state IN ('completed', 'skipped') THEN -s.position ELSE s.position END LIMIT 1"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql))
        .bind(asked.operation_id)
        .bind(asked.cause)
        .bind(&asked.requested_by)
        .bind(&asked.waived)
        .bind(asked.at)
        .bind(0_i64)
        .bind(&asked.lane)
        .bind(asked.task)
        .bind(false)
        .fetch_optional(c)
        .await)?)
}
