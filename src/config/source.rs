//! `[sources.NAME]`: who may send webhooks, how that is proved, and what their events become.
//!
//! Every source has a secret: none is open, and there is no switch for that. CloudEvents bring no
//! signature of their own, so what proves a message (`scheme`) and how it is shaped (`format`) are
//! two keys, and a CloudEvent is proved like any other: by a signature over its body, or by the
//! bearer token that the web hook rules of CloudEvents ask for.

use std::collections::BTreeMap;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;
use toml::de::DeValue;

use super::body::constant;
use super::destination::header_name;
use super::operation::OperationType;
use super::reader::{Item, Table};
use super::rules::{pointer, word};
use super::words::{NAME_RULE, is_name, suggest};
use crate::domain::webhook::{EventId, Format, Proof, Scheme, Secret, Unmatched};

/// A message may be this old, or this much ahead, where the source says nothing.
const TOLERANCE: Duration = Duration::from_mins(5);

/// A configured sender of webhooks.
#[derive(Clone, Debug)]
pub struct Source {
    /// As the file and its address `/hooks/NAME` call it: 1 to 64 letters, digits, `-` or `_`.
    pub name: String,
    /// What proves its messages.
    pub proof: Proof,
    /// Where its events' ids are.
    pub id: EventId,
    /// What its events become; the first that matches counts. Never empty.
    pub events: Vec<Mapping>,
    /// What is done with the others.
    pub unmatched: Unmatched,
}

/// Which events become which operations.
#[derive(Clone, Debug)]
pub struct Mapping {
    /// Absent: every event.
    pub only: Option<EventCondition>,
    /// A configured type's name.
    pub operation: String,
    /// JSON pointer to what becomes the payload; empty for the whole event.
    pub payload: String,
    /// JSON pointer to the correlation id.
    pub correlation_id: Option<String>,
}

/// What an event must have.
#[derive(Clone, Debug)]
pub struct EventCondition {
    /// Where it stands.
    pub place: EventPlace,
    /// Any of these. Never empty.
    pub equals: Vec<Value>,
}

/// A part of a delivery.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventPlace {
    /// A JSON pointer into the event.
    Pointer(String),
    /// A header, in lower case.
    Header(String),
}

pub(super) fn read_all(
    table: Option<Table<'_>>,
    operations: &BTreeMap<String, OperationType>,
) -> BTreeMap<String, Source> {
    let Some(table) = table else { return BTreeMap::new() };
    let read = |(name, item): (String, Item<'_>)| {
        if !is_name(&name) {
            item.mistake(NAME_RULE);
        }
        let source = read(&name, &item.table()?, operations)?;
        Some((name, source))
    };
    table.entries().into_iter().filter_map(read).collect()
}

fn read(name: &str, table: &Table<'_>, operations: &BTreeMap<String, OperationType>) -> Option<Source> {
    let schemes = Scheme::ALL.iter().map(|scheme| scheme.as_str()).collect::<Vec<_>>().join(", ");
    let scheme: Option<Scheme> =
        table.required("scheme", &format!("one of {schemes}")).and_then(|text| word(table, "scheme", &text));
    let format = table.text("format").map_or(Some(Format::Json), |text| word(table, "format", &text));
    let unmatched =
        table.text("unmatched").map_or(Some(Unmatched::Ignore), |text| word(table, "unmatched", &text));
    let secrets = read_secrets(table, scheme);
    let header = table.get("signature_header").and_then(|item| read_signature_header(&item, scheme));
    let tolerance = read_tolerance(table, scheme);
    let id = read_id(table, scheme, format);
    let events = read_events(table, operations);
    table.finish();
    let scheme = scheme?;
    Some(Source {
        name: name.to_owned(),
        proof: Proof {
            scheme,
            header: header.unwrap_or_else(|| scheme.header().to_owned()),
            secrets: secrets?,
            tolerance: tolerance.unwrap_or(TOLERANCE),
        },
        id: id?,
        events,
        unmatched: unmatched?,
    })
}

/// The secrets; each must be one in its scheme's own form. No message may show any part of one.
fn read_secrets(table: &Table<'_>, scheme: Option<Scheme>) -> Option<Vec<Secret>> {
    let items = table.list("secrets");
    if items.is_empty() && table.get("secrets").is_none_or(|item| item.value.get_ref().is_array()) {
        table.mistake(
            "secrets",
            "is missing; write secrets = [\"${NAME}\"]: without one anybody could send anything",
        );
    }
    let scheme = scheme?;
    let read = |item: &Item<'_>| {
        // Its form can be told once it is known.
        let filled = item.secret().filter(|filled| !filled.late)?;
        Secret::read(scheme, filled.text.expose_secret()).map_err(|problem| item.mistake(problem)).ok()
    };
    // Every one is read before any is missed: all that is wrong is said at once.
    let read: Vec<Option<Secret>> = items.iter().map(read).collect();
    read.into_iter().collect()
}

fn read_signature_header(item: &Item<'_>, scheme: Option<Scheme>) -> Option<String> {
    let name = item.text()?;
    match scheme? {
        Scheme::Stripe | Scheme::Github => {}
        other => {
            item.mistake(format!("{other} has a header of its own; remove it"));
            return None;
        }
    }
    if let Err(problem) = header_name(&name) {
        item.mistake(problem);
        return None;
    }
    Some(name.to_ascii_lowercase())
}

fn read_tolerance(table: &Table<'_>, scheme: Option<Scheme>) -> Option<Duration> {
    let tolerance = table.duration("tolerance")?;
    if tolerance.is_zero() {
        table.mistake("tolerance", "must be longer than 0s: no message arrives at the moment of its signing");
    }
    if let Some(scheme) = scheme.filter(|scheme| !scheme.is_dated()) {
        table.mistake("tolerance", format!("{scheme} does not date its messages; remove it"));
    }
    Some(tolerance)
}

fn read_id(table: &Table<'_>, scheme: Option<Scheme>, format: Option<Format>) -> Option<EventId> {
    let pointer = pointer(table, "id");
    let (scheme, format) = (scheme?, format?);
    match (format, scheme) {
        (Format::CloudEvents, _) => {
            if table.has("id") {
                table.mistake("id", "a CloudEvent is named by its source and id; remove it");
            }
            Some(EventId::CloudEvent)
        }
        (Format::Json, _) if table.has("id") => pointer.map(EventId::Pointer),
        (Format::Json, Scheme::StandardWebhooks) => Some(EventId::Header("webhook-id")),
        (Format::Json, Scheme::Stripe) => Some(EventId::Pointer("/id".to_owned())),
        (Format::Json, Scheme::Github) => Some(EventId::Header("x-github-delivery")),
        (Format::Json, Scheme::Bearer) => {
            table.mistake("id", "is missing; write a JSON pointer to each event's own id, such as \"/id\"");
            None
        }
    }
}

fn read_events(table: &Table<'_>, operations: &BTreeMap<String, OperationType>) -> Vec<Mapping> {
    let tables = table.tables("events");
    if tables.is_empty() {
        table.mistake("events", format!("is missing; write at least one [[{}]]", table.at("events")));
    }
    let mut events: Vec<Mapping> = Vec::new();
    let mut covered = false;
    for table in &tables {
        events.extend(read_mapping(table, operations));
        if covered {
            table.mistake("operation", "is never reached: the one before it takes every event");
        }
        covered |= !table.has("type");
    }
    events
}

fn read_mapping(table: &Table<'_>, operations: &BTreeMap<String, OperationType>) -> Option<Mapping> {
    let only = table.table("type").map(|table| read_condition(&table));
    let operation = table.required("operation", "the name of an operation type").filter(|name| {
        let there = operations.contains_key(name);
        if !there {
            let names: Vec<&str> = operations.keys().map(String::as_str).collect();
            let hint = suggest(name, &names);
            table.mistake("operation", format!("no operation type is called \"{name}\"; {hint}"));
        }
        there
    });
    let payload = pointer(table, "payload");
    let correlation_id = pointer(table, "correlation_id");
    table.finish();
    Some(Mapping {
        only: match only {
            Some(read) => Some(read?),
            None => None,
        },
        operation: operation?,
        payload: payload.unwrap_or_default(),
        correlation_id,
    })
}

fn read_condition(table: &Table<'_>) -> Option<EventCondition> {
    let pointer = pointer(table, "pointer");
    let header = table.text("header").and_then(|name| match header_name(&name) {
        Ok(()) => Some(name.to_ascii_lowercase()),
        Err(problem) => {
            table.mistake("header", problem);
            None
        }
    });
    match (table.has("pointer"), table.has("header")) {
        (true, true) => table.mistake("header", "stands beside pointer; write one of the two"),
        (false, false) => {
            table.mistake("pointer", "is missing; write a JSON pointer such as \"/type\", or a header");
        }
        _ => {}
    }
    let equals = table.get("equals").map(|item| read_values(&item));
    if equals.is_none() {
        table.mistake("equals", "is missing; write a value such as \"invoice.paid\", or several in an array");
    }
    table.finish();
    let place = pointer.map(EventPlace::Pointer).or(header.map(EventPlace::Header))?;
    Some(EventCondition { place, equals: equals?? })
}

fn read_values(item: &Item<'_>) -> Option<Vec<Value>> {
    if !matches!(item.value.get_ref(), DeValue::Array(_)) {
        return constant(item).map(|value| vec![value]);
    }
    let items = item.list();
    if items.is_empty() {
        item.mistake("names no value; write at least one");
    }
    items.iter().map(constant).collect()
}
