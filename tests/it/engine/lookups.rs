//! A destination that can be asked is asked before anything is sent again, and whenever a person
//! wants to know.

use std::time::Duration;

use dead_letter_office::demo::destination::{Behaviour, Mix};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::{Cause, Outcome};
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::lookup::Finding;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::time::Timestamp;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::ask::{self, FindingReport};
use dead_letter_office::store::events::EventKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    what_is_found_is_done_and_not_sent_again,
    an_absence_counts_only_after_lease_timeout_and_lag,
    a_lookup_that_fails_is_asked_again_and_settles_nothing,
    other_data_under_our_reference_is_put_before_a_person,
    a_lost_result_is_fetched_and_never_sent_for,
    a_result_that_cannot_be_fetched_holds_nothing_up_for_ever,
    a_person_asks_about_a_dead_letter_and_it_is_there,
    a_person_asks_about_a_dead_letter_and_it_is_not_there,
    a_person_asks_while_a_retry_waits,
    a_person_asks_about_what_is_completed,
    what_a_person_closed_is_not_started_again_by_a_question,
    a_worker_that_was_lost_is_found_out_about,
    a_closed_key_window_is_asked_about_before_anything_is_sent,
    what_cannot_be_asked_is_refused_and_changes_nothing,
    asked_twice_under_one_id_is_one_question,
);

const LOST: Behaviour = Behaviour::CloseAfterRead { effect: true };
const NEVER: Behaviour = Behaviour::CloseAfterRead { effect: false };
/// The path of the question, before its value.
const QUESTION: &str = "/lookup/tickets?external_ref";

fn posts(app: &TestApp) -> usize {
    app.destination.requests().iter().filter(|request| request.method == "POST").count()
}

fn questions(app: &TestApp) -> usize {
    app.destination.requests().iter().filter(|request| request.method == "GET").count()
}

async fn kinds(app: &TestApp, id: Uuid) -> Vec<EventKind> {
    app.thread(id).await.events.iter().map(|event| event.kind).collect()
}

/// Has it asked and lets the worker ask.
async fn ask(app: &mut TestApp, id: Uuid, action_id: &str) -> FindingReport {
    let olga = person("olga", Role::Operator);
    let question = ask::ask(app.engine.gate(), id, &request(&olga, action_id)).await.unwrap();
    app.run_until_idle().await;
    ask::answer(app.engine.gate(), &question).await.unwrap()
}

async fn what_is_found_is_done_and_not_sent_again(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/lookup", [LOST]);
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(app.outcomes(id).await, [Outcome::Uncertain, Outcome::Done]);
    assert_eq!(thread.attempts[1].cause, Cause::Lookup);
    assert_eq!(thread.attempts[1].requested_by, "engine");
    assert_eq!(thread.steps[0].attempts, 1, "a question is no attempt");
    assert_eq!((posts(&app), questions(&app)), (1, 1));
    let effect = &app.destination.effects()[0];
    assert_eq!(thread.steps[0].reference.as_deref(), Some(effect.reference.as_str()));
    assert_eq!(kinds(&app, id).await, [EventKind::Found]);
    assert!(thread.letters.is_empty());
}

async fn an_absence_counts_only_after_lease_timeout_and_lag(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/lookup", [NEVER]);
    let sent = app.now();
    let id = app.submit("lookup", "order-1").await;
    app.run_until_idle().await;
    while posts(&app) < 2 {
        app.clock.advance(Duration::from_millis(100));
        app.run_until_idle().await;
        assert!(app.now() < sent.plus(Duration::from_mins(5)), "it was never sent again");
    }
    // The lease is 60 s, the timeout 300 ms, the lag none.
    let waited = app.now().since(sent);
    assert!(waited >= Duration::from_millis(60_300), "{waited:?}");
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!(app.destination.effects().len(), 1);
    let outcomes = app.outcomes(id).await;
    assert_eq!(outcomes[outcomes.len() - 2..], [Outcome::NotSent, Outcome::Done]);
    let told = kinds(&app, id).await;
    assert_eq!(told.last(), Some(&EventKind::FoundAbsent));
    assert!(told[..told.len() - 1].iter().all(|kind| *kind == EventKind::FoundNothing), "{told:?}");
    let bodies: Vec<Vec<u8>> = app
        .destination
        .requests()
        .into_iter()
        .filter(|request| request.method == "POST")
        .map(|request| request.body)
        .collect();
    assert_eq!(bodies[0], bodies[1]);
}

async fn a_lookup_that_fails_is_asked_again_and_settles_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/lookup/tickets", [LOST]);
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::status(503))]));
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!(letter.why, ParkReason::LookupNeeded);
    assert_eq!(letter.certainty, Certainty::MayHaveCompleted);
    assert_eq!(letter.next_action, NextAction::CheckDestination);
    assert_eq!((letter.attempts, posts(&app)), (1, 1));
    assert!(questions(&app) > 3, "it was asked {} times", questions(&app));
    assert_eq!(app.state(id).await, OperationState::Uncertain);
}

const COMPARED: &str = r#"
[destinations.compared]
base_url = "{destination}/lookup"
timeout = "300ms"
connect_timeout = "200ms"
lookup = { path = "/tickets?external_ref={{ key }}", found = "/tickets/0", reference = "/tickets/0/id", compare = { "/tickets/0/order" = "{{ payload.order_id }}" } }
[operations.compared]
[[operations.compared.steps]]
name = "create ticket"
destination = "compared"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}", external_ref = "{{ key }}" }
"#;

async fn other_data_under_our_reference_is_put_before_a_person(db: TestDatabase) {
    let mut app = TestApp::configured(db, COMPARED).await;
    // Somebody else's ticket under our reference.
    app.destination.script("/lookup", [NEVER]);
    let id = app.submit("compared", "order-1").await;
    app.run_until_idle().await;
    let key = app.thread(id).await.steps[0].key.to_string();
    let theirs = json!({"order": "another", "external_ref": key});
    let url = format!("{}/lookup/tickets", app.destination.base_url());
    reqwest::Client::new().post(url).body(theirs.to_string()).send().await.unwrap();
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.next_action), (ParkReason::KeyConflict, NextAction::Decide));
    assert_eq!(letter.certainty, Certainty::MayHaveCompleted);
    assert_eq!(app.destination.effects().len(), 1);
    assert_eq!(kinds(&app, id).await, [EventKind::FoundOther]);
    // What is the same is found to be.
    app.destination.script("/lookup", [LOST]);
    let same = app.submit("compared", "order-2").await;
    app.run_to_the_end().await;
    assert_eq!(app.state(same).await, OperationState::Completed);
}

const TWO: &str = r#"
[operations.two]
[[operations.two.steps]]
name = "first"
destination = "lookup"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}", external_ref = "{{ key }}" }
save = { ticket = "/id" }
reference = "/id"
[[operations.two.steps]]
name = "second"
destination = "plain"
method = "POST"
path = "/receipts"
body = { ticket = "{{ steps.first.ticket }}" }
"#;

async fn a_lost_result_is_fetched_and_never_sent_for(db: TestDatabase) {
    let mut app = TestApp::configured(db, TWO).await;
    app.destination.script("/lookup", [Behaviour::CutBody { effect: true }]);
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let ticket = app.destination.effects()[0].reference.clone();
    assert_eq!(thread.steps[0].reference.as_deref(), Some(ticket.as_str()));
    let receipt = app.destination.requests().pop().unwrap();
    assert_eq!(serde_json::from_slice::<Value>(&receipt.body).unwrap(), json!({"ticket": ticket}));
    assert_eq!((posts(&app), questions(&app)), (2, 1));
}

async fn a_result_that_cannot_be_fetched_holds_nothing_up_for_ever(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/lookup/tickets", [Behaviour::CutBody { effect: true }]);
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::status(404))]));
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.steps[0].reference, None);
    assert_eq!(posts(&app), 1);
}

/// A dead letter that may have completed, since nobody could be asked at the time.
async fn unsettled(app: &mut TestApp, sent: Behaviour) -> Uuid {
    app.destination.script("/lookup/tickets", [sent]);
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::status(503))]));
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.letter(id).await.certainty, Certainty::MayHaveCompleted);
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::Ok)]));
    // All its failures opened the circuit; it is tried again after a while.
    app.clock.advance(Duration::from_mins(11));
    let verdict = app.replay(id, "too soon").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::LookUpFirst);
    id
}

async fn a_person_asks_about_a_dead_letter_and_it_is_there(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = unsettled(&mut app, LOST).await;
    let report = ask(&mut app, id, "ask").await;
    assert_eq!(report.finding, Some(Finding::Found));
    assert_eq!(report.state, OperationState::Completed);
    let effect = app.destination.effects()[0].reference.clone();
    assert_eq!(report.reference.as_deref(), Some(effect.as_str()));
    let letter = app.letter(id).await;
    assert_eq!(letter.status, DeadLetterStatus::Resolved);
    assert_eq!(letter.resolution, Some(Resolution::CompletedAtDestination));
    assert_eq!(letter.closed_by.as_deref(), Some("olga"));
    assert_eq!(letter.reference.as_deref(), Some(effect.as_str()));
    assert_eq!(posts(&app), 1);
    let thread = app.thread(id).await;
    assert_eq!(thread.attempts.last().unwrap().requested_by, "olga");
    assert!(thread.audit.iter().any(|row| row.action == "lookup" && row.actor == "olga"));
}

async fn a_person_asks_about_a_dead_letter_and_it_is_not_there(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = unsettled(&mut app, NEVER).await;
    let report = ask(&mut app, id, "ask").await;
    assert_eq!((report.finding, report.state), (Some(Finding::Absent), OperationState::Failed));
    let letter = app.letter(id).await;
    assert_eq!(letter.status, DeadLetterStatus::Open);
    assert_eq!((letter.certainty, letter.next_action), (Certainty::DefinitelyFailed, NextAction::Replay));
    let verdict = app.replay(id, "now").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!(app.destination.effects().len(), 1);
}

async fn a_person_asks_while_a_retry_waits(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/lookup/tickets", [Behaviour::retry_after(421, 300)]);
    let id = app.submit("lookup", "order-1").await;
    app.run_until_idle().await;
    let due = app.thread(id).await.operation.due_at.unwrap();
    let report = ask(&mut app, id, "ask").await;
    // Nothing was sent that could still appear.
    assert!(matches!(report.finding, Some(Finding::Absent | Finding::TooEarly)), "{report:?}");
    assert_eq!(report.state, OperationState::Pending);
    assert_eq!(app.thread(id).await.operation.due_at, Some(due), "the retry is due as before");
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!((posts(&app), questions(&app)), (2, 1));
}

async fn a_person_asks_about_what_is_completed(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let before = app.thread(id).await;
    let report = ask(&mut app, id, "ask").await;
    assert_eq!((report.finding, report.state), (Some(Finding::Found), OperationState::Completed));
    let after = app.thread(id).await;
    assert_eq!(after.operation.completed_at, before.operation.completed_at);
    assert_eq!(after.steps[0].reference, before.steps[0].reference);
    assert_eq!(kinds(&app, id).await, [EventKind::Found]);
}

async fn what_a_person_closed_is_not_started_again_by_a_question(db: TestDatabase) {
    let mut app = TestApp::configured(db, TWO).await;
    app.destination.script("/lookup/tickets", [LOST]);
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::status(503))]));
    let id = app.submit("two", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await.id;
    app.resolve(letter, Resolution::FixedElsewhere, None, "closed").await.unwrap();
    app.destination.default_behaviour(QUESTION, Mix::new([(1, Behaviour::Ok)]));
    app.clock.advance(Duration::from_mins(11));
    let report = ask(&mut app, id, "ask").await;
    assert_eq!((report.finding, report.state), (Some(Finding::Found), OperationState::Uncertain));
    app.run_to_the_end().await;
    assert_eq!(posts(&app), 1, "the second step may have been done by hand");
    assert_eq!(kinds(&app, id).await.last(), Some(&EventKind::Found));
}

async fn a_worker_that_was_lost_is_found_out_about(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (key, sends) in [("sent", true), ("not-sent", false)] {
        let id = app.submit("lookup", key).await;
        let permit = app.take(id).await;
        if sends {
            // Its answer is never written down.
            drop(app.send(permit).await);
        } else {
            drop(permit);
        }
        app.clock.advance(Duration::from_secs(61));
        app.run_to_the_end().await;
        assert_eq!(app.state(id).await, OperationState::Completed, "{key}");
    }
    assert_eq!(app.destination.effects().len(), 2);
    assert_eq!(posts(&app), 2);
}

const BRIEF: &str = r#"
[destinations.brief]
base_url = "{destination}/lookup"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "2m" }
lookup = { path = "/tickets?external_ref={{ key }}", found = "/tickets/0", reference = "/tickets/0/id" }
[operations.brief]
[[operations.brief.steps]]
name = "create ticket"
destination = "brief"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}", external_ref = "{{ key }}" }
"#;

async fn a_closed_key_window_is_asked_about_before_anything_is_sent(db: TestDatabase) {
    let mut app = TestApp::configured(db, BRIEF).await;
    // This destination ignores the key, so that any repeat would be a second effect.
    app.destination.script("/lookup/tickets", [Behaviour::StatusAfterEffect(500)]);
    let id = app.submit("brief", "order-1").await;
    app.run_until_idle().await;
    // Nobody works for longer than the window.
    app.clock.advance(Duration::from_mins(3));
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    assert_eq!((posts(&app), app.destination.effects().len()), (1, 1));
    assert_eq!(kinds(&app, id).await, [EventKind::Found]);
}

async fn what_cannot_be_asked_is_refused_and_changes_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [LOST]);
    let plain = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    let before = app.raw().await.counts().await;
    let gate = app.engine.gate();
    let (olga, vera) = (person("olga", Role::Operator), person("vera", Role::Viewer));
    let refused = ask::ask(gate, plain, &request(&olga, "a")).await;
    assert!(matches!(refused, Err(ActionError::Invalid(_))), "{refused:?}");
    let refused = ask::ask(gate, Uuid::nil(), &request(&olga, "b")).await;
    assert!(matches!(refused, Err(ActionError::NotFound)), "{refused:?}");
    let refused = ask::ask(gate, plain, &request(&vera, "c")).await;
    assert!(matches!(refused, Err(ActionError::Forbidden(_))), "{refused:?}");
    assert_eq!(app.raw().await.counts().await, before);
    let held = app.submit("lookup", "order-2").await;
    let permit = app.take(held).await;
    let refused = ask::ask(app.engine.gate(), held, &request(&olga, "d")).await;
    assert!(matches!(refused, Err(ActionError::Busy(_))), "{refused:?}");
    let settlement = app.send(permit).await;
    assert!(app.settle(settlement).await);
}

async fn asked_twice_under_one_id_is_one_question(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = unsettled(&mut app, NEVER).await;
    let asked = questions(&app);
    let olga = person("olga", Role::Operator);
    let first = ask::ask(app.engine.gate(), id, &request(&olga, "one")).await.unwrap();
    let again = ask::ask(app.engine.gate(), id, &request(&olga, "one")).await.unwrap();
    assert_eq!(first, again);
    app.run_until_idle().await;
    assert_eq!(questions(&app), asked + 1);
    assert!(first.since > Timestamp::from_micros(0));
}
