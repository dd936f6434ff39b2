//! Corrections over HTTP, and what the desk says of both operations.

use axum::body::Body;
use axum::http::{Method, Request};
use dead_letter_office::domain::actor::{Role, Scope};
use serde_json::{Value, json};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};

on_both!(a_correction_is_answered_with_the_linked_operation, refusals_have_types_of_their_own);

async fn post(desk: &Desk, path: &str, token: &str, action: &str, body: &Value) -> Reply {
    let request = Request::post(path).header("authorization", token).header("idempotency-key", action);
    desk.send(request.body(Body::from(body.to_string())).unwrap()).await
}

async fn a_correction_is_answered_with_the_linked_operation(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (id, letter) = desk.dead_letter("keyed", "order-1").await;
    let token = desk.token(Scope::Operate).await;
    let path = format!("/api/v1/operations/{id}/correct");
    let body = json!({ "payload": { "order_id": "1b" }, "reason": "a typo", "key": "order-1-corrected" });
    let first = post(&desk, &path, &token, "a", &body).await.expect(201).json();
    assert_eq!(first["corrects"], json!(id));
    assert_eq!((&first["created"], &first["duplicate"]), (&json!(true), &json!(false)));
    assert_eq!((&first["state"], &first["key"]), (&json!("pending"), &json!("order-1-corrected")));
    assert_eq!(first["type"], json!("keyed"));
    assert_eq!(post(&desk, &path, &token, "a", &body).await.expect(201).json(), first);

    let get = async |path: String| desk.call(Method::GET, &path, &token, "").await.expect(200).json();
    let old = get(format!("/api/v1/operations/{id}")).await;
    assert_eq!((&old["corrected_by"], &old["state"]), (&first["id"], &json!("failed")));
    assert_eq!(old["dead_letter"], Value::Null);
    let letter = get(format!("/api/v1/dead-letters/{letter}")).await;
    assert_eq!((&letter["status"], &letter["reason"]), (&json!("corrected"), &json!("a typo")));
    assert_eq!(letter["closed_by"], json!("token:operate"));
    let events = get(format!("/api/v1/operations/{id}/events")).await;
    let kinds: Vec<&str> =
        events["items"].as_array().unwrap().iter().map(|entry| entry["kind"].as_str().unwrap()).collect();
    assert!(kinds.contains(&"corrected") && kinds.contains(&"correct"), "{kinds:?}");

    let new = first["id"].as_str().unwrap().to_owned();
    let mut viewer = desk.signed_in(Role::Viewer).await;
    let page = viewer.get(&format!("/operations/{id}")).await.expect(200);
    let words = page.words();
    assert!(words.contains(&format!("handed in a correction: Corrected (by operation {new})")), "{words}");
    assert!(words.contains("A corrected operation took its place."), "{words}");
    assert!(!words.contains("It is confirmed"), "{words}");
    let linked =
        |page: &Reply, id: &str| page.all("main a").iter().any(|(_, to)| *to == format!("/operations/{id}"));
    assert!(linked(&page, &new));
    let page = viewer.get(&format!("/operations/{new}")).await.expect(200);
    assert!(page.words().contains(&format!("Corrects operation {id}")), "{}", page.words());
    assert!(linked(&page, &id.to_string()));
    let page = viewer.get(&format!("/dead-letters/{}", letter["id"].as_str().unwrap())).await.expect(200);
    assert!(page.words().contains("its correction: keyed"), "{}", page.words());
    drop(viewer);
    desk.app.run_to_the_end().await;
}

async fn refusals_have_types_of_their_own(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (failed, _) = desk.dead_letter("keyed", "order-1").await;
    let (doubtful, _) = desk.dead_letter("plain", "order-2").await;
    let token = desk.token(Scope::Operate).await;
    let good = json!({ "payload": { "order_id": "x" }, "reason": "a typo" });
    let with = |name: &str, value: Value| {
        let mut body = good.clone();
        body[name] = value;
        body
    };
    let problem = async |id: String, body: &Value| {
        let path = format!("/api/v1/operations/{id}/correct");
        let reply = post(&desk, &path, &token, "a", body).await;
        assert_eq!(reply.header("content-type"), "application/problem+json", "{}", reply.text);
        reply.json()
    };
    let id = failed.to_string();
    for (id, body, status, kind, says) in [
        (doubtful.to_string(), good.clone(), 409, "not-correctable", "may have happened"),
        (id.clone(), with("key", json!("order-2")), 422, "key-reused", "order-2"),
        (id.clone(), with("payload", json!({})), 400, "malformed", "payload.order_id is missing"),
        (id.clone(), with("reason", json!("")), 400, "malformed", "reason is required"),
        (id.clone(), with("prio", json!(1)), 400, "malformed", "unknown field `prio`"),
        (id.clone(), json!({ "reason": "x" }), 400, "malformed", "missing field `payload`"),
        ("x".to_owned(), good.clone(), 404, "not-found", "not an id"),
        (uuid::Uuid::nil().to_string(), good.clone(), 404, "not-found", "no such operation"),
    ] {
        let told = problem(id, &body).await;
        let detail = told["detail"].as_str().unwrap();
        assert_eq!(
            (&told["status"], &told["type"]),
            (&json!(status), &json!(format!("/problems/{kind}"))),
            "{detail}"
        );
        assert!(detail.contains(says), "{detail}");
    }
    let path = format!("/api/v1/operations/{id}/correct");
    let new = post(&desk, &path, &token, "b", &good).await.expect(201).json();
    let told = problem(id.clone(), &good).await;
    assert_eq!((&told["status"], &told["operation"]), (&json!(409), &new["id"]));
    let reused = problem(id, &with("key", json!("order-2"))).await;
    assert_eq!(reused["type"], json!("/problems/not-correctable"));
    desk.app.run_to_the_end().await;
}
