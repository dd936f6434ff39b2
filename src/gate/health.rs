//! What protects a destination: pauses, the circuit breaker, its own word on waiting, and its limit
//! a second. All nodes share it through the database.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::time::Duration;

use super::{Gate, GateError, ledger};
use crate::config::{Config, Destination};
use crate::domain::time::Timestamp;
use crate::store::alerts::{self, AlertKind, AlertRow};
use crate::store::destinations::{self, HealthRow};
use crate::store::{StoreError, Tx, work};

/// However long a destination asks us to stay away, it is tried again after this.
const LONGEST_HOLD: Duration = Duration::from_mins(15);

/// A circuit stays open no longer than this before the next try.
const LONGEST_OPEN: Duration = Duration::from_mins(10);

/// What of a limit a second may be used at once, so that the ledger need not be written for each.
const BURST: Duration = Duration::from_millis(50);

/// What an attempt showed of its destination.
#[derive(Debug)]
pub(super) struct Noticed {
    pub(super) destination: String,
    pub(super) at: Timestamp,
    /// Whether it is in order; absent when the attempt does not tell.
    pub(super) healthy: Option<bool>,
    /// Why nothing else should be sent there until a person has looked.
    pub(super) pause: Option<String>,
    /// How long it wants to be left alone.
    pub(super) hold: Option<Duration>,
}

/// The health of all destinations within one transaction.
#[derive(Debug)]
pub(super) struct Health {
    rows: HashMap<String, HealthRow>,
    /// What this transaction alone may change; nothing else is written.
    locked: BTreeSet<String>,
    changed: BTreeSet<String>,
    /// The space between two requests, where that is limited.
    spaces: BTreeMap<String, Duration>,
}

impl Health {
    pub(super) async fn load(tx: &mut Tx, config: &Config) -> Result<Self, StoreError> {
        let rows = destinations::all(tx).await?.into_iter().map(|row| (row.name.clone(), row)).collect();
        let space = |known: &Destination| Some(Duration::from_secs_f64(1.0 / known.limit.per_second?));
        let spaces = config
            .destinations
            .values()
            .filter_map(|known| Some((known.name.clone(), space(known)?)))
            .collect();
        Ok(Self { rows, locked: BTreeSet::new(), changed: BTreeSet::new(), spaces })
    }

    /// Locks, once and in one order on all nodes, whatever this turn may change: what attempts told
    /// of, what is limited, and circuits whose one try might be taken.
    pub(super) async fn lock_for(
        &mut self,
        tx: &mut Tx,
        config: &Config,
        noticed: &[Noticed],
        claims: bool,
    ) -> Result<(), StoreError> {
        let told = noticed.iter().filter(|seen| self.matters(seen)).map(|seen| seen.destination.clone());
        let mut names: BTreeSet<String> = told.collect();
        if claims {
            let limited =
                |known: &&Destination| known.limit.per_second.is_some() || known.limit.in_flight.is_some();
            names.extend(config.destinations.values().filter(limited).map(|known| known.name.clone()));
            let open = self.rows.values().filter(|row| row.open_until.is_some());
            names.extend(open.map(|row| row.name.clone()));
        }
        self.lock(tx, &names.iter().map(String::as_str).collect::<Vec<_>>()).await
    }

    /// Reads destinations anew and keeps them as they are until the transaction ends. Once a
    /// transaction: what it changed would be forgotten.
    async fn lock(&mut self, tx: &mut Tx, names: &[&str]) -> Result<(), StoreError> {
        let new: Vec<&str> = names.iter().copied().filter(|name| !self.rows.contains_key(*name)).collect();
        destinations::add(tx, &new).await?;
        for row in destinations::lock(tx, names).await? {
            self.locked.insert(row.name.clone());
            self.rows.insert(row.name.clone(), row);
        }
        Ok(())
    }

    pub(super) async fn save(&mut self, tx: &mut Tx) -> Result<(), StoreError> {
        for name in std::mem::take(&mut self.changed) {
            if let Some(row) = self.rows.get(&name) {
                destinations::write(tx, row).await?;
            }
        }
        Ok(())
    }

    fn row(&mut self, name: &str) -> &mut HealthRow {
        self.changed.insert(name.to_owned());
        self.rows.entry(name.to_owned()).or_insert_with(|| HealthRow::new(name))
    }

    /// From when a destination may be sent something, and how much of `most`; absent while it is
    /// paused, or while the one try of an open circuit is under way.
    pub(super) fn opening(
        &self,
        lane: &str,
        held: usize,
        most: usize,
        now: Timestamp,
    ) -> Option<(Timestamp, usize)> {
        let Some(row) = self.rows.get(lane) else { return Some((now, most)) };
        if row.paused_at.is_some() {
            return None;
        }
        let (mut from, mut most) = (now, most);
        if let Some(until) = row.open_until {
            if until <= now && held > 0 {
                return None;
            }
            (from, most) = (from.max(until), 1);
        }
        from = from.max(row.held_until.unwrap_or(now));
        if let Some(space) = self.spaces.get(lane) {
            let fits = row.next_at.minus(BURST);
            if fits > now {
                return Some((from.max(fits), 1));
            }
            let behind = now.since(fits).min(BURST);
            let fitting = 1 + behind.as_micros() / space.as_micros().max(1);
            most = most.min(usize::try_from(fitting).unwrap_or(usize::MAX));
        }
        Some((from, most))
    }

    /// Counts what was just taken: against its limit a second, and as the one try of an open circuit.
    pub(super) fn taken(&mut self, config: &Config, taken: &BTreeMap<String, usize>, now: Timestamp) {
        for (lane, count) in taken {
            if let Some(space) = self.spaces.get(lane).copied().filter(|_| self.locked.contains(lane)) {
                let count = u32::try_from(*count).unwrap_or(u32::MAX);
                let row = self.row(lane);
                row.next_at = row.next_at.max(now).plus(space * count);
            }
            let tries =
                self.locked.contains(lane) && self.rows.get(lane).is_some_and(|row| row.open_until.is_some());
            if tries && let Some(known) = config.destinations.get(lane) {
                // Whoever else looks at it meanwhile finds it open.
                let row = self.row(lane);
                row.failures = 0;
                row.open_until = Some(now.plus(known.breaker.wait.max(known.timeout)));
            }
        }
    }

    /// Takes in what attempts showed.
    pub(super) async fn note(
        &mut self,
        gate: &Gate,
        tx: &mut Tx,
        noticed: &[Noticed],
    ) -> Result<(), StoreError> {
        let locked = self.locked.clone();
        for seen in noticed.iter().filter(|seen| locked.contains(&seen.destination)) {
            let Some(known) = gate.config.destinations.get(&seen.destination) else { continue };
            if let Some(hold) = seen.hold {
                let until = seen.at.plus(hold.min(LONGEST_HOLD));
                let row = self.row(&seen.destination);
                row.held_until = row.held_until.max(Some(until));
            }
            match seen.healthy {
                Some(true) => self.well(&seen.destination),
                Some(false) => self.failed(known, seen.at),
                None => {}
            }
            if let Some(why) = &seen.pause
                && self.rows.get(&seen.destination).is_some_and(|row| row.paused_at.is_none())
            {
                let row = self.row(&seen.destination);
                row.paused_at = Some(seen.at);
                row.paused_by = Some("engine".to_owned());
                row.pause_reason = Some(why.clone());
                alert(gate, tx, &seen.destination, why, seen.at).await?;
            }
        }
        Ok(())
    }

    fn matters(&self, seen: &Noticed) -> bool {
        let unwell = self.rows.get(&seen.destination).is_some_and(|row| row.failures > 0 || row.opened > 0);
        seen.healthy == Some(false)
            || (seen.healthy == Some(true) && unwell)
            || seen.pause.is_some()
            || seen.hold.is_some()
    }

    fn well(&mut self, name: &str) {
        if self.rows.get(name).is_some_and(|row| row.failures > 0 || row.opened > 0) {
            let row = self.row(name);
            (row.failures, row.opened, row.open_until) = (0, 0, None);
        }
    }

    fn failed(&mut self, known: &Destination, at: Timestamp) {
        let row = self.row(&known.name);
        // Of an open circuit only the one try counts, before which the failures were set to zero:
        // what was under way when it opened says nothing new.
        let counts = row.opened == 0 || row.failures == 0;
        row.failures += 1;
        if !counts || (row.opened == 0 && row.failures < i64::from(known.breaker.failures)) {
            return;
        }
        row.opened += 1;
        let doubled = u32::try_from(row.opened - 1).unwrap_or(u32::MAX).min(16);
        let wait = known.breaker.wait.saturating_mul(1 << doubled).min(LONGEST_OPEN.max(known.breaker.wait));
        row.open_until = Some(at.plus(wait));
        tracing::warn!(
            destination = known.name,
            failures = row.failures,
            seconds = wait.as_secs(),
            "circuit opened: nothing is sent there for a while"
        );
    }
}

/// Tells of a pause once, however many operations meet its cause.
async fn alert(gate: &Gate, tx: &mut Tx, name: &str, why: &str, at: Timestamp) -> Result<(), StoreError> {
    let row = AlertRow {
        id: gate.ambient.id(),
        at,
        kind: AlertKind::Paused,
        subject: name.to_owned(),
        detail: why.to_owned(),
        closed_at: None,
    };
    if alerts::open(tx, &row).await? {
        tracing::error!(destination = name, why, "paused: nothing is sent there until a person resumes it");
    }
    Ok(())
}

impl Gate {
    /// Stops sending to a destination until it is resumed; false when it is paused already.
    pub async fn pause(&self, tx: &mut Tx, name: &str, by: &str, why: &str) -> Result<bool, GateError> {
        let mut health = Health::load(tx, &self.config).await?;
        health.lock(tx, &[name]).await?;
        let row = health.row(name);
        if row.paused_at.is_some() {
            return Ok(false);
        }
        row.paused_at = Some(self.ambient.now());
        row.paused_by = Some(by.to_owned());
        row.pause_reason = Some(why.to_owned());
        health.save(tx).await?;
        Ok(true)
    }

    /// Sends to a destination again; false when it is not paused. What waited does not count as
    /// having been tried meanwhile, and its circuit is closed: a person has looked.
    pub async fn resume(&self, tx: &mut Tx, name: &str) -> Result<bool, GateError> {
        let now = self.ambient.now();
        let mut health = Health::load(tx, &self.config).await?;
        health.lock(tx, &[name]).await?;
        let row = health.row(name);
        let Some(since) = row.paused_at.take() else { return Ok(false) };
        (row.paused_by, row.pause_reason) = (None, None);
        (row.failures, row.opened, row.open_until, row.held_until) = (0, 0, None, None);
        health.save(tx).await?;
        alerts::close(tx, AlertKind::Paused, name, now).await?;
        ledger::wait_over(tx, name, now.since(since)).await?;
        work::announce(tx).await?;
        Ok(true)
    }
}
