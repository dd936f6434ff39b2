//! The API's list of dead letters takes what the desk's takes.

use std::time::Duration;

use axum::body::Body;
use axum::http::Method;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::engine::handling;
use serde_json::json;

use crate::support::app::{person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(a_list_is_narrowed_by_age_and_by_who_sleeps);

async fn a_list_is_narrowed_by_age_and_by_who_sleeps(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, old) = desk.dead_letter("keyed", "order-1").await;
    desk.app.clock.advance(Duration::from_hours(2));
    desk.dead_letter("keyed", "order-2").await;
    let actor = person("operator", Role::Operator);
    let until = desk.app.now().plus(Duration::from_mins(10));
    handling::snooze(desk.app.engine.gate(), old, Some(until), &request(&actor, "s1")).await.unwrap();
    let token = desk.token(Scope::Operate).await;
    for (query, wanted) in [
        ("", 2),
        ("?age=1h", 1),
        ("?age=over_1h", 1),
        ("?snoozed=asleep", 1),
        ("?snoozed=awake", 1),
        ("?snoozed=awake&age=over_1h", 0),
    ] {
        let path = format!("/api/v1/dead-letters{query}");
        let listed = desk.call(Method::GET, &path, &token, Body::empty()).await.expect(200).json();
        assert_eq!(listed["items"].as_array().unwrap().len(), wanted, "{query}");
    }
    for wrong in ["age=2h", "snoozed=maybe", "asleep=1"] {
        let path = format!("/api/v1/dead-letters?{wrong}");
        desk.call(Method::GET, &path, &token, Body::empty()).await.expect(400);
    }
    let bulk = json!({
        "action": "lookup", "name": "the old ones", "reason": "they wait",
        "filter": {"age": "over_1h", "snoozed": "asleep"},
    });
    let made = desk.call(Method::POST, "/api/v1/bulk", &token, bulk.to_string()).await.expect(201).json();
    assert_eq!(made["members"], 1);
}
