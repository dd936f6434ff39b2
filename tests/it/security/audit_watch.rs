//! Audit: the running server verifies the chain by itself, in small steps, and says what it found.

use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::journal::verify::{FaultKind, Walk};
use dead_letter_office::engine::journal::watch::Watch;
use dead_letter_office::store::{Commit, audit, checks};

use super::audit::{at, entries, row, unguarded};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person};
use crate::support::ledger::Raw;

on_both!(
    a_whole_chain_is_walked_again_each_day_and_the_page_says_so,
    an_altered_entry_is_found_and_the_page_names_it,
    a_cut_end_shows_by_what_the_process_remembers,
    what_was_told_to_a_file_is_compared,
    one_node_walks_at_a_time,
    nobody_puts_it_off_and_the_file_switches_it_off,
    a_long_chain_is_walked_in_small_steps,
);

const DAY: Duration = Duration::from_hours(24);
const SECOND: Duration = Duration::from_secs(1);

fn watch(engine: &Engine) -> Watch {
    Watch::new(engine.db().clone(), Arc::clone(engine.config()), engine.ambient().clone())
}

/// What the page Status says of the chain, to somebody who has just signed in.
async fn told(person: &mut Person<'_>) -> String {
    person.sign_in("viewer", PASSWORD).await;
    person.get("/status").await.expect(200).first("section[aria-labelledby=chain]")
}

async fn a_whole_chain_is_walked_again_each_day_and_the_page_says_so(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let before = told(&mut vera).await;
    assert!(before.contains("Chain verified not yet: it begins within minutes"), "{before}");
    let mut watch = watch(&desk.app.engine);
    let first = watch.round().await.unwrap().expect("it is due at the start");
    assert!(first.is_whole(), "{:?}", first.faults);
    let words = told(&mut vera).await;
    let wanted = format!("Chain verified up to entry No. {}, just now", first.links);
    assert!(words.contains(&wanted) && !words.contains("What to do next"), "{words}");
    desk.app.clock.advance(DAY - SECOND);
    assert!(watch.round().await.unwrap().is_none(), "it is too early");
    desk.app.clock.advance(SECOND);
    let again = watch.round().await.unwrap().expect("it is due again");
    assert!(again.is_whole() && again.links > first.links, "{:?}", again.faults);
}

async fn an_altered_entry_is_found_and_the_page_names_it(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let mut watch = watch(&desk.app.engine);
    assert!(watch.round().await.unwrap().expect("due").is_whole());
    at(&mut unguarded(&desk.app).await, 1, "UPDATE audit SET actor = 'nobody' WHERE id = @").await;
    desk.app.clock.advance(DAY);
    let outcome = watch.round().await.unwrap().expect("due");
    let faults: Vec<_> = outcome.faults.iter().map(|fault| (fault.kind, fault.seq)).collect();
    assert_eq!(faults, [(FaultKind::Altered, Some(1))]);
    let words = told(&mut vera).await;
    let named = format!("It failed: {}. That was just now", outcome.faults[0]);
    assert!(words.contains(&named) && words.contains("by nobody"), "{words}");
    assert!(words.contains("What to do next Run dlo audit verify"), "{words}");
    assert!(words.contains("Keep this database and its backups as they are"), "{words}");
}

async fn a_cut_end_shows_by_what_the_process_remembers(db: TestDatabase) {
    let app = entries(db, 3).await;
    let mut remembers = watch(&app.engine);
    assert!(remembers.round().await.unwrap().expect("due").is_whole());
    let mut raw = unguarded(&app).await;
    at(&mut raw, 3, "DELETE FROM audit WHERE id = @").await;
    raw.execute("DELETE FROM audit_chain WHERE seq = 3").await;
    app.clock.advance(DAY);
    let outcome = remembers.round().await.unwrap().expect("due");
    assert_eq!((outcome.faults.len(), outcome.faults[0].kind), (1, FaultKind::Cut));
    app.clock.advance(DAY);
    let outcome = remembers.round().await.unwrap().expect("due");
    assert_eq!(outcome.faults[0].kind, FaultKind::Cut, "nor does it forget");
    assert!(watch(&app.engine).round().await.unwrap().expect("a start").is_whole(), "nobody else knows");
}

async fn what_was_told_to_a_file_is_compared(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heads");
    let desk = Desk::configured(db, &format!("[audit]\nanchor_file = \"{}\"", path.display())).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let mut watch = watch(&desk.app.engine);
    assert!(watch.round().await.unwrap().expect("due").is_whole(), "there is no such file yet");
    std::fs::write(&path, "2026-11-29T09:00:00Z 1 00\n").unwrap();
    desk.app.clock.advance(DAY);
    let outcome = watch.round().await.unwrap().expect("due");
    assert_eq!((outcome.faults.len(), outcome.faults[0].kind), (1, FaultKind::NotAsTold));
    std::fs::write(&path, "anything\n").unwrap();
    desk.app.clock.advance(DAY);
    assert!(watch.round().await.unwrap().expect("due").is_whole(), "the chain itself is");
    let words = told(&mut vera).await;
    assert!(words.contains("heads, line 1: no head of the audit; somebody else wrote there"), "{words}");
}

async fn one_node_walks_at_a_time(db: TestDatabase) {
    let app = entries(db, 1).await;
    let other = app.another_node(2).await;
    let now = app.engine.ambient().now();
    // The other node walks, and is gone in the middle of it.
    let mut tx = other.db().begin().await.unwrap();
    let held = now.plus(Duration::from_mins(2));
    assert!(checks::claim(&mut tx, now, held, held).await.unwrap());
    tx.commit(Commit::Tidy).await.unwrap();
    let mut watch = watch(&app.engine);
    assert!(watch.round().await.unwrap().is_none(), "not even at the start");
    app.clock.advance(Duration::from_mins(2));
    assert!(watch.round().await.unwrap().is_some(), "it is not held any more");
    let mut late = self::watch(&other);
    assert!(late.round().await.unwrap().is_some(), "a start");
    assert!(late.round().await.unwrap().is_none() && watch.round().await.unwrap().is_none());
    app.clock.advance(DAY);
    assert!(watch.round().await.unwrap().is_some());
    assert!(late.round().await.unwrap().is_none(), "one of them is enough");
}

async fn nobody_puts_it_off_and_the_file_switches_it_off(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut eager = watch(&desk.app.engine);
    assert!(eager.round().await.unwrap().is_some());
    assert!(eager.round().await.unwrap().is_none());
    desk.app.raw().await.execute("UPDATE upkeep SET verify_due_at = 9000000000000000").await;
    assert!(eager.round().await.unwrap().is_some(), "no such date is ours");

    let off = desk.restarted("[audit]\nverify_every = \"0s\"").await;
    let config = Arc::new(off.configuration("[audit]\nverify_every = \"0s\""));
    let engine = &off.app.engine;
    let mut idle = Watch::new(engine.db().clone(), config, engine.ambient().clone());
    off.app.clock.advance(DAY);
    assert!(idle.round().await.unwrap().is_none());
    off.add("viewer", Role::Viewer).await;
    let words = told(&mut off.nobody()).await;
    assert!(words.contains("Verified by itself no: verify_every is \"0s\"."), "{words}");
}

async fn a_long_chain_is_walked_in_small_steps(db: TestDatabase) {
    let app = entries(db, 0).await;
    let mut tx = app.engine.db().begin().await.unwrap();
    for number in 0..1_200 {
        audit::insert(&mut tx, &row(app.engine.ambient(), &format!("act_{number}"))).await.unwrap();
    }
    tx.commit(Commit::Action).await.unwrap();
    let mut raw = unguarded(&app).await;
    // Before and behind all others.
    for id in ["00000000000000000000000000000000", "ffffffffffffffffffffffffffffffff"] {
        let id = match &raw {
            Raw::Sqlite(_) => format!("x'{id}'"),
            Raw::Postgres(_) => format!("CAST('{id}' AS UUID)"),
        };
        raw.execute(format!(
            "INSERT INTO audit (id, at, actor, action, result, origin) VALUES ({id}, 5, 'anna', 'x', 'done', '')"
        ))
        .await;
    }
    let mut walk = Walk::new(app.engine.db(), vec![]).unwrap();
    let mut steps = 1;
    let outcome = loop {
        match walk.step().await.unwrap() {
            Some(outcome) => break outcome,
            None => steps += 1,
        }
    };
    // Three stretches of links, the end of them, and three stretches of entries.
    assert_eq!((outcome.links, steps), (1_200, 7));
    let kinds: Vec<_> = outcome.faults.iter().map(|fault| fault.kind).collect();
    assert_eq!(kinds, [FaultKind::Inserted; 2]);
}
