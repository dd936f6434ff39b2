//! Lists lose no row and show none twice, and their filters, counts and searches agree.

use std::collections::BTreeSet;

use dead_letter_office::demo::destination::{Behaviour, Mix};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use dead_letter_office::domain::filter::{AuditFilter, DeadLetterFilter, Listed, OperationFilter, Page};
use dead_letter_office::domain::operation::{OperationState, Severity};
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::report::{DeadLetterReport, OperationReport};
use dead_letter_office::store::{audit, causes, dead_letters, operations};
use std::time::Duration;
use uuid::Uuid;

use crate::support::app::{TestApp, person, submission};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    pages_of_operations_lose_no_row_among_equal_times,
    pages_of_dead_letters_lose_no_row_among_equal_times,
    pages_of_the_audit_lose_no_row_among_equal_times,
    filters_of_dead_letters_agree_with_their_count,
    filters_of_operations_restrict,
    a_search_finds_whatever_people_have_in_hand,
    a_search_finds_business_ids_that_look_like_ours,
);

/// Hands in many at one moment.
async fn many(app: &TestApp, count: usize) -> BTreeSet<Uuid> {
    let mut waiting = Vec::new();
    for n in 0..count {
        let submission =
            submission("plain", &format!("order-{n}"), r#"{"order_id":"x","customer_id":"C-7"}"#);
        waiting.push(app.engine.intake().enqueue(submission).await.unwrap());
    }
    let mut ids = BTreeSet::new();
    for answer in waiting {
        let Accepted::Created(new) = answer.await.unwrap().unwrap() else { panic!("they are new") };
        ids.insert(new.id);
    }
    ids
}

/// Walks to the end and back; every row comes once each way, in the same order.
async fn walk<T>(
    wanted: &BTreeSet<Uuid>,
    id: impl Fn(&T) -> Uuid,
    mut page: impl AsyncFnMut(Page) -> Listed<T>,
) {
    let mut listed = page(Page { limit: 30, cursor: None }).await;
    assert!(listed.newer.is_none());
    let mut down: Vec<Uuid> = listed.items.iter().map(&id).collect();
    while let Some(cursor) = listed.older {
        listed = page(Page { limit: 30, cursor: Some(cursor) }).await;
        down.extend(listed.items.iter().map(&id));
    }
    assert_eq!(down.len(), wanted.len(), "none twice");
    assert_eq!(&down.iter().copied().collect::<BTreeSet<_>>(), wanted, "none lost");
    let mut up: Vec<Vec<Uuid>> = vec![listed.items.iter().map(&id).collect()];
    while let Some(cursor) = listed.newer {
        listed = page(Page { limit: 30, cursor: Some(cursor) }).await;
        up.push(listed.items.iter().map(&id).collect());
    }
    up.reverse();
    assert_eq!(up.concat(), down);
}

async fn pages_of_operations_lose_no_row_among_equal_times(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let ids = many(&app, 215).await;
    walk(
        &ids,
        |row: &operations::OperationRow| row.id,
        async |page| {
            let mut tx = app.engine.db().read().await.unwrap();
            operations::list(&mut tx, &OperationFilter::default(), page).await.unwrap()
        },
    )
    .await;
}

async fn pages_of_dead_letters_lose_no_row_among_equal_times(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.default_behaviour("/plain", Mix::new([(1, Behaviour::status(422))]));
    many(&app, 215).await;
    app.run_until_idle().await;
    let ids: BTreeSet<Uuid> = {
        let texts = match app.database.url.starts_with("postgres") {
            true => "SELECT CAST(id AS TEXT) FROM dead_letters",
            false => "SELECT lower(hex(id)) FROM dead_letters",
        };
        app.raw().await.texts(texts).await.iter().map(|id| id.parse().unwrap()).collect()
    };
    assert_eq!(ids.len(), 215);
    let filter = DeadLetterFilter { status: Some(DeadLetterStatus::Open), ..DeadLetterFilter::default() };
    walk(
        &ids,
        |row: &dead_letters::DeadLetterRow| row.id,
        async |page| {
            let mut tx = app.engine.db().read().await.unwrap();
            let listed = dead_letters::list(&mut tx, &filter, page).await.unwrap();
            let reports = DeadLetterReport::load(&mut tx, listed.items.clone(), "http://desk").await.unwrap();
            assert_eq!(reports.len(), listed.items.len());
            listed
        },
    )
    .await;
    let mut tx = app.engine.db().read().await.unwrap();
    assert_eq!(dead_letters::count(&mut tx, &filter, 1_000).await.unwrap(), 215);
    assert_eq!(dead_letters::count(&mut tx, &filter, 100).await.unwrap(), 100, "counting ends there");
}

async fn pages_of_the_audit_lose_no_row_among_equal_times(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    for n in 0..70 {
        app.replay(id, &format!("a {n}")).await.unwrap();
    }
    app.replay_as(&person("otto", Role::Operator), id, "a").await.unwrap();
    let filter = AuditFilter {
        actor: Some("olga".into()),
        action: Some("replay".into()),
        operation: Some(id),
        from: Some(app.now()),
        to: Some(app.now().plus(Duration::from_secs(1))),
    };
    let ids: BTreeSet<Uuid> =
        app.thread(id).await.audit.iter().filter(|row| row.actor == "olga").map(|row| row.id).collect();
    assert_eq!(ids.len(), 70);
    walk(
        &ids,
        |entry: &audit::Entry| entry.row.id,
        async |page| {
            let mut tx = app.engine.db().read().await.unwrap();
            audit::list(&mut tx, &filter, page).await.unwrap()
        },
    )
    .await;
}

async fn filters_of_dead_letters_agree_with_their_count(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let started = app.now();
    app.destination.script("/plain", [Behaviour::status(422), Behaviour::CloseAfterRead { effect: true }]);
    app.destination.script("/keyed", [Behaviour::status(401)]);
    let mut ids = Vec::new();
    for (kind, key) in [("plain", "order-1"), ("plain", "order-2"), ("keyed", "order-3")] {
        ids.push(app.submit(kind, key).await);
        app.run_to_the_end().await;
        app.clock.advance(Duration::from_secs(10));
    }
    let done = app.letter(ids[0]).await;
    app.resolve(done.id, dead_letter_office::domain::dead_letter::Resolution::NotNeeded, None, "a")
        .await
        .unwrap();
    let none = DeadLetterFilter::default;
    let after = |seconds| Some(started.plus(Duration::from_secs(seconds)));
    let cases: Vec<(DeadLetterFilter, &[usize])> = vec![
        (none(), &[0, 1, 2]),
        (DeadLetterFilter { status: Some(DeadLetterStatus::Open), ..none() }, &[1, 2]),
        (DeadLetterFilter { certainty: Some(Certainty::MayHaveCompleted), ..none() }, &[1]),
        (DeadLetterFilter { kind: Some("keyed".into()), ..none() }, &[2]),
        (DeadLetterFilter { destination: Some("plain".into()), ..none() }, &[0, 1]),
        (DeadLetterFilter { cause: Some(done.cause.clone()), ..none() }, &[0]),
        (DeadLetterFilter { severity: Some(Severity::Normal), ..none() }, &[0, 1, 2]),
        (DeadLetterFilter { severity: Some(Severity::Critical), ..none() }, &[]),
        (DeadLetterFilter { assignee: Some("olga".into()), ..none() }, &[]),
        (DeadLetterFilter { next_action: Some(NextAction::FixPermission), ..none() }, &[2]),
        (DeadLetterFilter { search: Some("C-7".into()), ..none() }, &[0, 1, 2]),
        (DeadLetterFilter { search: Some("order-2".into()), kind: Some("plain".into()), ..none() }, &[1]),
        (DeadLetterFilter { from: after(10), ..none() }, &[1, 2]),
        (DeadLetterFilter { from: after(10), to: after(20), ..none() }, &[1]),
        (DeadLetterFilter { kind: Some("'; DROP TABLE dead_letters;--".into()), ..none() }, &[]),
    ];
    for (filter, wanted) in cases {
        let mut tx = app.engine.db().read().await.unwrap();
        let listed = dead_letters::list(&mut tx, &filter, Page::default()).await.unwrap();
        let found: BTreeSet<Uuid> = listed.items.iter().map(|row| row.operation_id).collect();
        assert_eq!(found, wanted.iter().map(|n| ids[*n]).collect(), "{filter:?}");
        let count = dead_letters::count(&mut tx, &filter, 1_000).await.unwrap();
        assert_eq!(usize::try_from(count), Ok(wanted.len()), "{filter:?}");
    }
    let mut tx = app.engine.db().read().await.unwrap();
    let causes = causes::waiting(&mut tx, app.now(), 10).await.unwrap();
    assert_eq!(
        causes.iter().map(|cause| (cause.total, cause.last_hour)).collect::<Vec<_>>(),
        [(1, 1), (1, 1)]
    );
    let figures = dead_letters::figures(&mut tx, app.now()).await.unwrap();
    assert_eq!((figures.open, figures.may_have_completed, figures.arrived, figures.handled), (2, 1, 3, 1));
    assert!(figures.oldest.is_some());
}

async fn filters_of_operations_restrict(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let done = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    app.destination.script("/plain", [Behaviour::status(422)]);
    let failed = app.submit("plain", "order-2").await;
    app.run_to_the_end().await;
    app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: true }]);
    let doubtful = app.submit("lookup", "order-3").await;
    app.run_until_idle().await;
    app.clock.advance(Duration::from_secs(10));
    let waiting = app.submit("plain", "order-4").await;
    let running = app.submit("plain", "order-5").await;
    let permit = app.take(running).await;
    let none = OperationFilter::default;
    let state = |state| OperationFilter { state: Some(state), ..none() };
    let cases = [
        (none(), vec![done, failed, doubtful, waiting, running]),
        (OperationFilter { key: Some("order-2".into()), ..none() }, vec![failed]),
        (OperationFilter { kind: Some("plain".into()), ..none() }, vec![failed, waiting, running]),
        (state(OperationState::Completed), vec![done]),
        (state(OperationState::Failed), vec![failed]),
        (state(OperationState::Uncertain), vec![doubtful]),
        (state(OperationState::Pending), vec![waiting]),
        (state(OperationState::Running), vec![running]),
        (OperationFilter { destination: Some("lookup".into()), ..none() }, vec![doubtful]),
        (OperationFilter { search: Some("C-7".into()), kind: Some("keyed".into()), ..none() }, vec![done]),
        (OperationFilter { from: Some(app.now()), ..none() }, vec![waiting, running]),
        (OperationFilter { to: Some(app.now()), ..none() }, vec![done, failed, doubtful]),
    ];
    for (filter, wanted) in cases {
        let mut tx = app.engine.db().read().await.unwrap();
        let listed = operations::list(&mut tx, &filter, Page::default()).await.unwrap();
        let found: BTreeSet<Uuid> = listed.items.iter().map(|row| row.id).collect();
        assert_eq!(found, wanted.into_iter().collect(), "{filter:?}");
        let reports = OperationReport::load(&mut tx, listed.items, "http://desk").await.unwrap();
        assert!(reports.iter().all(|report| filter.state.is_none_or(|state| report.state() == state)));
    }
    let settlement = app.send(permit).await;
    app.settle(settlement).await;
}

/// What a search finds, in either list.
async fn found(app: &TestApp, text: &str) -> (Vec<Uuid>, Vec<Uuid>) {
    let mut tx = app.engine.db().read().await.unwrap();
    let search = Some(text.to_owned());
    let filter = OperationFilter { search: search.clone(), ..OperationFilter::default() };
    let listed = operations::list(&mut tx, &filter, Page::default()).await.unwrap();
    let filter = DeadLetterFilter { search, ..DeadLetterFilter::default() };
    let letters = dead_letters::list(&mut tx, &filter, Page::default()).await.unwrap();
    (
        listed.items.iter().map(|row| row.id).collect(),
        letters.items.iter().map(|row| row.operation_id).collect(),
    )
}

async fn a_search_finds_whatever_people_have_in_hand(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let done = app.submit("keyed", "order-1").await;
    app.run_to_the_end().await;
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let failed = app.submit("keyed", "order-2").await;
    app.run_to_the_end().await;
    let reference = app.thread(done).await.steps[0].reference.clone().unwrap();
    let letter = app.letter(failed).await.id;
    assert_eq!(found(&app, "C-7").await, (vec![failed, done], vec![failed]));
    for text in ["order-2", "corr-order-2", &failed.to_string(), &letter.to_string()] {
        assert_eq!(found(&app, text).await, (vec![failed], vec![failed]), "{text}");
    }
    for text in ["order-1", "corr-order-1", &reference, &done.to_string()] {
        assert_eq!(found(&app, text).await, (vec![done], vec![]), "{text}");
    }
    for text in ["order", "%", "' OR 1=1 --", &Uuid::nil().to_string()] {
        assert_eq!(found(&app, text).await, (vec![], vec![]), "{text}");
    }
}

async fn a_search_finds_business_ids_that_look_like_ours(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let customer = "0191d3c0-7a3e-7c1c-8f61-0c6a55b0a111";
    let payload = format!(r#"{{"order_id":"x","customer_id":"{customer}"}}"#);
    let key = "3F2504E0-4F89-11D3-9A0C-0305E82C3301";
    let Accepted::Created(new) = app.try_submit("keyed", key, &payload).await.unwrap() else { panic!("new") };
    for text in [customer, key] {
        assert_eq!(found(&app, text).await.0, [new.id], "{text}");
    }
}
