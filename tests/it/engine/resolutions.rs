//! A dead letter is closed at a person's word, once, with a reason.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, Resolution};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::{self, ActionError, Request, Resolve};
use dead_letter_office::engine::thread::Knowledge;
use uuid::Uuid;

use crate::support::app::{TestApp, person};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    every_resolution_closes_with_name_and_reason,
    recorded_as_completed_is_already_done_for_everybody,
    a_resolution_posted_twice_acts_once,
    a_viewer_may_not_resolve,
    a_closed_or_replaying_dead_letter_cannot_be_resolved,
    a_reason_is_required_and_bounded,
    hostile_words_are_kept_as_words,
);

async fn in_doubt(app: &mut TestApp, key: &str) -> (Uuid, Uuid) {
    app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: true }]);
    let id = app.submit("plain", key).await;
    app.run_to_the_end().await;
    (id, app.letter(id).await.id)
}

async fn because(
    app: &TestApp,
    letter: Uuid,
    reason: &str,
    reference: Option<&str>,
) -> Result<(), ActionError> {
    let actor = person("olga", Role::Operator);
    let action_id = format!("{letter} {}", reason.chars().count());
    let request = Request { actor: &actor, action_id: &action_id, reason, origin: "::1" };
    let how = Resolve { resolution: Resolution::Duplicate, reference: reference.map(str::to_owned) };
    actions::resolve(app.engine.gate(), letter, &how, &request).await
}

async fn every_resolution_closes_with_name_and_reason(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for resolution in Resolution::ALL {
        let (id, letter) = in_doubt(&mut app, resolution.as_str()).await;
        app.resolve(letter, *resolution, Some(" TCK-9 "), &format!("a {resolution}")).await.unwrap();
        let thread = app.thread(id).await;
        let row = &thread.letters[0];
        assert_eq!((row.status, row.resolution), (DeadLetterStatus::Resolved, Some(*resolution)));
        assert_eq!((row.closed_by.as_deref(), row.closed_at), (Some("olga"), Some(app.now())));
        assert_eq!(
            (row.reason.as_deref(), row.reference.as_deref()),
            (Some("the CRM is back"), Some("TCK-9"))
        );
        let done = *resolution == Resolution::CompletedAtDestination;
        let (state, certainty) = match done {
            true => (OperationState::Completed, Certainty::CompletedAtDestination),
            false => (OperationState::Uncertain, Certainty::MayHaveCompleted),
        };
        assert_eq!((thread.operation.state(), row.certainty), (state, certainty), "{resolution}");
        let [entry] = &thread.audit[..] else { panic!("one entry") };
        assert_eq!((entry.action.as_str(), entry.result.as_str()), ("resolve", resolution.as_str()));
        assert_eq!((entry.actor.as_str(), entry.dead_letter_id), ("olga", Some(letter)));
    }
    assert_eq!(app.run_until_idle().await, 0);
}

async fn recorded_as_completed_is_already_done_for_everybody(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = in_doubt(&mut app, "order-1").await;
    app.resolve(letter, Resolution::CompletedAtDestination, Some("TCK-9"), "a").await.unwrap();
    let verdict = app.replay(id, "b").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::AlreadyDone);
    let known = verdict.known_result.unwrap();
    assert_eq!(
        (known.reference.as_deref(), known.how.as_str()),
        (Some("TCK-9"), "olga recorded it as done.")
    );
    assert!(matches!(app.thread(id).await.knowledge(), Knowledge::Recorded(_)));
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), 1);
}

async fn a_resolution_posted_twice_acts_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = in_doubt(&mut app, "order-1").await;
    for _ in 0..2 {
        app.resolve(letter, Resolution::CompletedAtDestination, Some("TCK-9"), "the form").await.unwrap();
    }
    assert_eq!(app.thread(id).await.audit.len(), 1);
    let other = app.resolve(letter, Resolution::NotNeeded, None, "the form").await;
    assert!(matches!(other, Err(ActionError::IdReused)), "{other:?}");
}

async fn a_viewer_may_not_resolve(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (_, letter) = in_doubt(&mut app, "order-1").await;
    let before = app.raw().await.dump().await;
    let vera = person("vera", Role::Viewer);
    let error = app.resolve_as(&vera, letter, Resolution::NotNeeded, None, "a").await.unwrap_err();
    assert!(error.to_string().contains("operator"), "it says who may: {error}");
    assert_eq!(app.raw().await.dump().await, before);
}

async fn a_closed_or_replaying_dead_letter_cannot_be_resolved(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (_, letter) = in_doubt(&mut app, "order-1").await;
    app.resolve(letter, Resolution::NotNeeded, None, "a").await.unwrap();
    let again = app.resolve(letter, Resolution::CompletedAtDestination, None, "b").await;
    assert!(matches!(again, Err(ActionError::NotOpen(DeadLetterStatus::Resolved))));
    app.destination.script("/plain", [Behaviour::status(422)]);
    let id = app.submit("plain", "order-2").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await.id;
    app.replay(id, "c").await.unwrap();
    let while_replaying = app.resolve(letter, Resolution::NotNeeded, None, "d").await;
    assert!(matches!(while_replaying, Err(ActionError::NotOpen(DeadLetterStatus::Replaying))));
    app.run_to_the_end().await;
    let nobody = app.resolve(Uuid::nil(), Resolution::NotNeeded, None, "e").await;
    assert!(matches!(nobody, Err(ActionError::NotFound)));
}

async fn a_reason_is_required_and_bounded(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (_, letter) = in_doubt(&mut app, "order-1").await;
    let before = app.raw().await.dump().await;
    for reason in ["", " \n ", &"x".repeat(5_000)] {
        let answer = because(&app, letter, reason, None).await;
        assert!(matches!(answer, Err(ActionError::Invalid(_))), "{answer:?}");
    }
    for reference in ["a\nb", "\u{0}", &"x".repeat(201)] {
        let answer = because(&app, letter, "why not", Some(reference)).await;
        assert!(matches!(answer, Err(ActionError::Invalid(_))), "{answer:?}");
    }
    assert_eq!(app.raw().await.dump().await, before);
}

async fn hostile_words_are_kept_as_words(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = in_doubt(&mut app, "order-1").await;
    let reason = "<script>alert(1)</script> '; DROP TABLE operations;-- \u{0} \u{202e}{{ 7 * 7 }}";
    because(&app, letter, reason, Some("<b>'\"")).await.unwrap();
    let thread = app.thread(id).await;
    let kept = reason.replace('\0', "\u{fffd}");
    assert_eq!(thread.letters[0].reason.as_ref(), Some(&kept));
    assert_eq!(thread.letters[0].reference.as_deref(), Some("<b>'\""));
    assert_eq!(thread.audit[0].reason.as_ref(), Some(&kept));
}
