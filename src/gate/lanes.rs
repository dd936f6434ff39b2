//! Fair claiming: how many rows of work each lane may be given, so that one slow destination cannot
//! take every slot.

use std::collections::{BTreeMap, HashMap, HashSet, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::health::Health;
use crate::config::{Config, StepType, worker_lane};
use crate::domain::time::Timestamp;
use crate::store::work::{Room, WorkRow};

/// A lane may hold at most this many times what it leaves free. A single busy lane gets four fifths
/// of the slots, a second one four fifths of the rest: there is always something left.
const SHARE: usize = 4;

/// What each lane has under way on this node.
#[derive(Debug, Default)]
pub(super) struct Lanes {
    held: Mutex<HashMap<String, usize>>,
    /// Lanes with work whose destination is no longer configured.
    orphans: Mutex<Vec<String>>,
}

/// A place that an attempt takes in its lane until it is settled, or dropped.
#[derive(Debug, Default)]
pub(super) struct Slot(Option<(Arc<Lanes>, String)>);

/// A lane and what it may be given.
#[derive(Debug)]
pub(super) struct Opening {
    pub(super) lane: String,
    /// At least 1.
    pub(super) most: usize,
    /// Not before this.
    pub(super) from: Timestamp,
}

impl Lanes {
    fn lock(&self) -> MutexGuard<'_, HashMap<String, usize>> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a place.
    pub(super) fn take(self: &Arc<Self>, lane: &str) -> Slot {
        *self.lock().entry(lane.to_owned()).or_default() += 1;
        Slot(Some((Arc::clone(self), lane.to_owned())))
    }

    /// How many places are taken.
    pub(super) fn taken(&self) -> usize {
        self.lock().values().sum()
    }

    pub(super) fn set_orphans(&self, lanes: Vec<String>) {
        *self.orphans.lock().unwrap_or_else(PoisonError::into_inner) = lanes;
    }

    /// Every lane that the engine serves.
    fn names(&self, config: &Config) -> Vec<String> {
        let orphans = self.orphans.lock().unwrap_or_else(PoisonError::into_inner);
        config.destinations.keys().chain(orphans.iter()).cloned().collect()
    }

    /// What each lane may be given of `free` slots. `ended` places are free again; `elsewhere` says
    /// how many places each limited destination has taken on all nodes.
    pub(super) fn openings(
        &self,
        config: &Config,
        health: &Health,
        elsewhere: &HashMap<String, usize>,
        ended: &BTreeMap<&str, usize>,
        free: usize,
        now: Timestamp,
    ) -> Vec<Opening> {
        let names = self.names(config);
        let alone = names.len() == 1;
        let held = self.lock();
        let mut openings = Vec::with_capacity(names.len());
        for lane in names {
            let ours = held.get(&lane).copied().unwrap_or_default();
            let ours = ours.saturating_sub(ended.get(lane.as_str()).copied().unwrap_or_default());
            let fair = match (alone, ours) {
                (true, _) => free,
                (false, 0) => (SHARE * free / (SHARE + 1)).max(1),
                (false, ours) => (SHARE * free).saturating_sub(ours) / (SHARE + 1),
            };
            let limit = config.destinations.get(&lane).and_then(|known| known.limit.in_flight);
            let under = limit.map_or(usize::MAX, |limit| {
                limit.saturating_sub(elsewhere.get(&lane).copied().unwrap_or(ours))
            });
            let most = fair.min(under).min(free);
            if most == 0 {
                continue;
            }
            // What is not configured any more is taken up in any case, to be put before a person.
            let opening = if config.destinations.contains_key(&lane) {
                health.opening(&lane, ours, most, now)
            } else {
                Some((now, most))
            };
            if let Some((from, most)) = opening {
                openings.push(Opening { lane, most, from });
            }
        }
        openings
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if let Some((lanes, lane)) = self.0.take() {
            let mut held = lanes.lock();
            if let Some(count) = held.get_mut(&lane) {
                *count -= 1;
                if *count == 0 {
                    held.remove(&lane);
                }
            }
        }
    }
}

/// The lanes that may be given something now.
pub(super) fn rooms(openings: &[Opening], now: Timestamp) -> Vec<Room> {
    openings
        .iter()
        .filter(|opening| opening.from <= now)
        .map(|opening| Room { lane: opening.lane.clone(), most: opening.most })
        .collect()
}

/// Whether some lane has more than it was given.
pub(super) fn more(rooms: &[Room], rows: &[WorkRow]) -> bool {
    rooms.iter().any(|room| rows.iter().filter(|row| row.lane == room.lane).count() >= room.most)
}

/// Takes `free` rows, one of each lane in turn.
pub(super) fn pick(rows: Vec<WorkRow>, free: usize) -> Vec<WorkRow> {
    if rows.len() <= free {
        return rows;
    }
    let mut lanes: BTreeMap<String, VecDeque<WorkRow>> = BTreeMap::new();
    for row in rows {
        lanes.entry(row.lane.clone()).or_default().push_back(row);
    }
    let mut picked = Vec::with_capacity(free);
    while picked.len() < free && !lanes.is_empty() {
        lanes.retain(|_, waiting| {
            if picked.len() < free {
                picked.extend(waiting.pop_front());
            }
            !waiting.is_empty()
        });
    }
    picked
}

/// Of lanes with work, those that nobody serves as the file stands now.
pub(super) fn orphans(config: &Config, waiting: Vec<String>) -> Vec<String> {
    let pulled = config.operations.values().filter(|kind| kind.steps.iter().any(StepType::is_pulled));
    let served: HashSet<String> =
        config.destinations.keys().cloned().chain(pulled.map(|kind| worker_lane(&kind.name))).collect();
    waiting.into_iter().filter(|lane| !served.contains(lane)).collect()
}
