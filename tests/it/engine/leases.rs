//! A worker that is not heard of again: its attempt may have sent, and what it says later is
//! evidence.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::classify::Symptom;
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::thread::{Knowledge, Thread};
use dead_letter_office::store::events::EventKind;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_lost_worker_at_a_keyed_destination_is_followed_by_a_resend,
    a_lost_worker_at_a_plain_destination_is_put_before_a_person,
    a_late_success_is_evidence_and_overwrites_nothing,
    a_late_refusal_is_evidence_and_overwrites_nothing,
    a_lease_that_has_not_run_out_is_left_alone,
    two_nodes_that_sweep_at_once_settle_an_attempt_once,
);

const LEASE: Duration = Duration::from_secs(60);
const PAST: Duration = Duration::from_micros(60_000_001);

/// What was noted. A late answer is told at the time at which it came, so that order says little.
fn kinds(thread: &Thread) -> Vec<EventKind> {
    let mut kinds: Vec<EventKind> = thread.events.iter().map(|event| event.kind).collect();
    kinds.sort();
    kinds
}

async fn a_lost_worker_at_a_keyed_destination_is_followed_by_a_resend(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("keyed", "order-1").await;
    let permit = app.take(id).await;
    drop(app.send(permit).await);
    app.clock.advance(PAST);
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(app.outcomes(id).await, [Outcome::Uncertain, Outcome::Done]);
    assert_eq!(thread.attempts[0].symptom, Some(Symptom::LostAfterSending));
    assert_eq!(kinds(&thread), [EventKind::LeaseLost]);
    let requests = app.destination.requests();
    assert_eq!(requests.len(), 2);
    assert_eq!(requests[0].header("idempotency-key"), requests[1].header("idempotency-key"));
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(app.destination.effects().len(), 1);
}

async fn a_lost_worker_at_a_plain_destination_is_put_before_a_person(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    drop(app.take(id).await);
    app.clock.advance(PAST);
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), 0);
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.certainty), (ParkReason::NoWayToKnow, Certainty::MayHaveCompleted));
    assert_eq!((letter.next_action, letter.attempts), (NextAction::CheckDestination, 1));
    assert_eq!(kinds(&app.thread(id).await), [EventKind::LeaseLost]);
}

async fn a_late_success_is_evidence_and_overwrites_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for kind in ["keyed", "plain"] {
        let id = app.submit(kind, kind).await;
        let permit = app.take(id).await;
        let settlement = app.send(permit).await;
        app.clock.advance(PAST);
        app.run_to_the_end().await;
        let before = app.thread(id).await;
        assert!(!app.settle(settlement).await);
        let after = app.thread(id).await;
        assert_eq!(kinds(&after), [EventKind::LeaseLost, EventKind::LateDone]);
        assert_eq!(format!("{:?}", after.attempts), format!("{:?}", before.attempts));
        assert_eq!(format!("{:?}", after.steps), format!("{:?}", before.steps));
        assert_eq!(format!("{:?}", after.letters), format!("{:?}", before.letters));
        assert_eq!(after.operation.state(), before.operation.state());
        let late = after.events.iter().find(|event| event.kind == EventKind::LateDone).unwrap();
        assert!(late.detail.contains("201"), "{}", late.detail);
        assert!(matches!(after.knowledge(), Knowledge::DoneThere(_)), "{kind}");
    }
    assert_eq!(app.destination.effects().len(), 2);
    let letters = app.raw().await.number("SELECT count(*) FROM dead_letters WHERE status = 'open'").await;
    assert_eq!(letters, 1, "the plain one still waits for a person");
}

async fn a_late_refusal_is_evidence_and_overwrites_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::HostileText]);
    let id = app.submit("plain", "order-1").await;
    let permit = app.take(id).await;
    let settlement = app.send(permit).await;
    app.clock.advance(PAST);
    app.run_to_the_end().await;
    assert!(!app.settle(settlement).await);
    let thread = app.thread(id).await;
    assert_eq!(kinds(&thread), [EventKind::LeaseLost, EventKind::LateAnswer]);
    assert_eq!(thread.letters[0].status, DeadLetterStatus::Open);
    assert_eq!(thread.letters[0].certainty, Certainty::MayHaveCompleted);
    assert!(matches!(thread.knowledge(), Knowledge::CannotTell(_)));
}

async fn a_lease_that_has_not_run_out_is_left_alone(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    let permit = app.take(id).await;
    app.clock.advance(LEASE);
    assert_eq!(app.run_until_idle().await, 0);
    assert_eq!(app.state(id).await, OperationState::Running);
    let settlement = app.send(permit).await;
    assert!(app.settle(settlement).await);
    assert_eq!(app.state(id).await, OperationState::Completed);
}

async fn two_nodes_that_sweep_at_once_settle_an_attempt_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let mut ids = Vec::new();
    for n in 0..20 {
        let id = app.submit("plain", &format!("order-{n}")).await;
        drop(app.take(id).await);
        ids.push(id);
    }
    app.clock.advance(PAST);
    let (ours, theirs) = tokio::join!(app.engine.gate().sweep(), other.gate().sweep());
    assert_eq!(ours.unwrap() + theirs.unwrap(), 20);
    app.run_to_the_end().await;
    for id in ids {
        let thread = app.thread(id).await;
        assert_eq!((kinds(&thread).len(), thread.letters.len(), thread.attempts.len()), (1, 1, 1));
    }
}
