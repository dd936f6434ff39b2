//! Measures what freezing 100,000 dead letters takes, and how long others wait meanwhile:
//! `cargo nextest run --test it --run-ignored only -E 'test(/bulk::freezing/)' --no-capture`.

use std::time::{Duration, Instant};

use dead_letter_office::domain::bulk::MemberState;
use dead_letter_office::domain::filter::{DeadLetterFilter, Page};
use dead_letter_office::engine::bulk;
use dead_letter_office::store::dead_letters;

use super::{failed, olga, open, progress, replay};
use crate::support::app::{TestApp, request};
use crate::support::databases::TestDatabase;

const MANY: usize = 100_000;

/// Copies of one dead letter, made in the database.
async fn copies(app: &TestApp) {
    let postgres = app.database.url.starts_with("postgres:");
    let (numbers, id) = if postgres {
        (format!("generate_series(2, {MANY}) AS n (n)"), "gen_random_uuid()")
    } else {
        let numbers = format!(
            "(WITH RECURSIVE c (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < {MANY}) SELECT n FROM c) n"
        );
        (numbers, "randomblob(16)")
    };
    let columns = "position, step, kind, destination, status, certainty, why, outcome, symptom, error, cause, \
        cause_text, next_action, severity, attempts, first_failed_at, last_failed_at";
    let copied: String = columns.split(',').map(|c| format!(", d.{}", c.trim())).collect();
    let sql = format!(
        "INSERT INTO dead_letters (id, operation_id, opened_at, {columns}) \
         SELECT {id}, {id}, d.opened_at + n.n{copied} FROM dead_letters d CROSS JOIN {numbers}"
    );
    app.raw().await.execute(sql).await;
}

async fn measured(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    failed(&mut app, "keyed", 0..1).await;
    copies(&app).await;
    let engine = app.engine.clone();
    let freezing = tokio::spawn(async move {
        let began = Instant::now();
        let id = bulk::create(engine.gate(), &replay(open("keyed")), &request(&olga(), "a")).await.unwrap();
        (id, began.elapsed())
    });
    let (mut reads, mut longest) = (0, Duration::ZERO);
    while !freezing.is_finished() {
        let began = Instant::now();
        let mut tx = app.engine.db().read().await.unwrap();
        let listed = dead_letters::list(&mut tx, &DeadLetterFilter::default(), Page::default()).await;
        assert_eq!(listed.unwrap().items.len(), 50);
        longest = longest.max(began.elapsed());
        reads += 1;
    }
    let (id, took) = freezing.await.unwrap();
    let began = Instant::now();
    assert_eq!(progress(&app, id).await.of(MemberState::Waiting), MANY);
    println!(
        "{}: frozen in {took:?}; {reads} lists read meanwhile, the slowest in {longest:?}; counted in {:?}",
        app.engine.db().product(),
        began.elapsed()
    );
    assert!(took < Duration::from_secs(5), "{took:?}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, of many seconds"]
async fn sqlite() {
    measured(TestDatabase::sqlite()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[ignore = "a measurement, of many seconds"]
async fn postgres() {
    measured(TestDatabase::postgres().await).await;
}
