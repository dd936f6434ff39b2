//! Who did what, to what, why, from where, with what result. Rows are only ever added.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::filters::{self, bind_all};
use super::{StoreError, Tx, placeholders};
use crate::domain::filter::{AuditFilter, Listed, Page};
use crate::domain::time::Timestamp;

/// An entry.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// UUIDv7.
    pub id: Uuid,
    /// When.
    pub at: Timestamp,
    /// Who.
    pub actor: String,
    /// `replay`, `resolve`, `override`, `sign_in` and the like.
    pub action: String,
    /// To which operation.
    pub operation_id: Option<Uuid>,
    /// To which dead letter.
    pub dead_letter_id: Option<Uuid>,
    /// To what else: `cause:<fingerprint>`, `destination:<name>`, `bulk:<id>`.
    pub subject: Option<String>,
    /// Why, in their words.
    pub reason: Option<String>,
    /// With what result.
    pub result: String,
    /// What else is worth knowing, for people.
    pub detail: String,
    /// An address, or the command line.
    pub origin: String,
}

from_row!(AuditRow {
    id,
    at,
    actor,
    action,
    operation_id,
    dead_letter_id,
    subject,
    reason,
    result,
    detail,
    origin
});

const COLUMNS: &str = "SELECT id, at, actor, action, operation_id, dead_letter_id, subject, reason, result, \
    detail, origin FROM audit";

/// Adds an entry. It belongs into the transaction of what it tells.
pub async fn insert(tx: &mut Tx, row: &AuditRow) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO audit (id, at, actor, action, operation_id, dead_letter_id, subject, \
        reason, result, detail, origin) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11)";
    on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.at)
        .bind(&row.actor)
        .bind(&row.action)
        .bind(row.operation_id)
        .bind(row.dead_letter_id)
        .bind(&row.subject)
        .bind(&row.reason)
        .bind(&row.result)
        .bind(&row.detail)
        .bind(&row.origin)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// A stretch of those that the filter means.
pub async fn list(tx: &mut Tx, filter: &AuditFilter, page: Page) -> Result<Listed<AuditRow>, StoreError> {
    let mut conditions = filters::audit(filter);
    let sql = format!("{COLUMNS}{}", conditions.page("at", "id", page));
    let rows: Vec<AuditRow> = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_all(c).await?
    });
    Ok(Listed::new(rows, page, |row| (row.at, row.id)))
}

/// What people did to an operation, oldest first.
pub async fn of_operation(tx: &mut Tx, operation: Uuid) -> Result<Vec<AuditRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE operation_id = $1 ORDER BY at, id");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_all(c).await)?)
}

/// Some by id, oldest first.
pub async fn by_ids(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<AuditRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{COLUMNS} WHERE id IN {} ORDER BY at, id", placeholders(1, ids.len()));
    Ok(on!(tx, c => {
        let mut query = sqlx::query_as(AssertSqlSafe(sql));
        for id in ids {
            query = query.bind(*id);
        }
        query.fetch_all(c).await?
    }))
}

/// What was done to a subject, newest first.
pub async fn of_subject(tx: &mut Tx, subject: &str, most: i64) -> Result<Vec<AuditRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE subject = $1 ORDER BY at DESC, id DESC LIMIT $2");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(subject).bind(most).fetch_all(c).await)?)
}

/// The reasons given last for an action, newest first, each once.
pub async fn recent_reasons(tx: &mut Tx, actor: &str, action: &str) -> Result<Vec<String>, StoreError> {
    const SQL: &str = "SELECT reason FROM (SELECT reason, at FROM audit \
        WHERE actor = $1 AND action = $2 AND reason IS NOT NULL ORDER BY at DESC LIMIT 50) recent \
        GROUP BY reason ORDER BY max(at) DESC LIMIT 5";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(actor).bind(action).fetch_all(c).await)?)
}

/// When each person signed in last.
pub async fn last_sign_ins(tx: &mut Tx) -> Result<Vec<(String, Timestamp)>, StoreError> {
    const SQL: &str = "SELECT actor, max(at) FROM audit WHERE action = 'sign_in' GROUP BY actor";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}
