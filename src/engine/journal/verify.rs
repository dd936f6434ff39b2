//! Walks the audit's chain from its beginning and names what does not fit: what a walk comes to.

mod moved;
mod walk;

use std::fmt;

use uuid::Uuid;

pub use walk::Walk;

use super::anchor::Anchored;
use crate::domain::time::Timestamp;
use crate::store::audit::AuditRow;
use crate::store::chain::{Head, Walked};
use crate::store::{Db, StoreError, Tx, checks};

/// What is named one by one; the rest is counted.
const NAMED: usize = 100;

/// What whoever finds something is to do.
pub const NEXT: &str = "keep this database and its backups as they are, compare these entries with a backup from \
    before and with the heads in the log, and find out who could write to the database";

text_enum! {
    /// What does not fit.
    pub enum FaultKind {
        /// The entry is not what its link says, or its link is not ours.
        Altered = "altered",
        /// The entry or its link stands in another's place.
        Moved = "moved",
        /// The link is there and its entry is gone.
        Dropped = "dropped",
        /// Links are gone, and with them most likely their entries.
        Cut = "cut",
        /// The entry has no link.
        Inserted = "inserted",
        /// Its words are not those that the link says.
        WordsAltered = "words_altered",
        /// Its words are gone and no entry says that they were erased.
        WordsGone = "words_gone",
        /// It erased the words of other entries than those that are named.
        ErasureAltered = "erasure_altered",
        /// It was linked with a secret key that is not here.
        UnknownKey = "unknown_key",
        /// It is not what was told outside the database.
        NotAsTold = "not_as_told",
        /// There are entries and no chain at all.
        NoChain = "no_chain",
    }
}

/// One thing that does not fit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// What.
    pub kind: FaultKind,
    /// Where, in the chain.
    pub seq: Option<i64>,
    /// At which entry.
    pub id: Option<Uuid>,
    /// What the entry says of itself, as far as it is there: when, who did what.
    pub entry: Option<(Timestamp, String, String)>,
    /// What else is to be said, in words.
    pub words: String,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.seq {
            Some(seq) => write!(f, "No. {seq}")?,
            None => f.write_str("No number")?,
        }
        if let Some((at, actor, action)) = &self.entry {
            // Whoever altered them may have written lines of a log into them.
            let [actor, action] = [actor, action].map(|text| text.replace(char::is_control, " "));
            write!(f, ", {} {action} by {actor}", at.rfc3339())?;
        }
        if let Some(id) = self.id {
            write!(f, " ({id})")?;
        }
        write!(f, ": {}", self.words)
    }
}

/// What a walk came to.
#[derive(Clone, Debug, Default)]
pub struct Outcome {
    /// Links that were walked.
    pub links: i64,
    /// Entries whose words were erased, and that an entry says so of.
    pub erased: i64,
    /// The entry that says that those before it had no chain when they were written.
    pub adopted: Option<Adopted>,
    /// The last link.
    pub head: Option<Head>,
    /// What does not fit, in the order of the chain; not more than can be read.
    pub faults: Vec<Fault>,
    /// How many more there are.
    pub more: usize,
}

/// That a chain was begun with entries that stood there: it vouches for them from that moment on, and
/// for nothing that happened to them before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adopted {
    /// How many they are.
    pub entries: i64,
    /// Since when it does.
    pub at: Timestamp,
    /// On whose word.
    pub actor: String,
}

impl Outcome {
    /// Whether everything fits.
    pub fn is_whole(&self) -> bool {
        self.faults.is_empty()
    }

    /// In how many places it does not fit, in words.
    pub fn places(&self) -> String {
        match self.faults.len() + self.more {
            1 => "1 place".to_owned(),
            many => format!("{many} places"),
        }
    }

    /// Keeps how it went, for the pages that tell how things stand.
    pub async fn note(&self, tx: &mut Tx, now: Timestamp) -> Result<(), StoreError> {
        match (self.faults.first(), &self.head) {
            (Some(fault), _) => checks::failed(tx, checks::VERIFY, now, &fault.to_string()).await,
            (None, Some(head)) => checks::passed(tx, checks::VERIFY, now, head.seq).await,
            (None, None) => Ok(()),
        }
    }

    fn fault(&mut self, kind: FaultKind, walked: Option<&Walked>, words: impl Into<String>) {
        let fault = Fault {
            kind,
            seq: walked.map(|walked| walked.seq),
            id: walked.map(|walked| walked.audit_id),
            entry: walked.and_then(|walked| walked.row.as_ref()).map(entry),
            words: words.into(),
        };
        self.push(fault);
    }

    fn push(&mut self, fault: Fault) {
        if self.faults.len() < NAMED {
            self.faults.push(fault);
        } else {
            self.more += 1;
        }
    }
}

fn entry(row: &AuditRow) -> (Timestamp, String, String) {
    (row.at, row.actor.clone(), row.action.clone())
}

/// Walks all of it without a pause, and compares it with what was told of it outside the database.
pub async fn verify(db: &Db, told: Vec<Anchored>) -> Result<Outcome, StoreError> {
    let mut walk = Walk::new(db, told)?;
    loop {
        if let Some(outcome) = walk.step().await? {
            return Ok(outcome);
        }
    }
}
