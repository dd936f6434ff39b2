//! Counts what became of webhook deliveries. All that arrive while a commit is being written, and in
//! the pause behind it, share the next one: however fast junk is sent, the database sees a few writes
//! a second, each of a handful of rows.

use std::collections::BTreeMap;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{Notify, oneshot};

use crate::domain::time::Timestamp;
use crate::domain::webhook::HookOutcome;
use crate::store::hooks::{self, HookCount, hour_of};
use crate::store::{Commit, Db, StoreError};

/// Between two commits: the database's one writer has other work.
const PAUSE: Duration = Duration::from_millis(50);

/// How long an answer waits for its count. When the database is slower than this it has worse
/// troubles, and the count follows when it can.
const PATIENCE: Duration = Duration::from_secs(1);

/// The counter. Cheap to clone; its task ends when every clone is gone.
#[derive(Clone, Debug)]
pub(super) struct Tally(Arc<Shared>);

#[derive(Debug)]
struct Shared {
    state: Mutex<State>,
    wake: Arc<Notify>,
}

/// Bounded by the configured sources and the deliveries that wait for an answer.
#[derive(Debug, Default)]
struct State {
    counts: BTreeMap<(String, HookOutcome, Timestamp), (i64, Timestamp, String)>,
    waiting: Vec<oneshot::Sender<()>>,
}

impl Drop for Shared {
    fn drop(&mut self) {
        // The task holds no clone and would sleep for ever.
        self.wake.notify_one();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Tally {
    /// Starts the task that commits.
    pub(super) fn start(db: Db) -> Self {
        let wake = Arc::new(Notify::new());
        let shared = Arc::new(Shared { state: Mutex::default(), wake: Arc::clone(&wake) });
        let weak = Arc::downgrade(&shared);
        tokio::spawn(async move {
            loop {
                wake.notified().await;
                let Some(shared) = weak.upgrade() else { return };
                commit(&db, &shared).await;
                drop(shared);
                tokio::time::sleep(PAUSE).await;
            }
        });
        Self(shared)
    }

    /// Counts one delivery that left its mark elsewhere; the count becomes durable soon after.
    pub(super) fn count(&self, source: &str, outcome: HookOutcome, at: Timestamp, address: &str) {
        self.0.lock().add(source, outcome, at, address);
        self.0.wake.notify_one();
    }

    /// Counts one delivery of which this is all that is kept; returns when it is durable, or soon
    /// after when the database is not there.
    pub(super) async fn record(&self, source: &str, outcome: HookOutcome, at: Timestamp, address: &str) {
        let (done, durable) = oneshot::channel();
        {
            let mut state = self.0.lock();
            state.add(source, outcome, at, address);
            state.waiting.push(done);
        }
        self.0.wake.notify_one();
        let _ = tokio::time::timeout(PATIENCE, durable).await;
    }
}

impl State {
    fn add(&mut self, source: &str, outcome: HookOutcome, at: Timestamp, address: &str) {
        let key = (source.to_owned(), outcome, hour_of(at));
        let entry = self.counts.entry(key).or_insert_with(|| (0, at, String::new()));
        *entry = (entry.0 + 1, at.max(entry.1), address.to_owned());
    }
}

async fn commit(db: &Db, shared: &Shared) {
    let State { counts, waiting } = mem::take(&mut *shared.lock());
    let rows: Vec<HookCount> = counts
        .iter()
        .map(|((source, outcome, hour), (count, last_at, last_address))| HookCount {
            source: source.clone(),
            outcome: *outcome,
            hour: *hour,
            count: *count,
            last_at: *last_at,
            last_address: last_address.clone(),
        })
        .collect();
    match write(db, &rows).await {
        Ok(()) => {
            for waiting in waiting {
                // A sender that left needs no answer.
                let _ = waiting.send(());
            }
        }
        Err(error) => {
            tracing::warn!(
                error = &error as &dyn std::error::Error,
                "webhook deliveries were not counted yet"
            );
            // They are counted with the next delivery.
            let mut state = shared.lock();
            for (key, (count, at, address)) in counts {
                let entry = state.counts.entry(key).or_insert((0, at, address));
                entry.0 += count;
            }
        }
    }
}

async fn write(db: &Db, rows: &[HookCount]) -> Result<(), StoreError> {
    let mut tx = db.begin().await?;
    hooks::add(&mut tx, rows).await?;
    tx.commit(Commit::Hooks).await
}
