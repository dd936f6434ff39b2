//! A submission happens once, however often and wherever it comes in.

use dead_letter_office::engine::accept::{Accepted, Intake, Submission, SubmitError};
use dead_letter_office::store::events::EventKind;
use serde_json::value::RawValue;
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::{TestApp, submission};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    twenty_identical_submissions_give_one_operation_and_one_effect,
    a_key_that_comes_with_other_data_at_once_is_refused,
    a_second_operation_with_the_same_payload_is_legitimate,
    what_is_not_of_its_form_is_refused_and_changes_nothing,
    a_burst_stores_each_key_once,
    two_nodes_with_the_same_keys_in_opposite_orders_do_not_lock_each_other_out,
    a_hostile_business_id_does_not_take_its_neighbours_down,
);

const PAYLOAD: &str = r#"{"order_id":"order-1","customer_id":"C-7"}"#;

type Answer = Result<Accepted, SubmitError>;

/// Hands everything in at once.
async fn all_at_once(submissions: Vec<(Intake, Submission)>) -> Vec<(Submission, Answer)> {
    let mut tasks = JoinSet::new();
    for (intake, submission) in submissions {
        tasks.spawn(async move { (submission.clone(), intake.submit(submission).await) });
    }
    tasks.join_all().await
}

fn created(answers: &[(Submission, Answer)]) -> Vec<(&Submission, Uuid)> {
    let created = |(submission, answer): &'_ (Submission, Answer)| match answer {
        Ok(Accepted::Created(new)) => Some(new.id),
        _ => {
            let _ = submission;
            None
        }
    };
    answers.iter().filter_map(|pair| Some((&pair.0, created(pair)?))).collect()
}

async fn twenty_identical_submissions_give_one_operation_and_one_effect(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let intake = app.engine.intake();
    let tries = (0..20).map(|_| (intake.clone(), submission("keyed", "order-1", PAYLOAD))).collect();
    let answers = all_at_once(tries).await;
    let [(_, id)] = created(&answers)[..] else { panic!("{answers:?}") };
    let repeats =
        answers.iter().filter(|(_, answer)| matches!(answer, Ok(Accepted::Duplicate(of)) if *of == id));
    assert_eq!(repeats.count(), 19);
    app.run_until_idle().await;
    assert!(
        matches!(app.try_submit("keyed", "order-1", PAYLOAD).await, Ok(Accepted::Duplicate(of)) if of == id)
    );
    app.run_until_idle().await;
    assert_eq!(app.destination.effects().len(), 1);
    assert_eq!(app.destination.requests_count(), 1);
    let events = app.thread(id).await.events;
    assert_eq!(events.len(), 20);
    assert!(events.iter().all(|event| event.kind == EventKind::Duplicate && event.actor == "token:shop"));
}

async fn a_key_that_comes_with_other_data_at_once_is_refused(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let nodes = [app.engine.clone(), app.another_node(2).await];
    let mut tries = Vec::new();
    for n in 0..20 {
        let payload = if n % 4 < 2 { PAYLOAD } else { r#"{"order_id":"order-1","customer_id":"C-8"}"# };
        let kind = if n % 5 == 4 { "plain" } else { "keyed" };
        tries.push((nodes[n % 2].intake().clone(), submission(kind, "order-1", payload)));
    }
    let answers = all_at_once(tries).await;
    let [(first, id)] = created(&answers)[..] else { panic!("{answers:?}") };
    for (submission, answer) in &answers {
        let same = (submission.kind == first.kind, submission.payload.get() == first.payload.get());
        match (same, answer) {
            ((true, true), Ok(Accepted::Created(_))) => {}
            ((true, true), Ok(Accepted::Duplicate(of))) => assert_eq!(*of, id),
            ((false, _), Err(SubmitError::KeyReused { first, what: "type", .. })) => assert_eq!(*first, id),
            ((true, false), Err(SubmitError::KeyReused { first, what: "payload", .. })) => {
                assert_eq!(*first, id)
            }
            _ => panic!("{submission:?} got {answer:?}"),
        }
    }
    app.run_until_idle().await;
    assert_eq!(app.destination.effects().len(), 1);
    assert_eq!(app.thread(id).await.events.len(), 19, "each is on record, the refused ones too");
}

async fn a_second_operation_with_the_same_payload_is_legitimate(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for key in ["order-1:v1", "order-1:v2"] {
        assert!(matches!(app.try_submit("plain", key, PAYLOAD).await, Ok(Accepted::Created(_))));
    }
    app.run_until_idle().await;
    assert_eq!(app.destination.effects().len(), 2);
}

async fn what_is_not_of_its_form_is_refused_and_changes_nothing(db: TestDatabase) {
    let more = r#"
[operations.derived]
key = "ticket:{{ payload.order_id }}"
[[operations.derived.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"
"#;
    let app = TestApp::configured(db, more).await;
    let before = app.raw().await.counts().await;
    let good = || submission("keyed", "order-1", PAYLOAD);
    let with = |payload: &str| submission("keyed", "order-1", payload);
    let deep = format!("{}{}", "[".repeat(65), "]".repeat(65));
    let no_key = |key: Option<&str>| Submission { key: key.map(str::to_owned), ..good() };
    let cases: Vec<(Submission, &str)> = vec![
        (submission("keyd", "k", PAYLOAD), "there is no operation type \"keyd\"; did you mean \"keyed\"?"),
        (submission("zzz", "k", PAYLOAD), "there is no operation type \"zzz\""),
        (no_key(None), "keyed derives no key"),
        (no_key(Some("  ")), "the key is empty"),
        (no_key(Some("a\u{0}b")), "the key holds a control character"),
        (no_key(Some(&"x".repeat(256))), "the key has 256 characters"),
        (with(r#"{"a":1,"a":2}"#), "the member \"a\" is there twice"),
        (with(r#"{"a":[{"b":1,"\u0062":2}]}"#), "the member \"b\" is there twice"),
        (with(&deep), "nested deeper than 64 levels"),
        (with(r#"{"a":"\ud800"}"#), "the payload"),
        (Submission { correlation_id: Some("a\nb".into()), ..good() }, "correlation_id holds a control"),
        (Submission { correlation_id: Some("x".repeat(256)), ..good() }, "more than 255"),
        (Submission { source: Some("\u{1b}[2J".into()), ..good() }, "source holds a control"),
        (submission("derived", "other", PAYLOAD), "is not the one that derived derives"),
        (submission("derived", "k", "{}"), "payload.order_id is missing"),
    ];
    for (submission, wanted) in cases {
        let error = app.engine.intake().submit(submission).await.unwrap_err().to_string();
        assert!(error.contains(wanted), "{error} should say {wanted}");
    }
    assert_eq!(app.raw().await.counts().await, before);
}

async fn a_burst_stores_each_key_once(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let mut waiting = Vec::new();
    for n in 0..1_000 {
        let key = format!("order-{}", n % 700);
        waiting.push(app.engine.intake().enqueue(submission("keyed", &key, PAYLOAD)).await.unwrap());
    }
    let (mut created, mut repeated) = (0, 0);
    for answer in waiting {
        match answer.await.unwrap().unwrap() {
            Accepted::Created(_) => created += 1,
            Accepted::Duplicate(_) => repeated += 1,
        }
    }
    assert_eq!((created, repeated), (700, 300));
    let counts = app.raw().await.counts().await;
    for table in ["operations", "payloads", "steps", "work"] {
        assert_eq!(counts[table], 700, "{table}");
    }
    assert_eq!(counts["events"], 300);
}

async fn two_nodes_with_the_same_keys_in_opposite_orders_do_not_lock_each_other_out(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    for round in 0..20 {
        let mut waiting = Vec::new();
        for n in 0..128 {
            for (engine, n) in [(&app.engine, n), (&other, 127 - n)] {
                let submission = submission("keyed", &format!("order-{round}-{n}"), PAYLOAD);
                waiting.push(engine.intake().enqueue(submission).await.unwrap());
            }
        }
        let mut created = 0;
        for answer in waiting {
            created += usize::from(matches!(answer.await.unwrap().unwrap(), Accepted::Created(_)));
        }
        assert_eq!(created, 128);
    }
}

async fn a_hostile_business_id_does_not_take_its_neighbours_down(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let hostile = r#"{"order_id":"a\u0000b\u001b","customer_id":"\u0000"}"#;
    let tries = [("order-1", PAYLOAD), ("order-2", hostile), ("order-3", PAYLOAD)]
        .map(|(key, payload)| (app.engine.intake().clone(), submission("keyed", key, payload)));
    for (submission, answer) in all_at_once(tries.into()).await {
        assert!(matches!(answer, Ok(Accepted::Created(_))), "{submission:?} got {answer:?}");
    }
    let repeated = Submission {
        payload: RawValue::from_string(hostile.to_owned()).unwrap(),
        ..submission("keyed", "order-2", "0")
    };
    assert!(matches!(app.engine.intake().submit(repeated).await, Ok(Accepted::Duplicate(_))));
}
