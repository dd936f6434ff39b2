//! Built-in contracts: one data file each, in the language of `dlo.toml`.
//!
//! A window is built in only where the destination's public documentation states it; what nobody
//! has verified counts as no window. `QuickBooks` Online is not among them, because nothing at all
//! about its repeats was found.

use std::path::Path;

use regex::Regex;

use super::Config;
use super::destination::Destination;
use super::key;
use super::reader::{Item, Table};
use super::rules::{read_rules, regular_expression};
use super::scope::list;
use super::server::{RetryOverride, read_retry};
use super::template::Template;
use super::words::closest;
use crate::domain::contract::{Contract, KeyPromise, Rule};

/// What is publicly known of one kind of destination.
#[derive(Clone, Debug)]
pub struct Preset {
    /// As `dlo.toml` calls it.
    pub name: &'static str,
    /// As its makers call it.
    pub title: String,
    /// The requests that it describes, in words.
    pub endpoints: String,
    /// How it takes our key; absent when it takes none. A window of zero promises nothing.
    pub key: Option<KeyPromise>,
    /// What its keys may hold, in words, where that is known.
    pub alphabet: Option<String>,
    /// Why its key has no window, in words.
    pub unverified: Option<String>,
    /// Repeating the request converges.
    pub naturally_idempotent: bool,
    /// What its answers mean, before the general table.
    pub rules: Vec<Rule>,
    /// How it can be asked, in words, where that is known.
    pub lookup: Option<String>,
    /// A `lookup` to copy into `dlo.toml` and to fit.
    pub lookup_example: Option<String>,
    /// How it says that it is given too much, in words, where that is known.
    pub throttle: Option<String>,
    /// What is peculiar to it, a sentence each.
    pub quirks: Vec<String>,
    /// Where this was read.
    pub source: String,
    /// When: `YYYY-MM-DD`.
    pub date: String,
    /// Retries that fit a short window.
    pub(super) retry: Option<RetryOverride>,
    /// The only requests that the promise is about; absent when the file states a promise itself.
    requests: Option<Requests>,
}

#[derive(Clone, Debug)]
struct Requests {
    methods: Vec<String>,
    /// Found in the path, without the query and before any value is known.
    path: Option<Regex>,
}

macro_rules! files {
    ($($name:literal),+ $(,)?) => {
        &[$(($name, include_str!(concat!("presets/", $name, ".toml")))),+]
    };
}

/// Every built-in contract: its name and its file's text.
const FILES: &[(&str, &str)] = files![
    "adyen",
    "brevo",
    "checkout",
    "github",
    "gocardless",
    "hubspot",
    "ietf",
    "increase",
    "linear",
    "mailgun",
    "paypal-orders",
    "paypal-payments",
    "paypal-payouts",
    "paypal-subscriptions",
    "paypal-vault",
    "resend",
    "salesforce",
    "sendgrid",
    "shopify",
    "slack",
    "square",
    "standard-webhooks",
    "stripe",
    "stripe-v2",
    "telnyx",
    "twilio",
    "xero",
    "zendesk",
];

/// The names of the built-in contracts, in the order of the alphabet.
pub fn preset_names() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|(name, _)| *name)
}

impl Preset {
    /// The built-in contract of a name, or what to write instead.
    pub(super) fn find(name: &str) -> Result<Self, String> {
        let Some((name, text)) = FILES.iter().find(|(known, _)| *known == name) else {
            let names: Vec<&str> = preset_names().collect();
            let hint =
                closest(name, &names).map_or_else(String::new, |near| format!("did you mean \"{near}\"? "));
            return Err(format!("unknown preset; {hint}this version has {}", list(&names)));
        };
        Config::document(Path::new(name), text, &|_| None, None, |_, table| read(name, table))
            .map_err(|error| format!("the built-in preset cannot be read: {error}"))
    }

    /// Takes back that the promise is about some requests only: the file has given its own.
    pub(super) fn overruled(&mut self) {
        self.requests = None;
    }

    /// Whether the destination's contract is the file's own word.
    pub fn is_overruled(&self, contract: &Contract) -> bool {
        self.naturally_idempotent != contract.naturally_idempotent || self.key != contract.key
    }
}

fn read(name: &'static str, table: &Table<'_>) -> Option<Preset> {
    let title = table.required("title", "its makers' name");
    let endpoints = table.required("endpoints", "the requests that it describes");
    let source = table.required("source", "where this was read");
    let date = table.required("date", "when this was read");
    let preset = Preset {
        name,
        title: title?,
        endpoints: endpoints?,
        key: table.table("key").and_then(|key| key::read(&key, None)),
        alphabet: table.text("alphabet"),
        unverified: table.text("unverified"),
        naturally_idempotent: table.flag("naturally_idempotent").unwrap_or(false),
        rules: read_rules(&table.tables("rules")),
        lookup: table.text("lookup"),
        lookup_example: table.text("lookup_example"),
        throttle: table.text("throttle"),
        quirks: table.list("quirks").iter().filter_map(Item::text).collect(),
        source: source?,
        date: date?,
        retry: table.has("retry").then(|| read_retry(table.table("retry"))),
        requests: table.table("requests").map(|table| read_requests(&table)),
    };
    table.finish();
    Some(preset)
}

fn read_requests(table: &Table<'_>) -> Requests {
    let methods = table.list("methods").iter().filter_map(Item::text).collect();
    let path = regular_expression(table, "path");
    table.finish();
    Requests { methods, path }
}

/// Refuses a step that a preset's promise is not about: it would be repeated without any.
pub(super) fn check_step(table: &Table<'_>, destination: &Destination, method: &str, path: &Template) {
    let Some(preset) = &destination.preset else { return };
    let Some(requests) = &preset.requests else { return };
    let contract = &destination.contract;
    let promises = contract.naturally_idempotent
        || contract.key.as_ref().is_some_and(|key| key.window > contract.margin());
    if !promises || matches!(method, "GET" | "HEAD") {
        return;
    }
    let before = destination.base_url.as_ref().map_or("", |base| base.path().trim_end_matches('/'));
    let whole = format!("{before}{}", path.source().split('?').next().unwrap_or_default());
    let (key, fits) = match &requests.path {
        _ if !requests.methods.is_empty() && !requests.methods.iter().any(|known| known == method) => {
            ("method", false)
        }
        Some(pattern) => ("path", pattern.is_match(&whole)),
        None => ("method", true),
    };
    if !fits {
        let own = if contract.naturally_idempotent { "naturally_idempotent" } else { "key.window" };
        table.mistake(
            key,
            format!(
                "the preset \"{}\" promises nothing for this request: it is about {}; use a destination of its own, or \
                 write under \"{}\" which {own} the documentation states",
                preset.name, preset.endpoints, destination.name,
            ),
        );
    }
}
