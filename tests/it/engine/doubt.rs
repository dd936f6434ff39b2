//! Doubt is sticky, resends in doubt are few, and a window that closed ends them.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::{CheckName, Verdict, VerdictKind};
use dead_letter_office::engine::actions;
use uuid::Uuid;

use crate::support::app::{TestApp, person};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_refusal_after_an_uncertain_send_does_not_end_the_doubt,
    a_refused_connection_after_an_uncertain_send_does_not_end_the_doubt,
    three_resends_in_doubt_at_most,
    a_replay_within_the_window_is_accepted_and_settles_the_doubt,
    a_replay_after_the_window_needs_an_override,
    a_replay_after_the_window_asks_where_it_can_be_asked,
    what_definitely_failed_may_be_replayed_after_the_window,
    the_engine_does_not_resend_after_the_window,
);

const LOST: Behaviour = Behaviour::CloseAfterRead { effect: true };

/// One that may have happened, and was refused when it was sent again.
async fn in_doubt(app: &mut TestApp, kind: &str) -> Uuid {
    let prefix = if kind == "both" { "/keyed".to_owned() } else { format!("/{kind}") };
    app.destination.script(&prefix, [LOST, Behaviour::status(422)]);
    let id = app.submit(kind, &format!("{kind}-doubt")).await;
    app.run_to_the_end().await;
    assert_eq!(app.letter(id).await.certainty, Certainty::MayHaveCompleted);
    id
}

async fn preview(app: &TestApp, id: Uuid) -> Verdict {
    actions::preview(app.engine.gate(), id, &person("olga", Role::Operator)).await.unwrap()
}

fn failed(verdict: &Verdict) -> Vec<CheckName> {
    verdict.checks.iter().filter(|check| !check.passed).map(|check| check.name).collect()
}

async fn a_refusal_after_an_uncertain_send_does_not_end_the_doubt(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (n, (code, next)) in
        [(401, NextAction::CheckDestination), (422, NextAction::CheckDestination)].into_iter().enumerate()
    {
        app.destination.script("/keyed", [LOST, Behaviour::status(code)]);
        let id = app.submit("keyed", &format!("order-{n}")).await;
        app.run_to_the_end().await;
        assert_eq!(app.outcomes(id).await, [Outcome::Uncertain, Outcome::Rejected]);
        let letter = app.letter(id).await;
        assert_eq!((letter.certainty, letter.next_action), (Certainty::MayHaveCompleted, next), "{code}");
        assert_eq!(app.state(id).await, OperationState::Uncertain);
        app.resume_all().await;
    }
}

async fn a_refused_connection_after_an_uncertain_send_does_not_end_the_doubt(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [LOST]);
    let id = app.submit("keyed", "order-1").await;
    app.run_until_idle().await;
    app.stop_destination().await;
    app.run_to_the_end().await;
    let outcomes = app.outcomes(id).await;
    assert_eq!(outcomes[0], Outcome::Uncertain);
    assert!(
        outcomes.len() > 1 && outcomes[1..].iter().all(|outcome| *outcome == Outcome::NotSent),
        "{outcomes:?}"
    );
    assert_eq!(app.letter(id).await.certainty, Certainty::MayHaveCompleted);
}

async fn three_resends_in_doubt_at_most(db: TestDatabase) {
    let mut app = TestApp::configured(db, "[operations.patient]\nretry = { attempts = 20, max_age = \"6h\" }\n[[operations.patient.steps]]\nname = \"create\"\ndestination = \"keyed\"\nmethod = \"POST\"\npath = \"/tickets\"\n").await;
    app.destination.script("/keyed", vec![Behaviour::CloseAfterRead { effect: false }; 20]);
    let id = app.submit("patient", "order-1").await;
    app.run_to_the_end().await;
    assert_eq!(app.outcomes(id).await, [Outcome::Uncertain; 4]);
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.certainty), (ParkReason::StillUncertain, Certainty::MayHaveCompleted));
    assert_eq!(app.destination.requests_count(), 4);
}

async fn a_replay_within_the_window_is_accepted_and_settles_the_doubt(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "keyed").await;
    app.clock.advance(Duration::from_hours(20));
    assert_eq!(app.replay(id, "a").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!(letter.status, DeadLetterStatus::Replayed);
    assert_eq!(letter.certainty, Certainty::CompletedAtDestination);
    assert_eq!(app.destination.effects().len(), 1);
}

async fn a_replay_after_the_window_needs_an_override(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = in_doubt(&mut app, "keyed").await;
    let first = app.thread(id).await.requests[0].first_sent_at;
    // 24 hours, less 300 ms for one exchange and 30 s for clocks.
    let closes = first.plus(Duration::from_hours(24) - Duration::from_millis(30_300));
    app.clock.advance(closes.since(app.now()) - Duration::from_micros(1));
    assert_eq!(preview(&app, id).await.verdict, VerdictKind::Accepted);
    app.clock.advance(Duration::from_micros(1));
    let verdict = app.replay(id, "a").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::NeedsOverride);
    assert_eq!(failed(&verdict), [CheckName::KeyWindowOpen, CheckName::OutcomeKnown]);
    assert_eq!(preview(&app, id).await, verdict);
    app.run_to_the_end().await;
    assert_eq!(app.destination.requests_count(), 2, "nothing was sent");
    assert_eq!(app.letter(id).await.status, DeadLetterStatus::Open);
}

async fn a_replay_after_the_window_asks_where_it_can_be_asked(db: TestDatabase) {
    let more = r#"
[destinations.both]
base_url = "{destination}/keyed"
timeout = "300ms"
connect_timeout = "200ms"
key = { header = "Idempotency-Key", window = "1h" }
lookup = { path = "/tickets?external_ref={{ key }}", found = "/tickets/0" }
[operations.both]
[[operations.both.steps]]
name = "create"
destination = "both"
method = "POST"
path = "/tickets"
"#;
    let mut app = TestApp::configured(db, more).await;
    let id = in_doubt(&mut app, "both").await;
    assert_eq!(preview(&app, id).await.verdict, VerdictKind::Accepted);
    app.clock.advance(Duration::from_hours(1));
    assert_eq!(app.replay(id, "a").await.unwrap().verdict, VerdictKind::LookUpFirst);
}

async fn what_definitely_failed_may_be_replayed_after_the_window(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    app.clock.advance(Duration::from_hours(72));
    assert_eq!(app.replay(id, "a").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_to_the_end().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
}

async fn the_engine_does_not_resend_after_the_window(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/keyed", [LOST]);
    let id = app.submit("keyed", "order-1").await;
    app.run_until_idle().await;
    app.clock.advance(Duration::from_hours(25));
    app.run_until_idle().await;
    assert_eq!(app.destination.requests_count(), 1);
    let letter = app.letter(id).await;
    assert_eq!((letter.why, letter.certainty), (ParkReason::WindowClosed, Certainty::MayHaveCompleted));
    assert_eq!((letter.next_action, letter.attempts), (NextAction::CheckDestination, 1));
}
