//! What was done with the head of the audit's chain: where it was told, and how far it was verified.

use super::{StoreError, Tx};
use crate::domain::time::Timestamp;

/// The name of a verification.
pub const VERIFY: &str = "verify";
/// The name of the file that heads are told to.
pub const FILE: &str = "file";
/// The name of the address that heads are told to.
pub const ADDRESS: &str = "address";

/// One of these, and how it went.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Check {
    /// Which.
    pub name: String,
    /// When it last went well.
    pub at: Option<Timestamp>,
    /// Up to which entry.
    pub seq: Option<i64>,
    /// When it went wrong since.
    pub failed_at: Option<Timestamp>,
    /// How.
    pub failure: Option<String>,
}

from_row!(Check { name, at, seq, failed_at, failure });

/// All that was ever tried.
pub async fn all(tx: &mut Tx) -> Result<Vec<Check>, StoreError> {
    const SQL: &str = "SELECT name, at, seq, failed_at, failure FROM audit_checks ORDER BY name";
    Ok(on!(tx, c => sqlx::query_as(SQL).fetch_all(c).await)?)
}

/// It went well.
pub async fn passed(tx: &mut Tx, name: &str, at: Timestamp, seq: i64) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO audit_checks (name, at, seq) VALUES ($1, $2, $3) \
        ON CONFLICT (name) DO UPDATE SET at = excluded.at, seq = excluded.seq, failed_at = NULL, failure = NULL";
    on!(tx, c => sqlx::query(SQL).bind(name).bind(at).bind(seq).execute(c).await?.rows_affected());
    Ok(())
}

/// It went wrong.
pub async fn failed(tx: &mut Tx, name: &str, at: Timestamp, failure: &str) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO audit_checks (name, failed_at, failure) VALUES ($1, $2, $3) \
        ON CONFLICT (name) DO UPDATE SET failed_at = excluded.failed_at, failure = excluded.failure";
    on!(tx, c => sqlx::query(SQL).bind(name).bind(at).bind(failure).execute(c).await?.rows_affected());
    Ok(())
}

/// Takes the duty of walking the chain until `until`, when it is due; false when another node has
/// it, or when it is too early. What is due later than `latest` counts as due: nobody puts it off for
/// good by writing a date here.
pub async fn claim(
    tx: &mut Tx,
    now: Timestamp,
    until: Timestamp,
    latest: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE upkeep SET verify_due_at = $2 WHERE verify_due_at <= $1 OR verify_due_at > $3";
    let claimed =
        on!(tx, c => sqlx::query(SQL).bind(now).bind(until).bind(latest).execute(c).await?.rows_affected());
    Ok(claimed == 1)
}

/// Says when it is due again, for every node.
pub async fn due_again(tx: &mut Tx, at: Timestamp) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE upkeep SET verify_due_at = $1";
    on!(tx, c => sqlx::query(SQL).bind(at).execute(c).await?.rows_affected());
    Ok(())
}
