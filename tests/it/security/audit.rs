//! Audit: every entry is linked, what is done to one afterwards is found and named, and without an
//! entry there is no action.

use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::keyring::{Keyring, SecretKey};
use dead_letter_office::engine::journal::anchor::{Anchor, Anchored};
use dead_letter_office::engine::journal::start::{adopt, started};
use dead_letter_office::engine::journal::verify::{FaultKind, Outcome, verify};
use dead_letter_office::store::accounts::user_by_name;
use dead_letter_office::store::audit::AuditRow;
use dead_letter_office::store::{Commit, Db, StoreError, audit, chain, checks};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::ledger::Raw;
use crate::support::tables::business;

on_both!(
    each_altered_field_is_found_and_named,
    dropped_swapped_and_inserted_entries_are_named,
    a_cut_end_shows_by_what_was_told_elsewhere,
    rows_are_only_ever_added,
    erased_words_are_told_from_lost_ones,
    entries_from_before_the_chain_are_adopted_on_somebodys_word,
    a_removed_chain_is_not_made_anew,
    a_chain_that_lost_a_told_head_is_an_alarm,
    two_nodes_keep_one_chain,
    entries_under_an_older_key_are_verified_with_it,
    without_an_entry_there_is_no_action,
    heads_are_told_to_a_file_and_to_an_address,
    pages_tell_how_the_chain_stands,
);

fn row(ambient: &Ambient, action: &str) -> AuditRow {
    AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: "anna".into(),
        action: action.into(),
        operation_id: Some(Uuid::from_u128(7)),
        dead_letter_id: None,
        subject: Some("cause:x".into()),
        reason: Some("because".into()),
        result: "done".into(),
        detail: "and more".into(),
        origin: "::1".into(),
    }
}

/// A database with this many entries, each of its own transaction.
async fn entries(db: TestDatabase, count: usize) -> TestApp {
    let app = TestApp::start(db).await;
    for number in 0..count {
        write(app.engine.db(), app.engine.ambient(), &format!("act_{number}")).await;
    }
    app
}

async fn write(db: &Db, ambient: &Ambient, action: &str) {
    let mut tx = db.begin().await.unwrap();
    audit::insert(&mut tx, &row(ambient, action)).await.unwrap();
    tx.commit(Commit::Action).await.unwrap();
}

async fn walk(app: &TestApp) -> Outcome {
    verify(app.engine.db(), vec![]).await.unwrap()
}

/// What was found: what and where, and the action of the entry where that is there.
async fn found(app: &TestApp) -> Vec<(FaultKind, Option<i64>, String)> {
    let outcome = walk(app).await;
    let action = |entry: Option<(_, _, String)>| entry.map(|(_, _, action)| action).unwrap_or_default();
    outcome.faults.into_iter().map(|fault| (fault.kind, fault.seq, action(fault.entry))).collect()
}

fn fault(kind: FaultKind, seq: i64, action: &str) -> (FaultKind, Option<i64>, String) {
    (kind, Some(seq), action.to_owned())
}

/// As somebody who may do anything to the database.
async fn unguarded(app: &TestApp) -> Raw {
    let mut raw = app.raw().await;
    let tables = ["audit", "audit_chain", "audit_erasures", "audit_words"];
    match &raw {
        Raw::Postgres(_) => {
            for table in tables {
                raw.execute(format!("ALTER TABLE {table} DISABLE TRIGGER USER")).await;
            }
        }
        Raw::Sqlite(_) => {
            for name in raw.texts("SELECT name FROM sqlite_master WHERE type = 'trigger'").await {
                raw.execute(format!("DROP TRIGGER {name}")).await;
            }
        }
    }
    raw
}

/// `statement` on the entry at a place, whose id stands for `@`.
async fn at(raw: &mut Raw, seq: i64, statement: &str) {
    let id = format!("(SELECT audit_id FROM audit_chain WHERE seq = {seq})");
    assert_eq!(raw.execute(statement.replace('@', &id)).await, 1, "{statement}");
}

async fn each_altered_field_is_found_and_named(db: TestDatabase) {
    let app = entries(db, 4).await;
    let outcome = walk(&app).await;
    assert_eq!((outcome.faults, outcome.links, outcome.erased), (vec![], 4, 0));
    let mut raw = unguarded(&app).await;
    let (uuid, bytes) = match &raw {
        Raw::Sqlite(_) => ("x'00000000000000000000000000000007'", "x'07'"),
        Raw::Postgres(_) => ("'00000000-0000-0000-0000-000000000007'", "'\\x07'"),
    };
    let none = "NULL".to_owned();
    let text =
        |column: &str| (format!("{column} || 'x'"), format!("substr({column}, 1, length({column}) - 1)"));
    for (column, (change, undo)) in [
        ("at", ("at + 1".to_owned(), "at - 1".to_owned())),
        ("actor", text("actor")),
        ("operation_id", (none.clone(), uuid.to_owned())),
        ("dead_letter_id", (uuid.to_owned(), none.clone())),
        ("subject", (none.clone(), "'cause:x'".to_owned())),
        ("result", text("result")),
        ("origin", text("origin")),
    ] {
        at(&mut raw, 2, &format!("UPDATE audit SET {column} = {change} WHERE id = @")).await;
        assert_eq!(found(&app).await, [fault(FaultKind::Altered, 2, "act_1")], "{column}");
        at(&mut raw, 2, &format!("UPDATE audit SET {column} = {undo} WHERE id = @")).await;
        assert_eq!(found(&app).await, [], "{column}");
    }
    at(&mut raw, 2, "UPDATE audit SET action = 'x' || action WHERE id = @").await;
    assert_eq!(found(&app).await, [fault(FaultKind::Altered, 2, "xact_1")]);
    at(&mut raw, 2, "UPDATE audit SET action = 'act_1' WHERE id = @").await;

    for (column, undo) in [("reason", "'because'"), ("detail", "'and more'")] {
        at(&mut raw, 3, &format!("UPDATE audit_words SET {column} = 'other' WHERE audit_id = @")).await;
        assert_eq!(found(&app).await, [fault(FaultKind::WordsAltered, 3, "act_2")], "{column}");
        at(&mut raw, 3, &format!("UPDATE audit_words SET {column} = {undo} WHERE audit_id = @")).await;
    }
    assert_eq!(found(&app).await, []);

    raw.execute(format!("UPDATE audit_chain SET erased = {bytes} WHERE seq = 4")).await;
    assert_eq!(found(&app).await, [fault(FaultKind::Altered, 4, "act_3")]);
    raw.execute("UPDATE audit_chain SET erased = NULL WHERE seq = 4").await;
    raw.execute("UPDATE audit_chain SET key_id = 'feedfeedfeedfeed' WHERE seq = 4").await;
    assert_eq!(found(&app).await, [fault(FaultKind::UnknownKey, 4, "act_3")]);
    raw.execute(
        "UPDATE audit_chain SET key_id = (SELECT key_id FROM audit_chain WHERE seq = 1) WHERE seq = 4",
    )
    .await;
    assert_eq!(found(&app).await, []);
    raw.execute(format!("UPDATE audit_chain SET words = {bytes} WHERE seq = 3")).await;
    assert_eq!(found(&app).await, [fault(FaultKind::Altered, 3, "act_2")]);
    raw.execute(format!("UPDATE audit_chain SET mac = {bytes} WHERE seq = 1")).await;
    let kinds: Vec<_> = found(&app).await.into_iter().map(|(kind, seq, _)| (kind, seq)).collect();
    let altered = |seq| (FaultKind::Altered, Some(seq));
    assert_eq!(kinds, [altered(1), altered(2), altered(3)], "the one behind it hangs on it");
}

async fn dropped_swapped_and_inserted_entries_are_named(db: TestDatabase) {
    let app = entries(db, 9).await;
    let mut raw = unguarded(&app).await;
    // An entry without its link.
    at(&mut raw, 2, "DELETE FROM audit WHERE id = @").await;
    assert_eq!(found(&app).await, [fault(FaultKind::Dropped, 2, "")]);
    // And with it.
    raw.execute("DELETE FROM audit_chain WHERE seq = 2").await;
    let outcome = walk(&app).await;
    assert_eq!(
        (outcome.faults[0].kind, outcome.faults[0].seq, outcome.faults.len()),
        (FaultKind::Cut, Some(3), 1)
    );
    assert!(outcome.faults[0].words.contains("No. 2"), "{}", outcome.faults[0]);

    // Two entries change places, each under the other's link.
    let ids = raw.texts("SELECT CAST(seq AS TEXT) FROM audit_chain WHERE seq IN (5, 8)").await;
    assert_eq!(ids.len(), 2);
    raw.script(
        "CREATE TABLE kept AS SELECT * FROM audit_chain WHERE seq IN (5, 8); \
         DELETE FROM audit_chain WHERE seq IN (5, 8); \
         INSERT INTO audit_chain (seq, audit_id, words, erased, mac, key_id) \
         SELECT k.seq, o.audit_id, k.words, k.erased, k.mac, k.key_id FROM kept k JOIN kept o ON o.seq = 13 - k.seq;",
    )
    .await;
    let cut = fault(FaultKind::Cut, 3, "act_2");
    let moved = [cut.clone(), fault(FaultKind::Moved, 5, "act_7"), fault(FaultKind::Moved, 8, "act_4")];
    assert_eq!(found(&app).await, moved);
    // The same with their links.
    raw.script(
        "DELETE FROM audit_chain WHERE seq IN (5, 8); \
         INSERT INTO audit_chain (seq, audit_id, words, erased, mac, key_id) \
         SELECT 13 - seq, audit_id, words, erased, mac, key_id FROM kept;",
    )
    .await;
    let kinds = found(&app).await;
    for (seq, action) in [(5, "act_7"), (8, "act_4")] {
        assert!(kinds.contains(&fault(FaultKind::Moved, seq, action)), "{kinds:?}");
    }
    raw.script(
        "DELETE FROM audit_chain WHERE seq IN (5, 8); \
         INSERT INTO audit_chain (seq, audit_id, words, erased, mac, key_id) \
         SELECT seq, audit_id, words, erased, mac, key_id FROM kept; DROP TABLE kept;",
    )
    .await;
    assert_eq!(found(&app).await, std::slice::from_ref(&cut));

    // An entry that nobody linked, and one that somebody linked who has not the key.
    let id = match &raw {
        Raw::Sqlite(_) => "x'0198c0de000070008000000000000001'",
        Raw::Postgres(_) => "CAST('0198c0de-0000-7000-8000-000000000001' AS UUID)",
    };
    raw.execute(format!(
        "INSERT INTO audit (id, at, actor, action, result, origin) VALUES ({id}, 5, 'anna', 'override', 'done', '')"
    ))
    .await;
    assert_eq!(found(&app).await, [cut.clone(), (FaultKind::Inserted, None, "override".to_owned())]);
    raw.execute(format!(
        "INSERT INTO audit_chain (seq, audit_id, words, mac, key_id) SELECT 10, {id}, words, mac, key_id \
         FROM audit_chain WHERE seq = 9"
    ))
    .await;
    assert_eq!(found(&app).await, [cut, fault(FaultKind::Altered, 10, "override")]);
}

async fn a_cut_end_shows_by_what_was_told_elsewhere(db: TestDatabase) {
    let app = entries(db, 3).await;
    let head = |outcome: &Outcome| {
        let head = outcome.head.clone().expect("a head");
        let mac = head.mac.iter().map(|byte| format!("{byte:02x}")).collect();
        Anchored { at: Some(app.engine.ambient().now()), seq: head.seq, mac }
    };
    let early = head(&walk(&app).await);
    write(app.engine.db(), app.engine.ambient(), "late").await;
    let late = head(&walk(&app).await);
    let told = vec![late.clone(), early.clone()];
    assert!(verify(app.engine.db(), told.clone()).await.unwrap().is_whole());
    let mut raw = unguarded(&app).await;
    at(&mut raw, 4, "DELETE FROM audit WHERE id = @").await;
    raw.execute("DELETE FROM audit_chain WHERE seq = 4").await;
    assert!(walk(&app).await.is_whole(), "nothing in the database tells");
    let cut = verify(app.engine.db(), told.clone()).await.unwrap().faults;
    assert_eq!((cut.len(), cut[0].kind, cut[0].seq), (1, FaultKind::Cut, Some(4)));
    assert!(cut[0].words.contains("ends at No. 3") && cut[0].words.contains("up to No. 4"), "{}", cut[0]);
    // Going on from there does not hide it.
    write(app.engine.db(), app.engine.ambient(), "instead").await;
    let other = verify(app.engine.db(), told).await.unwrap().faults;
    assert_eq!((other.len(), other[0].kind, other[0].seq), (1, FaultKind::NotAsTold, Some(4)));
    // And without any link there is no chain that could be whole.
    raw.execute("DELETE FROM audit_chain").await;
    assert_eq!(walk(&app).await.faults[0].kind, FaultKind::NoChain);
}

async fn rows_are_only_ever_added(db: TestDatabase) {
    let app = entries(db, 2).await;
    let mut tx = app.engine.db().begin().await.unwrap();
    let by = row(app.engine.ambient(), "erase_words");
    let first = app.raw().await.number("SELECT count(*) FROM audit").await;
    assert_eq!(first, 2);
    let ids = audit::worded(&mut tx, &[Uuid::from_u128(7)]).await.unwrap();
    audit::erase_words(&mut tx, &ids[..1], &by).await.unwrap();
    tx.commit(Commit::Action).await.unwrap();
    let mut raw = app.raw().await;
    let mut statements = vec!["UPDATE audit_words SET detail = 'other'".to_owned()];
    for table in ["audit", "audit_chain", "audit_erasures"] {
        let column = if table == "audit" { "id" } else { "audit_id" };
        statements.push(format!("UPDATE {table} SET {column} = {column}"));
        statements.push(format!("DELETE FROM {table}"));
        if matches!(raw, Raw::Postgres(_)) {
            statements.push(format!("TRUNCATE {table}"));
        }
    }
    for statement in statements {
        let sql = AssertSqlSafe(statement.clone());
        let refused = match &mut raw {
            Raw::Sqlite(c) => sqlx::query(sql).execute(c).await.err(),
            Raw::Postgres(c) => sqlx::query(sql).execute(c).await.err(),
        };
        let error = refused.unwrap_or_else(|| panic!("{statement} went through"));
        assert!(
            error.to_string().contains("audit") || error.to_string().contains("only ever added"),
            "{error}"
        );
    }
    assert!(walk(&app).await.is_whole());
}

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

/// Makes it impossible to link anything.
async fn broken(app: &TestApp) {
    let mut raw = app.raw().await;
    let script = match &raw {
        Raw::Sqlite(_) => {
            "CREATE TRIGGER broken BEFORE INSERT ON audit_chain BEGIN SELECT RAISE(ABORT, 'broken'); END;"
        }
        Raw::Postgres(_) => {
            "CREATE FUNCTION broken() RETURNS trigger LANGUAGE plpgsql AS \
             $$ BEGIN RAISE EXCEPTION 'broken'; END $$; \
             CREATE TRIGGER broken BEFORE INSERT ON audit_chain FOR EACH ROW EXECUTE FUNCTION broken();"
        }
    };
    raw.script(script).await;
}

async fn without_an_entry_there_is_no_action(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let (_, doubtful) = desk.dead_letter("plain", "order-2").await;
    desk.add("otto", Role::Viewer).await;
    let mut admin = desk.signed_in(Role::Admin).await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let otto = user_by_name(&mut tx, "otto").await.unwrap().expect("otto");
    drop(tx);
    let person = format!("/people/{}", otto.id);
    let mut raw = desk.app.raw().await;
    let cause = raw.texts("SELECT cause FROM dead_letters ORDER BY cause LIMIT 1").await.remove(0);
    let form = admin.get(&format!("/dead-letters/{doubtful}/override")).await.expect(200);
    let (facts, form) = (form.field("facts"), form.words());
    let typed =
        form.split("Type ").nth(1).and_then(|rest| rest.split(' ').next()).expect("what to type").to_owned();
    broken(&desk.app).await;
    let before = business(&desk.app).await;
    let letters = |what: &str| format!("/dead-letters/{letter}/{what}");
    let acts: Vec<(String, Vec<(&str, &str)>)> = vec![
        (letters("replay"), vec![]),
        (letters("resolve"), vec![("resolution", "not_needed")]),
        (letters("assign"), vec![("to", "admin")]),
        (letters("note"), vec![("note", "hello")]),
        (
            format!("/dead-letters/{doubtful}/override"),
            vec![
                ("mode", "new_effect"),
                ("typed", typed.as_str()),
                ("accept_duplicate", "true"),
                ("facts", facts.as_str()),
            ],
        ),
        (format!("/operations/{operation}/payload"), vec![]),
        (format!("/operations/{operation}/unmasked"), vec![]),
        (format!("/operations/{operation}/evidence.json"), vec![]),
        ("/destinations/keyed/pause".to_owned(), vec![]),
        (format!("/causes/{cause}/note"), vec![("note", "x")]),
        (format!("{person}/disable"), vec![]),
        (format!("{person}/link"), vec![]),
        (format!("{person}/role"), vec![("role", "operator")]),
        ("/people".to_owned(), vec![("name", "new"), ("role", "viewer")]),
        ("/audit/export".to_owned(), vec![("format", "csv")]),
        ("/account/sign-out".to_owned(), vec![]),
    ];
    let csrf = admin.csrf().await;
    let mut failed = 0;
    for (number, (path, fields)) in acts.into_iter().enumerate() {
        let action_id = format!("0198c0de-0000-7000-8000-{number:012}");
        let mut all =
            vec![("csrf", csrf.as_str()), ("action_id", action_id.as_str()), ("reason", "they asked")];
        all.extend(fields);
        let reply = admin.post_bare(&path, &all).await;
        assert!(
            reply.status.is_server_error() || reply.status == 422,
            "{path}: {} {}",
            reply.status,
            reply.text
        );
        failed += usize::from(reply.status.is_server_error());
        assert!(
            !reply.text.contains("anna@example.com"),
            "{path} shows what nobody is on record to have seen"
        );
        assert_eq!(business(&desk.app).await, before, "{path} changed something");
    }
    assert!(failed >= 12, "{failed} came as far as the audit");
    // Nor does anybody come in.
    let mut somebody = desk.nobody();
    let reply = somebody.sign_in("otto", PASSWORD).await;
    assert!(reply.status.is_server_error(), "{}", reply.status);
    assert!(!somebody.is_in().await);
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    accounts::create_token(db, ambient, "x", dead_letter_office::domain::actor::Scope::Read, None, &by)
        .await
        .unwrap_err();
    assert_eq!(business(&desk.app).await, before);
    assert!(desk.app.destination.requests_count() > 0);
}

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
    app.destination.script("/plain", [dead_letter_office::demo::destination::Behaviour::status(503)]);
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
        section.contains("Entries in its chain 2") && section.contains("not yet: run dlo audit verify"),
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
    assert!(audit.words().contains("found entries that do not fit"), "{}", audit.words());
}
