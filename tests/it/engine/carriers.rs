//! A key travels in whatever part of a request the destination reads it from, and is the same on
//! every attempt.

use dead_letter_office::demo::destination::{Behaviour, Received};
use dead_letter_office::domain::attempt::Outcome;
use serde_json::Value;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_repeat_carries_the_first_key_in_the_body,
    a_repeat_carries_the_first_key_in_the_address,
    a_repeat_carries_the_first_key_in_quotes,
    a_payload_with_a_key_of_its_own_is_not_sent,
);

/// A type whose payload is sent as it is to a destination that takes its key so.
fn taking(key: &str) -> String {
    format!(
        r#"
[destinations.carrier]
base_url = "{{destination}}/plain"
timeout = "300ms"
connect_timeout = "200ms"
key = {{ {key}, window = "24h" }}
[operations.carried]
[[operations.carried.steps]]
name = "carry"
destination = "carrier"
method = "POST"
path = "/things"
"#
    )
}

/// The key and both requests of an operation whose first answer was lost.
async fn twice(db: TestDatabase, key: &str) -> (String, Vec<Received>) {
    let mut app = TestApp::configured(db, &taking(key)).await;
    app.destination.script("/plain/things", [Behaviour::CloseAfterRead { effect: true }]);
    let id = app.submit("carried", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.outcomes(id).await, [Outcome::Uncertain, Outcome::Done]);
    let requests = app.destination.requests();
    assert_eq!(requests.len(), 2);
    (app.thread(id).await.steps[0].key.to_string(), requests)
}

async fn a_repeat_carries_the_first_key_in_the_body(db: TestDatabase) {
    let (key, requests) = twice(db, "body = \"/meta/idempotency_key\"").await;
    let body: Value = serde_json::from_slice(&requests[0].body).unwrap();
    assert_eq!(body["meta"]["idempotency_key"], key.as_str());
    assert_eq!((&body["order_id"], &body["amount"]), (&"order-1".into(), &1250.into()));
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(requests[0].header("idempotency-key"), None);
}

async fn a_repeat_carries_the_first_key_in_the_address(db: TestDatabase) {
    let (key, requests) = twice(db, "query = \"requestid\"").await;
    for request in &requests {
        assert!(request.path.ends_with(&format!("/plain/things?requestid={key}")), "{}", request.path);
    }
}

async fn a_repeat_carries_the_first_key_in_quotes(db: TestDatabase) {
    let (key, requests) = twice(db, "header = \"Idempotency-Key\", quoted = true").await;
    for request in &requests {
        assert_eq!(request.header("idempotency-key"), Some(format!("\"{key}\"").as_str()));
    }
}

async fn a_payload_with_a_key_of_its_own_is_not_sent(db: TestDatabase) {
    let mut app = TestApp::configured(db, &taking("body = \"/order_id\"")).await;
    let id = app.submit("carried", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), 0);
    let letter = app.letter(id).await;
    assert_eq!(letter.outcome, Outcome::NotSent);
    let error = &letter.error;
    assert!(error.contains("/order_id takes the step's key and holds another value"), "{error}");
}
