//! A proven message as an event: its id, and the JSON that a mapping's pointers lead into.

use std::collections::BTreeMap;

use jsonptr::Pointer;
use percent_encoding::percent_decode_str;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{Headers, Scheme};
use crate::domain::classify::text_of;
use crate::domain::key::{MAX_KEY, OperationKey, PayloadDigest, hex};

/// Where an event's id is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum EventId {
    /// In a header.
    Header(&'static str),
    /// In the body, at a JSON pointer.
    Pointer(String),
    /// The event is a CloudEvent, which is named by `source` and `id` together.
    CloudEvent,
}

/// An event.
#[derive(Clone, Debug)]
pub struct Event {
    /// Names it among all of its source.
    pub id: String,
    /// The body; for a CloudEvent the structured form, whichever way it came. Its numbers have the
    /// digits that the sender wrote.
    pub document: Box<RawValue>,
    /// The same, read.
    pub value: serde_json::Value,
}

/// Why a message is no event, in words for whoever sends it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct BadEvent(pub String);

fn bad<T>(text: impl Into<String>) -> Result<T, BadEvent> {
    Err(BadEvent(text.into()))
}

impl Event {
    /// Reads a message that was proven by `scheme`.
    pub fn read(scheme: Scheme, id: &EventId, headers: &Headers, body: &[u8]) -> Result<Self, BadEvent> {
        let document = match id {
            EventId::CloudEvent => cloud_event(scheme, headers, body)?,
            EventId::Header(_) | EventId::Pointer(_) => json(body)?,
        };
        // Two readers of a member that is there twice may read two things; the digest takes none.
        PayloadDigest::of(&document).map_err(|error| BadEvent(format!("the event: {error}")))?;
        let value: serde_json::Value =
            serde_json::from_str(document.get()).map_err(|error| BadEvent(format!("the event: {error}")))?;
        if !value.is_object() {
            return bad("an event is a JSON object");
        }
        let text_at = |pointer: &str| value.pointer(pointer).and_then(text_of).unwrap_or_default();
        let id = match id {
            EventId::Header(name) => match headers.one(name) {
                Some(id) => id.to_owned(),
                None => return bad(format!("the header {name} is missing, or there more than once")),
            },
            EventId::Pointer(pointer) => text_at(pointer),
            // Attributes were checked: no source holds a space, so that the first one parts the two.
            EventId::CloudEvent => format!("{} {}", text_at("/source"), text_at("/id")),
        };
        if id.trim().is_empty() {
            return bad("the event has no id");
        }
        Ok(Self { id, document, value })
    }
}

fn json(body: &[u8]) -> Result<Box<RawValue>, BadEvent> {
    serde_json::from_slice(body).map_err(|error| BadEvent(format!("the body is not JSON: {error}")))
}

/// The structured form of a CloudEvent, with its attributes checked.
fn cloud_event(scheme: Scheme, headers: &Headers, body: &[u8]) -> Result<Box<RawValue>, BadEvent> {
    let kind = headers.one("content-type").unwrap_or_default();
    let kind = kind.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    let document = match kind.as_str() {
        "application/cloudevents+json" => json(body)?,
        "application/cloudevents-batch+json" => {
            return bad("batches of events are not taken; send each by itself");
        }
        other if other.starts_with("application/cloudevents") => {
            return bad("events are taken in JSON: send application/cloudevents+json");
        }
        _ if headers.one("ce-specversion").is_none() => {
            return bad(
                "this is no CloudEvent: neither its content type nor a header ce-specversion says so",
            );
        }
        // The signing schemes sign the body, and here the id, the source and the type stand outside
        // it: whoever once saw a signed body could send it again as any event they like.
        _ if scheme != Scheme::Bearer => {
            return bad(
                "a signature does not cover the headers of the binary mode; send the structured mode",
            );
        }
        other => structured(other, headers, body)?,
    };
    let attributes: BTreeMap<String, &RawValue> =
        serde_json::from_str(document.get()).map_err(|_| BadEvent("a CloudEvent is a JSON object".into()))?;
    let text = |name: &str| -> Option<String> { serde_json::from_str(attributes.get(name)?.get()).ok() };
    if text("specversion").as_deref() != Some("1.0") {
        return bad("a CloudEvent's specversion must be \"1.0\"");
    }
    for name in ["id", "source", "type"] {
        match text(name) {
            Some(value) if name == "source" && value.contains(char::is_whitespace) => {
                return bad("a CloudEvent's source holds no white space: it is a URI reference");
            }
            Some(value) if !value.is_empty() => {}
            _ => return bad(format!("a CloudEvent needs {name}, a text that is not empty")),
        }
    }
    Ok(document)
}

/// The binary mode's headers and body, put together.
fn structured(kind: &str, headers: &Headers, body: &[u8]) -> Result<Box<RawValue>, BadEvent> {
    let raw = |text: &str| serde_json::value::to_raw_value(text).map_err(|error| BadEvent(error.to_string()));
    let mut members: BTreeMap<String, Box<RawValue>> = BTreeMap::new();
    for (name, attribute) in headers.beginning("ce-") {
        let Some(value) = headers.one(name) else {
            return bad(format!("the header {name} is there more than once, or not ASCII"));
        };
        let plain = attribute.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit());
        let Ok(text) = percent_decode_str(value).decode_utf8() else {
            return bad(format!("the header {name} is not UTF-8 in percent-encoding"));
        };
        if !plain || ["", "data", "datacontenttype"].contains(&attribute) {
            return bad(format!("the header {name} names no attribute of a CloudEvent"));
        }
        members.insert(attribute.to_owned(), raw(&text)?);
    }
    if !body.is_empty() {
        if kind != "application/json" && !kind.ends_with("+json") {
            return bad("an event's data is taken in JSON: send application/json");
        }
        members.insert("datacontenttype".to_owned(), raw(kind)?);
        members.insert("data".to_owned(), json(body)?);
    }
    serde_json::value::to_raw_value(&members).map_err(|error| BadEvent(error.to_string()))
}

/// The value at a JSON pointer as its sender wrote it.
pub fn raw_at<'d>(document: &'d RawValue, pointer: &str) -> Option<&'d RawValue> {
    let mut found = document;
    for token in Pointer::parse(pointer).ok()?.tokens() {
        let name = token.decoded();
        found = match found.get().as_bytes().first()? {
            b'{' => serde_json::from_str::<BTreeMap<String, &RawValue>>(found.get())
                .ok()?
                .remove(name.as_ref())?,
            b'[' => {
                let index = token.to_index().ok()?.for_len(usize::MAX).ok()?;
                serde_json::from_str::<Vec<&RawValue>>(found.get()).ok()?.into_iter().nth(index)?
            }
            _ => return None,
        };
    }
    Some(found)
}

/// The operation key of an event where its operation type derives none: `hook:SOURCE:ID`. An id that
/// is no part of a key, for its length or its letters, stands there as its SHA-256.
pub fn operation_key(source: &str, id: &str) -> String {
    let plain = format!("hook:{source}:{id}");
    if plain.chars().count() <= MAX_KEY
        && !id.starts_with(HASHED)
        && OperationKey::new(plain.as_str()).is_ok()
    {
        return plain;
    }
    format!("hook:{source}:{HASHED}{}", hex(&Sha256::digest(id)))
}

/// Before an id's digest. An id that begins so is hashed too, or it could pass for another.
const HASHED: &str = "sha256:";
