//! Texts that people wrote, and that may quote somebody who is erased: where each kind stands, and
//! how one is taken away. They are read a stretch at a time.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::store::{StoreError, Tx};

/// Stands between the texts of one row. One that somebody wrote splits a text in two.
const BETWEEN: char = '\u{1f}';

/// Names a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Row {
    /// By its id.
    Id(Uuid),
    /// By a name, and a second one where it has two.
    Named(String, String),
}

/// A row in which people wrote.
#[derive(Clone, Debug)]
pub struct Quoting {
    /// Which.
    pub row: Row,
    /// The operation that it belongs to.
    pub operation: Option<Uuid>,
    texts: String,
}

impl Quoting {
    /// What it says, field by field.
    pub fn texts(&self) -> impl Iterator<Item = &str> {
        self.texts.split(BETWEEN)
    }
}

macro_rules! quoting_row {
    ($row:ty) => {
        impl sqlx::FromRow<'_, $row> for Quoting {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                let named = match row.try_get::<Uuid, _>("id") {
                    Ok(id) => Row::Id(id),
                    Err(_) => Row::Named(row.try_get("one")?, row.try_get("other")?),
                };
                let (operation, texts) = (row.try_get("operation_id")?, row.try_get("texts")?);
                Ok(Self { row: named, operation, texts })
            }
        }
    };
}

quoting_row!(sqlx::sqlite::SqliteRow);
quoting_row!(sqlx::postgres::PgRow);

/// Where people may have written about a subject.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Written {
    /// What is said of a cause.
    CauseNote,
    /// A kept filter.
    View,
    /// A bulk action's name, reasons and filter.
    Bulk,
    /// Why a destination is paused.
    Pause,
    /// What somebody was told of.
    Alert,
    /// What an action was about, kept so that it acts once.
    Action,
    /// A note on an operation, and why one takes another's place.
    Note,
    /// Why a dead letter was closed.
    Closing,
    /// Why an override was asked for, and what was said to it.
    Override,
}

/// How a kind is stored.
struct Stored {
    table: &'static str,
    /// The two columns that name a row where that is not its id.
    named: Option<(&'static str, &'static str)>,
    operation: &'static str,
    texts: &'static [&'static str],
    which: &'static str,
    /// What is set when a text goes; the whole row goes where nothing is.
    gone: Option<&'static str>,
}

impl Stored {
    const TABLE: Self = Self {
        table: "",
        named: None,
        operation: "CAST(NULL AS UUID)",
        texts: &[],
        which: "TRUE",
        gone: None,
    };
}

impl Written {
    /// Every one.
    pub const ALL: [Self; 9] = [
        Self::CauseNote,
        Self::View,
        Self::Bulk,
        Self::Pause,
        Self::Alert,
        Self::Action,
        Self::Note,
        Self::Closing,
        Self::Override,
    ];

    fn stored(self) -> Stored {
        match self {
            Self::CauseNote => Stored {
                table: "causes",
                named: Some(("cause", "''")),
                texts: &["note"],
                which: "note IS NOT NULL",
                gone: Some("note = NULL"),
                ..Stored::TABLE
            },
            Self::View => Stored { table: "views", texts: &["name", "query"], ..Stored::TABLE },
            Self::Bulk => Stored {
                table: "bulks",
                texts: &["name", "reason", "coalesce(pause_reason, '')", "coalesce(filter, '')"],
                gone: Some("name = 'Erased', reason = 'Erased', pause_reason = NULL, filter = NULL"),
                ..Stored::TABLE
            },
            Self::Pause => Stored {
                table: "destinations",
                named: Some(("name", "''")),
                texts: &["pause_reason"],
                which: "pause_reason IS NOT NULL",
                gone: Some("pause_reason = 'Erased'"),
                ..Stored::TABLE
            },
            Self::Alert => Stored {
                table: "alerts",
                texts: &["detail"],
                gone: Some("detail = 'Erased'"),
                ..Stored::TABLE
            },
            // The row stays, since its action must not be taken a second time. An erasure's own says
            // nothing of anybody.
            Self::Action => Stored {
                table: "actions",
                named: Some(("actor", "action_id")),
                operation: "operation_id",
                texts: &["subject", "answer"],
                which: "subject <> '' AND subject NOT LIKE 'erasure:%'",
                gone: Some("subject = '', answer = ''"),
            },
            Self::Note => Stored {
                table: "events",
                operation: "operation_id",
                texts: &["detail"],
                which: "kind IN ('note', 'corrected', 'corrects')",
                gone: Some("detail = 'Erased.'"),
                ..Stored::TABLE
            },
            Self::Closing => Stored {
                table: "dead_letters",
                operation: "operation_id",
                texts: &["reason"],
                which: "reason IS NOT NULL",
                gone: Some("reason = NULL"),
                ..Stored::TABLE
            },
            Self::Override => Stored {
                table: "override_requests",
                operation: "operation_id",
                texts: &["reason", "coalesce(word, '')"],
                gone: Some("reason = 'Erased.', word = NULL"),
                ..Stored::TABLE
            },
        }
    }
}

/// Rows of a kind behind another one, in the order of their names, `most` of them.
pub async fn texts(
    tx: &mut Tx,
    of: Written,
    after: Option<&Row>,
    most: usize,
) -> Result<Vec<Quoting>, StoreError> {
    let Stored { table, named, operation, texts, which, .. } = of.stored();
    let texts = texts.join(&format!(" || '{BETWEEN}' || "));
    let (names, behind, order) = match named {
        Some((one, other)) => {
            (format!("{one} AS one, {other} AS other"), format!("({one}, {other}) > ($1, $2)"), "one, other")
        }
        None => ("id".to_owned(), "id > $1".to_owned(), "id"),
    };
    let sql = format!(
        "SELECT {names}, {operation} AS operation_id, {texts} AS texts FROM {table} \
         WHERE {which} AND {behind} ORDER BY {order} LIMIT {most}"
    );
    let first = if named.is_some() { Row::Named(String::new(), String::new()) } else { Row::Id(Uuid::nil()) };
    let query = AssertSqlSafe(sql);
    Ok(match after.unwrap_or(&first) {
        Row::Id(id) => on!(tx, c => sqlx::query_as(query).bind(*id).fetch_all(c).await)?,
        Row::Named(one, other) => {
            on!(tx, c => sqlx::query_as(query).bind(one).bind(other).fetch_all(c).await)?
        }
    })
}

/// Takes what a row says away; false when it is gone already.
pub async fn take_away(tx: &mut Tx, of: Written, row: &Row) -> Result<bool, StoreError> {
    let Stored { table, named, gone, .. } = of.stored();
    let which =
        named.map_or_else(|| "id = $1".to_owned(), |(one, other)| format!("{one} = $1 AND {other} = $2"));
    let sql = match gone {
        Some(gone) => format!("UPDATE {table} SET {gone} WHERE {which}"),
        None => format!("DELETE FROM {table} WHERE {which}"),
    };
    let query = AssertSqlSafe(sql);
    let changed = match row {
        Row::Id(id) => on!(tx, c => sqlx::query(query).bind(*id).execute(c).await?.rows_affected()),
        Row::Named(one, other) => {
            on!(tx, c => sqlx::query(query).bind(one).bind(other).execute(c).await?.rows_affected())
        }
    };
    Ok(changed > 0)
}

/// The actions in whose entries people write. What is written of accounts, tokens, secrets and
/// settings, and of erasing itself, names its target in these words alone and quotes nobody.
const PEOPLE_WRITE: &str = "'replay', 'override', 'override_ask', 'override_approve', 'override_refuse', \
    'override_withdraw', 'bulk', 'bulk_create', 'bulk_start', 'bulk_confirm', 'bulk_pause', 'bulk_resume', \
    'bulk_cancel', 'bulk_end', 'pause', 'resume', 'resolve', 'correct', 'cause_note', 'view_save', \
    'view_delete', 'assign', 'snooze', 'note', 'reopen', 'view_payload', 'export'";

/// The last entry of the audit that has words; absent while none has.
pub async fn last_audit_words(tx: &mut Tx) -> Result<Option<Uuid>, StoreError> {
    const SQL: &str = "SELECT audit_id FROM audit_words ORDER BY audit_id DESC LIMIT 1";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).fetch_optional(c).await)?)
}

/// The entries of the audit in which people write, behind an id and up to another, with their words.
pub async fn audit_words(
    tx: &mut Tx,
    after: Uuid,
    last: Uuid,
    most: usize,
) -> Result<Vec<Quoting>, StoreError> {
    let sql = format!(
        "SELECT a.id, a.operation_id, coalesce(w.reason, '') || '{BETWEEN}' || w.detail AS texts \
         FROM audit_words w JOIN audit a ON a.id = w.audit_id WHERE a.action IN ({PEOPLE_WRITE}) \
         AND w.audit_id > $1 AND w.audit_id <= $2 ORDER BY w.audit_id LIMIT {most}"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(after).bind(last).fetch_all(c).await)?)
}
