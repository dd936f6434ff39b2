//! The links between the audit's entries. They are made when a transaction commits, one writer at a
//! time, and only ever added.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::audit::{self, AuditRow, Salted};
use super::tx::{Inner, Tx};
use super::{MAX_ROWS, StoreError, placeholders};
use crate::domain::chain::{ChainKey, START};
use crate::domain::time::Timestamp;

/// An entry that was added and has no link yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) row: AuditRow,
    pub(super) words: Vec<u8>,
    pub(super) erased: Option<Vec<u8>>,
}

/// The last link.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Head {
    /// How many links there are.
    pub seq: i64,
    /// What it authenticates with.
    pub mac: Vec<u8>,
    /// The secret key that it was made with.
    pub key_id: String,
}

from_row!(Head { seq, mac, key_id });

/// The last link; absent while nothing was linked.
pub async fn head(tx: &mut Tx) -> Result<Option<Head>, StoreError> {
    const SQL: &str = "SELECT seq, mac, key_id FROM audit_chain ORDER BY seq DESC LIMIT 1";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_optional(c).await)?)
}

/// The secret keys that links were made with, by id, each with its first link and its last. However
/// many links there are, this costs a look or two for each key.
pub async fn keys(tx: &mut Tx) -> Result<Vec<(String, i64, i64)>, StoreError> {
    const NEXT: &str = "SELECT min(key_id) FROM audit_chain WHERE key_id > $1";
    const ENDS: &str = "SELECT (SELECT min(seq) FROM audit_chain WHERE key_id = $1), \
        (SELECT max(seq) FROM audit_chain WHERE key_id = $1)";
    let mut found = Vec::new();
    let mut after = String::new();
    while let Some(id) =
        on!(&mut *tx, c => sqlx::query_scalar::<_, Option<String>>(NEXT).bind(&after).fetch_one(c).await)?
        && found.len() < MAX_ROWS
    {
        let (first, last) = on!(&mut *tx, c => sqlx::query_as(ENDS).bind(&id).fetch_one(c).await)?;
        found.push((id.clone(), first, last));
        after = id;
    }
    Ok(found)
}

/// A link that is about to be stored.
struct Link {
    seq: i64,
    entry: Pending,
    mac: Vec<u8>,
}

/// Links what this transaction added, behind everything that was linked before.
pub(super) async fn append(tx: &mut Tx) -> Result<(), StoreError> {
    let pending = std::mem::take(&mut tx.pending);
    if pending.is_empty() {
        return Ok(());
    }
    let key = ChainKey::of(tx.keyring()?.current());
    take_turn(tx).await?;
    let mut end = match head(tx).await? {
        Some(head) => (head.seq, head.mac),
        None if audit::are_more(tx, pending.len()).await? => return Err(StoreError::NoChain),
        None => (0, START.to_vec()),
    };
    let mut pending = pending.into_iter().peekable();
    while pending.peek().is_some() {
        let stretch: Vec<Pending> = pending.by_ref().take(MAX_ROWS).collect();
        end = link(tx, &key, end, stretch).await?;
    }
    Ok(())
}

/// Waits until nobody else appends. A lock that is no row's: it asks for no right to change
/// anything. On SQLite the transaction is the only writer.
async fn take_turn(tx: &mut Tx) -> Result<(), StoreError> {
    /// "dloaudit".
    const TURN: i64 = 0x646c_6f61_7564_6974;
    if let Inner::Postgres(inner) = &mut tx.inner {
        sqlx::query("SELECT pg_advisory_xact_lock($1)").bind(TURN).execute(&mut **inner).await?;
    }
    Ok(())
}

/// Links entries behind a link; the last of them.
async fn link(
    tx: &mut Tx,
    key: &ChainKey,
    (mut seq, mut previous): (i64, Vec<u8>),
    entries: Vec<Pending>,
) -> Result<(i64, Vec<u8>), StoreError> {
    let mut links = Vec::with_capacity(entries.len());
    for entry in entries {
        seq += 1;
        let facts = entry.row.facts(seq, &entry.words, entry.erased.as_deref());
        previous = key.link(&previous, &facts);
        links.push(Link { seq, entry, mac: previous.clone() });
    }
    let sql = format!(
        "INSERT INTO audit_chain (seq, audit_id, words, erased, mac, key_id) VALUES {}",
        placeholders(links.len(), 6)
    );
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for link in links {
            query = query
                .bind(link.seq)
                .bind(link.entry.row.id)
                .bind(link.entry.words)
                .bind(link.entry.erased)
                .bind(link.mac)
                .bind(key.id());
        }
        query.execute(c).await?;
    });
    Ok((seq, previous))
}

/// Says in the audit that entries were linked which stood there without a chain.
pub const BEGIN: &str = "chain_begin";

/// Begins a chain with what stands in the audit, oldest first, and behind it `by`, whose detail comes
/// to say how many those are; how many. Nothing where there is a chain already, or no entry.
///
/// From then on the chain vouches for these entries, whoever wrote them. So nothing but a person's own
/// word may come here: whoever removes a chain must not have what they left linked by the next start.
pub async fn adopt(tx: &mut Tx, by: AuditRow) -> Result<i64, StoreError> {
    let key = ChainKey::of(tx.keyring()?.current());
    take_turn(tx).await?;
    if head(tx).await?.is_some() {
        return Ok(0);
    }
    let mut end = (0, START.to_vec());
    let mut after = (Timestamp::from_micros(i64::MIN), Uuid::nil());
    loop {
        let found = audit::behind(tx, after, MAX_ROWS).await?;
        let Some(last) = found.last() else { break };
        after = (last.row.at, last.row.id);
        let stretch = found
            .into_iter()
            .map(|Salted { row, salt }| {
                let words = key.words(&salt, row.reason.as_deref(), &row.detail);
                Pending { row, words, erased: None }
            })
            .collect();
        end = link(tx, &key, end, stretch).await?;
    }
    let (count, _) = end;
    if count > 0 {
        let detail = format!("{count} entries from before the chain stand at its beginning");
        audit::insert(tx, &AuditRow { action: BEGIN.to_owned(), detail, ..by }).await?;
    }
    Ok(count)
}

/// The link at a place; absent when there is none.
pub async fn mac_at(tx: &mut Tx, seq: i64) -> Result<Option<Vec<u8>>, StoreError> {
    const SQL: &str = "SELECT mac FROM audit_chain WHERE seq = $1";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(seq).fetch_optional(c).await)?)
}

/// A link as it is stored, with what it stands for as far as that is there.
#[derive(Clone, Debug)]
pub struct Walked {
    /// Its place.
    pub seq: i64,
    /// Its entry.
    pub audit_id: Uuid,
    /// The digest of the entry's words.
    pub words: Vec<u8>,
    /// The digest of the ids of those whose words it erased.
    pub erased: Option<Vec<u8>>,
    /// The link itself.
    pub mac: Vec<u8>,
    /// The secret key that it was made with.
    pub key_id: String,
    /// The entry; absent when it is gone.
    pub row: Option<AuditRow>,
    /// The salt of its words; absent when they are gone.
    pub salt: Option<Vec<u8>>,
    /// The place of the entry that says that it erased them.
    pub erased_by: Option<i64>,
}

macro_rules! walked_row {
    ($row:ty) => {
        impl sqlx::FromRow<'_, $row> for Walked {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                let there = row.try_get::<Option<Uuid>, _>("id")?.is_some();
                Ok(Self {
                    seq: row.try_get("seq")?,
                    audit_id: row.try_get("audit_id")?,
                    words: row.try_get("words")?,
                    erased: row.try_get("erased")?,
                    mac: row.try_get("mac")?,
                    key_id: row.try_get("key_id")?,
                    row: if there { Some(AuditRow::from_row(row)?) } else { None },
                    salt: row.try_get("salt")?,
                    erased_by: row.try_get("erased_by")?,
                })
            }
        }
    };
}

walked_row!(sqlx::sqlite::SqliteRow);
walked_row!(sqlx::postgres::PgRow);

/// The links behind a place, in order.
pub async fn stretch(tx: &mut Tx, after: i64, most: usize) -> Result<Vec<Walked>, StoreError> {
    let sql = format!(
        "SELECT l.seq, l.audit_id, l.words, l.erased, l.mac, l.key_id, a.id, a.at, a.actor, a.action, \
         a.operation_id, a.dead_letter_id, a.subject, w.reason, a.result, coalesce(w.detail, '') AS detail, \
         a.origin, w.salt, b.seq AS erased_by FROM audit_chain l LEFT JOIN audit a ON a.id = l.audit_id \
         LEFT JOIN audit_words w ON w.audit_id = l.audit_id \
         LEFT JOIN audit_erasures e ON e.audit_id = l.audit_id \
         LEFT JOIN audit_chain b ON b.audit_id = e.by_id AND b.erased IS NOT NULL \
         WHERE l.seq > $1 ORDER BY l.seq LIMIT {most}"
    );
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(after).fetch_all(c).await)?)
}

/// Whose words an entry erased, by their ids.
pub async fn erased_by(tx: &mut Tx, entry: Uuid) -> Result<Vec<Uuid>, StoreError> {
    const SQL: &str = "SELECT audit_id FROM audit_erasures WHERE by_id = $1 ORDER BY audit_id";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(entry).fetch_all(c).await)?)
}

/// Those of the next entries from an id on that have no link, and the id to go on from; that is absent
/// when these were the last. The order is that of the ids, which is nearly that of time.
pub async fn unlinked(
    tx: &mut Tx,
    from: Uuid,
    most: usize,
) -> Result<(Vec<AuditRow>, Option<Uuid>), StoreError> {
    let next = format!("SELECT id FROM audit WHERE id >= $1 ORDER BY id LIMIT 1 OFFSET {most}");
    let next: Option<Uuid> = on!(&mut *tx, c => {
        sqlx::query_scalar(AssertSqlSafe(next)).bind(from).fetch_optional(c).await?
    });
    let before = if next.is_some() { " AND a.id < $2" } else { "" };
    let sql = format!(
        "SELECT a.id, a.at, a.actor, a.action, a.operation_id, a.dead_letter_id, a.subject, w.reason, a.result, \
         coalesce(w.detail, '') AS detail, a.origin FROM audit a LEFT JOIN audit_words w ON w.audit_id = a.id \
         WHERE a.id >= $1{before} AND NOT EXISTS (SELECT 1 FROM audit_chain l WHERE l.audit_id = a.id) ORDER BY a.id"
    );
    let rows = on!(tx, c => {
        let query = sqlx::query_as(AssertSqlSafe(sql)).bind(from);
        match next {
            Some(next) => query.bind(next).fetch_all(c).await?,
            None => query.fetch_all(c).await?,
        }
    });
    Ok((rows, next))
}
