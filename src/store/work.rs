//! Rows of work: what is to be sent, for whom, when.

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgListener;
use uuid::Uuid;

use super::{Db, StoreError, Tx, placeholders};
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::key::{DestinationKey, PayloadDigest};
use crate::domain::operation::{NewOperation, OperationState, StepState};
use crate::domain::time::Timestamp;

/// A person's request for a send.
#[derive(Clone, Debug)]
pub struct NewWork {
    /// Its operation.
    pub operation_id: Uuid,
    /// The step that is meant.
    pub position: i64,
    /// That step's destination.
    pub destination: String,
    /// Why.
    pub cause: Cause,
    /// Who asked.
    pub requested_by: String,
    /// Words of the waived checks, separated by spaces.
    pub waived: String,
    /// Now.
    pub at: Timestamp,
}

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
    fence,
    attempt_id,
    leased_until,
    key,
    kind,
    state,
    digest,
    correlation_id,
    source,
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
});

impl WorkRow {
    /// Whether the round has had a try, be it one that was put off.
    pub fn begun(&self) -> bool {
        self.tries + self.waits > 0
    }
}

/// What the gate reads. `w` is a row of work, or stands for one that a person asks for.
const FACTS: &str = "o.key, o.kind, o.state, o.digest, o.correlation_id, o.source, o.received_at, \
    p.body AS payload, (SELECT count(*) FROM steps n WHERE n.operation_id = o.id) AS steps, s.name AS step, \
    s.destination, s.state AS step_state, s.key AS step_key, s.generation, s.attempts, s.last_outcome, \
    s.reference, r.first_sent_at, r.method, r.url, r.headers, r.body_is_payload, r.body, \
    a.id AS live_attempt, a.started_at AS live_since, a.requested_by AS live_by";

const JOINS: &str = "LEFT JOIN payloads p ON p.operation_id = o.id \
    LEFT JOIN requests r ON r.operation_id = o.id AND r.position = s.position AND r.generation = s.generation \
    LEFT JOIN attempts a ON a.operation_id = o.id AND a.position = s.position \
        AND a.generation = s.generation AND a.outcome = 'running'";

fn select_work(condition: &str) -> String {
    format!(
        "SELECT w.operation_id, w.position, w.cause, w.requested_by, w.waived, w.since, w.tries, w.doubts, w.waits, \
         w.fence, w.attempt_id, w.leased_until, {FACTS}, CAST(NULL AS BIGINT) AS queued_at FROM work w \
         JOIN operations o ON o.id = w.operation_id \
         JOIN steps s ON s.operation_id = w.operation_id AND s.position = w.position {JOINS} WHERE {condition}"
    )
}

/// Due work that nobody holds, oldest first.
pub async fn due(tx: &mut Tx, now: Timestamp, limit: usize) -> Result<Vec<WorkRow>, StoreError> {
    pick(tx, "leased_until IS NULL AND due_at <= $1", "due_at, operation_id", now, limit).await
}

/// Work whose holder let its lease run out.
pub async fn expired(tx: &mut Tx, now: Timestamp, limit: usize) -> Result<Vec<WorkRow>, StoreError> {
    pick(tx, "leased_until < $1", "leased_until, operation_id", now, limit).await
}

/// Locks rows and then reads the facts about them. On PostgreSQL rows that another node holds are
/// passed over, and the facts take a statement of their own, which sees what stands once the locks
/// are held: one statement for both would join a locked row to what the others were when it began.
/// On SQLite the transaction is the only writer, so that one statement does.
async fn pick(
    tx: &mut Tx,
    condition: &'static str,
    order: &'static str,
    now: Timestamp,
    limit: usize,
) -> Result<Vec<WorkRow>, StoreError> {
    let limit = i64::try_from(limit).unwrap_or(i64::MAX);
    let chosen = format!("SELECT operation_id FROM work WHERE {condition} ORDER BY {order} LIMIT $2");
    match tx {
        Tx::Sqlite(inner) => {
            let sql = select_work(&format!("w.operation_id IN ({chosen})"));
            let query = sqlx::query_as(AssertSqlSafe(sql)).bind(now).bind(limit);
            Ok(query.fetch_all(&mut **inner).await?)
        }
        Tx::Postgres(inner) => {
            let locked = format!("{chosen} FOR UPDATE SKIP LOCKED");
            let ids: Vec<Uuid> = sqlx::query_scalar(AssertSqlSafe(locked))
                .bind(now)
                .bind(limit)
                .fetch_all(&mut **inner)
                .await?;
            if ids.is_empty() {
                return Ok(Vec::new());
            }
            let sql = select_work("w.operation_id = ANY($1)");
            Ok(sqlx::query_as(AssertSqlSafe(sql)).bind(ids).fetch_all(&mut **inner).await?)
        }
    }
}

/// One operation's row of work, locked.
pub async fn one(tx: &mut Tx, operation: Uuid) -> Result<Option<WorkRow>, StoreError> {
    lock(tx, "SELECT 1 FROM work WHERE operation_id = $1 FOR UPDATE", operation).await?;
    let sql = select_work("w.operation_id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_optional(c).await)?)
}

/// Lets nobody else act on an operation until this transaction ends.
pub async fn lock_operation(tx: &mut Tx, operation: Uuid) -> Result<(), StoreError> {
    lock(tx, "SELECT 1 FROM operations WHERE id = $1 FOR UPDATE", operation).await
}

/// The same facts for an operation without a row of work, as though `asked` stood in the table: the
/// first step that is not completed, or the last one.
pub async fn as_if(tx: &mut Tx, asked: &NewWork) -> Result<Option<WorkRow>, StoreError> {
    let sql = format!(
        "SELECT o.id AS operation_id, s.position, $2 AS cause, $3 AS requested_by, $4 AS waived, \
         $5 AS since, $6 AS tries, $6 AS doubts, $6 AS waits, $6 AS fence, w.attempt_id, w.leased_until, {FACTS}, \
         w.requested_at AS queued_at FROM operations o JOIN steps s ON s.operation_id = o.id LEFT JOIN work w ON w.operation_id = o.id \
         {JOINS} WHERE o.id = $1 ORDER BY (s.state = 'completed'), \
         CASE WHEN s.state = 'completed' THEN -s.position ELSE s.position END LIMIT 1"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql))
        .bind(asked.operation_id)
        .bind(asked.cause)
        .bind(&asked.requested_by)
        .bind(&asked.waived)
        .bind(asked.at)
        .bind(0_i64)
        .fetch_optional(c)
        .await)?)
}

/// Waits for whoever changes an operation, in a statement of its own: PostgreSQL reads a locked row
/// anew and joins it to what the others were when the statement began. On SQLite the transaction is
/// the only writer.
async fn lock(tx: &mut Tx, sql: &'static str, operation: Uuid) -> Result<(), StoreError> {
    if let Tx::Postgres(inner) = tx {
        sqlx::query(sql).bind(operation).execute(&mut **inner).await?;
    }
    Ok(())
}

/// When the next piece of work that nobody holds is due.
pub async fn next_due(tx: &mut Tx) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT min(due_at) FROM work WHERE leased_until IS NULL";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).fetch_one(c).await)?)
}

/// Rows of work, waiting and held.
pub async fn backlog(tx: &mut Tx) -> Result<i64, StoreError> {
    const SQL: &str = "SELECT count(*) FROM work";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).fetch_one(c).await)?)
}

/// The operation's first row of work.
pub(super) async fn insert_first(tx: &mut Tx, new: &[&NewOperation]) -> Result<(), StoreError> {
    let rows: Vec<NewWork> = new
        .iter()
        .map(|operation| NewWork {
            operation_id: operation.id,
            position: 0,
            destination: operation.steps[0].destination.clone(),
            cause: Cause::Automatic,
            requested_by: "engine".to_owned(),
            waived: String::new(),
            at: operation.received_at,
        })
        .collect();
    insert_rows(tx, &rows).await?;
    Ok(())
}

/// Adds a row of work; false when the operation has one already.
pub async fn insert(tx: &mut Tx, new: &NewWork) -> Result<bool, StoreError> {
    Ok(insert_rows(tx, std::slice::from_ref(new)).await? == 1)
}

async fn insert_rows(tx: &mut Tx, new: &[NewWork]) -> Result<u64, StoreError> {
    let sql = format!(
        "INSERT INTO work (operation_id, position, destination, cause, requested_by, requested_at, waived, \
         due_at, since, tries, doubts, waits, fence) VALUES {} ON CONFLICT (operation_id) DO NOTHING",
        placeholders(new.len(), 13)
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for row in new {
            query = query
                .bind(row.operation_id)
                .bind(row.position)
                .bind(&row.destination)
                .bind(row.cause)
                .bind(&row.requested_by)
                .bind(row.at)
                .bind(&row.waived)
                .bind(row.at)
                .bind(row.at)
                .bind(0_i64)
                .bind(0_i64)
                .bind(0_i64)
                .bind(0_i64);
        }
        query.execute(c).await?.rows_affected()
    }))
}

/// The channel on which nodes tell each other of new work.
const CHANNEL: &str = "dlo_work";

/// Tells the other nodes, once this transaction is durable, that there is work. SQLite has no such
/// word: a process that shares its file finds the row at its next look.
pub async fn announce(tx: &mut Tx) -> Result<(), StoreError> {
    if let Tx::Postgres(inner) = tx {
        sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(&mut **inner).await?;
    }
    Ok(())
}

/// Calls `told` whenever a node says that there is work. Returns at once on SQLite, which has no
/// such word, and elsewhere only with an error.
pub async fn hear(db: &Db, told: impl Fn()) -> Result<(), StoreError> {
    let Db::Postgres(pool) = db else { return Ok(()) };
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    loop {
        listener.recv().await?;
        told();
    }
}
