//! One operation has one effect: through duplicates, races, lost answers and replays.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::operation::OperationState;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(an_operation_is_done_once, a_lost_answer_at_a_keyed_destination_gives_one_effect);

async fn an_operation_is_done_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("keyed", "order-1").await;
    assert_eq!(app.state(id).await, OperationState::Pending);
    assert_eq!(app.run_until_idle().await, 1);
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.attempts.len(), 1);
    assert_eq!(thread.attempts[0].outcome, Outcome::Done);
    let effects = app.destination.effects();
    assert_eq!(effects.len(), 1);
    assert_eq!(thread.steps[0].reference.as_ref(), Some(&effects[0].reference));
    assert_eq!(effects[0].key, Some(thread.steps[0].key.to_string()));
    assert_eq!(app.run_until_idle().await, 0);
}

async fn a_lost_answer_at_a_keyed_destination_gives_one_effect(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [Behaviour::CloseAfterRead { effect: true }]);
    let id = app.submit("keyed", "order-1").await;
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Uncertain);
    app.run_for(Duration::from_mins(1)).await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let outcomes: Vec<Outcome> = thread.attempts.iter().map(|attempt| attempt.outcome).collect();
    assert_eq!(outcomes, [Outcome::Uncertain, Outcome::Done]);
    assert_eq!(app.destination.effects().len(), 1);
    let bodies: Vec<Vec<u8>> = app.destination.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies[0], bodies[1]);
}
