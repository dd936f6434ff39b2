//! Payloads and answers that nobody would send, and secrets that must stay where they are.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::dead_letter::{Certainty, NextAction};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::thread::Thread;

use crate::support::app::{KINDS, TestApp};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_request_that_cannot_be_built_is_a_matter_of_data,
    a_hostile_answer_is_stored_cut_and_clean,
    a_body_that_grows_when_it_is_cleaned_is_marked_as_cut,
    a_huge_answer_to_something_done_does_not_undo_it,
    no_credential_is_in_the_database,
    what_the_destination_sends_back_of_our_credential_is_not_kept,
);

const CAP: usize = 64 * 1024;

async fn a_request_that_cannot_be_built_is_a_matter_of_data(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let neighbour = app.submit("keyed", "order-1").await;
    let Accepted::Created(new) =
        app.try_submit("keyed", "order-2", r#"{"customer_id":"C-7"}"#).await.unwrap()
    else {
        panic!("it is new");
    };
    app.run_to_the_end().await;
    assert_eq!(app.state(neighbour).await, OperationState::Completed);
    let thread = app.thread(new.id).await;
    assert_eq!(thread.operation.state(), OperationState::Failed);
    assert_eq!(app.outcomes(new.id).await, [Outcome::NotSent]);
    let letter = app.letter(new.id).await;
    assert_eq!((letter.why, letter.certainty), (ParkReason::Refused, Certainty::DefinitelyFailed));
    assert_eq!((letter.next_action, letter.attempts), (NextAction::FixData, 1));
    assert!(letter.error.contains("payload.order_id is missing"), "{}", letter.error);
    assert_eq!(app.destination.requests_count(), 1);
    assert!(thread.requests.is_empty());
}

/// Nothing that is kept is longer than promised or holds a NUL, which PostgreSQL cannot store.
fn cut_and_clean(thread: &Thread) {
    let attempt = &thread.attempts[0];
    let body = attempt.answer_body.as_deref().unwrap();
    assert!(body.len() <= CAP && body.len() > CAP - 4, "{}", body.len());
    assert!(attempt.answer_cut);
    let error = attempt.error.as_deref().unwrap_or_default();
    assert!(error.len() <= 500);
    for text in [body, error, attempt.answer_headers.as_deref().unwrap()] {
        assert!(!text.contains('\0'));
    }
}

async fn a_hostile_answer_is_stored_cut_and_clean(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::HostileText]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    let thread = app.thread(id).await;
    cut_and_clean(&thread);
    let letter = &thread.letters[0];
    assert!(letter.error.starts_with("422 <script>"), "{}", letter.error);
    assert!(letter.cause_text.chars().count() <= 203);
    assert_eq!(letter.next_action, NextAction::FixData);
}

async fn a_body_that_grows_when_it_is_cleaned_is_marked_as_cut(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let body = "\0".repeat(CAP);
    app.destination.script("/plain", [Behaviour::Status { code: 422, headers: Vec::new(), body }]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    cut_and_clean(&app.thread(id).await);
}

async fn a_huge_answer_to_something_done_does_not_undo_it(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (n, length) in [1 << 20, 3 << 20].into_iter().enumerate() {
        app.destination.script("/plain", [Behaviour::HugeBody(length)]);
        let id = app.submit("plain", &format!("order-{n}")).await;
        app.run_to_the_end().await;
        let thread = app.thread(id).await;
        assert_eq!(thread.operation.state(), OperationState::Completed);
        cut_and_clean(&thread);
    }
    assert_eq!(app.destination.effects().len(), 2);
}

async fn nothing_secret(app: &TestApp) {
    for (table, row) in app.raw().await.dump().await {
        assert!(!row.contains("planted-credential"), "{table}: {row}");
    }
}

async fn no_credential_is_in_the_database(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for kind in KINDS {
        let prefix = format!("/{kind}");
        app.destination.script(
            &prefix,
            [
                Behaviour::Ok,
                Behaviour::status(422),
                Behaviour::CloseAfterRead { effect: true },
                Behaviour::Redirect307,
            ],
        );
        for n in 0..4 {
            app.submit(kind, &format!("{kind}-{n}")).await;
        }
    }
    app.run_to_the_end().await;
    assert_eq!(app.resume_all().await, KINDS.len());
    app.run_to_the_end().await;
    let requests = app.destination.requests();
    assert!(requests.len() > 12);
    assert!(
        requests.iter().all(|request| request.header("authorization") == Some("Bearer planted-credential"))
    );
    nothing_secret(&app).await;
}

async fn what_the_destination_sends_back_of_our_credential_is_not_kept(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (n, code) in [422, 500, 201].into_iter().enumerate() {
        let body =
            r#"{"id":"planted-credential","message":"You sent Bearer planted-credential to us"}"#.to_owned();
        let headers = vec![("x-echo".into(), "authorization: Bearer planted-credential".into())];
        app.destination.script("/plain", [Behaviour::Status { code, headers, body }]);
        let id = app.submit("plain", &format!("order-{n}")).await;
        app.run_to_the_end().await;
        let attempt = app.thread(id).await.attempts.remove(0);
        assert!(attempt.answer_body.unwrap().contains("You sent Bearer [redacted] to us"));
    }
    nothing_secret(&app).await;
}
