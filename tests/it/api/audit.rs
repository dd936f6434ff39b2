//! The audit through the API.

use axum::http::Method;
use dead_letter_office::domain::actor::{Role, Scope};

use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(the_audit_is_filtered_and_walked);

async fn the_audit_is_filtered_and_walked(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let mut operations = Vec::new();
    for key in ["order-1", "order-2", "order-3"] {
        operations.push(desk.dead_letter("keyed", key).await.0);
    }
    for (action_id, operation) in ["a", "b", "c"].iter().zip(&operations) {
        desk.app.replay_as(&person("olga", Role::Operator), *operation, action_id).await.unwrap();
    }
    let token = desk.token(Scope::Read).await;
    let get = async |query: &str, status| {
        desk.call(Method::GET, &format!("/api/v1/audit{query}"), &token, "").await.expect(status).json()
    };
    let all = get("?actor=olga", 200).await;
    let items = all["items"].as_array().unwrap();
    assert_eq!((items.len(), &all["next"]), (3, &serde_json::Value::Null));
    let newest = &items[0];
    assert_eq!(newest["operation"], operations[2].to_string());
    assert_eq!((&newest["action"], &newest["result"]), (&"replay".into(), &"accepted".into()));
    assert_eq!((&newest["reason"], &newest["origin"]), (&"the CRM is back".into(), &"127.0.0.1".into()));
    assert_eq!(newest["at"], desk.app.now().rfc3339());

    let mut walked = Vec::new();
    let mut query = "?action=replay&limit=2".to_owned();
    loop {
        let page = get(&query, 200).await;
        walked.extend(page["items"].as_array().unwrap().iter().map(|item| item["id"].clone()));
        match page["next"].as_str() {
            Some(next) => query = format!("?action=replay&limit=2&cursor={next}"),
            None => break,
        }
    }
    assert_eq!(walked, items.iter().map(|item| item["id"].clone()).collect::<Vec<_>>());

    let one = get(&format!("?operation={}", operations[1]), 200).await;
    assert_eq!(one["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(get("?to=2026-11-29T09:00:00Z", 200).await["items"], serde_json::json!([]));
    for wrong in ["?person=olga", "?operation=order-1", "?from=noon", "?limit=0", "?cursor=x"] {
        assert_eq!(get(wrong, 400).await["type"], "/problems/malformed", "{wrong}");
    }
}
