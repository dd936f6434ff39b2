//! A destination that asks for time gets it, and it costs no attempt.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::time::Timestamp;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(a_wait_in_seconds_is_kept, a_wait_until_a_date_is_kept, waiting_uses_up_no_attempt);

fn until(date: &str) -> Behaviour {
    Behaviour::Status { code: 429, headers: vec![("retry-after".into(), date.into())], body: String::new() }
}

/// The next attempt is due no earlier than this.
async fn not_before(app: &mut TestApp, behaviour: Behaviour, earliest: Timestamp) {
    app.destination.script("/plain", [behaviour]);
    let id = app.submit("plain", "order-1").await;
    app.run_until_idle().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.attempts[0].outcome, Outcome::Throttled);
    let due = thread.operation.due_at.expect("work");
    assert!(due >= earliest, "{due} is before {earliest}");
    assert_eq!(thread.attempts[0].next_at, Some(due));
    assert_eq!(app.raw().await.number("SELECT tries FROM work").await, 0);
    let wait = i64::try_from(earliest.since(app.now()).as_micros()).unwrap();
    assert_eq!(thread.attempts[0].retry_after, Some(wait));
    app.clock.advance(earliest.since(app.now()) - Duration::from_micros(1));
    assert_eq!(app.run_until_idle().await, 0, "nothing is sent early");
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
}

async fn a_wait_in_seconds_is_kept(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let earliest = app.now().plus(Duration::from_mins(2));
    not_before(&mut app, Behaviour::retry_after(429, 120), earliest).await;
}

async fn a_wait_until_a_date_is_kept(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let earliest = Timestamp::parse("2026-11-29T09:05:00Z").unwrap();
    not_before(&mut app, until("Sun, 29 Nov 2026 09:05:00 GMT"), earliest).await;
}

async fn waiting_uses_up_no_attempt(db: TestDatabase) {
    let more = r#"
[operations.patient]
retry = { attempts = 2, max_age = "24h" }
[[operations.patient.steps]]
name = "create"
destination = "plain"
method = "POST"
path = "/tickets"
"#;
    let mut app = TestApp::configured(db, more).await;
    app.destination.script("/plain", vec![Behaviour::retry_after(429, 60); 12]);
    let id = app.submit("patient", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.attempts.len(), 13);
    assert_eq!(app.destination.effects().len(), 1);
}
