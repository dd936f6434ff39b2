//! A JSON pointer into a JSON document: read as it came and read as values it is the same place, a
//! destination's "I have it" is where the file says, and the key goes where it says and nowhere else.
//! The first line of the input is the pointer, the rest the document.
#![no_main]

use std::collections::BTreeMap;
use std::time::Duration;

use dead_letter_office_fuzz::config::{OperationFacts, RenderContext};
use dead_letter_office_fuzz::domain::classify::{Answer, Event};
use dead_letter_office_fuzz::domain::contract::Lookup;
use dead_letter_office_fuzz::domain::key::PayloadDigest;
use dead_letter_office_fuzz::domain::lookup::{self, Finding};
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::domain::webhook::raw_at;
use dead_letter_office_fuzz::{quoted, read};
use libfuzzer_sys::fuzz_target;
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

fuzz_target!(|text: &str| {
    let (pointer, document) = text.split_once('\n').unwrap_or((text, "{}"));
    found(pointer, document);
    let Ok(raw) = serde_json::from_str::<Box<RawValue>>(document) else { return };
    // A member that is there twice is refused where it matters, and a document too deep to read.
    let (Ok(digest), Ok(value)) = (PayloadDigest::of(&raw), serde_json::from_str::<Value>(document)) else {
        return;
    };
    same_place(pointer, &raw, &value);
    spelling(digest, &raw, &value);
    carries_the_key(pointer, document, &value);
});

fn same_place(pointer: &str, raw: &RawValue, value: &Value) {
    let by_text =
        raw_at(raw, pointer).map(|raw| serde_json::from_str::<Value>(raw.get()).expect("a part of JSON"));
    // Only where both readers take the pointer for one: "a" is none, and RFC 6901 has no "/01".
    if jsonptr::Pointer::parse(pointer).is_ok() {
        assert_eq!(by_text.as_ref(), value.pointer(pointer), "{pointer:?} in {value}");
    } else {
        assert_eq!(by_text, None, "{pointer:?} in {value}");
    }
}

/// White space says nothing.
fn spelling(digest: PayloadDigest, raw: &RawValue, value: &Value) {
    if value.is_object() || value.is_array() {
        let spaced = format!(" \n{}\t ", raw.get());
        let spaced: Box<RawValue> = serde_json::from_str(&spaced).expect("the same JSON");
        assert_eq!(PayloadDigest::of(&spaced).expect("a digest"), digest);
    }
}

fn found(pointer: &str, document: &str) {
    let lookup = Lookup {
        path: "/t".into(),
        found: pointer.to_owned(),
        reference: Some(format!("{pointer}/id")),
        max_lag: Duration::ZERO,
    };
    let expected = [(format!("{pointer}/amount"), "5".to_owned())];
    for (status, complete) in [(200, true), (200, false), (404, true), (500, true)] {
        let body = document.as_bytes().to_vec().into();
        let event = Event::Answered(Answer { status, body, complete, headers: Vec::new() });
        let value = event.json();
        let early = lookup::read(&lookup, &[], &event, false);
        let late = lookup::read(&lookup, &[], &event, true);
        assert_ne!(early.finding, Finding::Absent, "an absence before it counts");
        assert_eq!(early.finding == Finding::Found, late.finding == Finding::Found);
        assert_eq!(early.finding == Finding::TooEarly, late.finding == Finding::Absent);
        let holds = value.as_ref().and_then(|value| value.pointer(pointer));
        match late.finding {
            Finding::Found => {
                assert!(status == 200 && late.object.as_ref() == holds, "{late:?}");
                let compared = lookup::read(&lookup, &expected, &event, true);
                assert!(matches!(compared.finding, Finding::Found | Finding::OtherPayload), "{compared:?}");
            }
            // Only a whole answer, or one that speaks of the thing itself, proves that it is not there.
            Finding::Absent => {
                let said = status == 200 && complete && value.is_some();
                assert!(said || (status == 404 && pointer.is_empty()), "{status} {late:?}");
                let empty =
                    holds.is_none_or(|held| held.is_null() || held.as_array().is_some_and(Vec::is_empty));
                assert!(empty || status == 404, "{late:?}");
            }
            Finding::OtherPayload | Finding::TooEarly => panic!("{late:?}"),
            Finding::Failed => assert!(!late.detail.is_empty()),
        }
    }
}

/// The key goes to its place in the payload, and every other member stays as it was.
fn carries_the_key(pointer: &str, document: &str, payload: &Value) {
    // In the file this begins the name of a variable unless the dollar is doubled.
    let pointer_text = quoted(&pointer.replace("${", "$${"));
    let Ok(config) = read(&format!(
        "[destinations.crm]\nbase_url = \"https://crm.example\"\nkey = {{ body = {pointer_text}, window = \"24h\" }}\n\
         [operations.t]\n[[operations.t.steps]]\nname = \"s\"\ndestination = \"crm\"\nmethod = \"POST\"\npath = \"/t\"\n"
    )) else {
        return;
    };
    let steps = BTreeMap::new();
    let key = Uuid::from_u128(7).to_string();
    let operation = OperationFacts {
        id: Uuid::from_u128(8),
        key: "k".into(),
        kind: "t".into(),
        correlation_id: None,
        source: None,
    };
    let received_at = Timestamp::from_micros(1_796_000_000_000_000);
    let context = RenderContext { payload, key: key.clone(), operation, received_at, steps: &steps };
    let step = &config.operations["t"].steps[0];
    let Ok(request) = step.request(&config.destinations["crm"], document, &context) else { return };
    let body: Value = serde_json::from_str(&request.body.expect("a body")).expect("JSON");
    assert_eq!(body.pointer(pointer), Some(&Value::from(key)), "{pointer:?} in {document}");
    let Some((last, outer)) = jsonptr::Pointer::parse(pointer).ok().and_then(|pointer| {
        let (outer, last) = pointer.split_back()?;
        Some((last.decoded().into_owned(), outer.to_string()))
    }) else {
        return;
    };
    let (before, after) = (payload.pointer(&outer), body.pointer(&outer));
    let (Some(Value::Object(before)), Some(Value::Object(after))) = (before, after) else { return };
    for (name, value) in before.iter().filter(|(name, _)| **name != last) {
        assert_eq!(after.get(name), Some(value), "{name} changed");
    }
    assert!(after.len() <= before.len() + 1);
}
