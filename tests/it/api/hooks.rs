//! Webhooks that are taken: each once, whatever comes again.

use std::collections::BTreeSet;

use dead_letter_office::store::events::EventKind;
use futures_util::future::join_all;
use serde_json::Value;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};
use crate::support::hooks::{Hook, NEW, OLD, sources};

on_both!(
    a_delivery_of_every_kind_becomes_one_operation,
    one_event_delivered_at_once_is_one_operation,
    a_known_id_with_other_content_is_refused_and_recorded,
    a_fact_of_business_is_one_operation_whatever_its_events_are_called,
    both_modes_of_a_cloud_event_are_one_event,
    any_id_can_be_taken,
);

const EVENT: &str =
    r#"{"type":"invoice.paid","data":{"object":{"order_id":"1","customer_id":"C-7","amount":1250.10}}}"#;

async fn start(db: TestDatabase) -> Desk {
    Desk::configured(db, &sources()).await
}

/// The operation that a delivery was taken as, and whether as a repeat.
#[track_caller]
fn taken(reply: &Reply) -> (Uuid, bool) {
    assert_eq!(reply.status.as_u16(), 200, "{}", reply.text);
    let answer = reply.json();
    let id = answer["operation"].as_str().unwrap_or_else(|| panic!("{answer}")).parse().unwrap();
    assert_eq!(answer["url"], format!("http://127.0.0.1:8080/operations/{id}"));
    (id, answer["duplicate"].as_bool().unwrap())
}

async fn a_delivery_of_every_kind_becomes_one_operation(db: TestDatabase) {
    let mut desk = start(db).await;
    let at = desk.seconds();
    let object = r#"{"order_id":"1","customer_id":"C-7","amount":1250.10}"#;
    let stripe = r#"{"id":"evt_1","order_id":"1"}"#;
    let cases = [
        (Hook::standard(NEW, "msg_1", at, EVENT), "hook:standard:msg_1", object, Some("C-7")),
        (Hook::standard(OLD, "msg_2", at - 300, EVENT), "hook:standard:msg_2", object, Some("C-7")),
        (Hook::standard_public("msg_3", at + 300, EVENT), "hook:standard:msg_3", object, Some("C-7")),
        (Hook::stripe(NEW, at, stripe), "hook:stripe:evt_1", stripe, None),
        (Hook::github(OLD, "72d3162e", "issues", object), "hook:github:72d3162e", object, None),
    ];
    for (hook, key, payload, correlation) in &cases {
        let (id, duplicate) = taken(&desk.deliver(hook).await);
        assert!(!duplicate, "{key}");
        let thread = desk.app.thread(id).await;
        assert_eq!(thread.operation.key, *key);
        assert_eq!(thread.payload.as_deref(), Some(*payload), "to the byte");
        assert_eq!(thread.operation.correlation_id.as_deref(), *correlation, "{key}");
        assert_eq!(thread.operation.source.as_deref(), Some(hook.source));
        assert_eq!(thread.operation.submitted_by, format!("source:{}", hook.source));
        for _ in 0..2 {
            assert_eq!(taken(&desk.deliver(hook).await), (id, true), "{key}");
        }
        let events = desk.app.thread(id).await.events;
        assert_eq!(events.len(), 2, "each repeat is on record");
        let actor = format!("source:{}", hook.source);
        assert!(events.iter().all(|event| event.kind == EventKind::Duplicate && event.actor == actor));
    }
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.destination.effects().len(), cases.len(), "each once");
}

async fn one_event_delivered_at_once_is_one_operation(db: TestDatabase) {
    let desk = start(db).await;
    let hook = Hook::standard(NEW, "msg_1", desk.seconds(), EVENT);
    let replies = join_all((0..20).map(|_| desk.deliver(&hook))).await;
    let answers: Vec<(Uuid, bool)> = replies.iter().map(taken).collect();
    assert_eq!(answers.iter().filter(|(_, duplicate)| !duplicate).count(), 1, "{answers:?}");
    let ids: BTreeSet<Uuid> = answers.iter().map(|(id, _)| *id).collect();
    assert_eq!(ids.len(), 1);
    let events = desk.app.thread(answers[0].0).await.events;
    assert_eq!(events.iter().filter(|event| event.kind == EventKind::Duplicate).count(), 19);
    assert_eq!(desk.app.raw().await.counts().await["operations"], 1);
}

async fn a_known_id_with_other_content_is_refused_and_recorded(db: TestDatabase) {
    let desk = start(db).await;
    let at = desk.seconds();
    let (id, _) = taken(&desk.deliver(&Hook::standard(NEW, "msg_1", at, EVENT)).await);
    let other = EVENT.replace("1250.10", "1250.1");
    let reply = desk.deliver(&Hook::standard(NEW, "msg_1", at, &other)).await.expect(422);
    assert_eq!(reply.json()["type"], "/problems/key-reused");
    assert_eq!(reply.json()["operation"], id.to_string());
    assert!(!reply.text.contains("C-7"), "no data is shown: {}", reply.text);
    let thread = desk.app.thread(id).await;
    assert!(thread.payload.unwrap().contains("1250.10"), "unchanged");
    assert!(thread.events[0].detail.contains("other data"), "{:?}", thread.events);
    assert_eq!(desk.app.raw().await.counts().await["operations"], 1);
}

async fn a_fact_of_business_is_one_operation_whatever_its_events_are_called(db: TestDatabase) {
    let desk = start(db).await;
    let at = desk.seconds();
    let (sent, void) =
        (EVENT.replace("invoice.paid", "invoice.sent"), EVENT.replace("invoice.paid", "invoice.void"));
    let (id, duplicate) = taken(&desk.deliver(&Hook::standard(NEW, "msg_1", at, &sent)).await);
    assert!(!duplicate);
    assert_eq!(desk.app.thread(id).await.operation.key, "invoice:1");
    assert_eq!(taken(&desk.deliver(&Hook::standard(NEW, "msg_2", at, &void)).await), (id, true));
    let without = sent.replace("order_id", "order");
    let reply = desk.deliver(&Hook::standard(NEW, "msg_3", at, &without)).await.expect(400);
    assert_eq!(reply.json()["type"], "/problems/key-missing");
    assert!(reply.text.contains("payload.order_id is missing"), "{}", reply.text);
}

async fn both_modes_of_a_cloud_event_are_one_event(db: TestDatabase) {
    let desk = start(db).await;
    let data = r#"{"order_id":"1","amount":1250.10}"#;
    let body = format!(
        r#"{{"specversion":"1.0","id":"A-1","source":"/shop/eu","type":"invoice.paid","data":{data}}}"#
    );
    let structured = Hook::cloud(NEW, &body);
    let (id, duplicate) = taken(&desk.deliver(&structured).await);
    assert!(!duplicate);
    let thread = desk.app.thread(id).await;
    assert_eq!(thread.operation.key, "hook:cloud:/shop/eu A-1");
    assert_eq!(thread.payload.as_deref(), Some(data));

    let mut binary = Hook::cloud(OLD, data)
        .with("content-type", "application/json")
        .with("ce-specversion", "1.0")
        .with("ce-id", "A-1")
        .with("ce-source", "/shop/eu")
        .with("ce-type", "invoice.paid");
    assert_eq!(taken(&desk.deliver(&binary).await), (id, true));
    // Another source's event of the same id is another event.
    binary = binary.with("ce-source", "/shop/us");
    let (other, duplicate) = taken(&desk.deliver(&binary).await);
    assert!(!duplicate && other != id);
    let ignored = desk.deliver(&binary.clone().with("ce-type", "invoice.sent")).await.expect(200);
    assert_eq!(ignored.json(), serde_json::json!({ "ignored": true }));

    // A signature does not cover headers: the signed source takes the structured mode only.
    let signed = Hook::github(NEW, "x", "x", &body).with("content-type", "application/cloudevents+json");
    let (signed, duplicate) = taken(&desk.deliver(&signed.to("signed-cloud")).await);
    assert!(!duplicate);
    assert_eq!(desk.app.thread(signed).await.operation.key, "hook:signed-cloud:/shop/eu A-1");
    let mut forged = Hook::github(NEW, "x", "x", data).to("signed-cloud");
    for (name, value) in binary.headers.iter().filter(|(name, _)| name.starts_with("ce-")) {
        forged = forged.with(name, value);
    }
    let reply = desk.deliver(&forged).await.expect(400);
    assert!(reply.text.contains("structured mode"), "{}", reply.text);
}

async fn any_id_can_be_taken(db: TestDatabase) {
    let desk = start(db).await;
    let at = desk.seconds();
    let long = "x".repeat(2_000);
    let longer = "x".repeat(2_001);
    let ids = [
        "'; DROP TABLE operations; --",
        "<script>alert(1)</script>",
        "../../../etc/passwd",
        "a\nb",
        "a\u{0}b",
        "\u{202e}gnp.exe",
        "{{ 7 * 7 }}",
        "sha256:0000",
        &long,
        &longer,
    ];
    let mut keys = BTreeSet::new();
    for id in ids {
        let body = serde_json::json!({ "id": id, "order_id": "1" }).to_string();
        let hook = Hook::stripe(NEW, at, &body);
        let (operation, duplicate) = taken(&desk.deliver(&hook).await);
        assert!(!duplicate, "{id:?}");
        assert_eq!(taken(&desk.deliver(&hook).await), (operation, true), "{id:?}");
        keys.insert(desk.app.thread(operation).await.operation.key);
    }
    assert_eq!(keys.len(), ids.len(), "{keys:?}");
    assert!(keys.iter().all(|key| key.chars().count() <= 255 && !key.chars().any(char::is_control)));
    for (body, says) in [(r#"{"id":""}"#, "no id"), (r#"{"id":{"a":1}}"#, "no id"), ("{}", "no id")] {
        let reply = desk.deliver(&Hook::stripe(NEW, at, body)).await.expect(400);
        let problem: Value = reply.json();
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
}
