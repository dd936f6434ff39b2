//! The walk itself, in steps that hold a stretch of the chain in memory.

use std::collections::HashMap;

use uuid::Uuid;

use super::{Adopted, Fault, FaultKind, NAMED, Outcome, entry, moved};
use crate::domain::chain::{ChainKey, START, erased};
use crate::domain::key::hex;
use crate::domain::keyring::Keyring;
use crate::engine::journal::anchor::Anchored;
use crate::store::audit::AuditRow;
use crate::store::chain::{self, Head, Walked};
use crate::store::{Db, StoreError};

/// Links, or entries, that one step looks at.
const STRETCH: usize = 500;

/// Where a walk has come to. That is kept in memory alone: the database is what is doubted.
pub struct Walk<'a> {
    db: &'a Db,
    keyring: &'a Keyring,
    keys: HashMap<String, Option<ChainKey>>,
    seq: i64,
    /// The link before; unknown behind a gap.
    previous: Option<Vec<u8>>,
    told: Vec<Anchored>,
    /// How many of those were compared.
    compared: usize,
    suspects: Vec<Suspect>,
    /// From which entry on those without a link are looked for, once the links are walked.
    strangers_from: Option<Uuid>,
    /// The first of those, and how many there are.
    strangers: (Vec<AuditRow>, usize),
    outcome: Outcome,
}

impl<'a> Walk<'a> {
    /// From the beginning; `told` is what was told of it outside the database, in any order.
    pub fn new(db: &'a Db, mut told: Vec<Anchored>) -> Result<Self, StoreError> {
        told.sort_by_key(|told| told.seq);
        Ok(Self {
            db,
            keyring: db.keyring()?,
            keys: HashMap::new(),
            seq: 0,
            previous: Some(START.to_vec()),
            told,
            compared: 0,
            suspects: Vec::new(),
            strangers_from: None,
            strangers: (Vec::new(), 0),
            outcome: Outcome::default(),
        })
    }

    /// Looks at the next stretch; what the walk came to, once that was the last.
    pub async fn step(&mut self) -> Result<Option<Outcome>, StoreError> {
        let mut tx = self.db.read().await?;
        if let Some(from) = self.strangers_from {
            let (found, next) = chain::unlinked(&mut tx, from, STRETCH).await?;
            self.strangers.1 += found.len();
            let room = NAMED.saturating_sub(self.strangers.0.len());
            self.strangers.0.extend(found.into_iter().take(room));
            self.strangers_from = next;
            return Ok(next.is_none().then(|| self.end()));
        }
        let stretch = chain::stretch(&mut tx, self.seq, STRETCH).await?;
        if stretch.is_empty() {
            self.strangers_from = Some(Uuid::nil());
        }
        for walked in stretch {
            let listed = match &walked.erased {
                Some(_) => Some(chain::erased_by(&mut tx, walked.audit_id).await?),
                None => None,
            };
            self.look(walked, listed);
        }
        Ok(None)
    }

    /// Looks at the next link; `listed` are the entries whose words it is said to have erased.
    fn look(&mut self, walked: Walked, listed: Option<Vec<Uuid>>) {
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
    fn end(&mut self) -> Outcome {
        let (strangers, count) = std::mem::take(&mut self.strangers);
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
            return std::mem::take(&mut self.outcome);
        }
        for row in &strangers {
            let words = "it has no link: somebody else wrote it, or its link was removed".to_owned();
            let (id, entry) = (Some(row.id), Some(entry(row)));
            self.outcome.push(Fault { kind: FaultKind::Inserted, seq: None, id, entry, words });
        }
        self.outcome.more += count - strangers.len();
        std::mem::take(&mut self.outcome)
    }
}

/// A link that does not fit its entry.
pub(super) struct Suspect {
    pub(super) walked: Walked,
    /// The link before.
    pub(super) previous: Vec<u8>,
    /// Among the faults.
    pub(super) place: usize,
}
