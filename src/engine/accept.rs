//! Acceptance: a submission becomes an operation, or is told which one it repeats. It is answered
//! only once that is durable.
//!
//! Submissions that arrive while a commit is being written share the next one.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use serde_json::value::RawValue;
use tokio::sync::{Notify, mpsc, oneshot};
use tokio::time::{Instant, timeout_at};
use uuid::Uuid;

use super::draft::{Draft, Origin};
use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::domain::key::{KeyError, OperationKey};
use crate::domain::operation::NewOperation;
use crate::store::events::{self, EventKind, EventRow};
use crate::store::{Commit, Db, MAX_ROWS, StoreError, Tx, erasure, operations};

/// Submissions that may wait for a commit before senders have to.
const QUEUE: usize = 1024;

/// How long a commit waits at most for more.
const GATHER: Duration = Duration::from_millis(1);

/// What somebody wants done.
#[derive(Clone, Debug)]
pub struct Submission {
    /// The operation type's name.
    pub kind: String,
    /// JSON, kept to the byte.
    pub payload: Box<RawValue>,
    /// The caller's key; must agree with the type's own where it derives one.
    pub key: Option<String>,
    /// The caller's own.
    pub correlation_id: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// Who submits.
    pub by: String,
}

/// What became of a submission.
#[derive(Clone, Debug)]
pub enum Accepted {
    /// It is a new operation.
    Created(Arc<NewOperation>),
    /// It repeats this one; nothing was done.
    Duplicate(Uuid),
}

/// Why a submission was not accepted. Nothing of it is stored.
#[derive(Debug, Clone, thiserror::Error)]
pub enum SubmitError {
    /// No such type is configured.
    #[error("there is no operation type {kind:?}{}", suggestion.as_ref().map(|near| format!("; did you mean {near:?}?")).unwrap_or_default())]
    UnknownType {
        /// What was asked for.
        kind: String,
        /// The nearest configured name.
        suggestion: Option<String>,
    },
    /// Something is not of its form.
    #[error("{0}")]
    Malformed(String),
    /// There is no key, and none can be derived.
    #[error("{0}")]
    KeyMissing(String),
    /// The key belongs to another submission.
    #[error("the key {key:?} was first used by operation {first}, with another {what}")]
    KeyReused {
        /// The key.
        key: String,
        /// The operation that has it.
        first: Uuid,
        /// `payload` or `type`.
        what: &'static str,
    },
    /// It could not be stored. Submit it again under the same key.
    #[error("the database did not take it; submit it again under the same key")]
    Unavailable,
}

struct Job {
    operation: Arc<NewOperation>,
    answer: oneshot::Sender<Result<Accepted, SubmitError>>,
}

/// The way in. Cheap to clone.
#[derive(Clone)]
pub struct Intake {
    config: Arc<Config>,
    ambient: Ambient,
    jobs: mpsc::Sender<Job>,
}

impl Intake {
    /// Starts the task that commits. It ends when every clone is gone. `wake` is told of new work.
    pub fn start(db: Db, config: Arc<Config>, ambient: Ambient, wake: Arc<Notify>) -> Self {
        let (jobs, queue) = mpsc::channel(QUEUE);
        tokio::spawn(commit_all(db, ambient.clone(), queue, wake));
        Self { config, ambient, jobs }
    }

    /// Accepts a submission; returns when it is durable.
    pub async fn submit(&self, submission: Submission) -> Result<Accepted, SubmitError> {
        self.enqueue(submission).await?.await.unwrap_or(Err(SubmitError::Unavailable))
    }

    /// Hands a submission in; the answer follows. Many can be handed in before the first answer is
    /// waited for, and share commits.
    pub async fn enqueue(
        &self,
        submission: Submission,
    ) -> Result<oneshot::Receiver<Result<Accepted, SubmitError>>, SubmitError> {
        let operation = Arc::new(self.prepare(submission)?);
        let (answer, receiver) = oneshot::channel();
        self.jobs.send(Job { operation, answer }).await.map_err(|_| SubmitError::Unavailable)?;
        Ok(receiver)
    }

    /// Checks a submission and derives all that is stored of it.
    fn prepare(&self, submission: Submission) -> Result<NewOperation, SubmitError> {
        let Submission { kind, payload, key, correlation_id, source, by } = submission;
        let draft = Draft::read(&self.config, &kind, payload)?;
        let key = agreed_key(&draft, key)?;
        let correlation_id = short_text("correlation_id", correlation_id)?;
        let source = short_text("source", source)?;
        Ok(draft.operation(&self.ambient, key, Origin { correlation_id, source, by, corrects: None }))
    }
}

/// The key that the caller gave and the one that the type derives: one of them, or both when they
/// agree.
fn agreed_key(draft: &Draft<'_>, given: Option<String>) -> Result<OperationKey, SubmitError> {
    let given = given.map(given_key).transpose()?;
    match (given, draft.derived_key()) {
        (Some(given), Ok(Some(derived))) if given != derived => Err(SubmitError::Malformed(format!(
            "the key {:?} is not the one that {} derives from this payload, {:?}; leave it out or send that one",
            given.as_str(),
            draft.kind.name,
            derived.as_str()
        ))),
        (_, Err(missing)) => Err(missing),
        (_, Ok(Some(key))) | (Some(key), Ok(None)) => Ok(key),
        (None, Ok(None)) => Err(SubmitError::KeyMissing(format!(
            "{} derives no key from its payload: send one as \"key\" or in the header Idempotency-Key",
            draft.kind.name
        ))),
    }
}

/// A key that a caller wrote.
pub(super) fn given_key(text: String) -> Result<OperationKey, SubmitError> {
    OperationKey::new(text).map_err(|error| match error {
        KeyError::Empty => SubmitError::KeyMissing(error.to_string()),
        KeyError::TooLong(_) | KeyError::Control => SubmitError::Malformed(error.to_string()),
    })
}

fn short_text(name: &str, text: Option<String>) -> Result<Option<String>, SubmitError> {
    match text {
        Some(text) if text.chars().count() > 255 => {
            Err(SubmitError::Malformed(format!("{name} has more than 255 characters")))
        }
        Some(text) if text.chars().any(char::is_control) => {
            Err(SubmitError::Malformed(format!("{name} holds a control character")))
        }
        Some(text) if text.is_empty() => Ok(None),
        other => Ok(other),
    }
}

async fn commit_all(db: Db, ambient: Ambient, mut queue: mpsc::Receiver<Job>, wake: Arc<Notify>) {
    let mut batch = Vec::with_capacity(MAX_ROWS);
    let mut last = 0;
    while queue.recv_many(&mut batch, MAX_ROWS).await > 0 {
        gather(&mut queue, &mut batch, last).await;
        last = batch.len();
        let operations: Vec<Arc<NewOperation>> = batch.iter().map(|job| Arc::clone(&job.operation)).collect();
        let answers = commit(&db, &ambient, &operations).await;
        wake.notify_one();
        match answers {
            Ok(answers) => {
                for (job, answer) in batch.drain(..).zip(answers) {
                    // A client that left needs no answer; what it sent is stored all the same.
                    let _ = job.answer.send(answer);
                }
            }
            Err(error) => {
                tracing::error!(error = &error as &dyn std::error::Error, "submissions could not be stored");
                for job in batch.drain(..) {
                    let _ = job.answer.send(Err(SubmitError::Unavailable));
                }
            }
        }
    }
}

/// Waits a moment for as many submissions as the last commit carried. Senders that were answered
/// together send together; without the wait the first would have a commit to itself, and the others
/// would queue behind it.
async fn gather(queue: &mut mpsc::Receiver<Job>, batch: &mut Vec<Job>, wanted: usize) {
    let until = Instant::now() + GATHER;
    while batch.len() < wanted {
        let room = MAX_ROWS - batch.len();
        match timeout_at(until, queue.recv_many(batch, room)).await {
            Ok(0) | Err(_) => return,
            Ok(_) => {}
        }
    }
}

/// One commit of many submissions: the answers in their order.
async fn commit(
    db: &Db,
    ambient: &Ambient,
    batch: &[Arc<NewOperation>],
) -> Result<Vec<Result<Accepted, SubmitError>>, StoreError> {
    let mut seen = HashSet::new();
    let mut first: Vec<&NewOperation> =
        batch.iter().map(AsRef::as_ref).filter(|operation| seen.insert(&operation.key)).collect();
    // Nodes that insert the same keys in different orders would wait for each other.
    first.sort_unstable_by(|a, b| a.key.as_str().cmp(b.key.as_str()));
    let mut tx = db.begin().await?;
    let inserted: HashSet<Uuid> = operations::insert(&mut tx, &first).await?.into_iter().collect();
    let repeated: Vec<&str> = batch
        .iter()
        .filter(|operation| !inserted.contains(&operation.id))
        .map(|operation| operation.key.as_str())
        .collect::<HashSet<_>>()
        .into_iter()
        .collect();
    let known = known(&mut tx, &repeated).await?;
    let mut notes = Vec::new();
    let answers = batch
        .iter()
        .map(|operation| {
            if inserted.contains(&operation.id) {
                return Ok(Accepted::Created(Arc::clone(operation)));
            }
            let Some(row) = known.get(operation.key.as_str()) else {
                return Err(SubmitError::Unavailable);
            };
            let reused =
                |what| SubmitError::KeyReused { key: operation.key.as_str().to_owned(), first: row.id, what };
            let detail = if row.kind != operation.kind {
                Err(reused("type"))
            } else if row.digest != operation.digest {
                Err(reused("payload"))
            } else {
                Ok("The same submission came again; nothing was done.")
            };
            notes.push(EventRow {
                id: ambient.id(),
                operation_id: row.id,
                position: None,
                at: operation.received_at,
                kind: EventKind::Duplicate,
                actor: operation.submitted_by.clone(),
                detail: match &detail {
                    Ok(text) => (*text).to_owned(),
                    Err(_) => "The key came again with other data; it was refused.".to_owned(),
                },
            });
            detail.map(|_| Accepted::Duplicate(row.id))
        })
        .collect();
    events::insert(&mut tx, &notes).await?;
    crate::store::work::announce(&mut tx).await?;
    tx.commit(Commit::Submissions).await?;
    Ok(answers)
}

/// The operations of these keys, by key; also of those that were erased with their keys.
async fn known(tx: &mut Tx, keys: &[&str]) -> Result<HashMap<String, operations::OperationRow>, StoreError> {
    if keys.is_empty() {
        return Ok(HashMap::new());
    }
    let rows = operations::by_keys(tx, keys).await?;
    let mut known: HashMap<String, _> = rows.into_iter().map(|row| (row.key.clone(), row)).collect();
    let left: Vec<&str> = keys.iter().copied().filter(|key| !known.contains_key(*key)).collect();
    let erased = erasure::named(tx, &left).await?;
    let ids: Vec<Uuid> = erased.values().copied().collect();
    let rows = operations::by_ids(tx, &ids).await?;
    let of = |id: Uuid| rows.iter().find(|row| row.id == id).cloned();
    known.extend(erased.into_iter().filter_map(|(key, id)| Some((key, of(id)?))));
    Ok(known)
}
