//! Who did what, to what, why, from where, with what result. Entries are only ever added; what
//! people wrote stands apart from them and can be erased.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::chain::Pending;
use super::filters::{self, bind_all};
use super::{MAX_ROWS, StoreError, Tx, placeholders};
use crate::domain::chain::{ChainKey, Facts, erased};
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

impl AuditRow {
    /// What a link at a place says of it.
    pub fn facts<'a>(&'a self, seq: i64, words: &'a [u8], erased: Option<&'a [u8]>) -> Facts<'a> {
        Facts {
            seq,
            id: self.id,
            at: self.at,
            actor: &self.actor,
            action: &self.action,
            operation_id: self.operation_id,
            dead_letter_id: self.dead_letter_id,
            subject: self.subject.as_deref(),
            result: &self.result,
            origin: &self.origin,
            words,
            erased,
        }
    }
}

/// Said in the place of an entry's words that were erased.
pub const ERASED: &str = "The words of this entry were erased.";

/// An entry, and the salt of its words.
#[derive(Debug)]
pub(super) struct Salted {
    pub(super) row: AuditRow,
    pub(super) salt: Vec<u8>,
}

/// An entry, and where it stands in the chain.
#[derive(Clone, Debug)]
pub struct Entry {
    /// What it says.
    pub row: AuditRow,
    /// What it says with; absent when this program did not write it, or wrote it before there was a
    /// chain.
    pub link: Option<Link>,
}

/// What proves an entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Link {
    /// Its place.
    pub seq: i64,
    /// The link before it.
    pub previous: Vec<u8>,
    /// Its own link.
    pub mac: Vec<u8>,
    /// The secret key that it was made with.
    pub key_id: String,
    /// The digest of its words.
    pub words: Vec<u8>,
    /// The digest of the ids of those whose words it erased.
    pub erased: Option<Vec<u8>>,
    /// The salt of its words, which goes with them.
    pub salt: Option<Vec<u8>>,
}

/// Reads what stands behind an entry's own columns.
macro_rules! behind_row {
    ($row:ty) => {
        impl sqlx::FromRow<'_, $row> for Salted {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { row: AuditRow::from_row(row)?, salt: row.try_get("salt")? })
            }
        }

        impl sqlx::FromRow<'_, $row> for Entry {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                let link = match row.try_get::<Option<i64>, _>("seq")? {
                    None => None,
                    Some(seq) => Some(Link {
                        seq,
                        previous: row.try_get::<Option<_>, _>("previous")?.unwrap_or_default(),
                        mac: row.try_get("mac")?,
                        key_id: row.try_get("key_id")?,
                        words: row.try_get("words")?,
                        erased: row.try_get("erased")?,
                        salt: row.try_get("salt")?,
                    }),
                };
                Ok(Self { row: AuditRow::from_row(row)?, link })
            }
        }
    };
}

behind_row!(sqlx::sqlite::SqliteRow);
behind_row!(sqlx::postgres::PgRow);

fn columns(more: &str, joined: &str) -> String {
    format!(
        "SELECT a.id, a.at, a.actor, a.action, a.operation_id, a.dead_letter_id, a.subject, w.reason, a.result, \
         coalesce(w.detail, '{ERASED}') AS detail, a.origin{more} \
         FROM audit a LEFT JOIN audit_words w ON w.audit_id = a.id{joined}"
    )
}

/// Adds an entry. It belongs into the transaction of what it tells: when it cannot be added or
/// linked, that does not happen either.
pub async fn insert(tx: &mut Tx, row: &AuditRow) -> Result<(), StoreError> {
    add(tx, row, None).await
}

async fn add(tx: &mut Tx, row: &AuditRow, erased: Option<Vec<u8>>) -> Result<(), StoreError> {
    const FACTS: &str = "INSERT INTO audit (id, at, actor, action, operation_id, dead_letter_id, subject, \
        result, origin) VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9)";
    const WORDS: &str = "INSERT INTO audit_words (audit_id, salt, reason, detail) VALUES ($1, $2, $3, $4)";
    let salt = tx.ambient.secret();
    let key = ChainKey::of(tx.keyring()?.current());
    let words = key.words(&salt, row.reason.as_deref(), &row.detail);
    on!(tx, c => sqlx::query(FACTS)
        .bind(row.id)
        .bind(row.at)
        .bind(&row.actor)
        .bind(&row.action)
        .bind(row.operation_id)
        .bind(row.dead_letter_id)
        .bind(&row.subject)
        .bind(&row.result)
        .bind(&row.origin)
        .execute(c)
        .await?
        .rows_affected());
    on!(tx, c => sqlx::query(WORDS)
        .bind(row.id)
        .bind(&salt[..])
        .bind(&row.reason)
        .bind(&row.detail)
        .execute(c)
        .await?
        .rows_affected());
    tx.pending.push(Pending { row: row.clone(), words, erased });
    Ok(())
}

/// Erases the words of some entries, reason and detail, and adds the entry that says so; how many
/// had any. The chain stays whole: it holds a digest of them, and `by` says for ever whose are gone.
pub async fn erase_words(tx: &mut Tx, ids: &[Uuid], by: &AuditRow) -> Result<usize, StoreError> {
    let mut gone: Vec<Uuid> = Vec::new();
    for some in ids.chunks(MAX_ROWS) {
        let sql = format!(
            "DELETE FROM audit_words WHERE audit_id IN {} RETURNING audit_id",
            placeholders(1, some.len())
        );
        let erased: Vec<Uuid> = on!(&mut *tx, c => {
            let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
            for id in some {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        });
        gone.extend(erased);
    }
    gone.sort_unstable();
    for some in gone.chunks(MAX_ROWS) {
        let sql =
            format!("INSERT INTO audit_erasures (audit_id, by_id) VALUES {}", placeholders(some.len(), 2));
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for id in some {
                query = query.bind(*id).bind(by.id);
            }
            query.execute(c).await?;
        });
    }
    let told = (!gone.is_empty()).then(|| erased(gone.iter().copied()));
    add(tx, by, told).await?;
    Ok(gone.len())
}

/// The entries about some operations that have words to erase.
pub async fn worded(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<Uuid>, StoreError> {
    let mut found = Vec::new();
    for some in operations.chunks(MAX_ROWS) {
        let sql = format!(
            "SELECT a.id FROM audit a JOIN audit_words w ON w.audit_id = a.id \
             WHERE a.operation_id IN {} AND (w.reason IS NOT NULL OR w.detail <> '')",
            placeholders(1, some.len())
        );
        let ids: Vec<Uuid> = on!(&mut *tx, c => {
            let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
            for id in some {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        });
        found.extend(ids);
    }
    Ok(found)
}

/// A stretch of those that the filter means.
pub async fn list(tx: &mut Tx, filter: &AuditFilter, page: Page) -> Result<Listed<Entry>, StoreError> {
    let mut conditions = filters::audit(filter);
    let columns = columns(
        ", w.salt, l.seq, p.mac AS previous, l.mac, l.key_id, l.words, l.erased",
        " LEFT JOIN audit_chain l ON l.audit_id = a.id LEFT JOIN audit_chain p ON p.seq = l.seq - 1",
    );
    let sql = format!("{columns}{}", conditions.page("at", "id", page));
    let entries: Vec<Entry> = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_all(c).await?
    });
    Ok(Listed::new(entries, page, |entry| (entry.row.at, entry.row.id)))
}

/// Whether there are more entries than this many.
pub(super) async fn are_more(tx: &mut Tx, than: usize) -> Result<bool, StoreError> {
    let sql =
        format!("SELECT CAST(count(*) AS BIGINT) FROM (SELECT 1 FROM audit LIMIT {}) entries", than + 1);
    let count: i64 = on!(tx, c => sqlx::query_scalar(AssertSqlSafe(sql)).fetch_one(c).await)?;
    Ok(usize::try_from(count).is_ok_and(|count| count > than))
}

/// The next entries behind a place in the order of time, with all their words.
pub(super) async fn behind(
    tx: &mut Tx,
    (at, id): (Timestamp, Uuid),
    most: usize,
) -> Result<Vec<Salted>, StoreError> {
    let columns = columns(", w.salt", "");
    let sql = format!("{columns} WHERE (a.at, a.id) > ($1, $2) ORDER BY a.at, a.id LIMIT {most}");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(at).bind(id).fetch_all(c).await)?)
}

/// What people did to an operation, oldest first.
pub async fn of_operation(tx: &mut Tx, operation: Uuid) -> Result<Vec<AuditRow>, StoreError> {
    let sql = format!("{} WHERE operation_id = $1 ORDER BY at, id", columns("", ""));
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(operation).fetch_all(c).await)?)
}

/// Some by id, oldest first.
pub async fn by_ids(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<AuditRow>, StoreError> {
    if ids.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!("{} WHERE id IN {} ORDER BY at, id", columns("", ""), placeholders(1, ids.len()));
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
    let sql = format!("{} WHERE subject = $1 ORDER BY at DESC, id DESC LIMIT $2", columns("", ""));
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(subject).bind(most).fetch_all(c).await)?)
}

/// The reasons given last for an action, newest first, each once.
pub async fn recent_reasons(tx: &mut Tx, actor: &str, action: &str) -> Result<Vec<String>, StoreError> {
    const SQL: &str = "SELECT reason FROM (SELECT reason, at FROM audit JOIN audit_words ON audit_id = id \
        WHERE actor = $1 AND action = $2 AND reason IS NOT NULL ORDER BY at DESC LIMIT 50) recent \
        GROUP BY reason ORDER BY max(at) DESC LIMIT 5";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(actor).bind(action).fetch_all(c).await)?)
}

/// When each person signed in last.
pub async fn last_sign_ins(tx: &mut Tx) -> Result<Vec<(String, Timestamp)>, StoreError> {
    // Person by person, backwards from their latest act, instead of once through the whole audit.
    const SQL: &str = "SELECT name, last FROM (SELECT name, (SELECT at FROM audit \
        WHERE actor = name AND action = 'sign_in' ORDER BY at DESC, id DESC LIMIT 1) AS last FROM users) seen \
        WHERE last IS NOT NULL";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}
