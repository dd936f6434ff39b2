//! Rows of work: what is to be sent, for whom, when. What the gate judges them by stands in
//! `facts`.

mod facts;

use sqlx::AssertSqlSafe;
use sqlx::postgres::PgListener;
use uuid::Uuid;

use super::{Db, Inner, Pools, StoreError, Tx, placeholders};
use crate::domain::attempt::Cause;
use crate::domain::lookup::Task;
use crate::domain::operation::NewOperation;
use crate::domain::time::Timestamp;
pub use facts::{Room, WorkRow, as_if, due, expired, one};

/// A person's request for a send.
#[derive(Clone, Debug)]
pub struct NewWork {
    /// Its operation.
    pub operation_id: Uuid,
    /// The step that is meant.
    pub position: i64,
    /// That step's destination.
    pub destination: String,
    /// Who takes it.
    pub lane: String,
    /// A send, or a question.
    pub task: Task,
    /// Why.
    pub cause: Cause,
    /// Who asked.
    pub requested_by: String,
    /// Words of the waived checks, separated by spaces.
    pub waived: String,
    /// Now.
    pub at: Timestamp,
}

impl NewWork {
    /// Stands for no row: what is known of an operation is wanted, and nothing is asked for.
    pub fn evidence(operation: Uuid, at: Timestamp) -> Self {
        Self {
            operation_id: operation,
            position: 0,
            destination: String::new(),
            lane: String::new(),
            task: Task::Send,
            cause: Cause::Automatic,
            requested_by: String::new(),
            waived: String::new(),
            at,
        }
    }
}

/// Takes an operation's row of work, if it has one, until this transaction ends. False when somebody
/// is taking it up this very moment: whoever acts on the operation does not wait for that, since it
/// may in turn wait for the operation.
pub async fn seize(tx: &mut Tx, operation: Uuid) -> Result<bool, StoreError> {
    const FREE: &str = "SELECT operation_id FROM work WHERE operation_id = $1 FOR UPDATE SKIP LOCKED";
    const ANY: &str = "SELECT operation_id FROM work WHERE operation_id = $1";
    let Inner::Postgres(inner) = &mut tx.inner else { return Ok(true) };
    let free: Option<Uuid> = sqlx::query_scalar(FREE).bind(operation).fetch_optional(&mut **inner).await?;
    let any: Option<Uuid> = sqlx::query_scalar(ANY).bind(operation).fetch_optional(&mut **inner).await?;
    Ok(free == any)
}

/// Whether an operation has a row of work, waiting or held.
pub async fn any(tx: &mut Tx, operation: Uuid) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT operation_id FROM work WHERE operation_id = $1";
    let found: Option<Uuid> = on!(tx, c => sqlx::query_scalar(SQL).bind(operation).fetch_optional(c).await?);
    Ok(found.is_some())
}

/// Lets nobody else act on an operation until this transaction ends.
pub async fn lock_operation(tx: &mut Tx, operation: Uuid) -> Result<(), StoreError> {
    lock(tx, "SELECT 1 FROM operations WHERE id = $1 FOR UPDATE", operation).await
}

/// Waits for whoever changes an operation, in a statement of its own: PostgreSQL reads a locked row
/// anew and joins it to what the others were when the statement began. On SQLite the transaction is
/// the only writer.
async fn lock(tx: &mut Tx, sql: &'static str, operation: Uuid) -> Result<(), StoreError> {
    if let Inner::Postgres(inner) = &mut tx.inner {
        sqlx::query(sql).bind(operation).execute(&mut **inner).await?;
    }
    Ok(())
}

/// When the next row of work that nobody holds is due in each of these lanes, where there is one.
pub async fn next_due(tx: &mut Tx, lanes: &[&str]) -> Result<Vec<(String, Timestamp)>, StoreError> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    // One index seek a lane; grouping would read every row that waits.
    let part = |index: usize| {
        format!(
            "SELECT CAST(${} AS TEXT) AS lane, (SELECT min(due_at) FROM work \
             WHERE leased_until IS NULL AND lane = ${}) AS due_at",
            index + 1,
            index + 1
        )
    };
    let parts: Vec<String> = (0..lanes.len()).map(part).collect();
    let sql = format!("SELECT lane, due_at FROM ({}) x WHERE due_at IS NOT NULL", parts.join(" UNION ALL "));
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for lane in lanes {
            query = query.bind(*lane);
        }
        query.fetch_all(c).await?
    }))
}

/// Every lane that has work waiting, whether it is configured or not.
pub async fn lanes(tx: &mut Tx) -> Result<Vec<String>, StoreError> {
    const SQL: &str = "SELECT min(lane) FROM work WHERE leased_until IS NULL AND lane > $1";
    let mut found: Vec<String> = Vec::new();
    loop {
        let after = found.last().cloned().unwrap_or_default();
        let next: Option<String> =
            on!(&mut *tx, c => sqlx::query_scalar(SQL).bind(after).fetch_one(c).await)?;
        match next {
            Some(lane) => found.push(lane),
            None => return Ok(found),
        }
    }
}

/// How many rows of each of these lanes are held, by any node.
pub async fn held(tx: &mut Tx, lanes: &[&str]) -> Result<Vec<(String, i64)>, StoreError> {
    if lanes.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "SELECT lane, count(*) FROM work WHERE leased_until IS NOT NULL AND lane IN {} GROUP BY lane",
        placeholders(1, lanes.len())
    );
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for lane in lanes {
            query = query.bind(*lane);
        }
        query.fetch_all(c).await?
    }))
}

/// Rows of work by destination, waiting and held.
pub async fn by_destination(tx: &mut Tx) -> Result<Vec<(String, i64)>, StoreError> {
    const SQL: &str = "SELECT destination, count(*) FROM work GROUP BY destination";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
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
            lane: operation.steps[0].lane.clone(),
            task: Task::Send,
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
         due_at, since, tries, doubts, waits, fence, lane, task, asked_by) VALUES {} \
         ON CONFLICT (operation_id) DO NOTHING",
        placeholders(new.len(), 16)
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
                .bind(0_i64)
                .bind(&row.lane)
                .bind(row.task)
                .bind((row.task == Task::Ask).then_some(&row.requested_by));
        }
        query.execute(c).await?.rows_affected()
    }))
}

/// The channel on which nodes tell each other of new work.
const CHANNEL: &str = "dlo_work";

/// Tells the other nodes, once this transaction is durable, that there is work. SQLite has no such
/// word: a process that shares its file finds the row at its next look.
pub async fn announce(tx: &mut Tx) -> Result<(), StoreError> {
    if let Inner::Postgres(inner) = &mut tx.inner {
        sqlx::query("SELECT pg_notify($1, '')").bind(CHANNEL).execute(&mut **inner).await?;
    }
    Ok(())
}

/// Calls `told` whenever a node says that there is work. Returns at once on SQLite, which has no
/// such word, and elsewhere only with an error.
pub async fn hear(db: &Db, told: impl Fn()) -> Result<(), StoreError> {
    let Pools::Postgres(pool) = &db.pools else { return Ok(()) };
    let mut listener = PgListener::connect_with(pool).await?;
    listener.listen(CHANNEL).await?;
    loop {
        listener.recv().await?;
        told();
    }
}
