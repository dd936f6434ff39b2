//! What the destination promises, and the effects it keeps: four personalities by the first
//! segment of the path.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::http::{Received, Reply};
use crate::domain::time::Timestamp;

/// Something that really happened at the destination. A second entry is a second effect.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Effect {
    /// Without its query.
    pub path: String,
    /// The request's key, where it had one.
    pub key: Option<String>,
    /// The request's body.
    pub body: Vec<u8>,
    /// The id given to it.
    pub reference: String,
    /// When it happened.
    pub at: Timestamp,
}

/// What a destination remembers of a key.
enum Known {
    InFlight,
    Answered(Reply),
}

struct KeyEntry {
    path: String,
    body: Vec<u8>,
    known: Known,
}

/// Whether a request may go ahead.
pub(super) enum Claim {
    /// It may; with the key that it holds until it is carried out.
    Free(Option<String>),
    /// It may not: the answer is known.
    Settled(Reply),
}

/// Effects and keys.
#[derive(Default)]
pub(super) struct Ledger {
    pub(super) effects: Vec<Effect>,
    keys: HashMap<String, KeyEntry>,
    counters: HashMap<&'static str, u32>,
}

impl Ledger {
    /// Takes a request's key, or tells why it need not or must not be carried out.
    pub(super) fn claim(&mut self, request: &Received) -> Claim {
        if matches!(request.method.as_str(), "GET" | "HEAD") {
            return Claim::Settled(self.look_up(request));
        }
        if request.path.starts_with("/upsert/") {
            return self.set(request);
        }
        let Some(key) = key_of(request).filter(|_| request.path.starts_with("/keyed/")) else {
            return Claim::Free(None);
        };
        match self.keys.get(&key) {
            None => {
                let entry = KeyEntry {
                    path: request.bare_path().to_owned(),
                    body: request.body.clone(),
                    known: Known::InFlight,
                };
                self.keys.insert(key.clone(), entry);
                Claim::Free(Some(key))
            }
            Some(entry) if entry.path != request.bare_path() || entry.body != request.body => {
                Claim::Settled(refusal(422, "key_reused", "This key was used with other data"))
            }
            Some(KeyEntry { known: Known::InFlight, .. }) => {
                Claim::Settled(refusal(409, "key_in_flight", "A request with this key is being worked on"))
            }
            Some(KeyEntry { known: Known::Answered(reply), .. }) => {
                Claim::Settled(reply.clone().with("idempotent-replayed", "true"))
            }
        }
    }

    /// A thing that is as it is told to be already stays so: that is no second effect.
    fn set(&self, request: &Received) -> Claim {
        let there = self.effects.iter().rev().find(|effect| effect.path == request.bare_path());
        match there.filter(|effect| effect.body == request.body) {
            Some(same) => {
                Claim::Settled(Reply::json(200, &json!({"id": same.reference, "status": "unchanged"})))
            }
            None => Claim::Free(None),
        }
    }

    /// Carries out what was claimed.
    pub(super) fn carry_out(&mut self, request: &Received, claimed: Option<&str>, at: Timestamp) -> Reply {
        let path = request.bare_path();
        let prefix = prefix_of(path);
        let counter = self.counters.entry(prefix).or_insert(1041);
        *counter += 1;
        let reference = format!("{prefix}-{counter}");
        let mut answer = json!({"id": reference, "status": "created"});
        if let Some(external) = external_ref(&request.body) {
            answer["external_ref"] = external.into();
        }
        let reply = Reply::json(201, &answer);
        if let Some(entry) = claimed.and_then(|key| self.keys.get_mut(key)) {
            entry.known = Known::Answered(reply.clone());
        }
        self.effects.push(Effect {
            path: path.to_owned(),
            key: key_of(request),
            body: request.body.clone(),
            reference,
            at,
        });
        reply
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn look_up(&self, request: &Received) -> Reply {
        let path = request.bare_path();
        let wanted = request
            .path
            .split_once('?')
            .and_then(|(_, query)| {
                url::form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "external_ref")
            })
            .map(|(_, value)| value.into_owned());
        let (Some(thing), Some(wanted)) = (path.strip_prefix("/lookup/"), wanted) else {
            return refusal(404, "not_found", "There is nothing here");
        };
        let found: Vec<Value> = self
            .effects
            .iter()
            .filter(|effect| effect.path == path && external_ref(&effect.body).as_ref() == Some(&wanted))
            .map(|effect| described(effect, &wanted))
            .collect();
        Reply::json(200, &json!({thing: found}))
    }
}

/// What was made, with the fields that it was made from.
fn described(effect: &Effect, external_ref: &str) -> Value {
    let mut shown = match serde_json::from_slice(&effect.body) {
        Ok(Value::Object(fields)) => fields,
        _ => serde_json::Map::new(),
    };
    shown.insert("id".to_owned(), effect.reference.clone().into());
    shown.insert("external_ref".to_owned(), external_ref.into());
    Value::Object(shown)
}

pub(super) fn refusal(code: u16, error: &str, message: &str) -> Reply {
    Reply::json(code, &json!({"code": error, "message": message}))
}

/// The header's value; the quotation marks of the IETF's draft are no part of it.
fn key_of(request: &Received) -> Option<String> {
    request.header("idempotency-key").map(|value| value.trim_matches('"').to_owned())
}

fn external_ref(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    match body.get("external_ref")? {
        Value::String(text) => Some(text.clone()),
        other => Some(other.to_string()),
    }
}

fn prefix_of(path: &str) -> &'static str {
    if path.starts_with("/upsert/contacts/") {
        return "CON";
    }
    match path.rsplit('/').next().unwrap_or_default() {
        "tickets" => "TCK",
        "charges" => "CH",
        "receipts" => "RCP",
        "contacts" => "CON",
        _ => "REF",
    }
}
