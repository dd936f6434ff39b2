//! `key = { … }`: what carries the key of each step, and how it is put there.

use std::fmt;

use jsonptr::Pointer;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;
use url::Url;

use super::body::BodyTemplate;
use super::credentials;
use super::destination::header_name;
use super::reader::Table;
use super::rules::pointer;
use super::template::Template;
use crate::domain::contract::{KeyCarrier, KeyPromise};

/// A key is a UUID as text.
const LENGTH: usize = 36;

/// Reads the table over what a preset promises; the mistakes are noted.
pub(super) fn read(table: &Table<'_>, preset: Option<&KeyPromise>) -> Option<KeyPromise> {
    let carrier = read_carrier(table, preset.map(|preset| &preset.carrier));
    if table.whole::<usize>("max_length", 1).is_some_and(|longest| longest < LENGTH) {
        table.mistake(
            "max_length",
            format!("a key has {LENGTH} characters and would be refused there; remove the whole key"),
        );
    }
    let window = table.duration("window");
    table.finish();
    let carrier = carrier?;
    // What a preset knows of one carrier says nothing of another.
    let known = preset.filter(|preset| preset.carrier == carrier).map(|preset| preset.window);
    Some(KeyPromise { carrier, window: window.or(known).unwrap_or_default() })
}

fn read_carrier(table: &Table<'_>, preset: Option<&KeyCarrier>) -> Option<KeyCarrier> {
    let given: Vec<&str> = ["header", "body", "query"].into_iter().filter(|name| table.has(name)).collect();
    let quoted = table.flag("quoted");
    let carrier = match (given[..].first(), given.get(1)) {
        (Some(first), Some(second)) => {
            table.mistake(
                second,
                format!("stands beside {first}; one place takes the key: write one of the two"),
            );
            None
        }
        (Some(&"header"), None) => {
            let name = table.text("header")?;
            header_name(&name).map_err(|problem| table.mistake("header", problem)).ok()?;
            Some(KeyCarrier::header(name))
        }
        (Some(&"body"), None) => {
            let pointer = pointer(table, "body")?;
            if pointer.is_empty() {
                table.mistake(
                    "body",
                    "is the whole body; write where in it the key goes, such as \"/idempotency_key\"",
                );
            }
            Some(KeyCarrier::Body { pointer })
        }
        (Some(_), None) => {
            let name = table.text("query")?;
            if !credentials::is_parameter(&name) {
                table.mistake("query", credentials::PARAMETER_RULE);
            }
            Some(KeyCarrier::Query { name })
        }
        (None, _) => {
            if preset.is_none() {
                table.mistake(
                    "header",
                    "is missing; write the name of the header that takes the key, such as \"Idempotency-Key\", or \
                     body or query instead",
                );
            }
            preset.cloned()
        }
    };
    match (carrier, quoted) {
        (Some(KeyCarrier::Header { name, .. }), Some(quoted)) => Some(KeyCarrier::Header { name, quoted }),
        (Some(other), Some(_)) => {
            table.mistake("quoted", "is for a header only; remove it");
            Some(other)
        }
        (carrier, _) => carrier,
    }
}

/// Refuses a step that writes something of its own where the key goes, or has no such place. A
/// step's headers are looked at where they are read.
pub(super) fn check_step(
    table: &Table<'_>,
    carrier: &KeyCarrier,
    method: &str,
    path: &Template,
    body: Option<&BodyTemplate>,
) {
    match (carrier, body) {
        (KeyCarrier::Query { name }, _) => {
            let query = path.source().split_once('?').map_or("", |(_, query)| query);
            if query.split('&').any(|part| part.split('=').next() == Some(name)) {
                table.mistake("path", format!("the parameter {name} takes the step's key; remove it"));
            }
        }
        (KeyCarrier::Body { pointer }, Some(body)) if body.occupies(pointer) => {
            table.mistake("body", format!("{pointer} takes the step's key; remove what stands there"));
        }
        (KeyCarrier::Body { .. }, None) if method == "DELETE" => {
            table.mistake(
                "method",
                "the destination takes the key in the body, and this has none; write body = {}",
            );
        }
        _ => {}
    }
}

/// Puts the key into an address. Refuses an address that has another value there.
pub(super) fn into_query(url: &mut Url, name: &str, key: &str) -> Result<(), String> {
    let mut there = url.query_pairs().filter(|(known, _)| known == name).peekable();
    if there.peek().is_none() {
        drop(there);
        url.query_pairs_mut().append_pair(name, key);
        return Ok(());
    }
    if there.all(|(_, value)| value == key) {
        return Ok(());
    }
    Err(format!("its parameter {name} takes the step's key and holds another value"))
}

/// Puts the key into a JSON text and leaves every other value to the byte. Refuses a text that has
/// no such place, or another value there.
pub(super) fn into_body(text: &str, pointer: &str, key: &str) -> Result<String, String> {
    let path = Pointer::parse(pointer).map_err(|error| error.to_string())?;
    let path: Vec<String> = path.tokens().map(|token| token.decoded().into_owned()).collect();
    put(text, &path, key).map_err(|problem| match problem {
        Unfit::Taken => format!("{pointer} takes the step's key and holds another value"),
        Unfit::NoObject => format!("the step's key goes to {pointer}, and what should hold it is no object"),
    })
}

enum Unfit {
    Taken,
    NoObject,
}

fn put(text: &str, path: &[String], key: &str) -> Result<String, Unfit> {
    let Some((name, rest)) = path.split_first() else {
        let same = serde_json::from_str::<Value>(text).is_ok_and(|found| found == key);
        return if same { Ok(text.to_owned()) } else { Err(Unfit::Taken) };
    };
    let Members(members) = serde_json::from_str(text).map_err(|_| Unfit::NoObject)?;
    let mut parts = Vec::with_capacity(members.len() + 1);
    for (member, value) in &members {
        let value = if member == name { put(value.get(), rest, key)? } else { value.get().to_owned() };
        parts.push(format!("{}:{value}", Value::from(member.as_str())));
    }
    if !members.iter().any(|(member, _)| member == name) {
        let value = rest.iter().rev().fold(Value::from(key), |inner, name| {
            Value::Object(std::iter::once((name.clone(), inner)).collect())
        });
        parts.push(format!("{}:{value}", Value::from(name.as_str())));
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

/// An object's members in their order, each value as it was written.
struct Members(Vec<(String, Box<RawValue>)>);

impl<'de> Deserialize<'de> for Members {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Object;
        impl<'de> Visitor<'de> for Object {
            type Value = Members;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(Members(members))
            }
        }
        deserializer.deserialize_map(Object)
    }
}
