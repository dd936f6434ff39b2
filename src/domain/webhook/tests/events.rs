use proptest::prelude::*;
use serde_json::value::RawValue;

use crate::domain::key::{MAX_KEY, OperationKey};
use crate::domain::webhook::{Event, EventId, Headers, Scheme, operation_key, raw_at};

proptest! {
    #[test]
    fn any_id_makes_a_key(source in "[a-z]{1,64}", id in "\\PC{0,20}|[\\x00-\\x20a]{1,20}|x{200,400}") {
        let key = operation_key(&source, &id);
        prop_assert!(OperationKey::new(key.as_str()).is_ok(), "{key}");
        let start = format!("hook:{source}:");
        prop_assert!(key.starts_with(&start));
    }
}

#[test]
fn ids_that_fit_stand_in_the_key_and_others_cannot_pass_for_them() {
    assert_eq!(operation_key("shop", "evt_1"), "hook:shop:evt_1");
    let long = "x".repeat(MAX_KEY);
    let hashed = operation_key("shop", &long);
    assert!(hashed.starts_with("hook:shop:sha256:") && hashed.len() == 17 + 64, "{hashed}");
    let forged = hashed.trim_start_matches("hook:shop:");
    assert_ne!(operation_key("shop", forged), hashed);
    assert_ne!(operation_key("shop", "a\nb"), operation_key("shop", "ab"));
}

fn read(scheme: Scheme, id: &EventId, headers: &[(&str, &str)], body: &str) -> Result<Event, String> {
    Event::read(scheme, id, &Headers::new(headers.iter().copied()), body.as_bytes()).map_err(|error| error.0)
}

#[test]
fn an_id_is_read_from_where_it_stands() {
    let github = EventId::Header("x-github-delivery");
    let event = read(Scheme::Github, &github, &[("X-GitHub-Delivery", "72d3162e")], r#"{"a": 1}"#).unwrap();
    assert_eq!((event.id.as_str(), event.document.get()), ("72d3162e", r#"{"a": 1}"#));
    let at = EventId::Pointer("/meta/id".into());
    let of = |body| read(Scheme::Stripe, &at, &[], body).map(|event| event.id);
    assert_eq!(of(r#"{"meta":{"id":"evt_1"}}"#).unwrap(), "evt_1");
    assert_eq!(of(r#"{"meta":{"id":17}}"#).unwrap(), "17");
    for (body, says) in [
        ("", "not JSON"),
        ("{", "not JSON"),
        ("[1]", "a JSON object"),
        ("{}", "no id"),
        (r#"{"meta":{"id":" "}}"#, "no id"),
        (r#"{"meta":{"id":null}}"#, "no id"),
        (r#"{"meta":{"id":"a"},"meta":{"id":"b"}}"#, "there twice"),
    ] {
        let said = of(body).unwrap_err();
        assert!(said.contains(says), "{body}: {said}");
    }
    let said = read(Scheme::Github, &github, &[], "{}").unwrap_err();
    assert!(said.contains("x-github-delivery"), "{said}");
}

const CLOUD: &str =
    r#"{"specversion":"1.0","id":"A 1","source":"/shop/1","type":"invoice.paid","data":{"n":1.10}}"#;

#[test]
fn cloud_events_come_in_two_modes_and_are_one() {
    let structured = [("content-type", "application/cloudevents+json; charset=utf-8")];
    let binary = [
        ("content-type", "application/json"),
        ("ce-specversion", "1.0"),
        ("ce-id", "A%201"),
        ("ce-source", "/shop/1"),
        ("ce-type", "invoice.paid"),
        ("ce-tenant", "J%C3%BCrgen"),
    ];
    let one = read(Scheme::Bearer, &EventId::CloudEvent, &structured, CLOUD).unwrap();
    let two = read(Scheme::Bearer, &EventId::CloudEvent, &binary, r#"{"n":1.10}"#).unwrap();
    assert_eq!((one.id.as_str(), two.id.as_str()), ("/shop/1 A 1", "/shop/1 A 1"));
    assert_eq!(two.value["tenant"], "Jürgen");
    for event in [&one, &two] {
        assert_eq!(event.value["type"], "invoice.paid");
        assert_eq!(raw_at(&event.document, "/data").unwrap().get(), r#"{"n":1.10}"#, "to the byte");
    }
    assert!(read(Scheme::StandardWebhooks, &EventId::CloudEvent, &structured, CLOUD).is_ok());
    let said = read(Scheme::Github, &EventId::CloudEvent, &binary, "{}").unwrap_err();
    assert!(said.contains("structured mode"), "{said}");
    let none = read(Scheme::Bearer, &EventId::CloudEvent, &binary[1..], "").unwrap();
    assert!(none.value.get("data").is_none());
}

#[test]
fn what_is_no_cloud_event_says_why() {
    let kind = |kind| [("content-type", kind)];
    let json = kind("application/cloudevents+json");
    let without = |name: &str| CLOUD.replace(&format!("\"{name}\""), "\"other\"");
    let cases = [
        (kind("application/json"), CLOUD.to_owned(), "no CloudEvent"),
        (kind("application/cloudevents-batch+json"), "[]".to_owned(), "batches"),
        (kind("application/cloudevents+avro"), CLOUD.to_owned(), "in JSON"),
        (json, "[]".to_owned(), "JSON object"),
        (json, without("specversion"), "specversion"),
        (json, CLOUD.replace("1.0", "0.3"), "specversion"),
        (json, without("id"), "needs id"),
        (json, without("source"), "needs source"),
        (json, without("type"), "needs type"),
        (json, CLOUD.replace("\"A 1\"", "\"\""), "needs id"),
        (json, CLOUD.replace("\"A 1\"", "7"), "needs id"),
        (json, CLOUD.replace("/shop/1", "/shop 1"), "white space"),
    ];
    for (headers, body, says) in cases {
        let said = read(Scheme::Bearer, &EventId::CloudEvent, &headers, &body).unwrap_err();
        assert!(said.contains(says), "{body}: {said}");
    }
    let binary = |name, value| {
        let mut headers = vec![
            ("content-type", "application/json"),
            ("ce-specversion", "1.0"),
            ("ce-id", "1"),
            ("ce-source", "/a"),
            ("ce-type", "t"),
        ];
        headers.push((name, value));
        read(Scheme::Bearer, &EventId::CloudEvent, &headers, "{}").map(|event| event.id)
    };
    assert!(binary("ce-time", "2026-11-29T09:00:00Z").is_ok());
    for (name, value) in [("ce-id", "2"), ("ce-data", "{}"), ("ce-my_name", "x"), ("ce-x", "%ff")] {
        assert!(binary(name, value).is_err(), "{name}");
    }
}

#[test]
fn pointers_lead_to_the_bytes_that_were_sent() {
    let text = r#"{"a/b":[0,{"~c":12345678901234567890.10}],"":{"x": "\u00e9"}}"#;
    let document: Box<RawValue> = serde_json::from_str(text).unwrap();
    let at = |pointer| raw_at(&document, pointer).map(RawValue::get);
    assert_eq!(at(""), Some(text));
    assert_eq!(at("/a~1b/1/~0c"), Some("12345678901234567890.10"));
    assert_eq!(at("//x"), Some(r#""\u00e9""#));
    for nothing in ["/a", "/a~1b/2", "/a~1b/-", "/a~1b/01", "/a~1b/0/x", "no pointer"] {
        assert_eq!(at(nothing), None, "{nothing}");
    }
}
