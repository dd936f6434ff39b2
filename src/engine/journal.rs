//! The audit as it is handed out, by the API, as files and on the command line; and what is done so
//! that an auditor can rely on it.

pub mod anchor;
pub mod file;
pub mod proof;
pub mod start;
pub mod verify;
pub mod watch;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::actions::{ActionError, permitted};
use super::evidence::Reader;
use crate::domain::actor::Right;
use crate::domain::filter::AuditFilter;
use crate::domain::key::hex;
use crate::domain::time::Timestamp;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow, Entry, Link};
use crate::store::{Commit, chain};

use file::{Format, described};

/// An entry, in its published shape.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct AuditReport {
    id: Uuid,
    at: Timestamp,
    actor: String,
    action: String,
    operation: Option<Uuid>,
    dead_letter: Option<Uuid>,
    subject: Option<String>,
    reason: Option<String>,
    result: String,
    detail: String,
    origin: String,
    #[serde(flatten)]
    proof: Option<Proof>,
}

/// What proves an entry, to whoever has the secret key. Digests are hexadecimal.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Proof {
    /// Its place in the chain.
    seq: i64,
    /// The link before it.
    previous: String,
    /// Its link: it authenticates the entry's facts, its words' digest and the link before.
    mac: String,
    /// Which secret key it was made with.
    key_id: String,
    /// The digest of its words.
    words: String,
    /// The digest of the ids of the entries whose words it erased.
    #[serde(skip_serializing_if = "Option::is_none")]
    erased: Option<String>,
    /// The salt of that digest; absent where the words are erased, or private values in them masked.
    #[serde(skip_serializing_if = "Option::is_none")]
    salt: Option<String>,
}

impl From<Link> for Proof {
    fn from(link: Link) -> Self {
        Self {
            seq: link.seq,
            previous: hex(&link.previous),
            mac: hex(&link.mac),
            key_id: link.key_id,
            words: hex(&link.words),
            erased: link.erased.as_deref().map(hex),
            salt: link.salt.as_deref().map(hex),
        }
    }
}

impl From<Entry> for AuditReport {
    fn from(entry: Entry) -> Self {
        Self { proof: entry.link.map(Proof::from), ..entry.row.into() }
    }
}

impl From<AuditRow> for AuditReport {
    fn from(row: AuditRow) -> Self {
        Self {
            id: row.id,
            at: row.at,
            actor: row.actor,
            action: row.action,
            operation: row.operation_id,
            dead_letter: row.dead_letter_id,
            subject: row.subject,
            reason: row.reason,
            result: row.result,
            detail: row.detail,
            origin: row.origin,
            proof: None,
        }
    }
}

impl From<AuditReport> for AuditRow {
    fn from(report: AuditReport) -> Self {
        Self {
            id: report.id,
            at: report.at,
            actor: report.actor,
            action: report.action,
            operation_id: report.operation,
            dead_letter_id: report.dead_letter,
            subject: report.subject,
            reason: report.reason,
            result: report.result,
            detail: report.detail,
            origin: report.origin,
        }
    }
}

/// Writes down that somebody takes entries away as a file. It stands before what is read, so that
/// the file holds it; up to which link the file is to go.
pub async fn exported(
    gate: &Gate,
    filter: &AuditFilter,
    format: Format,
    reader: Reader<'_>,
) -> Result<i64, ActionError> {
    permitted(reader.actor, Right::Audit)?;
    permitted(reader.actor, Right::Export)?;
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: reader.actor.to_string(),
        action: "export".to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some("audit".to_owned()),
        reason: None,
        result: "done".to_owned(),
        detail: format!("the audit as {format}: {}", described(filter)),
        origin: reader.origin.to_owned(),
    };
    let mut tx = gate.db().begin().await?;
    audit::insert(&mut tx, &entry).await?;
    tx.commit(Commit::Action).await?;
    let mut tx = gate.db().read().await?;
    Ok(chain::head(&mut tx).await?.map_or(0, |head| head.seq))
}
