//! Steps that programs carry out, at the gate: what they may be given, and what they may not.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::classify::{Event, Report};
use dead_letter_office::domain::contract::RuleOutcome;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::destinations;
use dead_letter_office::gate::{Claim, Heard};
use serde_json::json;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_paused_destination_does_not_hold_up_the_other_steps_of_a_type,
    a_closed_window_is_asked_about_by_the_engine_and_not_handed_to_a_program,
    a_word_said_twice_at_once_counts_once_and_is_no_late_answer,
);

const TYPES: &str = r#"
[destinations.here]
naturally_idempotent = true
[destinations.there]
naturally_idempotent = true
[destinations.brief]
base_url = "{destination}/lookup"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "2m" }
lookup = { path = "/tickets?external_ref={{ key }}", found = "/tickets/0", reference = "/tickets/0/id" }
[operations.pair]
[[operations.pair.steps]]
name = "first"
destination = "here"
runner = "worker"
[[operations.pair.steps]]
name = "second"
destination = "there"
runner = "worker"
[operations.brief]
[[operations.brief.steps]]
name = "create ticket"
destination = "brief"
runner = "worker"
"#;

const PROGRAM: &str = "token:program";

async fn claim(app: &TestApp, kind: &str) -> Option<Claim> {
    let taken = app.engine.gate().claim(&[kind.to_owned()], 1, PROGRAM, Duration::from_mins(1)).await;
    taken.unwrap().pop()
}

async fn say(app: &TestApp, claim: &Claim, outcome: RuleOutcome, known: Outcome) -> Heard {
    let report = Report { outcome, result: "{}".into(), reference: None, error: "no word".to_owned() };
    let gate = app.engine.gate();
    gate.report(claim.attempt, claim.fence, PROGRAM, Event::Reported(report), known).await.unwrap()
}

async fn a_paused_destination_does_not_hold_up_the_other_steps_of_a_type(db: TestDatabase) {
    let app = TestApp::configured(db, TYPES).await;
    let first = app.submit("pair", "order-1").await;
    let taken = claim(&app, "pair").await.unwrap();
    assert_eq!(say(&app, &taken, RuleOutcome::Done, Outcome::Done).await, Heard::Counted);
    // Its second step is due, and older than whatever comes.
    let olga = person("olga", Role::Operator);
    destinations::pause(app.engine.gate(), "there", &request(&olga, "a")).await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    let second = app.submit("pair", "order-2").await;
    let taken = claim(&app, "pair").await.expect("the other operation's first step");
    assert_eq!((taken.facts.operation_id, taken.facts.step.as_str()), (second, "first"));
    assert_eq!(say(&app, &taken, RuleOutcome::Done, Outcome::Done).await, Heard::Counted);
    assert!(claim(&app, "pair").await.is_none());
    destinations::resume(app.engine.gate(), "there", &request(&olga, "b")).await.unwrap();
    let taken = claim(&app, "pair").await.expect("what had waited");
    assert_eq!((taken.facts.operation_id, taken.facts.step.as_str()), (first, "second"));
    assert_eq!(say(&app, &taken, RuleOutcome::Done, Outcome::Done).await, Heard::Counted);
    assert_eq!(app.state(first).await, OperationState::Completed);
}

async fn a_closed_window_is_asked_about_by_the_engine_and_not_handed_to_a_program(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    let id = app.submit("brief", "order-1").await;
    let taken = claim(&app, "brief").await.unwrap();
    // It happened, and the program could not tell.
    let made = json!({"external_ref": taken.facts.step_key.to_string()});
    let url = format!("{}/lookup/tickets", app.destination.base_url());
    reqwest::Client::new().post(url).body(made.to_string()).send().await.unwrap();
    assert_eq!(say(&app, &taken, RuleOutcome::Uncertain, Outcome::Uncertain).await, Heard::Counted);
    // No program comes before the window has closed.
    app.clock.advance(Duration::from_mins(3));
    assert!(claim(&app, "brief").await.is_none(), "a question is no step of a program's");
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!(app.destination.effects().len(), 1);
}

async fn a_word_said_twice_at_once_counts_once_and_is_no_late_answer(db: TestDatabase) {
    let app = TestApp::configured(db, TYPES).await;
    let id = app.submit("pair", "order-1").await;
    let taken = claim(&app, "pair").await.unwrap();
    let (one, two) = tokio::join!(
        say(&app, &taken, RuleOutcome::Done, Outcome::Done),
        say(&app, &taken, RuleOutcome::Done, Outcome::Done)
    );
    let mut heard = [one, two];
    heard.sort_by_key(|heard| *heard != Heard::Counted);
    assert_eq!(heard, [Heard::Counted, Heard::Repeated]);
    assert!(app.thread(id).await.events.is_empty());
    let next = claim(&app, "pair").await.unwrap();
    assert_eq!(say(&app, &next, RuleOutcome::Done, Outcome::Done).await, Heard::Counted);
}
