//! Steps that are not carried out: their condition does not hold, or they are optional and came to
//! nothing.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::classify::Symptom;
use dead_letter_office::domain::operation::{OperationState, StepState};
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::store::events::EventKind;
use uuid::Uuid;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_condition_decides_whether_a_step_is_carried_out,
    an_operation_whose_every_condition_fails_is_completed,
    a_condition_that_is_neither_true_nor_false_is_put_before_a_person,
    an_optional_step_that_is_refused_is_passed_over,
    an_optional_step_that_may_have_happened_says_so,
    an_optional_step_is_tried_as_often_as_any_other,
);

const TYPES: &str = r#"
[operations.order]
[[operations.order.steps]]
name = "first"
destination = "keyed"
method = "POST"
path = "/tickets"
save = { ticket = "/id" }
[[operations.order.steps]]
name = "gift"
destination = "keyed"
method = "POST"
path = "/gifts"
when = "payload.amount > 1000"
[[operations.order.steps]]
name = "notice"
destination = "plain"
method = "POST"
path = "/notices"
optional = true
[[operations.order.steps]]
name = "last"
destination = "keyed"
method = "POST"
path = "/letters"
when = "{{ steps.first.ticket is defined }}"

[operations.never]
[[operations.never.steps]]
name = "only"
destination = "keyed"
method = "POST"
path = "/tickets"
when = "false"

[operations.odd]
[[operations.odd.steps]]
name = "only"
destination = "keyed"
method = "POST"
path = "/tickets"
when = "payload.amount"
"#;

async fn submit(app: &TestApp, kind: &str, amount: u32) -> Uuid {
    let payload = format!(r#"{{"amount":{amount}}}"#);
    match app.try_submit(kind, &format!("{kind}-{amount}"), &payload).await.unwrap() {
        Accepted::Created(new) => new.id,
        Accepted::Duplicate(_) => panic!("new"),
    }
}

async fn states(app: &TestApp, id: Uuid) -> Vec<StepState> {
    app.thread(id).await.steps.iter().map(|step| step.state).collect()
}

fn paths(app: &TestApp) -> Vec<String> {
    app.destination.requests().into_iter().map(|request| request.path).collect()
}

const DONE: StepState = StepState::Completed;
const OVER: StepState = StepState::Skipped;

async fn a_condition_decides_whether_a_step_is_carried_out(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    let small = submit(&app, "order", 10).await;
    app.run_to_the_end().await;
    assert_eq!(states(&app, small).await, [DONE, OVER, DONE, DONE]);
    assert_eq!(paths(&app), ["/keyed/tickets", "/plain/notices", "/keyed/letters"]);
    let thread = app.thread(small).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let over: Vec<_> = thread.events.iter().filter(|event| event.kind == EventKind::PassedOver).collect();
    assert_eq!(over.len(), 1);
    assert!(over[0].detail.contains("gift"), "{}", over[0].detail);
    app.destination.clear();
    let large = submit(&app, "order", 5_000).await;
    app.run_to_the_end().await;
    assert_eq!(states(&app, large).await, [DONE; 4]);
    assert_eq!(paths(&app).len(), 4);
}

async fn an_operation_whose_every_condition_fails_is_completed(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    let id = submit(&app, "never", 1).await;
    app.run_to_the_end().await;
    assert_eq!(states(&app, id).await, [OVER]);
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!(app.destination.requests_count(), 0);
}

async fn a_condition_that_is_neither_true_nor_false_is_put_before_a_person(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    let id = submit(&app, "odd", 7).await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!(letter.symptom, Symptom::NotBuilt);
    assert!(letter.error.contains("when") && letter.error.contains('7'), "{}", letter.error);
    assert_eq!(app.destination.requests_count(), 0);
}

async fn an_optional_step_that_is_refused_is_passed_over(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    app.destination.script("/plain/notices", [Behaviour::status(422)]);
    let id = submit(&app, "order", 10).await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(states(&app, id).await, [DONE, OVER, OVER, DONE]);
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert!(thread.letters.is_empty());
    assert_eq!(thread.steps[2].attempts, 1);
    let told = &thread.events.iter().rfind(|event| event.kind == EventKind::PassedOver).unwrap().detail;
    assert!(told.contains("notice") && told.contains("definitely failed"), "{told}");
}

async fn an_optional_step_that_may_have_happened_says_so(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    app.destination.script("/plain/notices", [Behaviour::CloseAfterRead { effect: true }]);
    let id = submit(&app, "order", 10).await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.steps[2].attempts, 1, "it is not sent again");
    let told = &thread.events.iter().rfind(|event| event.kind == EventKind::PassedOver).unwrap().detail;
    assert!(told.contains("may have completed"), "{told}");
}

async fn an_optional_step_is_tried_as_often_as_any_other(db: TestDatabase) {
    let mut app = TestApp::configured(db, TYPES).await;
    app.destination.script("/plain/notices", [Behaviour::status(421), Behaviour::status(421)]);
    let id = submit(&app, "order", 10).await;
    app.run_to_the_end().await;
    assert_eq!(states(&app, id).await, [DONE, OVER, DONE, DONE]);
    assert_eq!(app.thread(id).await.steps[2].attempts, 3);
}
