//! Every envelope of every table: a change of the secret key finds them all here. Each such table has
//! the columns `key_id`, `wrapped` and `sealed`.

use std::fmt;

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{StoreError, Tx};
use crate::domain::envelope::Envelope;

/// A table with an envelope in each row. It belongs to `<belongs>/<id>`, or to
/// `<belongs>/<id>/<version>` where rows have versions.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    /// The table.
    pub table: &'static str,
    id: &'static str,
    version: Option<&'static str>,
    belongs: &'static str,
}

/// All of them.
pub const PLACES: &[Place] = &[
    Place { table: "secrets", id: "name", version: Some("version"), belongs: "secrets" },
    Place { table: "totps", id: "user_id", version: None, belongs: "users.totp" },
];

/// What names a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Id {
    /// In a column of text.
    Text(String),
    /// In a column of UUIDs.
    Uuid(Uuid),
}

impl fmt::Display for Id {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Uuid(id) => id.fmt(f),
        }
    }
}

/// A row's envelope.
#[derive(Clone, Debug)]
pub struct Kept {
    /// The row.
    pub id: Id,
    /// What is authenticated with it.
    pub belongs: String,
    /// The envelope.
    pub envelope: Envelope,
}

struct Row {
    id: Id,
    version: i64,
    key_id: String,
    wrapped: Vec<u8>,
    sealed: Vec<u8>,
}

macro_rules! read_row {
    ($($row:ty),+) => {$(
        impl sqlx::FromRow<'_, $row> for Row {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                let id = match row.try_get("id") {
                    Ok(text) => Id::Text(text),
                    Err(_) => Id::Uuid(row.try_get("id")?),
                };
                Ok(Self {
                    id,
                    version: row.try_get("version")?,
                    key_id: row.try_get("key_id")?,
                    wrapped: row.try_get("wrapped")?,
                    sealed: row.try_get("sealed")?,
                })
            }
        }
    )+};
}

read_row!(sqlx::sqlite::SqliteRow, sqlx::postgres::PgRow);

/// How many envelopes of a place are under which key, by the key's id.
pub async fn counts(tx: &mut Tx, place: &Place) -> Result<Vec<(String, i64)>, StoreError> {
    let sql = format!(
        "SELECT key_id, CAST(count(*) AS BIGINT) FROM {} GROUP BY key_id ORDER BY key_id",
        place.table
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).fetch_all(c).await)?)
}

/// At most `most` envelopes of a place that are not under the key `current`, by id, from behind
/// `after` on.
pub async fn under_others(
    tx: &mut Tx,
    place: &Place,
    current: &str,
    after: Option<&Id>,
    most: i64,
) -> Result<Vec<Kept>, StoreError> {
    let Place { table, id, version, belongs } = place;
    let behind = after.map_or_else(String::new, |_| format!(" AND {id} > $3"));
    let sql = format!(
        "SELECT {id} AS id, {} AS version, key_id, wrapped, sealed FROM {table} \
         WHERE key_id <> $1{behind} ORDER BY {id} LIMIT $2",
        version.unwrap_or("CAST(0 AS BIGINT)")
    );
    let rows: Vec<Row> = on!(tx, c => {
        let query = sqlx::query_as(AssertSqlSafe(sql)).bind(current).bind(most);
        let query = match after {
            Some(Id::Text(text)) => query.bind(text),
            Some(Id::Uuid(id)) => query.bind(id),
            None => query,
        };
        query.fetch_all(c).await?
    });
    let kept = |row: Row| Kept {
        belongs: match version {
            Some(_) => format!("{belongs}/{}/{}", row.id, row.version),
            None => format!("{belongs}/{}", row.id),
        },
        id: row.id,
        envelope: Envelope { key_id: row.key_id, wrapped: row.wrapped, sealed: row.sealed },
    };
    Ok(rows.into_iter().map(kept).collect())
}

/// Replaces an envelope by the same secret under another key; false when the row holds another one by
/// now.
pub async fn rewrap(tx: &mut Tx, place: &Place, old: &Kept, new: &Envelope) -> Result<bool, StoreError> {
    let sql = format!(
        "UPDATE {} SET key_id = $1, wrapped = $2 WHERE sealed = $3 AND key_id = $4 AND {} = $5",
        place.table, place.id
    );
    let changed = on!(tx, c => {
        let query = sqlx::query(AssertSqlSafe(sql))
            .bind(&new.key_id)
            .bind(&new.wrapped)
            .bind(&old.envelope.sealed)
            .bind(&old.envelope.key_id);
        let query = match &old.id {
            Id::Text(text) => query.bind(text),
            Id::Uuid(id) => query.bind(id),
        };
        query.execute(c).await?.rows_affected()
    });
    Ok(changed == 1)
}
