//! What somebody does to entries who may do anything to the database is found and named.

use dead_letter_office::engine::journal::anchor::Anchored;
use dead_letter_office::engine::journal::verify::{FaultKind, Outcome, verify};
use dead_letter_office::store::{Commit, audit};
use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::{at, entries, fault, found, row, unguarded, walk, write};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(
    each_altered_field_is_found_and_named,
    dropped_swapped_and_inserted_entries_are_named,
    a_cut_end_shows_by_what_was_told_elsewhere,
    rows_are_only_ever_added,
);

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
