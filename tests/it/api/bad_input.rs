//! What cannot be taken is answered in a way that helps, and leaves everything as it was.

use axum::body::Body;
use axum::http::{Method, Request};
use dead_letter_office::domain::actor::Scope;
use serde_json::{Value, json};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};
use crate::support::tables::business;

on_both!(
    a_submission_that_cannot_be_taken_changes_nothing,
    an_action_that_cannot_be_taken_changes_nothing,
    a_batch_takes_what_it_can_and_says_so_line_by_line,
);

const SUBMIT: &str = "/api/v1/operations";

fn problem(reply: &Reply) -> (u16, String, String) {
    assert_eq!(reply.header("content-type"), "application/problem+json", "{}", reply.text);
    let body = reply.json();
    let text = |name: &str| body[name].as_str().unwrap_or_default().to_owned();
    assert_eq!(body["status"], reply.status.as_u16());
    assert!(!text("title").is_empty());
    (reply.status.as_u16(), text("type").replace("/problems/", ""), text("detail"))
}

async fn a_submission_that_cannot_be_taken_changes_nothing(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.app.submit("keyed", "order-1").await;
    let token = desk.token(Scope::Submit).await;
    let read = desk.token(Scope::Read).await;
    let before = business(&desk.app).await;
    let good = r#"{"type":"keyed","key":"order-2","payload":{"order_id":"2"}}"#;
    let cases: &[(&str, &str, &str, u16, &str, &str)] = &[
        ("no token", "", good, 401, "unauthorized", "dlo token create"),
        ("a wrong token", "Bearer dlo_AAAA", good, 401, "unauthorized", "dlo token create"),
        ("no bearer", "Basic b2xnYQ==", good, 401, "unauthorized", "dlo token create"),
        ("a wrong scope", &read, good, 403, "forbidden", "this token's scope is read"),
        ("nothing", &token, "", 400, "malformed", "\"type\" and \"payload\""),
        ("no JSON", &token, "{\"type\": ", 400, "malformed", "line 1"),
        ("no object", &token, "[]", 400, "malformed", "JSON object"),
        ("no payload", &token, r#"{"type":"keyed","key":"k"}"#, 400, "malformed", "missing field `payload`"),
        (
            "an unknown field",
            &token,
            r#"{"type":"keyed","key":"k","payload":{},"prio":1}"#,
            400,
            "malformed",
            "unknown field `prio`",
        ),
        (
            "an unknown type",
            &token,
            r#"{"type":"keyd","key":"k","payload":{}}"#,
            422,
            "unknown-type",
            "keyed",
        ),
        (
            "no key",
            &token,
            r#"{"type":"keyed","payload":{"order_id":"2"}}"#,
            400,
            "key-missing",
            "Idempotency-Key",
        ),
        (
            "an empty key",
            &token,
            r#"{"type":"keyed","key":"","payload":{"order_id":"2"}}"#,
            400,
            "key-missing",
            "empty",
        ),
    ];
    for (what, token, body, status, kind, says) in cases {
        let reply = desk.call(Method::POST, SUBMIT, token, (*body).to_owned()).await;
        let (found, found_kind, detail) = problem(&reply);
        assert_eq!((found, found_kind.as_str()), (*status, *kind), "{what}: {detail}");
        assert!(detail.contains(says), "{what}: {detail}");
        if *status == 401 {
            assert_eq!(reply.header("www-authenticate"), "Bearer", "{what}");
        }
    }
    let two_keys = Request::post(SUBMIT).header("authorization", &token).header("idempotency-key", "other");
    let (status, kind, _) = problem(&desk.send(two_keys.body(Body::from(good)).unwrap()).await);
    assert_eq!((status, kind.as_str()), (400, "malformed"));

    let large = format!(r#"{{"type":"keyed","key":"k","payload":{{"note":"{}"}}}}"#, "x".repeat(10 << 20));
    let (status, kind, detail) = problem(&desk.call(Method::POST, SUBMIT, &token, large).await);
    assert_eq!((status, kind.as_str()), (413, "too-large"), "{detail}");
    let (status, kind, _) = problem(&desk.call(Method::DELETE, SUBMIT, &token, "").await);
    assert_eq!((status, kind.as_str()), (405, "method-not-allowed"));
    assert_eq!(business(&desk.app).await, before);

    // A key that comes again with other data is refused too, and is part of the first one's history.
    let reused = r#"{"type":"keyed","key":"order-1","payload":{"order_id":"2"}}"#;
    let (status, kind, detail) = problem(&desk.call(Method::POST, SUBMIT, &token, reused).await);
    assert_eq!((status, kind.as_str()), (422, "key-reused"));
    assert!(detail.contains("order-1") && !detail.contains("anna@example.com"), "{detail}");
    let mut after = business(&desk.app).await;
    after.retain(|(table, row)| table != "events" || !row.contains("with other data"));
    assert_eq!(after, before);
}

async fn an_action_that_cannot_be_taken_changes_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let token = desk.token(Scope::Operate).await;
    let before = business(&desk.app).await;
    let path = |what: &str| format!("/api/v1/dead-letters/{letter}/{what}");
    let long = json!({ "reason": "x".repeat(1_001) }).to_string();
    let cases: &[(&str, &str, u16, &str)] = &[
        ("replay", "{}", 400, "missing field `reason`"),
        ("replay", r#"{"reason":" "}"#, 400, "reason is required"),
        ("replay", &long, 400, "at most 1000"),
        ("replay", r#"{"reason":"x","force":true}"#, 400, "unknown field `force`"),
        ("override", r#"{"reason":"x","mode":"new_effect"}"#, 400, "accept_duplicate"),
        ("override", r#"{"reason":"x","mode":"gently","accept_duplicate":true}"#, 400, "gently"),
        ("override", r#"{"reason":"x","accept_duplicate":true}"#, 400, "mode"),
        ("resolve", r#"{"reason":"x"}"#, 400, "resolution"),
        ("resolve", r#"{"reason":"x","resolution":"forget_it"}"#, 400, "forget_it"),
        ("resolve", r#"{"reason":"x","resolution":"not_needed","reference":"a\nb"}"#, 400, "one line"),
    ];
    for (what, body, status, says) in cases {
        let reply = desk.call(Method::POST, &path(what), &token, (*body).to_owned()).await;
        let (found, _, detail) = problem(&reply);
        assert_eq!(found, *status, "{body}: {detail}");
        assert!(detail.contains(says), "{body}: {detail}");
    }
    for id in ["x", "00000000-0000-0000-0000-000000000000"] {
        let path = format!("/api/v1/dead-letters/{id}/replay");
        let (status, ..) = problem(&desk.call(Method::POST, &path, &token, r#"{"reason":"x"}"#).await);
        assert_eq!(status, 404);
    }
    for query in ["status=closed", "limit=0", "limit=x", "cursor=!", "from=yesterday", "stauts=open"] {
        let reply = desk.call(Method::GET, &format!("/api/v1/dead-letters?{query}"), &token, "").await;
        assert_eq!(reply.status.as_u16(), 400, "{query}");
        problem(&reply);
    }
    assert_eq!(business(&desk.app).await, before);
}

async fn a_batch_takes_what_it_can_and_says_so_line_by_line(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.app.submit("keyed", "order-1").await;
    let token = desk.token(Scope::Submit).await;
    let body = [
        r#"{"type":"keyed","key":"order-2","payload":{"order_id":"2"}}"#,
        r#"{"type":"keyed","key":"order-2","payload":{"order_id":"2"}}"#,
        "",
        r#"{"type":"keyed","#,
        r#"{"type":"keyd","key":"order-3","payload":{}}"#,
        r#"{"type":"keyed","key":"order-1","payload":{"order_id":"other"}}"#,
        r#"{"type":"keyed","payload":{"order_id":"4"}}"#,
        "\"\"",
        r#"{"type":"plain","key":"order-5","payload":{"order_id":"5"}}"#,
    ]
    .join("\n");
    let reply = desk.call(Method::POST, "/api/v1/operations/batch", &token, body).await.expect(200);
    assert_eq!(reply.header("content-type"), "application/x-ndjson");
    let lines: Vec<Value> = reply.text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let told: Vec<(u64, &str)> = lines
        .iter()
        .map(|line| (line["status"].as_u64().unwrap(), line["type"].as_str().unwrap_or_default()))
        .collect();
    assert_eq!(
        told,
        [
            (201, "keyed"),
            (200, "keyed"),
            (400, "/problems/malformed"),
            (422, "/problems/unknown-type"),
            (422, "/problems/key-reused"),
            (400, "/problems/key-missing"),
            (400, "/problems/malformed"),
            (201, "plain"),
        ]
    );
    assert_eq!(lines[0]["id"], lines[1]["id"]);
    assert_eq!((&lines[0]["duplicate"], &lines[1]["duplicate"]), (&json!(false), &json!(true)));
    let rows = business(&desk.app).await;
    let operations = rows.iter().filter(|(table, _)| table == "operations").count();
    assert_eq!(operations, 3, "what was good, once each");
}
