//! `[destinations.NAME]`: another system, and what it promises.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::header::HeaderName;
use secrecy::SecretString;
use url::Url;

use super::credentials;
use super::key;
use super::preset::Preset;
use super::reader::{Item, Table};
use super::rules::{pointer, read_rules};
use super::scope::Scope;
use super::server::{RetryOverride, read_retry};
use super::template::{Place, Template};
use super::words::{NAME_RULE, duration_text, is_name};
use crate::domain::contract::{Contract, KeyCarrier, Lookup};

/// A system that operations are carried out on.
#[derive(Clone)]
pub struct Destination {
    /// As the file calls it: 1 to 64 letters, digits, `-` or `_`.
    pub name: String,
    /// What every path is put behind; http or https, without user info, query or fragment. Absent
    /// where only programs of the user's own call it. Secrets in its path read [`REDACTED`](super::REDACTED).
    pub base_url: Option<Url>,
    /// The same with its secrets, where it has some: put in at the moment of sending.
    pub secret_base: Option<SecretString>,
    /// The built-in contract that this one refines.
    pub preset: Option<Preset>,
    /// What it promises about repeated requests, and what its answers mean.
    pub contract: Contract,
    /// The longest a whole exchange may take; shorter than the lease.
    pub timeout: Duration,
    /// The longest a connection may take; shorter than `timeout`.
    pub connect_timeout: Duration,
    /// Headers that are added at the moment of sending and never stored: they carry credentials.
    pub headers: Vec<Credential>,
    /// The same of parameters of the address.
    pub query: Vec<Credential>,
    /// What of all that must not be kept when the destination sends it back.
    pub echoes: Vec<SecretString>,
    /// How to ask it; what the contract says of the answer goes with it.
    pub question: Option<Question>,
    /// How much it is given at once.
    pub limit: Limit,
    /// When it is left alone because it fails.
    pub breaker: Breaker,
    /// What it states about retries.
    pub retry: Option<RetryOverride>,
}

/// A header or a parameter that says who we are. Debug shows no value.
#[derive(Clone, Debug)]
pub struct Credential {
    /// The header's or the parameter's.
    pub name: String,
    /// As it is sent.
    pub value: SecretString,
}

/// How much a destination is given at once.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Limit {
    /// Requests a second, over all nodes; above 0.
    pub per_second: Option<f64>,
    /// Requests under way, over all nodes; at least 1.
    pub in_flight: Option<usize>,
    /// Retries that a node may always make in a minute.
    pub retries_per_minute: u32,
    /// And this share of the first attempts that it made in that minute, if that is more.
    pub retry_share: f64,
}

impl Default for Limit {
    fn default() -> Self {
        Self { per_second: None, in_flight: None, retries_per_minute: 10, retry_share: 0.1 }
    }
}

/// When a destination is left alone because it fails: all nodes share what they see of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Breaker {
    /// Failures in a row that open the circuit; at least 1.
    pub failures: u32,
    /// How long it stays open at first; each time that the next try fails it is twice as long, up
    /// to ten minutes.
    pub wait: Duration,
}

impl Default for Breaker {
    fn default() -> Self {
        Self { failures: 10, wait: Duration::from_secs(30) }
    }
}

/// What a destination is asked.
#[derive(Clone, Debug)]
pub struct Question {
    /// Path and query behind the `base_url`.
    pub path: Template,
    /// Where our data would stand in its answer, and what it would be: JSON pointers and texts.
    pub compare: Vec<(String, Template)>,
}

impl std::fmt::Debug for Destination {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Destination")
            .field("name", &self.name)
            .field("base_url", &self.base_url.as_ref().map(Url::as_str))
            .field("preset", &self.preset.as_ref().map(|preset| preset.name))
            .field("contract", &self.contract)
            .field("timeout", &self.timeout)
            .field("connect_timeout", &self.connect_timeout)
            .field("headers", &self.headers)
            .field("query", &self.query)
            .field("question", &self.question)
            .field("limit", &self.limit)
            .field("breaker", &self.breaker)
            .field("retry", &self.retry)
            .finish_non_exhaustive()
    }
}

/// What the rest of the file says about every destination.
#[derive(Clone, Copy)]
pub(super) struct Surroundings {
    pub(super) allow_private: bool,
    pub(super) lease: Duration,
}

pub(super) fn read_all(table: Option<Table<'_>>, around: Surroundings) -> BTreeMap<String, Destination> {
    let Some(table) = table else { return BTreeMap::new() };
    let read = |(name, item): (String, Item<'_>)| {
        if !is_name(&name) {
            item.mistake(NAME_RULE);
        }
        let destination = read(&name, &item.table()?, around);
        Some((name, destination))
    };
    table.entries().into_iter().filter_map(read).collect()
}

fn read(name: &str, table: &Table<'_>, around: Surroundings) -> Destination {
    let base = table.get("base_url").and_then(|item| credentials::base(&item));
    if base.as_ref().is_some_and(|base| base.shown.scheme() == "http") && !around.allow_private {
        table.mistake(
            "base_url",
            "must be https; plain http needs allow_private_destinations = true under [server]",
        );
    }
    let mut preset = table
        .text("preset")
        .and_then(|name| Preset::find(&name).map_err(|problem| table.mistake("preset", problem)).ok());
    let (timeout, connect_timeout) = read_timeouts(table, around.lease);
    let headers = table.get("headers").map(|item| credentials::headers(&item)).unwrap_or_default();
    let query = table.get("query").map(|item| credentials::query(&item)).unwrap_or_default();
    let lookup = table.table("lookup").map(|table| read_lookup(&table));
    if lookup.is_some() && !table.has("base_url") {
        table.mistake("lookup", "needs a base_url to ask at");
    }
    let key_table = table.table("key");
    let converges = table.flag("naturally_idempotent");
    if let Some(preset) = &mut preset
        && (converges == Some(true) || key_table.as_ref().is_some_and(|key| key.has("window")))
    {
        preset.overruled();
    }
    let built_in = preset.as_ref().and_then(|preset| preset.key.as_ref());
    let mut contract = Contract {
        key: match &key_table {
            Some(key_table) => key::read(key_table, built_in),
            None => built_in.cloned(),
        },
        naturally_idempotent: converges
            .unwrap_or_else(|| preset.as_ref().is_some_and(|preset| preset.naturally_idempotent)),
        lookup: lookup.as_ref().map(|(lookup, _)| lookup.clone()),
        rules: read_rules(&table.tables("rules")),
        timeout,
    };
    if let Some(preset) = &preset {
        contract.rules.extend(preset.rules.iter().cloned());
    }
    check_key(table, &contract, &headers.sent, &query.sent);
    let limit = table.table("limit").map(|table| read_limit(&table)).unwrap_or_default();
    let breaker = table.table("breaker").map(|table| read_breaker(&table)).unwrap_or_default();
    let own_retry = table.has("retry").then(|| read_retry(table.table("retry")));
    let retry = match (own_retry, preset.as_ref().and_then(|preset| preset.retry.clone())) {
        (Some(own), Some(built_in)) => Some(own.or(&built_in)),
        (own, built_in) => own.or(built_in),
    };
    table.finish();
    let (base_url, secret_base, in_base) = match base {
        Some(base) => (Some(base.shown), base.whole, base.secrets),
        None => (None, None, Vec::new()),
    };
    Destination {
        name: name.to_owned(),
        base_url,
        secret_base,
        preset,
        contract,
        timeout,
        connect_timeout,
        headers: headers.sent,
        query: query.sent,
        echoes: [in_base, headers.secrets, query.secrets].concat(),
        question: lookup.and_then(|(_, question)| question),
        limit,
        breaker,
        retry,
    }
}

fn read_timeouts(table: &Table<'_>, lease: Duration) -> (Duration, Duration) {
    let timeout = table.duration("timeout").unwrap_or(Duration::from_secs(10));
    let connect = table.duration("connect_timeout");
    // A destination that only shortens its timeout need not state the other.
    let connect = connect.unwrap_or_else(|| Duration::from_secs(3).min(timeout / 2));
    let (total, inner, held) = (duration_text(timeout), duration_text(connect), duration_text(lease));
    if timeout >= lease {
        table.mistake(
            "timeout",
            format!(
                "{total} is not less than the lease of {held}; write less, or a longer lease under [engine]"
            ),
        );
    }
    if timeout.is_zero() {
        table.mistake("timeout", "must be longer than 0s");
    } else if connect >= timeout {
        table.mistake(
            "connect_timeout",
            format!("{inner} is not less than the timeout of {total}; write less"),
        );
    } else if connect.is_zero() {
        table.mistake("connect_timeout", "must be longer than 0s");
    }
    (timeout, connect)
}

/// Refuses what is no header's name, and the headers that only the client may write.
pub(super) fn header_name(name: &str) -> Result<(), String> {
    if HeaderName::from_bytes(name.as_bytes()).is_err() {
        return Err("this is no header's name".to_owned());
    }
    let own = ["connection", "content-length", "host", "te", "trailer", "transfer-encoding", "upgrade"];
    if own.iter().any(|known| name.eq_ignore_ascii_case(known)) {
        return Err("this header is written by the client itself; remove it".to_owned());
    }
    Ok(())
}

fn check_key(table: &Table<'_>, contract: &Contract, headers: &[Credential], query: &[Credential]) {
    let Some(key) = &contract.key else { return };
    if let Some(own) = key.carrier.header_name()
        && headers.iter().any(|header| header.name.eq_ignore_ascii_case(own))
    {
        table.mistake("headers", format!("{own} takes the key of each step; remove it here"));
    }
    if let KeyCarrier::Query { name: own } = &key.carrier
        && query.iter().any(|parameter| parameter.name == *own)
    {
        table.mistake("query", format!("{own} takes the key of each step; remove it here"));
    }
    if !key.window.is_zero() && key.window <= contract.margin() {
        table.notes.mistake(
            &format!("{}.window", table.at("key")),
            format!(
                "{} is not longer than the {} that are kept back for one exchange and for clocks, so that it would \
                 never be used; write what the destination promises, or \"0s\" when that is too short",
                duration_text(key.window),
                duration_text(contract.margin()),
            ),
        );
    }
}

/// What the contract needs of a lookup, and how to ask, where that could be read.
fn read_lookup(table: &Table<'_>) -> (Lookup, Option<Question>) {
    let path = table.required("path", "a path such as \"/tickets?external_ref={{ key }}\"");
    let template = path.as_deref().zip(table.get("path")).and_then(|(text, item)| {
        check_path(text, &item);
        credentials::none_in_path(&item);
        let template = Scope::LOOKUP.parse(Place::Path, text, &item)?;
        if template.facts().is_empty() {
            item.mistake("asks the same of every operation; name the key, such as {{ key }}");
        }
        Some(template)
    });
    let found = pointer(table, "found");
    if !table.has("found") {
        table.mistake("found", "is missing; write a JSON pointer to what was found, such as \"/tickets/0\"");
    }
    let compare = table.table("compare").map(|table| read_compare(&table)).unwrap_or_default();
    let lookup = Lookup {
        path: path.unwrap_or_default(),
        found: found.unwrap_or_default(),
        reference: pointer(table, "reference"),
        max_lag: table.duration("max_lag").unwrap_or(Duration::ZERO),
    };
    table.finish();
    (lookup, template.map(|path| Question { path, compare }))
}

fn read_compare(table: &Table<'_>) -> Vec<(String, Template)> {
    let read = |(pointer, item): (String, Item<'_>)| {
        if jsonptr::Pointer::parse(&pointer).is_err() {
            item.mistake("the name must be a JSON pointer such as \"/tickets/0/amount\"");
        }
        Some((pointer, Scope::LOOKUP.template(Place::Body, &item)?))
    };
    table.entries().into_iter().filter_map(read).collect()
}

/// What must hold for a path's text before any value is known.
pub(super) fn check_path(text: &str, item: &Item<'_>) {
    let path = text.split('?').next().unwrap_or_default();
    if !text.starts_with('/') {
        item.mistake("must begin with \"/\"");
    } else if path.split('/').any(super::request::is_dots) {
        item.mistake("must have no part that is \".\" or \"..\"");
    } else if text.contains(['\\', '#']) && !text.contains("{#") || text.chars().any(char::is_control) {
        item.mistake("must hold no \"\\\", no \"#\" and no control character");
    }
}

fn read_limit(table: &Table<'_>) -> Limit {
    let positive = |key: &'static str| {
        table.number(key).filter(|rate| {
            let fits = rate.is_finite() && *rate > 0.0;
            if !fits {
                table.mistake(key, "must be a number above 0");
            }
            fits
        })
    };
    let usual = Limit::default();
    let limit = Limit {
        per_second: positive("per_second"),
        in_flight: table.whole("in_flight", 1),
        retries_per_minute: table.whole("retries_per_minute", 1).unwrap_or(usual.retries_per_minute),
        retry_share: positive("retry_share").unwrap_or(usual.retry_share),
    };
    table.finish();
    limit
}

fn read_breaker(table: &Table<'_>) -> Breaker {
    let usual = Breaker::default();
    let wait = table.duration("wait").unwrap_or(usual.wait);
    if wait.is_zero() {
        table.mistake("wait", "must be longer than 0s");
    }
    let breaker = Breaker { failures: table.whole("failures", 1).unwrap_or(usual.failures), wait };
    table.finish();
    breaker
}
