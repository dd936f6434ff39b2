//! An operation of several steps goes on where it stopped.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use dead_letter_office::domain::operation::{OperationState, StepState};
use dead_letter_office::domain::verdict::VerdictKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    each_step_uses_what_the_earlier_ones_saved,
    a_replay_goes_on_with_the_first_step_that_is_not_completed,
    doubt_of_a_later_step_leaves_the_earlier_one_alone,
    a_step_recorded_as_completed_is_followed_by_the_next,
    a_new_effect_of_a_later_step_repeats_that_step_only,
    an_override_of_a_step_that_is_done_is_no_word_on_the_next_one,
);

const TWO: &str = r#"
[operations.two]
[[operations.two.steps]]
name = "first"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}" }
save = { ticket = "/id", whole = "" }
reference = "/id"
[[operations.two.steps]]
name = "second"
destination = "plain"
method = "POST"
path = "/receipts"
body = { ticket = "{{ steps.first.ticket }}", key = "{{ key }}" }
reference = "/id"
"#;

async fn start(db: TestDatabase) -> TestApp {
    TestApp::configured(db, TWO).await
}

fn states(thread: &dead_letter_office::engine::thread::Thread) -> Vec<StepState> {
    thread.steps.iter().map(|step| step.state).collect()
}

/// The paths of the requests that arrived.
fn paths(app: &TestApp) -> Vec<String> {
    app.destination.requests().into_iter().map(|request| request.path).collect()
}

fn body(app: &TestApp, request: usize) -> Value {
    serde_json::from_slice(&app.destination.requests()[request].body).unwrap()
}

async fn each_step_uses_what_the_earlier_ones_saved(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(states(&thread), [StepState::Completed; 2]);
    let ticket = thread.steps[0].reference.clone().unwrap();
    let saved: Value = serde_json::from_str(thread.steps[0].saved.as_deref().unwrap()).unwrap();
    assert_eq!(saved["ticket"], json!(ticket));
    assert_eq!(saved["whole"]["id"], json!(ticket));
    let second = body(&app, 1);
    assert_eq!(second["ticket"], json!(ticket));
    assert_eq!(second["key"], json!(thread.steps[1].key.to_string()));
    assert_ne!(thread.steps[0].key, thread.steps[1].key);
    let numbers: Vec<(i64, i64)> = thread.attempts.iter().map(|a| (a.position, a.number)).collect();
    assert_eq!(numbers, [(0, 1), (1, 1)]);
}

/// The first step done and the second refused.
async fn second_failed(app: &mut TestApp, behaviour: Behaviour) -> Uuid {
    app.destination.script("/plain/receipts", [behaviour]);
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    id
}

async fn a_replay_goes_on_with_the_first_step_that_is_not_completed(db: TestDatabase) {
    let mut app = start(db).await;
    let id = second_failed(&mut app, Behaviour::status(422)).await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Failed);
    assert_eq!(states(&thread), [StepState::Completed, StepState::Failed]);
    let letter = &thread.letters[0];
    assert_eq!((letter.step.as_str(), letter.position, letter.attempts), ("second", 1, 1));
    assert_eq!((letter.destination.as_str(), letter.certainty), ("plain", Certainty::DefinitelyFailed));
    assert_eq!(app.replay(id, "a").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!(paths(&app), ["/keyed/tickets", "/plain/receipts", "/plain/receipts"]);
    assert_eq!(app.destination.effects().len(), 2);
}

async fn doubt_of_a_later_step_leaves_the_earlier_one_alone(db: TestDatabase) {
    let mut app = start(db).await;
    let id = second_failed(&mut app, Behaviour::CloseAfterRead { effect: true }).await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Uncertain);
    assert_eq!(states(&thread), [StepState::Completed, StepState::Uncertain]);
    let verdict = app.replay(id, "a").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::NeedsOverride);
    let known = verdict.known_result.unwrap();
    assert_eq!(known.reference, None, "the first step's result is not the second's");
    let letter = app.letter(id).await.id;
    app.resolve(letter, Resolution::CompletedAtDestination, Some("RCP-9"), "b").await.unwrap();
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.steps[1].reference.as_deref(), Some("RCP-9"));
}

async fn a_step_recorded_as_completed_is_followed_by_the_next(db: TestDatabase) {
    let mut app = start(db).await;
    app.destination.script("/keyed", [Behaviour::CloseAfterRead { effect: true }, Behaviour::status(401)]);
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!((letter.step.as_str(), letter.certainty), ("first", Certainty::MayHaveCompleted));
    app.resolve(letter.id, Resolution::CompletedAtDestination, Some("TCK-9"), "a").await.unwrap();
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Pending);
    assert_eq!(thread.steps[0].reference.as_deref(), Some("TCK-9"));
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed, "{:?}", thread.letters);
    assert_eq!(thread.letters.len(), 1);
    assert_eq!(thread.letters[0].status, DeadLetterStatus::Resolved);
    assert_eq!(body(&app, 2)["ticket"], json!("TCK-9"));
}

async fn a_new_effect_of_a_later_step_repeats_that_step_only(db: TestDatabase) {
    let mut app = start(db).await;
    let id = second_failed(&mut app, Behaviour::CloseAfterRead { effect: true }).await;
    let mode = dead_letter_office::engine::actions::OverrideMode::NewEffect;
    app.clock.advance(Duration::from_secs(1));
    assert_eq!(app.override_checks(id, mode, "a").await.verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!((thread.steps[0].generation, thread.steps[1].generation), (1, 2));
    let last = thread.attempts.last().unwrap();
    assert_eq!((last.outcome, last.position, last.generation), (Outcome::Done, 1, 2));
    assert_eq!(paths(&app), ["/keyed/tickets", "/plain/receipts", "/plain/receipts"]);
    assert_eq!(body(&app, 1)["ticket"], body(&app, 2)["ticket"]);
    assert_ne!(body(&app, 1)["key"], body(&app, 2)["key"]);
}

async fn an_override_of_a_step_that_is_done_is_no_word_on_the_next_one(db: TestDatabase) {
    use dead_letter_office::engine::actions::{OverrideMode, override_letter};
    let mut app = start(db).await;
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    // Somebody has the form of the first step's dead letter before them.
    let first = app.letter(id).await;
    assert_eq!(first.step, "first");
    // A colleague replays it, and the second step comes to be in doubt.
    app.destination.script("/plain/receipts", [Behaviour::CloseAfterRead { effect: true }]);
    app.clock.advance(Duration::from_secs(1));
    app.replay(id, "a").await.unwrap();
    app.run_to_the_end().await;
    let second = app.letter(id).await;
    assert_eq!((second.step.as_str(), second.certainty), ("second", Certainty::MayHaveCompleted));
    let berta = person("berta", Role::Approver);
    for (letter, action_id, wanted) in
        [(&first, "b", VerdictKind::Refused), (&second, "c", VerdictKind::Accepted)]
    {
        let asked = request(&berta, action_id);
        let verdict =
            override_letter(app.engine.gate(), letter, OverrideMode::NewEffect, true, None, &asked).await;
        let verdict = verdict.unwrap();
        assert_eq!(verdict.verdict, wanted, "{}", verdict.reason);
    }
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 3);
}
