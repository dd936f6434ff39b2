//! Two that race: one sends, the other is on record as having passed it over.

use dead_letter_office::domain::attempt::Outcome;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::gate::{Admission, Gate, Permit};
use tokio::sync::watch;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    two_gates_at_once_give_one_effect_and_one_recorded_skip,
    sixteen_admissions_at_once_give_one_permit,
    two_workers_share_two_hundred_operations_and_none_happens_twice,
    two_running_nodes_finish_everything_and_stop_when_told,
);

/// Asks all gates for one operation at the same time.
async fn admit_at_once(gates: Vec<Gate>, id: Uuid) -> (Vec<Permit>, Vec<(VerdictKind, String)>) {
    let mut tasks = JoinSet::new();
    for gate in gates {
        tasks.spawn(async move { gate.admit(id).await.unwrap().expect("work") });
    }
    let (mut permits, mut refusals) = (Vec::new(), Vec::new());
    for admission in tasks.join_all().await {
        match admission {
            Admission::Send(permit) => permits.push(permit),
            Admission::Refused(verdict, why) => refusals.push((verdict, why)),
        }
    }
    (permits, refusals)
}

async fn two_gates_at_once_give_one_effect_and_one_recorded_skip(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let id = app.submit("plain", "order-1").await;
    let (permits, refusals) = admit_at_once(vec![app.engine.gate().clone(), other.gate().clone()], id).await;
    assert_eq!((permits.len(), refusals.len()), (1, 1));
    assert_eq!(refusals[0].0, VerdictKind::InFlight);
    assert_eq!(app.state(id).await, OperationState::Running);
    for permit in permits {
        let settlement = app.send(permit).await;
        assert!(app.settle(settlement).await);
    }
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(app.destination.effects().len(), 1);
    let skipped: Vec<_> = thread.attempts.iter().filter(|a| a.outcome == Outcome::Skipped).collect();
    assert_eq!((skipped.len(), thread.attempts.len()), (1, 2));
    let why = skipped[0].error.as_deref().unwrap();
    assert!(why.contains("sen"), "{why}");
    assert_eq!(why, refusals[0].1);
}

async fn sixteen_admissions_at_once_give_one_permit(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let id = app.submit("keyed", "order-1").await;
    let gates = (0..16).map(|n| if n % 2 == 0 { app.engine.gate().clone() } else { other.gate().clone() });
    let (mut permits, refusals) = admit_at_once(gates.collect(), id).await;
    assert_eq!((permits.len(), refusals.len()), (1, 15));
    let settlement = app.send(permits.remove(0)).await;
    assert!(app.settle(settlement).await);
    let outcomes = app.outcomes(id).await;
    assert_eq!(outcomes.iter().filter(|outcome| **outcome == Outcome::Skipped).count(), 15);
    assert_eq!(app.destination.requests_count(), 1);
}

async fn two_workers_share_two_hundred_operations_and_none_happens_twice(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let mut other = app.another_node(2).await.worker().unwrap();
    submit_many(&app, 200).await;
    let (ours, theirs) = tokio::join!(app.worker.run_until_idle(), other.run_until_idle());
    assert_eq!(ours.unwrap() + theirs.unwrap(), 200);
    all_happened_once(&app, 200).await;
}

async fn two_running_nodes_finish_everything_and_stop_when_told(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let (stop, stopped) = watch::channel(false);
    let nodes = [app.engine.start(&stopped).unwrap(), other.start(&stopped).unwrap()];
    submit_many(&app, 100).await;
    let mut raw = app.raw().await;
    // The nodes run in their own time here, which no clock of ours can move.
    while raw.number("SELECT count(*) FROM operations WHERE state <> 'completed'").await > 0 {
        tokio::time::sleep(std::time::Duration::from_millis(20)).await;
    }
    stop.send(true).unwrap();
    for node in nodes {
        node.await.unwrap();
    }
    all_happened_once(&app, 100).await;
}

async fn submit_many(app: &TestApp, count: usize) {
    let mut tasks = JoinSet::new();
    for n in 0..count {
        let intake = app.engine.intake().clone();
        let key = format!("order-{n:04}");
        let payload = format!(r#"{{"order_id":"{key}"}}"#);
        tasks.spawn(
            async move { intake.submit(crate::support::app::submission("plain", &key, &payload)).await },
        );
    }
    for answer in tasks.join_all().await {
        answer.unwrap();
    }
}

async fn all_happened_once(app: &TestApp, count: usize) {
    let mut bodies: Vec<Vec<u8>> = app.destination.effects().into_iter().map(|effect| effect.body).collect();
    assert_eq!(bodies.len(), count);
    bodies.sort();
    bodies.dedup();
    assert_eq!(bodies.len(), count, "none twice");
    let mut raw = app.raw().await;
    let done = raw.number("SELECT count(*) FROM operations WHERE state = 'completed'").await;
    assert_eq!(usize::try_from(done), Ok(count));
}
