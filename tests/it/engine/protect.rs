//! What protects destinations: limits, their own words, the retry budget, the circuit breaker,
//! pauses; and what protects them from each other.

use std::time::Duration;

use dead_letter_office::demo::destination::{Behaviour, Mix};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::NextAction;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::time::Timestamp;
use dead_letter_office::domain::verdict::{CheckName, VerdictKind};
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::destinations;
use dead_letter_office::gate::{Gate, Permit};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_stalled_destination_leaves_slots_for_the_others,
    no_more_are_under_way_than_the_limit_says_on_all_nodes,
    no_more_leave_in_a_second_than_the_limit_says,
    a_word_to_wait_holds_for_all_operations,
    a_destination_that_fails_is_left_alone_and_tried_with_one,
    an_answer_in_order_closes_the_circuit,
    a_refused_credential_pauses_at_once_and_is_told_once,
    what_a_limited_destination_shows_is_kept,
    a_person_pauses_and_resumes_and_that_is_on_record,
    a_pause_makes_nothing_older,
    retries_are_budgeted_and_first_attempts_are_not,
    a_row_of_another_runner_moves_to_its_lane,
);

const LIMITS: &str = r#"
[destinations.narrow]
base_url = "{destination}/keyed"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "24h" }
limit = { in_flight = 2 }
[destinations.slow]
base_url = "{destination}/keyed"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "24h" }
limit = { per_second = 10 }
[destinations.frail]
base_url = "{destination}/keyed"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "24h" }
breaker = { failures = 3, wait = "1m" }
[destinations.tight]
base_url = "{destination}/keyed"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "24h" }
limit = { retries_per_minute = 2 }
retry = { first_delay = "1ms" }
"#;

fn limits() -> String {
    let kinds = ["narrow", "slow", "frail", "tight"].map(|name| {
        format!(
            "[operations.{name}]\n[[operations.{name}.steps]]\nname = \"only\"\ndestination = \"{name}\"\n\
             method = \"POST\"\npath = \"/{name}\"\n"
        )
    });
    format!("{LIMITS}{}", kinds.join(""))
}

async fn start(db: TestDatabase) -> TestApp {
    TestApp::configured(db, &limits()).await
}

async fn submit(app: &TestApp, kind: &str, count: usize) -> Vec<Uuid> {
    submit_from(app, kind, 0, count).await
}

/// The same with numbers from `first`.
async fn submit_from(app: &TestApp, kind: &str, first: usize, count: usize) -> Vec<Uuid> {
    let mut ids = Vec::new();
    for n in first..first + count {
        ids.push(app.submit(kind, &format!("{kind}-{n}")).await);
    }
    ids
}

async fn claim(gate: &Gate, slots: usize) -> Vec<Permit> {
    gate.turn(&mut Vec::new(), slots).await.unwrap().permits
}

fn of(permits: &[Permit], destination: &str) -> usize {
    permits.iter().filter(|permit| permit.destination() == destination).count()
}

/// Sends what was claimed and settles it, as a worker would.
async fn finish(app: &TestApp, permits: Vec<Permit>) {
    for permit in permits {
        let settlement = app.send(permit).await;
        assert!(app.settle(settlement).await);
    }
}

async fn a_stalled_destination_leaves_slots_for_the_others(db: TestDatabase) {
    let mut app = start(db).await;
    submit(&app, "plain", 60).await;
    let gate = app.engine.gate().clone();
    // Nothing of it ends, and the worker looks for more each time.
    let mut stalled = Vec::new();
    for _ in 0..5 {
        stalled.extend(claim(&gate, 32 - stalled.len()).await);
    }
    let taken = of(&stalled, "plain");
    assert!((20..32).contains(&taken), "{taken} of 32 slots");
    // What arrives for another goes out at once, though 30 and more of the first waited before it.
    app.submit("keyed", "one").await;
    let next = claim(&gate, 32 - taken).await;
    assert_eq!(of(&next, "keyed"), 1);
    finish(&app, stalled).await;
    finish(&app, next).await;
    app.run_to_the_end().await;
}

async fn no_more_are_under_way_than_the_limit_says_on_all_nodes(db: TestDatabase) {
    let mut app = start(db).await;
    submit(&app, "narrow", 6).await;
    let other = app.another_node(2).await;
    let first = claim(app.engine.gate(), 16).await;
    let second = claim(other.gate(), 16).await;
    assert_eq!((first.len(), second.len()), (2, 0));
    finish(&app, first).await;
    let second = claim(other.gate(), 1).await;
    assert_eq!((second.len(), claim(app.engine.gate(), 16).await.len()), (1, 1));
    app.clock.advance(Duration::from_mins(2));
    drop(second);
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 6);
}

async fn no_more_leave_in_a_second_than_the_limit_says(db: TestDatabase) {
    let mut app = start(db).await;
    let began = app.now();
    submit(&app, "slow", 30).await;
    let mut sent: Vec<Timestamp> = Vec::new();
    while sent.len() < 30 {
        let permits = claim(app.engine.gate(), 16).await;
        sent.extend(permits.iter().map(|_| app.now()));
        finish(&app, permits).await;
        app.clock.advance(Duration::from_millis(10));
        assert!(app.now().since(began) < Duration::from_secs(20));
    }
    for (n, at) in sent.iter().enumerate() {
        let within = sent[..n].iter().filter(|other| at.since(**other) < Duration::from_secs(1)).count() + 1;
        assert!(within <= 11, "{within} in one second");
    }
    let took = app.now().since(began);
    assert!(took >= Duration::from_millis(2_850) && took < Duration::from_secs(4), "{took:?}");
    assert_eq!(app.run_until_idle().await, 0);
}

async fn a_word_to_wait_holds_for_all_operations(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.script("/keyed", [Behaviour::retry_after(429, 60)]);
    let first = app.submit("keyed", "first").await;
    app.run_until_idle().await;
    let told = app.now();
    let second = app.submit("keyed", "second").await;
    // A second destination is none of its business.
    let other = app.submit("plain", "other").await;
    app.run_until_idle().await;
    assert_eq!(app.state(other).await, OperationState::Completed);
    app.clock.advance(Duration::from_micros(59_999_999));
    app.run_until_idle().await;
    assert_eq!(app.state(second).await, OperationState::Pending);
    assert!(app.thread(second).await.attempts.is_empty());
    app.clock.advance(Duration::from_micros(1));
    app.run_until_idle().await;
    assert_eq!(app.state(second).await, OperationState::Completed);
    app.run_to_the_end().await;
    assert_eq!(app.state(first).await, OperationState::Completed);
    assert!(app.thread(first).await.attempts[1].started_at >= told.plus(Duration::from_mins(1)));
}

async fn a_destination_that_fails_is_left_alone_and_tried_with_one(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.default_behaviour("/keyed/frail", Mix::new([(1, Behaviour::status(503))]));
    let ids = submit(&app, "frail", 3).await;
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 3, "three failures open the circuit");
    let more = submit_from(&app, "frail", 3, 4).await.len() + ids.len();
    assert_eq!(app.run_until_idle().await, 0);
    let opened = app.now();
    app.clock.advance(Duration::from_secs(59));
    assert_eq!(app.run_until_idle().await, 0);
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(app.run_until_idle().await, 1, "one is let through");
    // It failed again: twice as long.
    app.clock.advance(Duration::from_secs(119));
    assert_eq!(app.run_until_idle().await, 0);
    assert!(app.engine.gate().next_due().await.unwrap() >= Some(opened.plus(Duration::from_mins(3))));
    app.destination.default_behaviour("/keyed/frail", Mix::new([(1, Behaviour::Ok)]));
    app.clock.advance(Duration::from_secs(1));
    app.run_until_idle().await;
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), more);
}

async fn an_answer_in_order_closes_the_circuit(db: TestDatabase) {
    let mut app = start(db).await;
    // Two failures, an answer in order, two failures: a refusal is an answer in order.
    for (n, code) in [503, 503, 422, 503, 503].into_iter().enumerate() {
        app.destination.script("/keyed/frail", [Behaviour::status(code)]);
        submit_from(&app, "frail", n, 1).await;
        app.run_until_idle().await;
    }
    let mut tx = app.engine.db().read().await.unwrap();
    let standings = destinations::standings(&mut tx, app.engine.config()).await.unwrap();
    let frail = standings.into_iter().find(|standing| standing.health.name == "frail").unwrap();
    assert_eq!((frail.health.opened, frail.health.open_until), (0, None));
    drop(tx);
    app.run_to_the_end().await;
}

async fn a_refused_credential_pauses_at_once_and_is_told_once(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.default_behaviour("/keyed", Mix::new([(1, Behaviour::status(401))]));
    // Two are under way when the first answer comes.
    let ids = submit(&app, "keyed", 12).await;
    let permits = claim(app.engine.gate(), 3).await;
    assert_eq!(permits.len(), 2, "one slot stays free for others");
    finish(&app, permits).await;
    app.run_to_the_end().await;
    let mut raw = app.raw().await;
    assert_eq!(raw.number("SELECT count(*) FROM dead_letters").await, 2, "what was sent, and no more");
    assert_eq!(raw.number("SELECT count(*) FROM alerts").await, 1);
    assert_eq!(app.destination.requests_count(), 2);
    let failed: Vec<Uuid> = {
        let mut failed = Vec::new();
        for id in &ids {
            if app.state(*id).await == OperationState::Failed {
                failed.push(*id);
            }
        }
        failed
    };
    assert_eq!(app.letter(failed[0]).await.next_action, NextAction::FixPermission);
    // A replay meets the pause and says so.
    let verdict = app.replay(failed[0], "while paused").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Refused);
    let check = verdict.checks.iter().find(|check| check.name == CheckName::DestinationOpen).unwrap();
    assert!(!check.passed && check.detail.contains("paused"), "{}", check.detail);
    app.destination.default_behaviour("/keyed", Mix::new([(1, Behaviour::Ok)]));
    assert_eq!(app.resume_all().await, 1);
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 10);
    assert_eq!(raw.number("SELECT count(*) FROM alerts WHERE closed_at IS NULL").await, 0);
}

async fn what_a_limited_destination_shows_is_kept(db: TestDatabase) {
    let mut app = start(db).await;
    for kind in ["narrow", "slow"] {
        let path = format!("/keyed/{kind}");
        app.destination.script(&path, [Behaviour::retry_after(429, 5), Behaviour::status(401)]);
        submit(&app, kind, 3).await;
        app.run_until_idle().await;
        app.clock.advance(Duration::from_secs(30));
        app.run_until_idle().await;
        let mut tx = app.engine.db().read().await.unwrap();
        let standings = destinations::standings(&mut tx, app.engine.config()).await.unwrap();
        let health = standings.into_iter().find(|it| it.health.name == kind).unwrap().health;
        assert!(health.paused_at.is_some(), "{kind}: {health:?}");
        assert!(health.held_until.is_some(), "{kind}: {health:?}");
    }
    assert_eq!(app.resume_all().await, 2);
    app.run_to_the_end().await;
}

async fn a_person_pauses_and_resumes_and_that_is_on_record(db: TestDatabase) {
    let mut app = start(db).await;
    let gate = app.engine.gate().clone();
    let (olga, vera) = (person("olga", Role::Operator), person("vera", Role::Viewer));
    let refused = destinations::pause(&gate, "keyed", &request(&vera, "a")).await;
    assert!(matches!(refused, Err(ActionError::Forbidden(_))), "{refused:?}");
    let unknown = destinations::pause(&gate, "nowhere", &request(&olga, "b")).await;
    assert!(matches!(unknown, Err(ActionError::NotFound)), "{unknown:?}");
    destinations::pause(&gate, "keyed", &request(&olga, "c")).await.unwrap();
    // The same click again.
    destinations::pause(&gate, "keyed", &request(&olga, "c")).await.unwrap();
    let id = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Pending);
    destinations::resume(&gate, "keyed", &request(&olga, "d")).await.unwrap();
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    let told = app
        .raw()
        .await
        .texts("SELECT actor || ' ' || action || ' ' || detail FROM audit JOIN audit_words ON audit_id = id ORDER BY at, id")
        .await;
    assert_eq!(told, ["olga pause destination keyed", "olga resume destination keyed"]);
}

async fn a_pause_makes_nothing_older(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.script("/keyed", [Behaviour::status(421)]);
    let id = app.submit("keyed", "order-1").await;
    app.run_until_idle().await;
    let gate = app.engine.gate().clone();
    let olga = person("olga", Role::Operator);
    destinations::pause(&gate, "keyed", &request(&olga, "a")).await.unwrap();
    // Longer than the policy's age of half an hour.
    app.clock.advance(Duration::from_hours(3));
    app.run_until_idle().await;
    destinations::resume(&gate, "keyed", &request(&olga, "b")).await.unwrap();
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
}

async fn retries_are_budgeted_and_first_attempts_are_not(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.script("/keyed/tight", vec![Behaviour::status(421); 8]);
    let ids = submit(&app, "tight", 8).await;
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 8);
    app.clock.advance(Duration::from_secs(1));
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 10, "two retries a minute");
    app.clock.advance(Duration::from_secs(30));
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 10);
    app.run_to_the_end().await;
    for id in ids {
        assert_eq!(app.state(id).await, OperationState::Completed);
        assert_eq!(app.thread(id).await.attempts.len(), 2, "waiting uses up no attempt");
    }
}

async fn a_row_of_another_runner_moves_to_its_lane(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.submit("keyed", "order-1").await;
    // As if the file had left the step to programs when it was accepted.
    app.raw().await.execute("UPDATE work SET lane = 'worker:keyed'").await;
    app.run_until_idle().await;
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
}
