//! The links between the audit's entries. They are made when a transaction commits, one writer at a
//! time, and only ever added.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::audit::{self, AuditRow, Salted};
use super::tx::{Inner, Tx};
use super::{MAX_ROWS, StoreError, placeholders};
use crate::domain::chain::{ChainKey, Facts, START};
use crate::domain::time::Timestamp;

/// An entry that was added and has no link yet.
#[derive(Debug)]
pub(super) struct Pending {
    pub(super) row: AuditRow,
    pub(super) words: Vec<u8>,
    pub(super) erased: Option<Vec<u8>>,
}

impl Pending {
    fn facts(&self, seq: i64) -> Facts<'_> {
        Facts {
            seq,
            id: self.row.id,
            at: self.row.at,
            actor: &self.row.actor,
            action: &self.row.action,
            operation_id: self.row.operation_id,
            dead_letter_id: self.row.dead_letter_id,
            subject: self.row.subject.as_deref(),
            result: &self.row.result,
            origin: &self.row.origin,
            words: &self.words,
            erased: self.erased.as_deref(),
        }
    }
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
    let mut end = end(tx, &key, &pending).await?;
    let mut pending = pending.into_iter().peekable();
    while pending.peek().is_some() {
        let stretch: Vec<Pending> = pending.by_ref().take(MAX_ROWS).collect();
        end = link(tx, &key, end, stretch).await?;
    }
    Ok(())
}

/// Makes sure that what stood in the audit before the chain is linked: its words may go from then on.
pub(super) async fn begun(tx: &mut Tx) -> Result<(), StoreError> {
    if head(tx).await?.is_some() {
        return Ok(());
    }
    let key = ChainKey::of(tx.keyring()?.current());
    let pending = std::mem::take(&mut tx.pending);
    end(tx, &key, &pending).await?;
    tx.pending = pending;
    Ok(())
}

/// Takes the turn to append; the place and the link to append behind.
async fn end(tx: &mut Tx, key: &ChainKey, ours: &[Pending]) -> Result<(i64, Vec<u8>), StoreError> {
    take_turn(tx).await?;
    match head(tx).await? {
        Some(head) => Ok((head.seq, head.mac)),
        None => adopt(tx, key, ours).await,
    }
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
        previous = key.link(&previous, &entry.facts(seq));
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

/// Links what stood in the audit before there was a chain, oldest first, and an entry that says how
/// many those were; the last link.
async fn adopt(tx: &mut Tx, key: &ChainKey, ours: &[Pending]) -> Result<(i64, Vec<u8>), StoreError> {
    let mut end = (0, START.to_vec());
    let mut after = (Timestamp::from_micros(i64::MIN), Uuid::nil());
    loop {
        let found = audit::behind(tx, after, MAX_ROWS).await?;
        let Some(last) = found.last() else { break };
        after = (last.row.at, last.row.id);
        let old = found.into_iter().filter(|found| ours.iter().all(|own| own.row.id != found.row.id));
        let stretch: Vec<Pending> = old
            .map(|Salted { row, salt }| {
                let words = key.words(&salt, row.reason.as_deref(), &row.detail);
                Pending { row, words, erased: None }
            })
            .collect();
        if !stretch.is_empty() {
            end = link(tx, key, end, stretch).await?;
        }
    }
    if end.0 == 0 {
        return Ok(end);
    }
    let row = AuditRow {
        id: tx.ambient.id(),
        at: tx.ambient.now(),
        actor: "engine".to_owned(),
        action: "chain_begin".to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some("audit".to_owned()),
        reason: None,
        result: "done".to_owned(),
        detail: format!("{} entries from before the chain stand at its beginning", end.0),
        origin: "engine".to_owned(),
    };
    audit::insert(tx, &row).await?;
    let own = std::mem::take(&mut tx.pending);
    link(tx, key, end, own).await
}
