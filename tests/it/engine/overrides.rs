//! An override is an argument of the checks, never a way around them.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::dead_letter::{DeadLetterStatus, Resolution};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::{CheckName, VerdictKind};
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    only_an_approver_may_override,
    an_override_needs_a_word_that_a_duplicate_may_come,
    the_same_key_waives_what_stands_in_the_way_and_says_so,
    a_new_effect_has_another_key_and_leaves_the_first_on_record,
    what_nothing_stands_in_the_way_of_is_not_overridden,
    a_changed_payload_is_never_sent,
    an_erased_payload_is_never_sent,
    what_is_done_stays_done,
    an_action_id_is_for_one_way_of_overriding,
);

const LOST: Behaviour = Behaviour::CloseAfterRead { effect: true };
const BOTH: [OverrideMode; 2] = [OverrideMode::SameKey, OverrideMode::NewEffect];

/// One that may have happened where nobody can tell.
async fn in_doubt(app: &mut TestApp, key: &str) -> Uuid {
    app.destination.script("/plain", [LOST]);
    let id = app.submit("plain", key).await;
    app.run_to_the_end().await;
    assert_eq!(app.replay(id, "before").await.unwrap().verdict, VerdictKind::NeedsOverride);
    id
}

async fn only_an_approver_may_override(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "order-1").await;
    let before = app.raw().await.dump().await;
    let reader = Actor::Token { name: "reader".into(), scope: Scope::Read };
    for actor in [person("vera", Role::Viewer), person("olga", Role::Operator), reader] {
        for mode in BOTH {
            let error = app.override_as(&actor, id, mode, "a").await.unwrap_err();
            assert!(matches!(error, ActionError::Forbidden(_)), "{actor}: {error}");
        }
    }
    assert_eq!(app.raw().await.dump().await, before, "nothing was written");
    let verdict = app.override_checks(id, OverrideMode::SameKey, "a").await;
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
}

async fn an_override_needs_a_word_that_a_duplicate_may_come(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "order-1").await;
    let before = app.raw().await.dump().await;
    let actor = person("anton", Role::Approver);
    let gate = app.engine.gate();
    let answer =
        actions::override_checks(gate, id, OverrideMode::SameKey, false, &request(&actor, "a")).await;
    assert!(matches!(answer, Err(ActionError::Invalid(_))));
    assert_eq!(app.raw().await.dump().await, before);
}

async fn the_same_key_waives_what_stands_in_the_way_and_says_so(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "order-1").await;
    let verdict = app.override_checks(id, OverrideMode::SameKey, "a").await;
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    let waived = verdict.checks.iter().find(|check| check.name == CheckName::OutcomeKnown).unwrap();
    assert!(waived.passed && waived.detail.starts_with("Waived by an override."), "{}", waived.detail);
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let entry = thread.audit.iter().find(|entry| entry.action == "override").unwrap();
    assert_eq!(entry.actor, "anton");
    assert!(entry.detail.contains("mode same_key; waived: outcome_known; then known: "), "{}", entry.detail);
    let attempt = thread.attempts.last().unwrap();
    assert_eq!((attempt.cause, attempt.generation), (Cause::Override, 1));
    assert_eq!(app.letter(id).await.status, DeadLetterStatus::Replayed);
    let requests = app.destination.requests();
    assert_eq!(requests[0].body, requests[1].body);
    assert_eq!(app.destination.effects().len(), 2, "the risk that the approver took");
}

async fn a_new_effect_has_another_key_and_leaves_the_first_on_record(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [LOST, Behaviour::status(422)]);
    let id = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    app.clock.advance(Duration::from_secs(1));
    let first = app.thread(id).await;
    let verdict = app.override_checks(id, OverrideMode::NewEffect, "a").await;
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!((first.steps[0].generation, thread.steps[0].generation), (1, 2));
    assert_ne!(first.steps[0].key, thread.steps[0].key);
    let [one, two] = &thread.requests[..] else { panic!("two stored requests") };
    assert_eq!((one.generation, one.key), (1, first.steps[0].key));
    assert_eq!((two.generation, two.key), (2, thread.steps[0].key));
    assert_eq!(one.body, first.requests[0].body);
    let generations: Vec<i64> = thread.attempts.iter().map(|attempt| attempt.generation).collect();
    assert_eq!(generations, [1, 1, 2]);
    let numbers: Vec<i64> = thread.attempts.iter().map(|attempt| attempt.number).collect();
    assert_eq!(numbers, [1, 2, 3]);
    let keys: Vec<Option<String>> = app.destination.effects().into_iter().map(|effect| effect.key).collect();
    assert_eq!(keys, [Some(one.key.to_string()), Some(two.key.to_string())]);
}

async fn what_nothing_stands_in_the_way_of_is_not_overridden(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    let verdict = app.override_checks(id, OverrideMode::SameKey, "a").await;
    assert_eq!(verdict.verdict, VerdictKind::Refused);
    assert!(verdict.reason.contains("replay it"), "{}", verdict.reason);
    assert_eq!(app.run_until_idle().await, 0);
    assert_eq!(app.letter(id).await.status, DeadLetterStatus::Open);
    assert_eq!(app.replay(id, "b").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
}

/// Nothing sends it, whoever asks.
async fn refused_whatever_is_waived(app: &mut TestApp, id: Uuid) {
    let requests = app.destination.requests_count();
    let mut verdicts = vec![app.replay(id, &format!("replay {id}")).await.unwrap()];
    for mode in BOTH {
        verdicts.push(app.override_checks(id, mode, &format!("{mode} {id}")).await);
    }
    for verdict in verdicts {
        assert_eq!(verdict.verdict, VerdictKind::Refused);
        let failed = verdict.checks.iter().find(|check| !check.passed).unwrap();
        assert_eq!(failed.name, CheckName::PayloadUnchanged);
    }
    assert_eq!(app.thread(id).await.steps[0].generation, 1);
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), requests);
}

async fn a_changed_payload_is_never_sent(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let parked = in_doubt(&mut app, "order-1").await;
    let queued = app.submit("keyed", "order-2").await;
    let changed = app.raw().await.execute(r#"UPDATE payloads SET body = '{"order_id":"order-9"}'"#).await;
    assert_eq!(changed, 2);
    refused_whatever_is_waived(&mut app, parked).await;
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), 1, "nor by the engine itself");
    assert_eq!(app.state(queued).await, OperationState::Failed);
    refused_whatever_is_waived(&mut app, queued).await;
}

async fn an_erased_payload_is_never_sent(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "order-1").await;
    app.raw().await.execute("DELETE FROM payloads").await;
    refused_whatever_is_waived(&mut app, id).await;
}

async fn what_is_done_stays_done(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let done = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    let recorded = in_doubt(&mut app, "order-2").await;
    let letter = app.letter(recorded).await.id;
    app.resolve(letter, Resolution::CompletedAtDestination, Some("TCK-9"), "r").await.unwrap();
    for id in [done, recorded] {
        for mode in BOTH {
            let verdict = app.override_checks(id, mode, &format!("{mode} {id}")).await;
            assert_eq!(verdict.verdict, VerdictKind::AlreadyDone);
            let reference = app.thread(id).await.steps[0].reference.clone();
            assert!(reference.is_some());
            assert_eq!(verdict.known_result.unwrap().reference, reference);
        }
    }
    assert_eq!(app.run_until_idle().await, 0);
    assert_eq!(app.destination.requests_count(), 2);
}

async fn an_action_id_is_for_one_way_of_overriding(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "order-1").await;
    let anton = person("anton", Role::Approver);
    app.override_as(&anton, id, OverrideMode::SameKey, "a").await.unwrap();
    let other = app.override_as(&anton, id, OverrideMode::NewEffect, "a").await;
    assert!(matches!(other, Err(ActionError::IdReused)), "{other:?}");
    app.run_to_the_end().await;
}
