//! What each kind of destination's answer leads to: state, certainty, next action, requests and
//! effects.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::dead_letter::{Certainty, NextAction};
use dead_letter_office::domain::decide::ParkReason;
use dead_letter_office::domain::operation::OperationState;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    answers_of_a_keyed_destination,
    answers_of_a_destination_that_can_be_asked,
    answers_of_a_destination_that_offers_nothing,
    answers_of_a_naturally_idempotent_destination,
    a_refused_connection_proves_that_nothing_was_sent,
);

/// A destination where repeating a request converges. The demo's counts each as an effect.
const IDEMPOTENT: &str = r#"
[destinations.upsert]
base_url = "{destination}/plain"
timeout = "300ms"
connect_timeout = "200ms"
naturally_idempotent = true
[operations.upsert]
[[operations.upsert.steps]]
name = "update contact"
destination = "upsert"
method = "PUT"
path = "/contacts"
reference = "/id"
"#;

/// What became of it: nobody has to look, or somebody has to and why.
type Came = Option<(ParkReason, Certainty, NextAction)>;

struct Case {
    behaviour: Behaviour,
    came: Came,
    requests: usize,
    effects: usize,
}

fn case(behaviour: Behaviour, came: Came, requests: usize, effects: usize) -> Case {
    Case { behaviour, came, requests, effects }
}

/// Answers that no contract changes.
fn the_same_everywhere() -> Vec<Case> {
    let failed = |why, next| Some((why, Certainty::DefinitelyFailed, next));
    let refused = |next| failed(ParkReason::Refused, next);
    vec![
        case(Behaviour::Ok, None, 1, 1),
        case(Behaviour::CutBody { effect: true }, None, 1, 1),
        case(Behaviour::CutBody { effect: false }, None, 1, 0),
        case(Behaviour::SlowBody, None, 1, 1),
        case(Behaviour::WrongJson, None, 1, 1),
        case(Behaviour::retry_after(429, 2), None, 2, 1),
        case(Behaviour::status(421), None, 2, 1),
        case(Behaviour::status(423), None, 2, 1),
        case(Behaviour::status(422), refused(NextAction::FixData), 1, 0),
        case(Behaviour::status(404), refused(NextAction::FixData), 1, 0),
        case(Behaviour::status(401), refused(NextAction::FixPermission), 1, 0),
        case(Behaviour::status(403), refused(NextAction::FixPermission), 1, 0),
        case(Behaviour::status(410), refused(NextAction::Decide), 1, 0),
        case(Behaviour::Redirect307, refused(NextAction::Decide), 1, 0),
        case(Behaviour::retry_after(429, 7_200), failed(ParkReason::WaitTooLong, NextAction::Wait), 1, 0),
    ]
}

/// Answers, or the lack of one, that leave open whether it happened, with how often it did.
fn uncertain() -> Vec<(Behaviour, usize)> {
    vec![
        (Behaviour::CloseAfterRead { effect: true }, 1),
        (Behaviour::CloseAfterRead { effect: false }, 0),
        (Behaviour::ResetAfterRead { effect: true }, 1),
        (Behaviour::Hang { effect: true }, 1),
        (Behaviour::Hang { effect: false }, 0),
        (Behaviour::Garbage { effect: true }, 1),
        (Behaviour::Garbage { effect: false }, 0),
        (Behaviour::PartialHead, 0),
        (Behaviour::StatusAfterEffect(500), 1),
        (Behaviour::status(502), 0),
        (Behaviour::retry_after(503, 1), 0),
        (Behaviour::status(504), 0),
        (Behaviour::status(408), 0),
        (Behaviour::status(409), 0),
    ]
}

async fn check(app: &mut TestApp, kind: &str, cases: Vec<Case>) {
    let prefix = if kind == "upsert" { "/plain".to_owned() } else { format!("/{kind}") };
    for (n, Case { behaviour, came, requests, effects }) in cases.into_iter().enumerate() {
        app.destination.clear();
        app.destination.script(&prefix, [behaviour.clone()]);
        let id = app.submit(kind, &format!("{kind}-{n}")).await;
        app.run_to_the_end().await;
        let thread = app.thread(id).await;
        let found = thread.letters.first().map(|letter| (letter.why, letter.certainty, letter.next_action));
        assert_eq!(found, came, "{kind}: {behaviour:?}");
        let state = match came {
            None => OperationState::Completed,
            Some((_, Certainty::MayHaveCompleted, _)) => OperationState::Uncertain,
            Some(_) => OperationState::Failed,
        };
        assert_eq!(thread.operation.state(), state, "{kind}: {behaviour:?}");
        let posted = app.destination.requests().iter().filter(|request| request.method != "GET").count();
        let seen = (posted, app.destination.effects().len());
        assert_eq!(seen, (requests, effects), "{kind}: {behaviour:?}");
        let sends = thread.attempts.iter().filter(|attempt| attempt.asked.is_none()).count();
        assert_eq!(sends, requests, "{kind}: {behaviour:?}");
        app.resume_all().await;
    }
}

async fn answers_of_a_keyed_destination(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let mut cases = the_same_everywhere();
    cases.extend(uncertain().into_iter().map(|(behaviour, _)| case(behaviour, None, 2, 1)));
    check(&mut app, "keyed", cases).await;
}

async fn answers_of_a_destination_that_can_be_asked(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let mut cases = the_same_everywhere();
    // What is found is done; what is proved absent is sent once more.
    cases.extend(uncertain().into_iter().map(|(behaviour, effects)| case(behaviour, None, 2 - effects, 1)));
    check(&mut app, "lookup", cases).await;
}

async fn answers_of_a_destination_that_offers_nothing(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let stop = Some((ParkReason::NoWayToKnow, Certainty::MayHaveCompleted, NextAction::CheckDestination));
    let mut cases = the_same_everywhere();
    cases.extend(uncertain().into_iter().map(|(behaviour, effects)| case(behaviour, stop, 1, effects)));
    check(&mut app, "plain", cases).await;
}

async fn answers_of_a_naturally_idempotent_destination(db: TestDatabase) {
    let mut app = TestApp::configured(db, IDEMPOTENT).await;
    let mut cases = the_same_everywhere();
    cases.extend(uncertain().into_iter().map(|(behaviour, effects)| case(behaviour, None, 2, effects + 1)));
    check(&mut app, "upsert", cases).await;
}

async fn a_refused_connection_proves_that_nothing_was_sent(db: TestDatabase) {
    let mut app = TestApp::configured(db, IDEMPOTENT).await;
    app.stop_destination().await;
    let mut ids = Vec::new();
    for kind in ["keyed", "lookup", "plain", "upsert"] {
        ids.push(app.submit(kind, kind).await);
    }
    app.run_to_the_end().await;
    app.start_destination().await;
    for id in ids {
        let letter = app.letter(id).await;
        assert_eq!((letter.why, letter.attempts), (ParkReason::AttemptsUsed, 5));
        assert_eq!(letter.certainty, Certainty::DefinitelyFailed);
        assert_eq!(letter.next_action, NextAction::Replay);
        app.replay(id, &format!("again {id}")).await.unwrap();
        app.run_to_the_end().await;
        assert_eq!(app.state(id).await, OperationState::Completed);
    }
    assert_eq!(app.destination.effects().len(), 4);
}
