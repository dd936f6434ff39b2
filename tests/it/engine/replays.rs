//! A replay is the same operation, under the same key, through the same checks.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::{Cause, Outcome};
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::{self, ActionError};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_replay_sends_the_same_request_and_ends_the_dead_letter_once_confirmed,
    a_second_replay_is_told_the_known_result,
    two_replays_at_once_give_one_run,
    the_same_action_id_gives_the_same_answer_and_one_run,
    an_action_id_belongs_to_one_action,
    a_failing_replay_takes_the_same_dead_letter_back,
    a_failure_after_a_close_opens_a_new_dead_letter,
    what_the_engine_still_works_on_is_not_replayed,
    a_replay_and_a_record_of_completion_at_once_never_both_count,
);

/// One that definitely failed.
async fn failed(app: &mut TestApp, kind: &str, key: &str) -> Uuid {
    app.destination.script(&format!("/{kind}"), [Behaviour::status(422)]);
    let id = app.submit(kind, key).await;
    app.run_to_the_end().await;
    assert_eq!(app.letter(id).await.certainty, Certainty::DefinitelyFailed);
    id
}

async fn a_replay_sends_the_same_request_and_ends_the_dead_letter_once_confirmed(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "keyed", "order-1").await;
    let before = app.letter(id).await;
    app.clock.advance(Duration::from_hours(3));
    let verdict = app.replay(id, "a").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    assert!(verdict.checks.iter().all(|check| check.passed) && verdict.checks.len() == 8);
    assert_eq!(verdict.run.unwrap().by, "olga");
    assert_eq!(verdict.known_result.unwrap().how, "It answered attempt 1 and did not do it.");
    let asked = app.letter(id).await;
    assert_eq!(
        (asked.status, asked.certainty, asked.closed_at),
        (DeadLetterStatus::Replaying, before.certainty, None)
    );
    app.run_to_the_end().await;

    let [first, second] = &app.destination.requests()[..] else { panic!("two requests") };
    assert_eq!(first.body, second.body);
    assert_eq!(first.header("idempotency-key"), second.header("idempotency-key"));
    assert_eq!((&first.method, &first.path), (&second.method, &second.path));
    assert_eq!(app.destination.effects().len(), 1);
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let second = &thread.attempts[1];
    assert_eq!((second.number, second.cause, second.requested_by.as_str()), (2, Cause::Replay, "olga"));
    let [letter] = &thread.letters[..] else { panic!("one dead letter") };
    assert_eq!((letter.id, letter.status), (before.id, DeadLetterStatus::Replayed));
    assert_eq!(letter.certainty, Certainty::CompletedAtDestination);
    assert_eq!((letter.closed_by.as_deref(), letter.closed_at), (Some("olga"), Some(app.now())));
    assert_eq!(letter.reference, thread.steps[0].reference);
    let [audit] = &thread.audit[..] else { panic!("one entry") };
    assert_eq!((audit.action.as_str(), audit.result.as_str()), ("replay", "accepted"));
    assert_eq!((audit.reason.as_deref(), audit.origin.as_str()), (Some("the CRM is back"), "127.0.0.1"));
    assert_eq!(audit.dead_letter_id, Some(letter.id));
}

async fn a_second_replay_is_told_the_known_result(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    app.replay(id, "a").await.unwrap();
    app.run_to_the_end().await;
    let verdict = app.replay(id, "b").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::AlreadyDone);
    let reference = app.thread(id).await.steps[0].reference.clone().unwrap();
    assert!(verdict.reason.contains(&reference), "{}", verdict.reason);
    let known = verdict.known_result.unwrap();
    assert_eq!(known.reference.as_ref(), Some(&reference));
    assert!(known.answer.unwrap().contains(&reference));
    assert_eq!(verdict.attempt, app.thread(id).await.attempts.last().map(|attempt| attempt.id));
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1);
}

async fn two_replays_at_once_give_one_run(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    for n in 0..5 {
        let id = failed(&mut app, "plain", &format!("order-{n}")).await;
        let mut tasks = JoinSet::new();
        for (gate, who) in [(app.engine.gate().clone(), "olga"), (other.gate().clone(), "otto")] {
            tasks.spawn(async move {
                let actor = person(who, Role::Operator);
                actions::replay(&gate, id, &request(&actor, &format!("a {n}"))).await.unwrap().verdict
            });
        }
        let mut verdicts = tasks.join_all().await;
        verdicts.sort();
        assert_eq!(verdicts, [VerdictKind::Accepted, VerdictKind::InFlight]);
        app.run_to_the_end().await;
        assert_eq!(app.thread(id).await.audit.len(), 2, "both are on record");
        assert_eq!(app.destination.effects().len(), n + 1);
    }
}

async fn the_same_action_id_gives_the_same_answer_and_one_run(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    let mut tasks = JoinSet::new();
    for _ in 0..4 {
        let gate = app.engine.gate().clone();
        tasks.spawn(async move {
            let actor = person("olga", Role::Operator);
            actions::replay(&gate, id, &request(&actor, "the form")).await.unwrap()
        });
    }
    let verdicts = tasks.join_all().await;
    assert_eq!(verdicts[0].verdict, VerdictKind::Accepted);
    assert!(verdicts.iter().all(|verdict| *verdict == verdicts[0]));
    app.run_to_the_end().await;
    assert_eq!(app.replay(id, "the form").await.unwrap(), verdicts[0], "also when it is done");
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!((thread.audit.len(), thread.attempts.len()), (1, 2));
}

async fn an_action_id_belongs_to_one_action(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let first = failed(&mut app, "plain", "order-1").await;
    let second = failed(&mut app, "plain", "order-2").await;
    app.replay(first, "a").await.unwrap();
    let before = app.raw().await.counts().await;
    assert!(matches!(app.replay(second, "a").await, Err(ActionError::IdReused)));
    let letter = app.letter(second).await.id;
    let resolved = app.resolve(letter, Resolution::NotNeeded, None, "a").await;
    assert!(matches!(resolved, Err(ActionError::IdReused)));
    assert_eq!(app.raw().await.counts().await, before);
    // Somebody else's id is another one.
    let other = app.replay_as(&person("otto", Role::Operator), second, "a").await.unwrap();
    assert_eq!(other.verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
}

async fn a_failing_replay_takes_the_same_dead_letter_back(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    let before = app.letter(id).await;
    app.clock.advance(Duration::from_hours(1));
    app.destination.script("/plain", [Behaviour::status(401)]);
    app.replay(id, "a").await.unwrap();
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    let [letter] = &thread.letters[..] else { panic!("one dead letter") };
    assert_eq!((letter.id, letter.status, letter.attempts), (before.id, DeadLetterStatus::Open, 2));
    assert_eq!((letter.opened_at, letter.first_failed_at), (before.opened_at, before.first_failed_at));
    assert_eq!((letter.last_failed_at, letter.answer_status), (app.now(), Some(401)));
    assert_ne!(letter.cause, before.cause);
    assert_eq!(app.outcomes(id).await, [Outcome::Rejected; 2]);
    assert_eq!(thread.operation.state(), OperationState::Failed);
}

async fn a_failure_after_a_close_opens_a_new_dead_letter(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = failed(&mut app, "plain", "order-1").await;
    let first = app.letter(id).await.id;
    app.resolve(first, Resolution::FixedElsewhere, None, "a").await.unwrap();
    app.clock.advance(Duration::from_hours(1));
    app.destination.script("/plain", [Behaviour::status(422)]);
    assert_eq!(app.replay(id, "b").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    let letters = app.thread(id).await.letters;
    assert_eq!((letters.len(), letters[1].id), (2, first));
    assert_eq!((letters[0].status, letters[1].status), (DeadLetterStatus::Open, DeadLetterStatus::Resolved));
}

async fn what_the_engine_still_works_on_is_not_replayed(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    let id = app.submit("plain", "order-1").await;
    app.run_until_idle().await;
    let verdict = app.replay(id, "a").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::InFlight);
    assert!(verdict.run.is_some());
    app.run_to_the_end().await;
    let permit = {
        let id = app.submit("plain", "order-2").await;
        app.take(id).await
    };
    let verdict = app.replay(permit.operation(), "b").await.unwrap();
    assert_eq!((verdict.verdict, verdict.attempt), (VerdictKind::InFlight, Some(permit.attempt())));
    let settlement = app.send(permit).await;
    assert!(app.settle(settlement).await);
    assert_eq!(app.destination.effects().len(), 2);
}

async fn a_replay_and_a_record_of_completion_at_once_never_both_count(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for n in 0..12 {
        app.destination.clear();
        let id = failed(&mut app, "plain", &format!("order-{n}")).await;
        let letter = app.letter(id).await.id;
        let gate = app.engine.gate().clone();
        let replay = tokio::spawn(async move {
            let actor = person("otto", Role::Operator);
            actions::replay(&gate, id, &request(&actor, &format!("replay {n}"))).await
        });
        let done = Resolution::CompletedAtDestination;
        let resolved = app.resolve(letter, done, Some("TCK-9"), &format!("resolve {n}")).await;
        let verdict = replay.await.unwrap().unwrap().verdict;
        app.run_to_the_end().await;
        match resolved {
            Ok(()) => {
                assert_eq!(verdict, VerdictKind::AlreadyDone);
                assert_eq!(app.destination.effects().len(), 0);
            }
            Err(ActionError::NotOpen(status)) => {
                assert_eq!((verdict, status), (VerdictKind::Accepted, DeadLetterStatus::Replaying));
                assert_eq!(app.destination.effects().len(), 1);
            }
            Err(other) => panic!("{other}"),
        }
    }
}
