//! The engine stops by itself, and says why.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::dead_letter::{Certainty, NextAction};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::store::events::EventKind;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_permanent_error_gets_one_attempt_and_a_dead_letter_at_once,
    exhausted_attempts_give_a_dead_letter_with_all_of_them,
    retries_that_would_come_too_late_are_not_made,
    a_worker_that_comes_a_moment_late_still_makes_the_last_try,
    work_that_lay_too_long_is_not_sent,
    work_that_was_never_tried_is_sent_however_long_it_lay,
);

async fn a_permanent_error_gets_one_attempt_and_a_dead_letter_at_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let refusal = Behaviour::error(422, "unknown_customer", "There is no such customer");
    app.destination.script("/keyed", [refusal]);
    let id = app.submit("keyed", "order-1").await;
    assert_eq!(app.run_until_idle().await, 1);
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Failed);
    assert_eq!(thread.operation.due_at, None);
    let [letter] = &thread.letters[..] else { panic!("{:?}", thread.letters) };
    assert_eq!((letter.why, letter.attempts), (ParkReason::Refused, 1));
    assert_eq!(letter.answer_status, Some(422));
    assert_eq!(letter.error, "422 There is no such customer");
    assert_eq!((letter.step.as_str(), letter.destination.as_str()), ("create ticket", "keyed"));
    assert_eq!(
        (letter.opened_at, letter.first_failed_at, letter.last_failed_at),
        (app.now(), app.now(), app.now())
    );
    app.clock.advance(Duration::from_hours(24));
    assert_eq!(app.run_until_idle().await, 0, "and nothing follows by itself");
}

async fn exhausted_attempts_give_a_dead_letter_with_all_of_them(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", vec![Behaviour::status(421); 9]);
    let id = app.submit("plain", "order-1").await;
    let started = app.now();
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    let numbers: Vec<i64> = thread.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3, 4, 5]);
    assert!(thread.attempts.iter().all(|attempt| attempt.outcome == Outcome::NotSent));
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.attempts), (ParkReason::AttemptsUsed, 5));
    assert_eq!((letter.certainty, letter.next_action), (Certainty::DefinitelyFailed, NextAction::Replay));
    assert_eq!((letter.first_failed_at, letter.last_failed_at), (started, app.now()));
    assert_eq!(app.destination.requests_count(), 5);
}

async fn retries_that_would_come_too_late_are_not_made(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", vec![Behaviour::retry_after(429, 600); 9]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.outcomes(id).await, [Outcome::Throttled; 3]);
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.certainty), (ParkReason::TooOld, Certainty::DefinitelyFailed));
}

async fn a_worker_that_comes_a_moment_late_still_makes_the_last_try(db: TestDatabase) {
    let more = r#"
[operations.brief]
retry = { attempts = 5, max_age = "2m", first_delay = "10h", max_delay = "10h" }
[[operations.brief.steps]]
name = "create"
destination = "plain"
method = "POST"
path = "/tickets"
"#;
    let mut app = TestApp::configured(db, more).await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    let id = app.submit("brief", "order-1").await;
    app.run_until_idle().await;
    let due = app.thread(id).await.operation.due_at.unwrap();
    app.clock.advance(due.since(app.now()) + Duration::from_secs(1));
    app.run_to_the_end().await;
    assert_eq!(app.outcomes(id).await, [Outcome::NotSent, Outcome::Done]);
}

async fn work_that_lay_too_long_is_not_sent(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    let id = app.submit("plain", "order-1").await;
    app.run_until_idle().await;
    // Every node was down meanwhile.
    app.clock.advance(Duration::from_hours(2));
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 1);
    assert_eq!(app.outcomes(id).await, [Outcome::NotSent, Outcome::Skipped]);
    let thread = app.thread(id).await;
    assert_eq!(thread.events.last().unwrap().kind, EventKind::NotSent);
    let letter = app.letter(id).await;
    assert_eq!(
        (letter.why, letter.certainty, letter.attempts),
        (ParkReason::TooOld, Certainty::DefinitelyFailed, 1)
    );
}

async fn work_that_was_never_tried_is_sent_however_long_it_lay(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    app.clock.advance(Duration::from_hours(48));
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
}
