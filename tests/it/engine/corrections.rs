//! A correction is another operation: the data of neither changes, and one of them at most is sent.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use dead_letter_office::domain::operation::{OperationState, StepState};
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::accept::SubmitError;
use dead_letter_office::engine::actions::{ActionError, Request};
use dead_letter_office::engine::correct::{self, CorrectError, Correction, Uncorrectable};
use dead_letter_office::store::operations;
use serde_json::value::RawValue;
use uuid::Uuid;

use crate::support::app::{TestApp, person};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::tables::business;

on_both!(
    a_correction_is_a_linked_operation_and_closes_the_old_one,
    a_waiting_retry_is_corrected_away,
    what_waits_for_a_paused_destination_can_be_corrected,
    the_same_action_id_makes_one_operation,
    what_cannot_be_corrected_says_why_and_changes_nothing,
    what_is_under_way_or_about_to_be_is_not_corrected,
    a_done_step_stands_in_the_way,
    data_that_makes_no_operation_is_told_at_once,
    keys_are_given_derived_or_numbered,
    two_people_who_correct_at_once_make_one_operation,
    a_correction_and_a_replay_at_once_never_both_count,
    a_correction_while_it_is_taken_up_never_sends_both,
);

const DERIVED: &str = r#"
[operations.derived]
key = "d:{{ payload.order_id }}:{{ payload.version }}"
[[operations.derived.steps]]
name = "first"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { amount = "{{ payload.amount }}" }
save = { ticket = "/id" }
reference = "/id"
[[operations.derived.steps]]
name = "second"
destination = "plain"
method = "POST"
path = "/receipts"
body = { amount = "{{ payload.amount }}" }
"#;

fn correction(payload: &str, key: Option<&str>) -> Correction {
    Correction { payload: RawValue::from_string(payload.to_owned()).unwrap(), key: key.map(str::to_owned) }
}

async fn by(
    app: &TestApp,
    actor: &Actor,
    id: Uuid,
    correction: Correction,
    action_id: &str,
) -> Result<Uuid, CorrectError> {
    let request = Request { actor, action_id, reason: "the amount was wrong", origin: "127.0.0.1" };
    correct::correct(app.engine.gate(), id, correction, &request).await
}

async fn corrected(app: &TestApp, id: Uuid, payload: &str, action_id: &str) -> Result<Uuid, CorrectError> {
    by(app, &person("olga", Role::Operator), id, correction(payload, None), action_id).await
}

/// Why it is not corrected, and that nothing came of it.
async fn refused(app: &TestApp, id: Uuid, action_id: &str) -> Uncorrectable {
    let before = business(app).await;
    let answer = corrected(app, id, r#"{"order_id":"other"}"#, action_id).await;
    assert_eq!(business(app).await, before);
    match answer {
        Err(CorrectError::Stands(why)) => why,
        other => panic!("{other:?}"),
    }
}

async fn failed(app: &mut TestApp, kind: &str, key: &str) -> Uuid {
    app.destination.script(&format!("/{kind}"), [Behaviour::status(422)]);
    let id = app.submit(kind, key).await;
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Failed);
    id
}

async fn id_of(app: &TestApp, key: &str) -> Uuid {
    let mut tx = app.engine.db().read().await.unwrap();
    operations::by_key(&mut tx, key).await.unwrap().expect("the operation").id
}

async fn a_correction_is_a_linked_operation_and_closes_the_old_one(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    let new = corrected(&app, id, r#"{"order_id":"order-1","amount":1}"#, "a").await.unwrap();
    let (old, thread) = (app.thread(id).await, app.thread(new).await);
    assert_eq!((old.operation.corrected_by, thread.operation.corrects), (Some(new), Some(id)));
    assert_eq!((old.operation.stored_state, old.operation.corrects), (OperationState::Failed, None));
    assert_eq!(old.operation.key, "order-1");
    assert_eq!(thread.operation.key, "order-1:c1");
    assert!(old.payload.unwrap().contains("1250"), "the old data is kept");
    assert_eq!(thread.payload.as_deref(), Some(r#"{"order_id":"order-1","amount":1}"#));
    assert_eq!(thread.operation.correlation_id, old.operation.correlation_id);
    assert_eq!(thread.operation.submitted_by, "olga");
    assert_ne!(thread.steps[0].key, old.steps[0].key);
    let letter = &old.letters[0];
    assert_eq!((letter.status, letter.certainty), (DeadLetterStatus::Corrected, Certainty::DefinitelyFailed));
    assert_eq!((letter.closed_by.as_deref(), letter.closed_at), (Some("olga"), Some(app.now())));
    assert_eq!((letter.reason.as_deref(), letter.resolution), (Some("the amount was wrong"), None));
    let [entry] = &old.audit[..] else { panic!("{:?}", old.audit) };
    assert_eq!((entry.action.as_str(), entry.dead_letter_id), ("correct", Some(letter.id)));
    let said: Vec<&str> = old.events.iter().map(|event| event.detail.as_str()).collect();
    assert_eq!(said, [format!("Corrected by operation {new} (olga: the amount was wrong)")]);
    let said: Vec<&str> = thread.events.iter().map(|event| event.detail.as_str()).collect();
    assert_eq!(said, [format!("Corrects operation {id} (olga: the amount was wrong)")]);

    let verdict = app.replay(id, "b").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Refused);
    assert!(verdict.reason.contains(&new.to_string()), "{}", verdict.reason);
    app.run_to_the_end().await;
    assert_eq!(app.state(new).await, OperationState::Completed);
    assert_eq!(app.state(id).await, OperationState::Failed);
    assert_eq!(app.destination.effects().len(), 1);
}

async fn a_waiting_retry_is_corrected_away(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    let id = app.submit("plain", "order-1").await;
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Pending);
    app.clock.advance(Duration::from_millis(1));
    let new = corrected(&app, id, r#"{"order_id":"order-1b"}"#, "a").await.unwrap();
    let old = app.thread(id).await;
    assert_eq!((old.operation.stored_state, old.steps[0].state), (OperationState::Failed, StepState::Failed));
    let [letter] = &old.letters[..] else { panic!("{:?}", old.letters) };
    assert_eq!((letter.status, letter.attempts), (DeadLetterStatus::Corrected, 1));
    assert_eq!((letter.why.as_str(), letter.answer_status), ("corrected", Some(421)));
    app.run_to_the_end().await;
    let bodies: Vec<String> = app
        .destination
        .effects()
        .into_iter()
        .map(|effect| String::from_utf8_lossy(&effect.body).into_owned())
        .collect();
    assert_eq!(bodies.len(), 1);
    assert!(bodies[0].contains("order-1b"), "{bodies:?}");
    assert_eq!(app.outcomes(id).await.len(), 1);
    assert_eq!(app.state(new).await, OperationState::Completed);

    // The same while a person's replay waits for its next try.
    let id = failed(&mut app, "plain", "order-2").await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    app.replay(id, "b").await.unwrap();
    app.run_until_idle().await;
    assert_eq!(app.letter(id).await.status, DeadLetterStatus::Replaying);
    corrected(&app, id, r#"{"order_id":"order-2b"}"#, "c").await.unwrap();
    let old = app.thread(id).await;
    assert_eq!(old.operation.state(), OperationState::Failed);
    assert_eq!((old.letters.len(), old.letters[0].status), (1, DeadLetterStatus::Corrected));
    app.run_to_the_end().await;
}

async fn what_waits_for_a_paused_destination_can_be_corrected(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(401)]);
    app.submit("plain", "order-0").await;
    app.run_until_idle().await;
    let id = app.submit("plain", "order-1").await;
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Pending);
    corrected(&app, id, r#"{"order_id":"order-1b"}"#, "a").await.unwrap();
    assert_eq!(app.letter(id).await.status, DeadLetterStatus::Corrected);
    assert_eq!(app.resume_all().await, 1);
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1);
    assert!(app.outcomes(id).await.is_empty(), "the old one never left");
}

async fn the_same_action_id_makes_one_operation(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    let payload = r#"{"order_id":"1b"}"#;
    let new = corrected(&app, id, payload, "a").await.unwrap();
    let before = business(&app).await;
    assert_eq!(corrected(&app, id, payload, "a").await.unwrap(), new);
    assert_eq!(business(&app).await, before);
    let other = corrected(&app, id, r#"{"order_id":"1c"}"#, "a").await;
    assert!(matches!(other, Err(CorrectError::Action(ActionError::IdReused))), "{other:?}");
    // Another id is another action.
    assert_eq!(refused(&app, id, "b").await, Uncorrectable::Corrected(new));
    app.run_to_the_end().await;
}

async fn what_cannot_be_corrected_says_why_and_changes_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let done = app.submit("plain", "done").await;
    app.run_to_the_end().await;
    assert_eq!(refused(&app, done, "a").await, Uncorrectable::Completed);

    app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }]);
    let doubtful = app.submit("plain", "doubtful").await;
    app.run_to_the_end().await;
    let why = refused(&app, doubtful, "b").await;
    assert_eq!(why, Uncorrectable::MayHaveHappened { step: "create ticket".to_owned() });
    assert!(why.to_string().contains("second effect"), "{why}");

    let id = failed(&mut app, "plain", "order-1").await;
    let before = business(&app).await;
    let same = r#"{ "amount":1250, "email":"anna@example.com","customer_id":"C-7","order_id":"order-1" }"#;
    let answer = corrected(&app, id, same, "c").await;
    assert!(matches!(answer, Err(CorrectError::Stands(Uncorrectable::Unchanged))), "{answer:?}");
    let viewer = by(&app, &person("vera", Role::Viewer), id, correction("{}", None), "d").await;
    assert!(matches!(viewer, Err(CorrectError::Action(ActionError::Forbidden(_)))), "{viewer:?}");
    let actor = person("olga", Role::Operator);
    let silent = Request { actor: &actor, action_id: "e", reason: " ", origin: "::1" };
    let silent = correct::correct(app.engine.gate(), id, correction("{}", None), &silent).await;
    assert!(matches!(silent, Err(CorrectError::Action(ActionError::Invalid(_)))), "{silent:?}");
    let nothing = corrected(&app, Uuid::nil(), "{}", "f").await;
    assert!(matches!(nothing, Err(CorrectError::Action(ActionError::NotFound))), "{nothing:?}");
    assert_eq!(business(&app).await, before);

    let letter = app.letter(id).await.id;
    app.resolve(letter, Resolution::FixedElsewhere, None, "g").await.unwrap();
    let why = refused(&app, id, "h").await;
    assert!(why.to_string().contains("olga closed this dead letter as fixed elsewhere"), "{why}");
}

async fn what_is_under_way_or_about_to_be_is_not_corrected(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    assert_eq!(refused(&app, id, "a").await, Uncorrectable::Queued);
    let permit = app.take(id).await;
    let why = refused(&app, id, "b").await;
    assert_eq!(why, Uncorrectable::InFlight { by: "engine".to_owned(), since: app.now() });
    let settlement = app.send(permit).await;
    app.settle(settlement).await;

    let id = failed(&mut app, "plain", "order-2").await;
    assert_eq!(app.replay(id, "c").await.unwrap().verdict, VerdictKind::Accepted);
    assert_eq!(refused(&app, id, "d").await, Uncorrectable::Queued);
    app.run_to_the_end().await;
}

async fn a_done_step_stands_in_the_way(db: TestDatabase) {
    let mut app = TestApp::configured(db, DERIVED).await;
    app.destination.script("/plain", [Behaviour::status(422)]);
    let payload = r#"{"order_id":"1","version":1,"amount":5}"#;
    app.try_submit("derived", "d:1:1", payload).await.unwrap();
    app.run_to_the_end().await;
    let id = id_of(&app, "d:1:1").await;
    let reference = app.thread(id).await.steps[0].reference.clone();
    assert!(reference.is_some());
    let why = refused(&app, id, "a").await;
    assert_eq!(why, Uncorrectable::StepDone { step: "first".to_owned(), reference: reference.clone() });
    assert!(why.to_string().contains(&reference.unwrap()), "{why}");
}

async fn data_that_makes_no_operation_is_told_at_once(db: TestDatabase) {
    let mut app = TestApp::configured(db, DERIVED).await;
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let payload = r#"{"order_id":"1","version":1,"amount":5}"#;
    app.try_submit("derived", "d:1:1", payload).await.unwrap();
    app.run_to_the_end().await;
    let id = id_of(&app, "d:1:1").await;
    let before = business(&app).await;
    for (payload, says) in [
        (r#"{"order_id":"1","version":2}"#, "payload.amount is missing"),
        (r#"{"order_id":"1","amount":5}"#, "payload.version is missing"),
        (r#"{"order_id":"1","order_id":"2","version":1,"amount":5}"#, "the payload"),
    ] {
        let error = corrected(&app, id, payload, "a").await.unwrap_err();
        assert!(error.to_string().contains(says), "{payload}: {error}");
        assert!(matches!(error, CorrectError::Submission(_)), "{error:?}");
    }
    assert_eq!(business(&app).await, before);
}

async fn keys_are_given_derived_or_numbered(db: TestDatabase) {
    let mut app = TestApp::configured(db, DERIVED).await;
    let first = failed(&mut app, "plain", "order-1").await;
    let other = app.submit("plain", "order-9").await;
    app.run_to_the_end().await;
    let olga = person("olga", Role::Operator);
    for key in ["order-1", "order-9"] {
        let taken = by(&app, &olga, first, correction("{\"order_id\":1}", Some(key)), "a").await;
        let Err(CorrectError::KeyTaken { key: told, first: whose }) = taken else { panic!("{taken:?}") };
        assert_eq!((told.as_str(), whose), (key, if key == "order-1" { first } else { other }));
    }
    let bad = by(&app, &olga, first, correction("{\"order_id\":1}", Some(" ")), "a").await;
    assert!(matches!(bad, Err(CorrectError::Submission(SubmitError::KeyMissing(_)))), "{bad:?}");

    // A chain counts on from the key that it began with.
    app.destination.script("/plain", [Behaviour::status(422), Behaviour::status(422)]);
    let second = corrected(&app, first, r#"{"order_id":"1b"}"#, "b").await.unwrap();
    app.run_to_the_end().await;
    let third = corrected(&app, second, r#"{"order_id":"1c"}"#, "c").await.unwrap();
    app.run_to_the_end().await;
    assert_eq!(app.thread(third).await.operation.key, "order-1:c2");
    let given = by(&app, &olga, third, correction("{\"order_id\":2}", Some("mine")), "d").await.unwrap();
    assert_eq!(app.thread(given).await.operation.key, "mine");

    app.destination.script("/keyed", [Behaviour::status(422), Behaviour::status(422)]);
    app.try_submit("derived", "d:1:1", r#"{"order_id":"1","version":1,"amount":5}"#).await.unwrap();
    app.run_to_the_end().await;
    let derived = id_of(&app, "d:1:1").await;
    let next = corrected(&app, derived, r#"{"order_id":"1","version":2,"amount":6}"#, "e").await.unwrap();
    assert_eq!(app.thread(next).await.operation.key, "d:1:2");
    app.run_to_the_end().await;
    let same_key = corrected(&app, next, r#"{"order_id":"1","version":2,"amount":7}"#, "f").await.unwrap();
    assert_eq!(app.thread(same_key).await.operation.key, "d:1:2:c1");
    app.run_to_the_end().await;
}

async fn two_people_who_correct_at_once_make_one_operation(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for n in 0..6 {
        let id = failed(&mut app, "plain", &format!("order-{n}")).await;
        let (olga, otto) = (person("olga", Role::Operator), person("otto", Role::Operator));
        let (ours, theirs) = (correction("{\"order_id\":1}", None), correction("{\"order_id\":2}", None));
        let (action, other) = (format!("a{n}"), format!("b{n}"));
        let (one, two) =
            tokio::join!(by(&app, &olga, id, ours, &action), by(&app, &otto, id, theirs, &other));
        let (won, told) = match (one, two) {
            (Ok(won), Err(told)) | (Err(told), Ok(won)) => (won, told),
            other => panic!("{other:?}"),
        };
        let CorrectError::Stands(told) = told else { panic!("{told:?}") };
        assert_eq!(told, Uncorrectable::Corrected(won));
        app.run_to_the_end().await;
        assert_eq!(app.destination.effects().len(), n + 1);
    }
}

async fn a_correction_and_a_replay_at_once_never_both_count(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for n in 0..8 {
        app.destination.clear();
        let id = failed(&mut app, "plain", &format!("order-{n}")).await;
        let (action, other) = (format!("a{n}"), format!("b{n}"));
        let (replay, new) =
            tokio::join!(app.replay(id, &action), corrected(&app, id, r#"{"order_id":"new"}"#, &other));
        match (replay.unwrap().verdict, new) {
            (VerdictKind::Accepted, Err(CorrectError::Stands(Uncorrectable::Queued)))
            | (VerdictKind::Refused, Ok(_)) => {}
            other => panic!("{other:?}"),
        }
        app.run_to_the_end().await;
        assert_eq!(app.destination.effects().len(), 1);
    }
}

async fn a_correction_while_it_is_taken_up_never_sends_both(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for n in 0..8 {
        app.destination.clear();
        app.destination.script("/plain", [Behaviour::retry_after(429, 20)]);
        let id = app.submit("plain", &format!("order-{n}")).await;
        app.run_until_idle().await;
        let due = app.thread(id).await.operation.due_at.unwrap();
        app.clock.advance(due.since(app.now()) - Duration::from_micros(1));
        let gate = app.engine.gate().clone();
        // A worker whose clock is a moment ahead asks for it just now.
        let action = format!("a{n}");
        let (admitted, new) =
            tokio::join!(gate.admit(id), corrected(&app, id, r#"{"order_id":"new"}"#, &action));
        let permit = admitted.unwrap().and_then(dead_letter_office::gate::Admission::into_permit);
        match (&permit, new) {
            (Some(_), Err(CorrectError::Stands(Uncorrectable::InFlight { .. } | Uncorrectable::Queued)))
            | (None, Ok(_)) => {}
            (permit, other) => panic!("{permit:?} {other:?}"),
        }
        if let Some(permit) = permit {
            let settlement = app.send(permit).await;
            assert!(app.settle(settlement).await);
        }
        app.run_to_the_end().await;
        assert_eq!(app.destination.effects().len(), 1);
    }
}
