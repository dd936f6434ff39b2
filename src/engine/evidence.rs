//! Evidence that leaves the desk: one operation as a document of its own, and the record of every
//! look at what is private.

use serde::Serialize;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::actions::{ActionError, permitted};
use super::journal::AuditReport;
use super::report::{AttemptReport, DeadLetterReport, OperationReport};
use super::thread::{Entry, Knowledge, Thread};
use crate::config::{Config, promise};
use crate::domain::actor::{Actor, Right};
use crate::domain::time::Timestamp;
use crate::domain::verdict::KnownResult;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::events::EventKind;
use crate::store::{Commit, StoreError, Tx, operations};

/// Who looks, and from where.
#[derive(Clone, Copy, Debug)]
pub struct Reader<'a> {
    /// Who.
    pub actor: &'a Actor,
    /// An address.
    pub origin: &'a str,
}

/// At what.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Look {
    /// At the payload as a file.
    Payload {
        /// To the byte; or without what is private.
        whole: bool,
    },
    /// At the body of an answer as a file.
    Answer {
        /// Its attempt's.
        number: i64,
        /// As it came; or without what is private.
        whole: bool,
    },
    /// At all evidence as a document, with or without what is private.
    Export {
        /// Nothing is hidden in it.
        whole: bool,
    },
}

impl Look {
    fn rights(self) -> &'static [Right] {
        match self {
            Self::Payload { .. } | Self::Answer { .. } => &[Right::ViewPayload],
            Self::Export { whole: false } => &[Right::Export],
            Self::Export { whole: true } => &[Right::Export, Right::ViewPayload],
        }
    }

    fn action(self) -> &'static str {
        match self {
            Self::Payload { whole: true } | Self::Answer { whole: true, .. } => "view_payload",
            Self::Payload { .. } | Self::Answer { .. } | Self::Export { .. } => "export",
        }
    }

    fn detail(self) -> String {
        match self {
            Self::Payload { whole: true } => "the payload, as a file".to_owned(),
            Self::Payload { whole: false } => "the payload as a file, private values hidden".to_owned(),
            Self::Answer { number, whole: true } => format!("the answer to attempt {number}, as a file"),
            Self::Answer { number, whole: false } => {
                format!("the answer to attempt {number} as a file, private values hidden")
            }
            Self::Export { whole: true } => "all evidence as JSON, with private values".to_owned(),
            Self::Export { whole: false } => "all evidence as JSON, private values hidden".to_owned(),
        }
    }
}

/// Writes down that somebody looks. What they look at is read after it, so that nothing private is
/// shown without a record.
pub async fn looked(gate: &Gate, operation: Uuid, look: Look, reader: Reader<'_>) -> Result<(), ActionError> {
    for right in look.rights() {
        permitted(reader.actor, *right)?;
    }
    let mut tx = gate.db().begin().await?;
    operations::by_id(&mut tx, operation).await?.ok_or(ActionError::NotFound)?;
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: gate.ambient().now(),
        actor: reader.actor.to_string(),
        action: look.action().to_owned(),
        operation_id: Some(operation),
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: "done".to_owned(),
        detail: look.detail(),
        origin: reader.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    Ok(tx.commit(Commit::Action).await?)
}

/// Everything that is known of one operation, as a document that stands by itself.
#[derive(Debug, Serialize)]
pub struct Evidence {
    product: &'static str,
    version: &'static str,
    made_at: Timestamp,
    made_by: String,
    /// Private values are left out of it.
    pub masked: bool,
    operation: OperationReport,
    /// Absent when it was erased.
    payload: Option<Box<RawValue>>,
    attempts: Vec<AttemptReport>,
    events: Vec<Entry>,
    audit: Vec<AuditReport>,
    dead_letters: Vec<DeadLetterReport>,
    /// What the destination knows of the step that is under way, failed or came last.
    finding: Finding,
    promises: Vec<Holds>,
}

#[derive(Debug, Serialize)]
struct Finding {
    state: &'static str,
    #[serde(flatten)]
    known: Option<KnownResult>,
}

#[derive(Debug, Serialize)]
struct Holds {
    step: String,
    destination: String,
    /// Absent when the destination is no longer configured.
    promise: Option<String>,
}

/// Drops what came from outside or went there: of an operation whose payload was erased nobody
/// knows any more what in it is private.
pub fn forget_foreign_text(thread: &mut Thread) {
    thread.requests.clear();
    for attempt in &mut thread.attempts {
        (attempt.error, attempt.answer_headers, attempt.answer_body) = (None, None, None);
    }
    for event in &mut thread.events {
        if matches!(event.kind, EventKind::LeaseLost | EventKind::LateAnswer | EventKind::LateDone) {
            event.detail.clear();
        }
    }
    for letter in &mut thread.letters {
        letter.error.clear();
    }
}

impl Evidence {
    /// Reads it, with everything that is private.
    pub async fn load(
        tx: &mut Tx,
        config: &Config,
        thread: &Thread,
        by: &Actor,
        now: Timestamp,
    ) -> Result<Self, StoreError> {
        let url = config.server.public_url.as_str();
        let (state, known) = match thread.knowledge() {
            Knowledge::DoneThere(known) => ("done_there", Some(known)),
            Knowledge::Recorded(known) => ("recorded", Some(known)),
            Knowledge::NotThere(known) => ("not_there", Some(known)),
            Knowledge::CannotTell(known) => ("cannot_tell", Some(known)),
            Knowledge::NeverReached => ("never_reached", None),
        };
        let promises = thread.steps.iter().map(|step| Holds {
            step: step.name.clone(),
            destination: step.destination.clone(),
            promise: config.destinations.get(&step.destination).map(|known| promise(known, now)),
        });
        let operation = OperationReport::load(tx, vec![thread.operation.clone()], url).await?.pop();
        Ok(Self {
            product: "Dead Letter Office",
            version: env!("CARGO_PKG_VERSION"),
            made_at: now,
            made_by: by.to_string(),
            masked: false,
            operation: operation.ok_or_else(|| StoreError::Corrupt("an operation is gone".to_owned()))?,
            payload: thread.payload.clone().and_then(|text| RawValue::from_string(text).ok()),
            attempts: AttemptReport::all(thread),
            events: thread.entries(),
            audit: thread.audit.iter().cloned().map(AuditReport::from).collect(),
            dead_letters: DeadLetterReport::load(tx, thread.letters.clone(), url).await?,
            finding: Finding { state, known },
            promises: promises.collect(),
        })
    }
}
