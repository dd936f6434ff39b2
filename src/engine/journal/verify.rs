//! Walks the audit's chain from its beginning and names what does not fit. It holds a stretch of it
//! in memory, and what it found.

mod moved;

use std::collections::HashMap;
use std::fmt;

use uuid::Uuid;

use super::anchor::Anchored;
use crate::domain::chain::{ChainKey, START, erased};
use crate::domain::key::hex;
use crate::domain::keyring::Keyring;
use crate::domain::time::Timestamp;
use crate::store::audit::AuditRow;
use crate::store::chain::{self, Head, Walked};
use crate::store::{Db, StoreError};

/// Links that are read at once.
const STRETCH: usize = 500;
/// What is named one by one; the rest is counted.
const NAMED: usize = 100;

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

/// Walks all of it, and compares it with what was told of it outside the database.
pub async fn verify(db: &Db, mut told: Vec<Anchored>) -> Result<Outcome, StoreError> {
    told.sort_by_key(|told| told.seq);
    let mut walk = Walk::new(db.keyring()?, told);
    loop {
        let mut tx = db.read().await?;
        let stretch = chain::stretch(&mut tx, walk.seq, STRETCH).await?;
        if stretch.is_empty() {
            let (strangers, count) = chain::unlinked(&mut tx, NAMED).await?;
            return Ok(walk.end(&strangers, count));
        }
        for walked in stretch {
            let listed = match &walked.erased {
                Some(_) => Some(chain::erased_by(&mut tx, walked.audit_id).await?),
                None => None,
            };
            walk.step(walked, listed);
        }
    }
}

/// Where a walk has come to.
struct Walk<'a> {
    keyring: &'a Keyring,
    keys: HashMap<String, Option<ChainKey>>,
    seq: i64,
    /// The link before; unknown behind a gap.
    previous: Option<Vec<u8>>,
    told: Vec<Anchored>,
    /// How many of those were compared.
    compared: usize,
    suspects: Vec<Suspect>,
    outcome: Outcome,
}

impl<'a> Walk<'a> {
    fn new(keyring: &'a Keyring, told: Vec<Anchored>) -> Self {
        Self {
            keyring,
            keys: HashMap::new(),
            seq: 0,
            previous: Some(START.to_vec()),
            told,
            compared: 0,
            suspects: Vec::new(),
            outcome: Outcome::default(),
        }
    }

    /// Looks at the next link; `listed` are the entries whose words it is said to have erased.
    fn step(&mut self, walked: Walked, listed: Option<Vec<Uuid>>) {
        if walked.seq != self.seq + 1 {
            let gap = match walked.seq - self.seq - 1 {
                1 => format!("the link No. {} before this one is gone", self.seq + 1),
                _ => format!("the links No. {} to {} before this one are gone", self.seq + 1, walked.seq - 1),
            };
            self.outcome.fault(FaultKind::Cut, Some(&walked), gap);
            self.previous = None;
        }
        self.seq = walked.seq;
        self.outcome.links += 1;
        self.compare(&walked);
        let previous = self.previous.replace(walked.mac.clone());
        self.outcome.head =
            Some(Head { seq: walked.seq, mac: walked.mac.clone(), key_id: walked.key_id.clone() });
        let Some(row) = &walked.row else {
            let words = "the entry is gone and only its link is left";
            self.outcome.fault(FaultKind::Dropped, Some(&walked), words);
            return;
        };
        let is_new = !self.keys.contains_key(&walked.key_id);
        let keyring = self.keyring;
        let key = self
            .keys
            .entry(walked.key_id.clone())
            .or_insert_with_key(|id| keyring.named(id).map(ChainKey::of));
        let Some(key) = key else {
            if is_new {
                let words = format!(
                    "from here on entries were linked with the secret key {}, which is not here; name its file \
                     in old_secret_key_files",
                    walked.key_id
                );
                self.outcome.fault(FaultKind::UnknownKey, Some(&walked), words);
            }
            return;
        };
        if let Some(previous) = previous {
            let facts = row.facts(walked.seq, &walked.words, walked.erased.as_deref());
            if key.link(&previous, &facts) != walked.mac {
                let words = "it was altered, or written by somebody who has not the secret key";
                let place = self.outcome.faults.len();
                self.outcome.fault(FaultKind::Altered, Some(&walked), words);
                self.suspects.push(Suspect { walked, previous, place });
                self.suspects.truncate(moved::MOST);
                return;
            }
        }
        match &walked.salt {
            Some(salt) if key.words(salt, row.reason.as_deref(), &row.detail) != walked.words => {
                let words = "its reason or its detail was altered";
                self.outcome.fault(FaultKind::WordsAltered, Some(&walked), words);
            }
            None if walked.erased_by.is_none_or(|by| by <= walked.seq) => {
                let words = "its reason and its detail are gone, and no entry says that they were erased";
                self.outcome.fault(FaultKind::WordsGone, Some(&walked), words);
            }
            None => self.outcome.erased += 1,
            Some(_) => {}
        }
        if row.action == chain::BEGIN {
            let (entries, at, actor) = (walked.seq - 1, row.at, row.actor.clone());
            self.outcome.adopted = Some(Adopted { entries, at, actor });
        }
        if walked.erased.is_some() && walked.erased != listed.map(erased) {
            let words = "the list of the entries whose words it erased was altered";
            self.outcome.fault(FaultKind::ErasureAltered, Some(&walked), words);
        }
    }

    /// Compares a link with what was told of it.
    fn compare(&mut self, walked: &Walked) {
        while let Some(told) = self.told.get(self.compared).filter(|told| told.seq <= walked.seq) {
            self.compared += 1;
            if told.seq == walked.seq && told.mac != hex(&walked.mac) {
                let words =
                    format!("the link is not the one that was told outside the database {}", told.when());
                self.outcome.fault(FaultKind::NotAsTold, Some(walked), words);
            }
        }
    }

    /// Behind the last link: what was cut off, what has no link, and what stands in another's place.
    fn end(mut self, strangers: &[AuditRow], count: i64) -> Outcome {
        for (place, belongs) in moved::places(&self.keys, &self.suspects) {
            if let Some(fault) = self.outcome.faults.get_mut(place) {
                fault.kind = FaultKind::Moved;
                fault.words = format!("it stands in another's place; it was linked as No. {belongs}");
            }
        }
        let last = self.told.last().filter(|told| told.seq > self.seq);
        if let Some(told) = last {
            let words = format!(
                "the chain ends at No. {}, and {} it went up to No. {}: its end was cut off",
                self.seq,
                told.when(),
                told.seq
            );
            let fault = Fault { kind: FaultKind::Cut, seq: Some(self.seq + 1), id: None, entry: None, words };
            self.outcome.push(fault);
        }
        if self.seq == 0 && count > 0 {
            let words = format!(
                "{count} entries and no chain: it was removed, unless this database is from before there was one; \
                 then `dlo audit adopt` begins it"
            );
            self.outcome.fault(FaultKind::NoChain, None, words);
            return self.outcome;
        }
        for row in strangers {
            let words = "it has no link: somebody else wrote it, or its link was removed".to_owned();
            let (id, entry) = (Some(row.id), Some(entry(row)));
            self.outcome.push(Fault { kind: FaultKind::Inserted, seq: None, id, entry, words });
        }
        self.outcome.more += usize::try_from(count).unwrap_or(0).saturating_sub(strangers.len());
        self.outcome
    }
}

/// A link that does not fit its entry.
struct Suspect {
    walked: Walked,
    /// The link before.
    previous: Vec<u8>,
    /// Among the faults.
    place: usize,
}
