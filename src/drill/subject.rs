//! What is drilled: one step of one type at one destination, built in or configured, and payloads
//! for it.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use serde_json::value::RawValue;
use serde_json::{Map, Value, json};
use url::Url;

use super::proxy::Upstream;
use crate::config::{BodyTemplate, Config, Destination, OperationType, StepType};
use crate::domain::contract::{Class, Contract};
use crate::domain::keyring::{Keyring, SecretKey};
use crate::domain::retry::RetryPolicy;
use crate::domain::time::{Clock, SystemClock};

/// Stands in a payload's text for what differs from one operation to the next.
pub const MARK: &str = "{{ drill }}";

/// The longest exchange in a drill: what is proved does not depend on it, and waiting does.
const LONGEST_TIMEOUT: Duration = Duration::from_secs(5);

/// The most attempts in a drill, for the same reason.
const MOST_ATTEMPTS: u32 = 5;

/// Why a type cannot be drilled, in words for whoever named it.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct NotDrillable(pub String);

/// One type at one destination.
#[derive(Clone, Debug)]
pub(super) struct Subject {
    pub(super) kind: OperationType,
    pub(super) destination: Destination,
    pub(super) built_in: bool,
    /// Only what is drilled is left in it; its addresses are still the real ones.
    config: Config,
    /// Payloads are made from this text.
    payload: String,
    /// The type has further steps, which are not drilled.
    pub(super) steps_left_out: usize,
}

/// The configuration of the types that are drilled when none is named.
pub(super) fn built_in_config() -> anyhow::Result<Config> {
    Ok(Config::read(Path::new("the built-in drill"), include_str!("drill.toml"), &|_| None)?)
}

/// For a database that is dropped when the drill ends: what hangs on this key protects nothing.
fn scratch_keyring() -> Option<Keyring> {
    Some(Keyring::new(SecretKey::new("the drill's own, for a scratch database")?, Vec::new()))
}

impl Subject {
    /// Of a configured type. Without a payload's text, one is made from the names that the type's
    /// templates read.
    pub(super) fn new(
        mut config: Config,
        kind: &str,
        payload: Option<String>,
        built_in: bool,
    ) -> Result<Self, NotDrillable> {
        let no = |why: String| Err(NotDrillable(why));
        let Some(mut operation) = config.operations.remove(kind) else {
            let names: Vec<&str> = config.operations.keys().map(String::as_str).collect();
            return no(format!("there is no operation type {kind:?}; the file has: {}", names.join(", ")));
        };
        let steps_left_out = operation.steps.len().saturating_sub(1);
        operation.steps.truncate(1);
        let step = &mut operation.steps[0];
        if step.is_pulled() {
            return no(format!(
                "{kind} is carried out by a program of your own, so its destination is that program's: nothing \
                 stands between the two that a drill could break"
            ));
        }
        if matches!(step.method.as_str(), "GET" | "HEAD") {
            return no(format!("{kind} sends a {}, which brings nothing about", step.method));
        }
        // It must be sent, and what comes of it must be seen.
        (step.when, step.optional) = (None, false);
        let mut destination = match config.destinations.remove(&step.destination) {
            Some(destination) if destination.base_url.is_some() => destination,
            _ => return no(format!("the destination of {kind} has no base_url to send to")),
        };
        destination.timeout = destination.timeout.min(LONGEST_TIMEOUT);
        destination.connect_timeout = destination.connect_timeout.min(destination.timeout / 2);
        destination.contract.timeout = destination.timeout;
        // Failures are what is wanted here: nothing may hold the next try back.
        destination.breaker.failures = u32::MAX;
        destination.limit.retries_per_minute = u32::MAX;
        operation.retry = RetryPolicy {
            attempts: operation.retry.attempts.min(MOST_ATTEMPTS),
            max_age: Duration::from_mins(10),
            first_delay: Duration::from_millis(100),
            factor: 1.5,
            max_delay: Duration::from_millis(400),
        };
        let payload = match payload {
            Some(text) if operation.key.is_some() && !text.contains(MARK) => {
                return no(format!(
                    "the payload is the same for every operation, so that all have one key; write {MARK} where it \
                     may differ, such as in the order's number"
                ));
            }
            Some(text) => text,
            None => made_up(&operation, &destination).to_string(),
        };
        config.operations = [(kind.to_owned(), operation.clone())].into();
        config.destinations = [(destination.name.clone(), destination.clone())].into();
        config.sources.clear();
        config.engine.lease = destination.timeout + Duration::from_secs(1);
        Ok(Self { kind: operation, destination, built_in, config, payload, steps_left_out })
    }

    /// The configuration of an engine that sends to the proxy and stores in a database of its own.
    pub(super) fn staged(&self, proxy: SocketAddr, database_url: &str) -> Config {
        let mut config = self.config.clone();
        database_url.clone_into(&mut config.server.database_url);
        config.server.allow_private_destinations = true;
        config.keyring = config.keyring.or_else(scratch_keyring);
        for destination in config.destinations.values_mut() {
            destination.base_url = self.destination.base_url.as_ref().and_then(|url| behind(url, proxy));
        }
        config
    }

    /// Where the proxy passes requests on to; for the built-in destination, where that listens.
    pub(super) fn upstream(&self, built_in: Option<Url>) -> Option<Upstream> {
        Some(Upstream {
            origin: built_in.or_else(|| self.destination.base_url.clone())?,
            allow_private: self.built_in || self.config.server.allow_private_destinations,
            timeout: self.destination.timeout,
            carrier: self.contract().key.as_ref().map(|key| key.carrier.clone()),
            reference: self.step().reference.clone(),
        })
    }

    pub(super) fn step(&self) -> &StepType {
        &self.kind.steps[0]
    }

    pub(super) fn contract(&self) -> &Contract {
        &self.destination.contract
    }

    /// What the destination promises at the first send.
    pub(super) fn class(&self) -> Class {
        self.contract().class_at(None, SystemClock.now())
    }

    /// How long an answer may stay invisible to a question.
    pub(super) fn lag(&self) -> Duration {
        self.contract().lookup.as_ref().map_or(Duration::ZERO, |lookup| lookup.max_lag)
    }

    pub(super) fn lease(&self) -> Duration {
        self.config.engine.lease
    }

    /// A payload that bears a mark.
    pub(super) fn payload(&self, mark: &str) -> Result<Box<RawValue>, serde_json::Error> {
        RawValue::from_string(self.payload.trim().replace(MARK, mark))
    }
}

/// The same path at the proxy's address.
fn behind(url: &Url, proxy: SocketAddr) -> Option<Url> {
    let mut url = url.clone();
    url.set_scheme("http").ok()?;
    url.set_host(Some(&proxy.ip().to_string())).ok()?;
    url.set_port(Some(proxy.port())).ok()?;
    Some(url)
}

/// A payload in which every name that the templates read bears the mark.
fn made_up(operation: &OperationType, destination: &Destination) -> Value {
    let step = &operation.steps[0];
    let question = destination.question.as_ref();
    let templates = operation
        .key
        .iter()
        .chain([&step.path])
        .chain(step.headers.iter().map(|(_, template)| template))
        .chain(question.map(|question| &question.path))
        .chain(question.iter().flat_map(|question| question.compare.iter().map(|(_, template)| template)));
    let facts = templates.flat_map(|template| template.facts().to_vec());
    let facts = facts.chain(step.body.iter().flat_map(BodyTemplate::facts));
    let mut payload = json!({ "order": MARK });
    for fact in facts {
        let Some(names) = fact.strip_prefix("payload.") else { continue };
        put(&mut payload, &names.split('.').collect::<Vec<_>>());
    }
    for (_, pointer) in &operation.search {
        put(&mut payload, &pointer.split('/').skip(1).collect::<Vec<_>>());
    }
    payload
}

fn put(payload: &mut Value, names: &[&str]) {
    let Some((first, rest)) = names.split_first() else { return };
    if !payload.is_object() {
        *payload = Value::Object(Map::new());
    }
    let Value::Object(members) = payload else { return };
    let inner = members.entry(*first).or_insert_with(|| Value::String(MARK.to_owned()));
    put(inner, rest);
}

#[cfg(test)]
mod tests {
    use super::*;

    fn config(more: &str) -> Config {
        let text = format!(
            "[destinations.crm]\nbase_url = \"https://crm.example/api\"\n\
             key = {{ header = \"Idempotency-Key\", window = \"24h\" }}\n\
             [operations.ticket]\nkey = \"t:{{{{ payload.order.id }}}}\"\nsearch = {{ who = \"/customer/id\" }}\n\
             [[operations.ticket.steps]]\nname = \"ticket\"\ndestination = \"crm\"\nmethod = \"POST\"\n\
             path = \"/tickets?o={{{{ payload.order.id }}}}\"\n\
             body = {{ lines = [\"{{{{ payload.line }}}}\"], key = \"{{{{ key }}}}\" }}\n{more}"
        );
        Config::read(Path::new("dlo.toml"), &text, &|_| None).unwrap_or_else(|wrong| panic!("{wrong}"))
    }

    #[test]
    fn a_payload_is_made_from_what_the_templates_read() {
        let subject = Subject::new(config(""), "ticket", None, false).unwrap();
        let payload: Value = serde_json::from_str(subject.payload("m1").unwrap().get()).unwrap();
        assert_eq!(payload, json!({"order": {"id": "m1"}, "line": "m1", "customer": {"id": "m1"}}));
    }

    #[test]
    fn the_engine_is_led_to_the_proxy_and_the_proxy_to_the_destination() {
        let subject = Subject::new(config(""), "ticket", None, false).unwrap();
        let staged = subject.staged(([127, 0, 0, 1], 9).into(), "sqlite:x");
        let url = staged.destinations["crm"].base_url.as_ref().unwrap();
        assert_eq!(url.as_str(), "http://127.0.0.1:9/api");
        assert_eq!(staged.server.database_url, "sqlite:x");
        let upstream = subject.upstream(None).unwrap();
        assert_eq!(upstream.origin.origin().ascii_serialization(), "https://crm.example");
        assert!(!upstream.allow_private);
    }

    #[test]
    fn what_cannot_be_drilled_says_why() {
        let refused = |kind, payload: Option<&str>, more: &str| {
            Subject::new(config(more), kind, payload.map(str::to_owned), false).unwrap_err().to_string()
        };
        assert!(refused("tickte", None, "").contains("the file has: ticket"));
        assert!(refused("ticket", Some("{}"), "").contains(MARK));
        let pulled = "[operations.mine]\n[[operations.mine.steps]]\nname = \"x\"\ndestination = \"crm\"\nrunner = \"worker\"";
        assert!(refused("mine", None, pulled).contains("program of your own"));
    }

    #[test]
    fn every_kind_of_promise_is_built_in() {
        let config = built_in_config().unwrap();
        let classes: std::collections::BTreeSet<Class> = config
            .operations
            .keys()
            .map(|kind| Subject::new(config.clone(), kind, None, true).unwrap().class())
            .collect();
        assert_eq!(classes.into_iter().collect::<Vec<_>>(), Class::ALL);
    }
}
