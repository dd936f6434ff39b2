//! Operations with their steps, payloads, stored requests and search values.

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::filters::{self, bind_all};
use super::{MAX_ROWS, StoreError, Tx, placeholders};
use crate::domain::attempt::Outcome;
use crate::domain::filter::{Listed, OperationFilter, Page};
use crate::domain::key::{DestinationKey, PayloadDigest};
use crate::domain::operation::{NewOperation, OperationState, Severity, StepState};
use crate::domain::time::Timestamp;

/// An operation as stored, with what its row of work adds.
#[derive(Clone, Debug)]
pub struct OperationRow {
    /// UUIDv7.
    pub id: Uuid,
    /// Unique.
    pub key: String,
    /// The configured type.
    pub kind: String,
    /// What is stored; see [`OperationRow::state`] for what is known.
    pub stored_state: OperationState,
    /// Of the payload's canonical text.
    pub digest: PayloadDigest,
    /// The caller's own.
    pub correlation_id: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// How much a failure matters.
    pub severity: Severity,
    /// Who handed it in.
    pub submitted_by: String,
    /// When.
    pub received_at: Timestamp,
    /// When its last step was done.
    pub completed_at: Option<Timestamp>,
    /// The operation it corrects.
    pub corrects: Option<Uuid>,
    /// The operation that corrects it.
    pub corrected_by: Option<Uuid>,
    /// Until when a worker holds it.
    pub leased_until: Option<Timestamp>,
    /// When its next attempt is due.
    pub due_at: Option<Timestamp>,
}

from_row!(OperationRow {
    id,
    key,
    kind,
    stored_state,
    digest,
    correlation_id,
    source,
    severity,
    submitted_by,
    received_at,
    completed_at,
    corrects,
    corrected_by,
    leased_until,
    due_at,
});

impl OperationRow {
    /// What is known: running while a worker holds it. What is completed stays so while its
    /// destination is asked about it.
    pub fn state(&self) -> OperationState {
        match self.stored_state {
            OperationState::Completed => OperationState::Completed,
            _ if self.leased_until.is_some() => OperationState::Running,
            stored => stored,
        }
    }
}

/// A step as stored.
#[derive(Clone, Debug)]
pub struct StepRow {
    /// Its operation.
    pub operation_id: Uuid,
    /// From zero.
    pub position: i64,
    /// Unique within the operation.
    pub name: String,
    /// Where it is sent.
    pub destination: String,
    /// What is known of it.
    pub state: StepState,
    /// What the destination sees.
    pub key: DestinationKey,
    /// From 1.
    pub generation: i64,
    /// Made so far.
    pub attempts: i64,
    /// What the last one came to.
    pub last_outcome: Option<Outcome>,
    /// JSON object of what later steps use.
    pub saved: Option<String>,
    /// The id over there.
    pub reference: Option<String>,
    /// When it was done.
    pub completed_at: Option<Timestamp>,
}

from_row!(StepRow {
    operation_id,
    position,
    name,
    destination,
    state,
    key,
    generation,
    attempts,
    last_outcome,
    saved,
    reference,
    completed_at,
});

/// A stored request.
#[derive(Clone, Debug)]
pub struct RequestRow {
    /// The step's place.
    pub position: i64,
    /// Which deliberate effect it is for.
    pub generation: i64,
    /// The key in it.
    pub key: DestinationKey,
    /// When its first attempt began.
    pub first_sent_at: Timestamp,
    /// `POST` and the like.
    pub method: String,
    /// Absolute.
    pub url: String,
    /// JSON array of pairs.
    pub headers: String,
    /// The body is the payload.
    pub body_is_payload: bool,
    /// The body, unless it is the payload.
    pub body: Option<String>,
}

from_row!(RequestRow {
    position,
    generation,
    key,
    first_sent_at,
    method,
    url,
    headers,
    body_is_payload,
    body,
});

/// A business id people search by.
#[derive(Clone, Debug)]
pub struct SearchRow {
    /// Its operation.
    pub operation_id: Uuid,
    /// `customer`, `order` and the like.
    pub name: String,
    /// As text.
    pub value: String,
}

from_row!(SearchRow { operation_id, name, value });

/// Stores those operations whose keys are new, whole, with their first row of work; returns their
/// ids. At most [`MAX_ROWS`] at a time, with keys that differ.
pub async fn insert(tx: &mut Tx, new: &[&NewOperation]) -> Result<Vec<Uuid>, StoreError> {
    debug_assert!(new.len() <= MAX_ROWS, "a statement takes {MAX_ROWS} rows");
    // A key that was erased is not free: its operation had its effect.
    let keys: Vec<&str> = new.iter().map(|operation| operation.key.as_str()).collect();
    let erased = super::erasure::named(tx, &keys).await?;
    let new: Vec<&NewOperation> =
        new.iter().copied().filter(|operation| !erased.contains_key(operation.key.as_str())).collect();
    if new.is_empty() {
        return Ok(Vec::new());
    }
    let sql = format!(
        "INSERT INTO operations (id, key, kind, state, digest, correlation_id, source, severity, \
         submitted_by, received_at, corrects) VALUES {} ON CONFLICT (key) DO NOTHING RETURNING id",
        placeholders(new.len(), 11)
    );
    let inserted: Vec<Uuid> = on!(&mut *tx, c => {
        let mut query = sqlx::query_scalar(AssertSqlSafe(sql));
        for operation in &new {
            query = query
                .bind(operation.id)
                .bind(operation.key.as_str())
                .bind(&operation.kind)
                .bind(OperationState::Pending)
                .bind(operation.digest)
                .bind(&operation.correlation_id)
                .bind(&operation.source)
                .bind(operation.severity)
                .bind(&operation.submitted_by)
                .bind(operation.received_at)
                .bind(operation.corrects);
        }
        query.fetch_all(c).await?
    });
    let stored: Vec<&NewOperation> =
        new.iter().copied().filter(|operation| inserted.contains(&operation.id)).collect();
    if !stored.is_empty() {
        insert_payloads(tx, &stored).await?;
        insert_steps(tx, &stored).await?;
        insert_search(tx, &stored).await?;
        super::work::insert_first(tx, &stored).await?;
    }
    Ok(inserted)
}

async fn insert_payloads(tx: &mut Tx, new: &[&NewOperation]) -> Result<(), StoreError> {
    let sql = format!("INSERT INTO payloads (operation_id, body) VALUES {}", placeholders(new.len(), 2));
    on!(tx, c => {
        let mut query = sqlx::query(AssertSqlSafe(sql));
        for operation in new {
            query = query.bind(operation.id).bind(operation.payload.get());
        }
        query.execute(c).await?;
    });
    Ok(())
}

async fn insert_steps(tx: &mut Tx, new: &[&NewOperation]) -> Result<(), StoreError> {
    let steps: Vec<_> = new
        .iter()
        .flat_map(|operation| (0_i64..).zip(&operation.steps).map(|(at, step)| (operation.id, at, step)))
        .collect();
    for steps in steps.chunks(MAX_ROWS) {
        let sql = format!(
            "INSERT INTO steps (operation_id, position, name, destination, state, key) VALUES {}",
            placeholders(steps.len(), 6)
        );
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for (operation, position, step) in steps {
                query = query
                    .bind(*operation)
                    .bind(*position)
                    .bind(&step.name)
                    .bind(&step.destination)
                    .bind(StepState::Pending)
                    .bind(step.key);
            }
            query.execute(c).await?;
        });
    }
    Ok(())
}

async fn insert_search(tx: &mut Tx, new: &[&NewOperation]) -> Result<(), StoreError> {
    let values: Vec<_> =
        new.iter().flat_map(|operation| operation.search.iter().map(|pair| (operation.id, pair))).collect();
    for values in values.chunks(MAX_ROWS) {
        let sql = format!(
            "INSERT INTO search (operation_id, name, value) VALUES {}",
            placeholders(values.len(), 3)
        );
        on!(&mut *tx, c => {
            let mut query = sqlx::query(AssertSqlSafe(sql));
            for (operation, (name, value)) in values {
                query = query.bind(*operation).bind(name).bind(value);
            }
            query.execute(c).await?;
        });
    }
    Ok(())
}

const COLUMNS: &str = "SELECT o.id, o.key, o.kind, o.state AS stored_state, o.digest, o.correlation_id, \
    o.source, o.severity, o.submitted_by, o.received_at, o.completed_at, o.corrects, o.corrected_by, \
    w.leased_until, w.due_at \
    FROM operations o LEFT JOIN work w ON w.operation_id = o.id";

/// One by id.
pub async fn by_id(tx: &mut Tx, id: Uuid) -> Result<Option<OperationRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE o.id = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(id).fetch_optional(c).await)?)
}

/// One by key.
pub async fn by_key(tx: &mut Tx, key: &str) -> Result<Option<OperationRow>, StoreError> {
    let sql = format!("{COLUMNS} WHERE o.key = $1");
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(sql)).bind(key).fetch_optional(c).await)?)
}

/// Those with any of the keys, in no order.
pub async fn by_keys(tx: &mut Tx, keys: &[&str]) -> Result<Vec<OperationRow>, StoreError> {
    let mut found = Vec::with_capacity(keys.len());
    for keys in keys.chunks(MAX_ROWS) {
        let sql = format!("{COLUMNS} WHERE o.key IN {}", placeholders(1, keys.len()));
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, OperationRow>(AssertSqlSafe(sql));
            for key in keys {
                query = query.bind(*key);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// Those with any of the ids, in no order.
pub async fn by_ids(tx: &mut Tx, ids: &[Uuid]) -> Result<Vec<OperationRow>, StoreError> {
    let mut found = Vec::with_capacity(ids.len());
    for ids in ids.chunks(MAX_ROWS) {
        let sql = format!("{COLUMNS} WHERE o.id IN {}", placeholders(1, ids.len()));
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, OperationRow>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// A stretch of those that the filter means.
pub async fn list(
    tx: &mut Tx,
    filter: &OperationFilter,
    page: Page,
) -> Result<Listed<OperationRow>, StoreError> {
    let mut conditions = filters::operations(filter);
    let sql = format!("{COLUMNS}{}", conditions.page("o.received_at", "o.id", page));
    let rows: Vec<OperationRow> = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_all(c).await?
    });
    Ok(Listed::new(rows, page, |row| (row.received_at, row.id)))
}

/// The steps of operations, in order.
pub async fn steps(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<StepRow>, StoreError> {
    const SQL: &str = "SELECT operation_id, position, name, destination, state, key, generation, attempts, \
        last_outcome, saved, reference, completed_at FROM steps WHERE operation_id IN ";
    let mut found = Vec::with_capacity(operations.len());
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!("{SQL}{} ORDER BY operation_id, position", placeholders(1, ids.len()));
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, StepRow>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// What people search operations by.
pub async fn search_values(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<SearchRow>, StoreError> {
    const SQL: &str = "SELECT operation_id, name, value FROM search WHERE operation_id IN ";
    let mut found = Vec::with_capacity(operations.len());
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!("{SQL}{} ORDER BY operation_id, name", placeholders(1, ids.len()));
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, SearchRow>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// An operation's payload, unless it was erased.
pub async fn payload(tx: &mut Tx, operation: Uuid) -> Result<Option<String>, StoreError> {
    const SQL: &str = "SELECT body FROM payloads WHERE operation_id = $1";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).bind(operation).fetch_optional(c).await)?)
}

/// When a step was first sent under its present key.
#[derive(Clone, Copy, Debug)]
pub struct FirstSend {
    /// Its operation.
    pub operation_id: Uuid,
    /// The step's place.
    pub position: i64,
    /// When.
    pub at: Timestamp,
}

from_row!(FirstSend { operation_id, position, at });

/// The first sends of operations' steps, in no order; a step that was never sent has none.
pub async fn first_sends(tx: &mut Tx, operations: &[Uuid]) -> Result<Vec<FirstSend>, StoreError> {
    const SQL: &str = "SELECT s.operation_id, s.position, r.first_sent_at AS at FROM steps s JOIN requests r \
        ON r.operation_id = s.operation_id AND r.position = s.position AND r.generation = s.generation \
        WHERE s.operation_id IN ";
    let mut found = Vec::with_capacity(operations.len());
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!("{SQL}{}", placeholders(1, ids.len()));
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, FirstSend>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// The requests made for an operation, in order.
pub async fn requests(tx: &mut Tx, operation: Uuid) -> Result<Vec<RequestRow>, StoreError> {
    const SQL: &str = "SELECT position, generation, key, first_sent_at, method, url, headers, \
        body_is_payload, body FROM requests WHERE operation_id = $1 ORDER BY position, generation";
    Ok(on!(tx, c => sqlx::query_as(SQL).bind(operation).fetch_all(c).await)?)
}

/// Payloads of at most `most` bytes, with their operations.
pub async fn payloads(
    tx: &mut Tx,
    operations: &[Uuid],
    most: i64,
) -> Result<Vec<(Uuid, String)>, StoreError> {
    let mut found = Vec::with_capacity(operations.len());
    for ids in operations.chunks(MAX_ROWS) {
        let sql = format!(
            "SELECT operation_id, body FROM payloads WHERE length(body) <= {most} AND operation_id IN {}",
            placeholders(1, ids.len())
        );
        found.extend(on!(&mut *tx, c => {
            let mut query = sqlx::query_as::<_, (Uuid, String)>(AssertSqlSafe(sql));
            for id in ids {
                query = query.bind(*id);
            }
            query.fetch_all(c).await?
        }));
    }
    Ok(found)
}

/// When the first operation was accepted; absent when none ever was.
pub async fn first_received(tx: &mut Tx) -> Result<Option<Timestamp>, StoreError> {
    const SQL: &str = "SELECT min(received_at) FROM operations";
    Ok(on!(tx, c => sqlx::query_scalar(SQL).fetch_one(c).await)?)
}

/// Other operations with one of an operation's business ids: `most` for each id, newest first.
pub async fn related(tx: &mut Tx, values: &[SearchRow], most: i64) -> Result<Vec<Uuid>, StoreError> {
    // Ids sort by time, so that the index gives the newest without reading all of a customer's.
    const SQL: &str = "SELECT operation_id FROM search WHERE value = $1 AND name = $2 AND operation_id <> $3 \
        ORDER BY operation_id DESC LIMIT $4";
    let mut found: Vec<Uuid> = Vec::new();
    for row in values {
        let ids: Vec<Uuid> = on!(&mut *tx, c => sqlx::query_scalar(SQL)
            .bind(&row.value)
            .bind(&row.name)
            .bind(row.operation_id)
            .bind(most)
            .fetch_all(c)
            .await?);
        found.extend(ids);
    }
    found.sort_unstable_by(|a, b| b.cmp(a));
    found.dedup();
    Ok(found)
}
