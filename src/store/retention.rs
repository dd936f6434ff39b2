//! Erases and forgets what is old. Besides the gate's ledger this is the only place that changes
//! operations, steps and attempts; it takes away from them and alters nothing of what is known.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{Inner, StoreError, Tx, placeholders};
use crate::domain::time::Timestamp;

text_enum! {
    /// What is done with what is old.
    pub enum Task {
        /// Payload, requests and answers go; what is known of the operation stays.
        Erase = "erase",
        /// The whole operation goes, and its key is free again.
        Forget = "forget",
    }
}

stored_as_text!(Task);

/// A place in the order in which operations were received.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Place {
    /// When.
    pub received_at: Timestamp,
    /// Which, among those of that moment.
    pub operation_id: Uuid,
}

from_row!(Place { received_at, operation_id });

/// Takes the duty of tidying up until `until`, when it is due; false when another node has it, or
/// when it is too early.
pub async fn claim(tx: &mut Tx, now: Timestamp, until: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE upkeep SET due_at = $2 WHERE due_at <= $1";
    let claimed = on!(tx, c => sqlx::query(SQL).bind(now).bind(until).execute(c).await?.rows_affected());
    Ok(claimed == 1)
}

/// Says when tidying up is due again, for every node.
pub async fn due_again(tx: &mut Tx, at: Timestamp) -> Result<(), StoreError> {
    on!(tx, c => sqlx::query("UPDATE upkeep SET due_at = $1").bind(at).execute(c).await?.rows_affected());
    Ok(())
}

/// How far a task has come; the beginning when it was never begun.
pub async fn place(tx: &mut Tx, task: &str) -> Result<Place, StoreError> {
    const SQL: &str = "SELECT received_at, operation_id FROM upkeep_places WHERE task = $1";
    let found = on!(tx, c => sqlx::query_as(SQL).bind(task).fetch_optional(c).await)?;
    Ok(found.unwrap_or(Place { received_at: Timestamp::from_micros(0), operation_id: Uuid::nil() }))
}

/// Notes how far a task has come.
pub async fn set_place(tx: &mut Tx, task: &str, place: Place) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO upkeep_places (task, received_at, operation_id) VALUES ($1, $2, $3) \
        ON CONFLICT (task) DO UPDATE SET received_at = excluded.received_at, operation_id = excluded.operation_id";
    on!(tx, c => sqlx::query(SQL)
        .bind(task)
        .bind(place.received_at)
        .bind(place.operation_id)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// The next operations behind a place that were received before a moment: those of one type, or all.
pub async fn next(
    tx: &mut Tx,
    kind: Option<&str>,
    after: Place,
    before: Timestamp,
    most: usize,
) -> Result<Vec<Place>, StoreError> {
    let of_kind = if kind.is_some() { " AND kind = $4" } else { "" };
    let sql = format!(
        "SELECT received_at, id AS operation_id FROM operations WHERE (received_at, id) > ($1, $2) \
         AND received_at < $3{of_kind} ORDER BY received_at, id LIMIT {most}"
    );
    Ok(on!(tx, c => {
        let query = sqlx::query_as(AssertSqlSafe(sql)).bind(after.received_at).bind(after.operation_id).bind(before);
        match kind {
            Some(kind) => query.bind(kind).fetch_all(c).await?,
            None => query.fetch_all(c).await?,
        }
    }))
}

/// Leaves operations for later.
pub async fn put_off(tx: &mut Tx, task: Task, operations: &[Uuid]) -> Result<(), StoreError> {
    for id in operations {
        const SQL: &str = "INSERT INTO upkeep_later (task, operation_id) VALUES ($1, $2) \
            ON CONFLICT (task, operation_id) DO NOTHING";
        on!(&mut *tx, c => sqlx::query(SQL).bind(task).bind(*id).execute(c).await?.rows_affected());
    }
    Ok(())
}

/// What was left for later, behind an id: the operation, and its type while it exists.
pub async fn later(
    tx: &mut Tx,
    task: Task,
    after: Uuid,
    most: usize,
) -> Result<Vec<(Uuid, Option<String>)>, StoreError> {
    let sql = format!(
        "SELECT l.operation_id, o.kind FROM upkeep_later l LEFT JOIN operations o ON o.id = l.operation_id \
         WHERE l.task = $1 AND l.operation_id > $2 ORDER BY l.operation_id LIMIT {most}"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(task).bind(after).fetch_all(c).await)?)
}

/// What was left for later is done.
pub async fn caught_up(tx: &mut Tx, task: Task, operations: &[Uuid]) -> Result<(), StoreError> {
    let sql = format!("DELETE FROM upkeep_later WHERE task = '{task}' AND operation_id IN {{}}");
    change(tx, &sql, operations).await
}

/// Of these operations, those that nothing more is to be done with: nobody else can begin anything
/// with them until this transaction ends. Whoever is busy with one of them is not waited for. To be
/// forgotten an operation may have no open dead letter either.
pub async fn over(tx: &mut Tx, task: Task, operations: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    if operations.is_empty() {
        return Ok(Vec::new());
    }
    let list = placeholders(1, operations.len());
    let held: Vec<Uuid> = match &mut tx.inner {
        // The transaction is the only writer.
        Inner::Sqlite(_) => operations.to_vec(),
        Inner::Postgres(inner) => {
            let sql = format!("SELECT id FROM operations WHERE id IN {list} FOR UPDATE SKIP LOCKED");
            let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
            for id in operations {
                query = query.bind(*id);
            }
            query.fetch_all(&mut **inner).await?
        }
    };
    // A statement of its own, which sees what stands once the locks are held.
    let letters = match task {
        Task::Erase => String::new(),
        Task::Forget => {
            format!(
                " UNION SELECT operation_id FROM dead_letters WHERE closed_at IS NULL AND operation_id IN {list}"
            )
        }
    };
    let sql = format!("SELECT operation_id FROM work WHERE operation_id IN {list}{letters}");
    let busy: Vec<Uuid> = on!(tx, c => {
        let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
        for id in operations {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    });
    Ok(held.into_iter().filter(|id| !busy.contains(id)).collect())
}

/// Said in the place of what an event told of an answer.
pub const ERASED: &str = "What came back was erased.";

/// The same for a step that was passed over.
pub const PASSED: &str = "A step was passed over; why was erased.";

/// What a bulk action's members tell of answers. The members stay: they name operations and hold
/// nothing of them.
const QUOTED: &str = "UPDATE bulk_members SET answer = NULL WHERE answer IS NOT NULL AND operation_id IN {}";

/// What goes when operations are erased. Of an address stays the host; of answers their status and
/// what they meant, never their words; of what other systems know it by, the references.
const ERASE: [&str; 9] = [
    "DELETE FROM payloads WHERE operation_id IN {}",
    "UPDATE requests SET body = NULL, headers = '[]', url = CASE WHEN url LIKE 'http%' \
     THEN substr(url, 1, 8 + {position}(substr(url, 9), '/')) || '\u{2026}' ELSE url END \
     WHERE url NOT LIKE '%\u{2026}' AND operation_id IN {}",
    "UPDATE attempts SET answer_body = NULL, answer_headers = NULL, answer_cut = FALSE, \
     error = CASE WHEN outcome = 'skipped' THEN error END, \
     asked = CASE WHEN asked IS NOT NULL THEN '' END WHERE operation_id IN {}",
    "UPDATE steps SET saved = NULL WHERE saved IS NOT NULL AND operation_id IN {}",
    "UPDATE events SET detail = CASE WHEN kind = 'passed_over' THEN '{passed}' ELSE '{erased}' END WHERE kind IN ('late_answer', 'late_done', 'found', \
     'found_other', 'found_absent', 'found_nothing', 'passed_over') AND operation_id IN {}",
    "UPDATE dead_letters SET error = '', cause_text = '' WHERE operation_id IN {}",
    "DELETE FROM actions WHERE operation_id IN {}",
    QUOTED,
    "DELETE FROM upkeep_later WHERE task = 'erase' AND operation_id IN {}",
];

/// Erases what operations of one type hold of other people's data: all but the keys, references and
/// business ids by which they are found, the digest, and what became of them. `private` names the
/// business ids that go as well.
pub async fn erase(tx: &mut Tx, operations: &[Uuid], private: &[&str]) -> Result<(), StoreError> {
    let position = if tx.is_postgres() { "strpos" } else { "instr" };
    for statement in ERASE {
        let statement =
            statement.replace("{position}", position).replace("{erased}", ERASED).replace("{passed}", PASSED);
        change(tx, &statement, operations).await?;
    }
    for name in private {
        // A name is made of letters, digits, "-" and "_".
        let sql = format!("DELETE FROM search WHERE name = '{name}' AND operation_id IN {{}}");
        change(tx, &sql, operations).await?;
    }
    Ok(())
}

/// Forgets operations with all that belongs to them but the audit, whose words are erased apart from
/// this, and their places in bulk actions.
/// Their keys are free again.
pub async fn forget(tx: &mut Tx, operations: &[Uuid]) -> Result<(), StoreError> {
    const TABLES: [&str; 9] = [
        "payloads",
        "requests",
        "attempts",
        "steps",
        "events",
        "search",
        "dead_letters",
        "override_requests",
        "actions",
    ];
    for table in TABLES {
        change(tx, &format!("DELETE FROM {table} WHERE operation_id IN {{}}"), operations).await?;
    }
    change(tx, QUOTED, operations).await?;
    change(
        tx,
        "DELETE FROM upkeep_later WHERE task IN ('erase', 'forget') AND operation_id IN {}",
        operations,
    )
    .await?;
    change(tx, "DELETE FROM operations WHERE id IN {}", operations).await
}

/// Runs a statement over operations, which stand for its `{}`.
async fn change(tx: &mut Tx, statement: &str, operations: &[Uuid]) -> Result<(), StoreError> {
    if operations.is_empty() {
        return Ok(());
    }
    let sql = statement.replace("{}", &placeholders(1, operations.len()));
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for id in operations {
            query = query.bind(*id);
        }
        query.execute(c).await?;
    });
    Ok(())
}

/// Drops people's actions from before a moment, some at a time; how many.
pub async fn drop_actions(tx: &mut Tx, before: Timestamp, most: usize) -> Result<u64, StoreError> {
    let sql = format!(
        "DELETE FROM actions WHERE (actor, action_id) IN \
         (SELECT actor, action_id FROM actions WHERE at < $1 ORDER BY at LIMIT {most})"
    );
    Ok(on!(tx, c => sqlx::query(AssertSqlSafe(sql)).bind(before).execute(c).await?.rows_affected()))
}

/// Drops one-time links that lapsed before a moment, some at a time; how many.
pub async fn drop_links(tx: &mut Tx, before: Timestamp, most: usize) -> Result<u64, StoreError> {
    let sql = format!(
        "DELETE FROM setup_links WHERE hash IN (SELECT hash FROM setup_links WHERE expires_at < $1 LIMIT {most})"
    );
    Ok(on!(tx, c => sqlx::query(AssertSqlSafe(sql)).bind(before).execute(c).await?.rows_affected()))
}
