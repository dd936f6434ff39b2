//! How far the chain goes is told outside the database, and on the pages.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::journal::anchor::{Anchor, Anchored};
use dead_letter_office::engine::journal::verify::verify;
use dead_letter_office::store::{Commit, checks};

use super::write;
use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(heads_are_told_to_a_file_and_to_an_address, pages_tell_how_the_chain_stands,);

async fn heads_are_told_to_a_file_and_to_an_address(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heads");
    let app = TestApp::configured(
        db,
        &format!(
            "[audit]\nanchor_file = \"{}\"\nanchor_url = \"{{destination}}/plain/heads\"",
            path.display()
        ),
    )
    .await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let mut anchor = Anchor::new(db.clone(), app.engine.config(), ambient.clone());
    anchor.tell().await.unwrap();
    assert!(!path.exists(), "there is no head");
    write(db, ambient, "one").await;
    anchor.tell().await.unwrap();
    anchor.tell().await.unwrap();
    assert_eq!(app.destination.requests_count(), 1, "only when it moved");
    write(db, ambient, "two").await;
    write(db, ambient, "three").await;
    app.destination.script("/plain", [Behaviour::status(503)]);
    anchor.tell().await.unwrap();
    let state = async || {
        let mut tx = db.read().await.unwrap();
        let all = checks::all(&mut tx).await.unwrap();
        all.into_iter().map(|check| (check.name, check.seq, check.failure)).collect::<Vec<_>>()
    };
    let failure = Some("it answered with 503 Service Unavailable".to_owned());
    let file = (checks::FILE.to_owned(), Some(3), None);
    assert_eq!(state().await, [(checks::ADDRESS.to_owned(), Some(1), failure), file.clone()]);
    anchor.tell().await.unwrap();
    assert_eq!(state().await, [(checks::ADDRESS.to_owned(), Some(3), None), file], "it is tried again");
    let told = std::fs::read_to_string(&path).unwrap();
    let told: Vec<Anchored> = told.lines().map(|line| Anchored::parse(line).expect("a head")).collect();
    assert_eq!(told.iter().map(|head| head.seq).collect::<Vec<_>>(), [1, 3]);
    assert!(verify(db, told).await.unwrap().is_whole());
}

async fn pages_tell_how_the_chain_stands(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let status = vera.get("/status").await.expect(200);
    let section = status.first("section[aria-labelledby=chain]");
    assert!(
        section.contains("Entries in its chain 2") && section.contains("Chain verified not yet: it begins"),
        "{section}"
    );
    assert!(status.words().contains("Nothing stored needs another key."), "{}", status.words());
    let audit = vera.get("/audit").await.expect(200);
    assert!(audit.first("table.audit tbody tr").contains("No. 2"), "{}", audit.words());
    let db = desk.app.engine.db();
    let now = desk.app.engine.ambient().now();
    let mut tx = db.begin().await.unwrap();
    checks::passed(&mut tx, checks::VERIFY, now, 2).await.unwrap();
    checks::failed(&mut tx, checks::FILE, now, "no space is left").await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    desk.app.clock.advance(Duration::from_secs(240));
    let audit = vera.get("/audit").await.expect(200);
    assert!(audit.words().contains("Verified 4 min ago up to No. 2: each entry fits."), "{}", audit.words());
    let section = vera.get("/status").await.expect(200).first("section[aria-labelledby=chain]");
    assert!(section.contains("It failed: no space is left."), "{section}");
    let mut tx = db.begin().await.unwrap();
    checks::failed(&mut tx, checks::VERIFY, now, "No. 1: it was altered").await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    let audit = vera.get("/audit").await.expect(200);
    assert!(
        audit.words().contains("This record was tampered with, or a key is missing. Found"),
        "{}",
        audit.words()
    );
}
