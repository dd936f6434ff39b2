//! What is kept beside the ledger, and the database itself.

use std::os::unix::fs::PermissionsExt as _;
use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::sign_in::SignInBy;
use dead_letter_office::engine::report::{AttemptReport, OperationReport};
use dead_letter_office::engine::thread::{self, Knowledge};
use dead_letter_office::store::sessions::{self, SessionRow};
use dead_letter_office::store::{Commit, Db, StoreError, audit, operations};
use serde_json::Value;
use uuid::Uuid;

use crate::support::app::{TestApp, person};
use crate::support::databases::{TestDatabase, on_both};

on_both!(empty: the_schema_is_brought_up_once);
on_both!(
    a_transaction_that_is_dropped_leaves_nothing,
    sessions_come_and_go,
    recent_reasons_are_each_told_once,
    an_operation_is_found_by_any_of_its_names,
    reports_tell_the_whole_thread,
);

async fn the_schema_is_brought_up_once(db: TestDatabase) {
    let opened = Db::open(&db.url).await.unwrap();
    let newest = Db::newest_version();
    assert_eq!(opened.version().await.unwrap(), 0);
    assert_eq!(opened.migrate().await.unwrap(), (0, newest));
    assert_eq!(opened.migrate().await.unwrap(), (newest, newest));
    opened.close().await;
    let unknown = Db::open("mysql://localhost/db").await;
    assert!(matches!(unknown, Err(StoreError::Address(_))));
}

async fn a_transaction_that_is_dropped_leaves_nothing(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let now = app.now();
    let later = now.plus(Duration::from_secs(60));
    let mut tx = app.engine.db().begin().await.unwrap();
    assert!(sessions::insert(&mut tx, b"hash", "{}", later, None, None).await.unwrap());
    drop(tx);
    let mut tx = app.engine.db().begin().await.unwrap();
    assert_eq!(sessions::load(&mut tx, b"hash", now).await.unwrap(), None);
}

async fn sessions_come_and_go(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let now = app.now();
    let end = now.plus(Duration::from_secs(60));
    let user = Uuid::from_u128(7);
    let row = |id| SessionRow {
        id: Uuid::from_u128(id),
        user_id: user,
        began_at: now,
        seen_at: now,
        address: "192.0.2.7".into(),
        agent: "Firefox on Linux".into(),
        signed_in_by: SignInBy::Password,
    };
    let (first, second) = (row(1), row(2));
    let mut tx = app.engine.db().begin().await.unwrap();
    assert!(
        sessions::insert(&mut tx, b"one", "first", end, Some(first.user_id), Some(&first)).await.unwrap()
    );
    assert!(
        !sessions::insert(&mut tx, b"one", "other", end, None, None).await.unwrap(),
        "the token is taken"
    );
    assert_eq!(sessions::load(&mut tx, b"one", now).await.unwrap(), Some(("first".to_owned(), end)));
    let later = now.plus(Duration::from_secs(5));
    sessions::save(&mut tx, b"one", "used", end, Some(later)).await.unwrap();
    sessions::save(&mut tx, b"ended", "not brought back", end, None).await.unwrap();
    assert_eq!(sessions::load(&mut tx, b"ended", now).await.unwrap(), None);
    assert!(
        sessions::insert(&mut tx, b"two", "elsewhere", end, Some(second.user_id), Some(&second))
            .await
            .unwrap()
    );
    assert_eq!(sessions::load(&mut tx, b"one", now).await.unwrap().unwrap().0, "used");
    assert_eq!(sessions::load(&mut tx, b"one", end).await.unwrap(), None, "it lapsed");
    let used = SessionRow { seen_at: later, ..first.clone() };
    assert_eq!(sessions::of_user(&mut tx, user, now).await.unwrap(), [used.clone(), second.clone()]);
    assert!(sessions::of_user(&mut tx, user, end).await.unwrap().is_empty(), "they lapsed");
    assert!(sessions::of_user(&mut tx, Uuid::nil(), now).await.unwrap().is_empty());
    assert_eq!(sessions::delete_one(&mut tx, Uuid::nil(), first.id).await.unwrap(), None, "somebody else's");
    assert_eq!(sessions::delete_one(&mut tx, user, first.id).await.unwrap(), Some(used));
    assert_eq!(sessions::delete_one(&mut tx, user, first.id).await.unwrap(), None, "once");
    for token in [&b"three"[..], b"four"] {
        let on = sessions::insert(&mut tx, token, "goes on", end, Some(user), Some(&second)).await;
        assert!(on.unwrap(), "two clicks at once: the later one counts");
    }
    assert_eq!(sessions::load(&mut tx, b"two", now).await.unwrap(), None);
    assert_eq!(sessions::load(&mut tx, b"three", now).await.unwrap(), None);
    assert_eq!(sessions::of_user(&mut tx, user, now).await.unwrap(), [second]);
    sessions::delete_of_user(&mut tx, user).await.unwrap();
    assert_eq!(sessions::load(&mut tx, b"four", now).await.unwrap(), None);
    for name in [&b"a"[..], b"b", b"c"] {
        sessions::insert(&mut tx, name, "", end, None, None).await.unwrap();
    }
    sessions::delete(&mut tx, b"a").await.unwrap();
    assert_eq!(sessions::delete_expired(&mut tx, now).await.unwrap(), 0);
    assert_eq!(sessions::delete_expired(&mut tx, end).await.unwrap(), 2);
    tx.commit(Commit::Session).await.unwrap();
}

async fn recent_reasons_are_each_told_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    for n in 0..8 {
        app.clock.advance(Duration::from_secs(1));
        let olga = person("olga", Role::Operator);
        let reason = format!("reason {}", n % 6);
        let request = dead_letter_office::engine::actions::Request {
            actor: &olga,
            action_id: &format!("a {n}"),
            reason: &reason,
            origin: "::1",
        };
        dead_letter_office::engine::actions::replay(app.engine.gate(), id, &request).await.unwrap();
    }
    let mut tx = app.engine.db().read().await.unwrap();
    let reasons = audit::recent_reasons(&mut tx, "olga", "replay").await.unwrap();
    assert_eq!(reasons, ["reason 1", "reason 0", "reason 5", "reason 4", "reason 3"]);
    assert_eq!(audit::recent_reasons(&mut tx, "otto", "replay").await.unwrap(), Vec::<String>::new());
}

async fn an_operation_is_found_by_any_of_its_names(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(422)]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await.id;
    let mut tx = app.engine.db().read().await.unwrap();
    for text in ["order-1", &id.to_string(), &letter.to_string()] {
        assert_eq!(thread::find(&mut tx, text).await.unwrap(), Some(id), "{text}");
    }
    assert_eq!(thread::find(&mut tx, "order-2").await.unwrap(), None);
    assert!(operations::by_key(&mut tx, "order-1").await.unwrap().is_some());
    assert_eq!(operations::by_ids(&mut tx, &[id, Uuid::nil()]).await.unwrap().len(), 1);
}

async fn reports_tell_the_whole_thread(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::retry_after(429, 3)]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    app.replay(id, "a").await.unwrap();
    let thread = app.thread(id).await;
    assert!(matches!(thread.knowledge(), Knowledge::DoneThere(_)));
    let kinds: Vec<String> = thread.entries().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(kinds, ["received", "attempt", "attempt", "replay"]);
    let attempts = serde_json::to_value(AttemptReport::all(&thread)).unwrap();
    assert_eq!((&attempts[0]["outcome"], &attempts[0]["retry_after"]), (&"throttled".into(), &3.0.into()));
    assert_eq!(attempts[1]["request"]["method"], "POST");
    assert_eq!(attempts[1]["response"]["status"], 201);
    let mut tx = app.engine.db().read().await.unwrap();
    let report = OperationReport::one(&mut tx, id, "http://desk/").await.unwrap().unwrap();
    let report: Value = serde_json::to_value(&report).unwrap();
    assert_eq!(report["state"], "completed");
    assert_eq!(report["search"]["customer"], "C-7");
    assert_eq!(report["result"]["reference"], report["steps"][0]["reference"]);
    assert_eq!(report["result"]["answer"]["id"], report["result"]["reference"]);
    assert_eq!(report["attempts"], 2);
    assert_eq!(report["url"], format!("http://desk/operations/{id}"));
    assert!(OperationReport::one(&mut tx, Uuid::nil(), "").await.unwrap().is_none());
}

/// Payloads are not encrypted in it.
#[tokio::test]
async fn a_new_file_is_for_its_owner_alone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("dlo.db");
    // As the file that `dlo init` writes names it.
    let house = crate::process::House::empty();
    house.done(&["init"]);
    house.done(&["migrate"]);
    assert_eq!(std::fs::metadata(house.path("dlo.db")).unwrap().permissions().mode() & 0o777, 0o600);
    let db = Db::open(&format!("sqlite:{}", path.display())).await.unwrap();
    db.migrate().await.unwrap();
    let files = std::fs::read_dir(folder.path()).unwrap().map(|file| file.unwrap());
    let modes: Vec<(std::ffi::OsString, u32)> =
        files.map(|file| (file.file_name(), file.metadata().unwrap().permissions().mode() & 0o777)).collect();
    assert!(modes.len() > 1 && modes.iter().all(|(_, mode)| *mode == 0o600), "{modes:?}");
}
