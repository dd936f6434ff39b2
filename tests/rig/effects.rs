//! What really happened at a destination, on disk before it is answered, and what the destination
//! knows from it.

use std::collections::HashMap;
use std::fs::{File, OpenOptions};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::class::Class;
use crate::wire::{Reply, Request};

/// How long an effect stays invisible to a lookup.
const LAG: Duration = Duration::from_millis(200);

/// One effect, as a line of the file.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Effect {
    /// What the operation is called by whoever submitted it.
    pub(crate) id: String,
    /// Which effect at this destination, from 1; for an upsert, its id.
    pub(crate) reference: String,
    /// As sent.
    pub(crate) body: String,
    /// Since 1970.
    pub(crate) at_ms: u64,
}

enum Known {
    InFlight,
    Answered(Reply),
}

/// The memory of one destination.
pub(crate) struct Memory {
    class: Class,
    file: File,
    effects: Vec<Effect>,
    by_id: HashMap<String, Vec<usize>>,
    keys: HashMap<String, Known>,
    /// Path, key and body of the first request of each operation.
    first: HashMap<String, (String, Option<String>, Vec<u8>)>,
    /// Operations of which two requests differed.
    pub(crate) differed: Vec<String>,
    pub(crate) requests: u64,
}

/// Whether a request may be carried out.
pub(crate) enum Claim {
    /// It may; a keyed destination holds its key until then.
    Free,
    /// It may not: this is the answer.
    Settled(Reply),
}

impl Memory {
    pub(crate) fn new(class: Class, path: &Path) -> io::Result<Self> {
        Ok(Self {
            class,
            file: OpenOptions::new().create_new(true).append(true).open(path)?,
            effects: Vec::new(),
            by_id: HashMap::new(),
            keys: HashMap::new(),
            first: HashMap::new(),
            differed: Vec::new(),
            requests: 0,
        })
    }

    /// Notes that a request came, and whether it is to the byte what came before it.
    pub(crate) fn arrived(&mut self, request: &Request) {
        self.requests += 1;
        let seen = (request.path.clone(), request.key.clone(), request.body.clone());
        let id = request.text("id");
        if *self.first.entry(id.clone()).or_insert_with(|| seen.clone()) != seen {
            self.differed.push(id);
        }
    }

    /// Takes a request's key where this destination honours keys.
    pub(crate) fn claim(&mut self, request: &Request) -> Claim {
        let Some(key) = request.key.as_ref().filter(|_| self.class == Class::Keyed) else {
            return Claim::Free;
        };
        match self.keys.get(key) {
            None => {
                self.keys.insert(key.clone(), Known::InFlight);
                Claim::Free
            }
            Some(Known::InFlight) => Claim::Settled(Reply::json(409, &json!({"code": "in_flight"}))),
            Some(Known::Answered(reply)) => Claim::Settled(reply.clone()),
        }
    }

    /// Carries out what was claimed: durable before it is answered.
    pub(crate) fn carry_out(&mut self, request: &Request) -> io::Result<Reply> {
        let id = request.text("id");
        let reference = match self.class {
            Class::Upsert => id.clone(),
            class => format!("{class}-{}", self.effects.len() + 1),
        };
        let effect = Effect {
            id: id.clone(),
            reference: reference.clone(),
            body: String::from_utf8_lossy(&request.body).into_owned(),
            at_ms: now_ms(),
        };
        let mut line = serde_json::to_vec(&effect)?;
        line.push(b'\n');
        self.file.write_all(&line)?;
        self.file.sync_data()?;
        self.by_id.entry(id).or_default().push(self.effects.len());
        self.effects.push(effect);
        let reply = Reply::json(201, &json!({"id": reference}));
        if let Some(key) = request.key.clone().filter(|_| self.class == Class::Keyed) {
            self.keys.insert(key, Known::Answered(reply.clone()));
        }
        Ok(reply)
    }

    /// What it answers to `GET /l/effects?ref=..`: the effects whose body carries that reference.
    pub(crate) fn look_up(&self, path: &str) -> Reply {
        let wanted = path.split_once("?ref=").map(|(_, wanted)| wanted).unwrap_or_default();
        let seen_before = now_ms().saturating_sub(u64::try_from(LAG.as_millis()).unwrap_or(u64::MAX));
        let needle = format!("\"ref\":\"{wanted}\"");
        let items: Vec<_> = self
            .effects
            .iter()
            .rev()
            .filter(|effect| effect.at_ms <= seen_before && effect.body.contains(&needle))
            .map(|effect| json!({"id": effect.reference}))
            .collect();
        Reply::json(200, &json!({"items": items}))
    }

    /// The reference of an operation's effect, when there is one.
    pub(crate) fn reference(&self, id: &str) -> Option<String> {
        let at = *self.by_id.get(id)?.first()?;
        Some(self.effects[at].reference.clone())
    }
}

/// Reads the file of effects back.
pub(crate) fn read(path: &PathBuf) -> io::Result<Vec<Effect>> {
    std::fs::read_to_string(path)?.lines().map(|line| Ok(serde_json::from_str(line)?)).collect()
}

/// Milliseconds since 1970.
pub(crate) fn now_ms() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_millis()).unwrap_or(u64::MAX)
}
