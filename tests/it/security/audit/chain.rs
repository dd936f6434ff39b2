//! One chain through erasures, upgrades, nodes and keys.

use dead_letter_office::domain::keyring::{Keyring, SecretKey};
use dead_letter_office::engine::journal::anchor::Anchor;
use dead_letter_office::engine::journal::start::{adopt, started};
use dead_letter_office::engine::journal::verify::{FaultKind, verify};
use dead_letter_office::store::{Commit, Db, StoreError, audit, chain, checks};
use uuid::Uuid;

use super::{at, entries, fault, found, row, unguarded, walk, write};
use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(
    erased_words_are_told_from_lost_ones,
    entries_from_before_the_chain_are_adopted_on_somebodys_word,
    a_removed_chain_is_not_made_anew,
    a_chain_that_lost_a_told_head_is_an_alarm,
    two_nodes_keep_one_chain,
    entries_under_an_older_key_are_verified_with_it,
);

async fn erased_words_are_told_from_lost_ones(db: TestDatabase) {
    let app = entries(db, 4).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let mut raw = unguarded(&app).await;
    let mut tx = db.begin().await.unwrap();
    let mut ids = chain::stretch(&mut tx, 0, 2)
        .await
        .unwrap()
        .into_iter()
        .map(|link| link.audit_id)
        .collect::<Vec<_>>();
    let by = row(ambient, "erase_words");
    // One twice, and one that is none's: it counts what there was.
    ids.extend([ids[0], Uuid::nil()]);
    assert_eq!(audit::erase_words(&mut tx, &ids, &by).await.unwrap(), 2);
    tx.commit(Commit::Action).await.unwrap();
    let outcome = walk(&app).await;
    assert_eq!((outcome.faults, outcome.erased, outcome.links), (vec![], 2, 5));
    let dump = raw.texts("SELECT detail FROM audit_words").await;
    assert_eq!(dump.len(), 3, "words and salt are gone");
    let mut tx = db.read().await.unwrap();
    let rows = audit::of_operation(&mut tx, Uuid::from_u128(7)).await.unwrap();
    assert_eq!((rows[0].reason.as_deref(), rows[0].detail.as_str()), (None, audit::ERASED));
    assert_eq!(rows[2].reason.as_deref(), Some("because"));
    drop(tx);

    at(&mut raw, 3, "DELETE FROM audit_words WHERE audit_id = @").await;
    assert_eq!(found(&app).await, [fault(FaultKind::WordsGone, 3, "act_2")]);
    // Naming an entry that erased others as the one that erased these does not fit what it says.
    raw.execute(
        "INSERT INTO audit_erasures (audit_id, by_id) SELECT a.audit_id, b.audit_id FROM audit_chain a, audit_chain b \
         WHERE a.seq = 3 AND b.seq = 5",
    )
    .await;
    assert_eq!(found(&app).await, [fault(FaultKind::ErasureAltered, 5, "erase_words")]);
    // Nor does one that erased nothing.
    raw.execute(
        "UPDATE audit_erasures SET by_id = (SELECT audit_id FROM audit_chain WHERE seq = 4) \
         WHERE audit_id = (SELECT audit_id FROM audit_chain WHERE seq = 3)",
    )
    .await;
    assert_eq!(found(&app).await, [fault(FaultKind::WordsGone, 3, "act_2")]);
}

async fn entries_from_before_the_chain_are_adopted_on_somebodys_word(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let mut raw = app.raw().await;
    // As the migration leaves an older database.
    for number in 0..300 {
        let (id, salt) = match &raw {
            Raw::Sqlite(_) => (format!("x'{number:032x}'"), "x'00'"),
            Raw::Postgres(_) => (format!("CAST('{:032x}' AS UUID)", number), "'\\x00'"),
        };
        let at = 1_000 - number;
        raw.execute(format!(
            "INSERT INTO audit (id, at, actor, action, result, origin) VALUES ({id}, {at}, 'anna', 'old_{number}', 'done', '')"
        ))
        .await;
        raw.execute(format!(
            "INSERT INTO audit_words (audit_id, salt, reason, detail) VALUES ({id}, {salt}, 'why', 'what')"
        ))
        .await;
    }
    assert_eq!(walk(&app).await.faults[0].kind, FaultKind::NoChain);
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let mut tx = db.begin().await.unwrap();
    audit::insert(&mut tx, &row(ambient, "new")).await.unwrap();
    let refused = tx.commit(Commit::Action).await.unwrap_err();
    assert!(refused.to_string().contains("`dlo audit adopt`"), "{refused}");
    assert_eq!(raw.number("SELECT count(*) FROM audit").await, 300);

    assert_eq!(adopt(db, ambient, "cli:root", "here", "the upgrade").await.unwrap(), 300);
    assert_eq!(adopt(db, ambient, "cli:root", "here", "again").await.unwrap(), 0, "only once");
    write(db, ambient, "new").await;
    let outcome = walk(&app).await;
    assert_eq!((outcome.faults, outcome.links), (vec![], 302));
    let adopted = outcome.adopted.expect("it is said");
    assert_eq!((adopted.entries, adopted.at, adopted.actor.as_str()), (300, app.now(), "cli:root"));
    let order = "SELECT a.action FROM audit_chain l JOIN audit a ON a.id = l.audit_id WHERE l.seq IN (1, 2, 300, 301, 302) \
                 ORDER BY l.seq";
    assert_eq!(raw.texts(order).await, ["old_299", "old_298", "old_0", "chain_begin", "new"]);
    let said = raw
        .texts("SELECT reason || ': ' || detail FROM audit_words JOIN audit ON id = audit_id WHERE action = 'chain_begin'")
        .await;
    assert_eq!(said, ["the upgrade: 300 entries from before the chain stand at its beginning"]);
}

async fn a_removed_chain_is_not_made_anew(db: TestDatabase) {
    let app = entries(db, 3).await;
    let mut raw = unguarded(&app).await;
    at(&mut raw, 2, "UPDATE audit SET actor = 'nobody' WHERE id = @").await;
    at(&mut raw, 3, "DELETE FROM audit WHERE id = @").await;
    raw.execute("DELETE FROM audit_chain").await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let mut tx = db.begin().await.unwrap();
    audit::insert(&mut tx, &row(ambient, "next")).await.unwrap();
    assert!(matches!(tx.commit(Commit::Action).await, Err(StoreError::NoChain)));
    // Nor by a start, an erasure or another node.
    let config = app.engine.config();
    assert!(matches!(started(db, config, ambient, "cli:root", "here").await, Err(StoreError::NoChain)));
    let ids = [Uuid::nil()];
    let mut tx = db.begin().await.unwrap();
    audit::erase_words(&mut tx, &ids, &row(ambient, "erase_words")).await.unwrap();
    assert!(matches!(tx.commit(Commit::Action).await, Err(StoreError::NoChain)));
    assert_eq!(raw.number("SELECT count(*) FROM audit_chain").await, 0);
    assert_eq!(walk(&app).await.faults[0].kind, FaultKind::NoChain);
}

async fn a_chain_that_lost_a_told_head_is_an_alarm(db: TestDatabase) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("heads");
    let app = TestApp::configured(db, &format!("[audit]\nanchor_file = \"{}\"", path.display())).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    let anchor = async || {
        let mut anchor = Anchor::new(db.clone(), app.engine.config(), ambient.clone());
        anchor.recall().await.unwrap();
        anchor
    };
    let alarm = async || {
        let mut tx = db.read().await.unwrap();
        let all = checks::all(&mut tx).await.unwrap();
        all.into_iter().find(|check| check.name == checks::VERIFY).and_then(|check| check.failure)
    };
    let mut running = anchor().await;
    for action in ["one", "two", "three"] {
        write(db, ambient, action).await;
        running.tell().await.unwrap();
    }
    anchor().await.tell().await.unwrap();
    assert_eq!(alarm().await, None);
    let mut raw = unguarded(&app).await;
    let cut = async |raw: &mut Raw| {
        at(raw, 3, "DELETE FROM audit WHERE id = @").await;
        raw.execute("DELETE FROM audit_chain WHERE seq = 3").await;
    };
    // A process that runs meanwhile, and one that starts later, also when something came in its place.
    cut(&mut raw).await;
    running.tell().await.unwrap();
    let words = alarm().await.expect("an alarm");
    assert!(words.starts_with("No. 3: the chain does not hold the head"), "{words}");
    raw.execute("DELETE FROM audit_checks").await;
    std::fs::write(
        &path,
        std::fs::read_to_string(&path).unwrap().lines().take(3).collect::<Vec<_>>().join("\n"),
    )
    .unwrap();
    write(db, ambient, "instead").await;
    anchor().await.tell().await.unwrap();
    assert!(alarm().await.is_some());
    // It goes on until somebody has looked, and with nothing left at all.
    raw.execute("DELETE FROM audit_checks").await;
    raw.execute("DELETE FROM audit_chain").await;
    running.tell().await.unwrap();
    assert!(alarm().await.is_some());
}

async fn two_nodes_keep_one_chain(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let mut writers = Vec::new();
    for number in 0..40 {
        let engine = if number % 2 == 0 { app.engine.clone() } else { other.clone() };
        writers.push(tokio::spawn(async move {
            write(engine.db(), engine.ambient(), &format!("act_{number}")).await;
        }));
    }
    for writer in writers {
        writer.await.unwrap();
    }
    let outcome = walk(&app).await;
    assert_eq!((outcome.faults, outcome.links), (vec![], 40));
}

async fn entries_under_an_older_key_are_verified_with_it(db: TestDatabase) {
    let app = entries(db, 2).await;
    let old = app.engine.db().keyring().unwrap().current().clone();
    let new = SecretKey::new("a new key for this test, and long enough").unwrap();
    let opened = async |keyring| Db::open(&app.database.url).await.unwrap().keyed(Some(keyring));
    let both = opened(Keyring::new(new.clone(), vec![old.clone()])).await;
    write(&both, app.engine.ambient(), "later").await;
    let outcome = verify(&both, vec![]).await.unwrap();
    assert_eq!((outcome.faults, outcome.links), (vec![], 3));
    assert_eq!(outcome.head.unwrap().key_id, new.id());
    let alone = opened(Keyring::new(new, vec![])).await;
    let faults = verify(&alone, vec![]).await.unwrap().faults;
    assert_eq!((faults.len(), faults[0].kind, faults[0].seq), (1, FaultKind::UnknownKey, Some(1)));
    assert!(faults[0].words.contains(&old.id()) && faults[0].words.contains("old_secret_key_files"));
    // The older key alone reads what it made, and cannot vouch for the rest.
    assert_eq!(found(&app).await, [fault(FaultKind::UnknownKey, 3, "later")]);
    let keyless = Db::open(&app.database.url).await.unwrap();
    let mut tx = keyless.begin().await.unwrap();
    let refused = audit::insert(&mut tx, &row(app.engine.ambient(), "x")).await.unwrap_err();
    assert!(refused.to_string().contains("secret key"), "{refused}");
}
