//! What an earlier version stored is there, as it was, after every later script.

use std::path::{Path, PathBuf};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::ledger::Raw;

on_both!(empty: what_the_first_version_stored_survives_every_later_script);

const FIRST: &str = include_str!("../../../migrations/0001_spine.sql");

/// Every script after the first, in order, each with what is written for this database alone.
fn later(raw: &Raw) -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("migrations");
    let own = folder.join(match raw {
        Raw::Sqlite(_) => "sqlite",
        Raw::Postgres(_) => "postgres",
    });
    let mut paths: Vec<_> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.is_file())
        .collect();
    paths.sort();
    let whole = |path: &PathBuf| {
        let own = std::fs::read_to_string(own.join(path.file_name().unwrap())).unwrap_or_default();
        std::fs::read_to_string(path).unwrap() + &own
    };
    paths[1..].iter().map(whole).collect()
}

/// One operation that may have happened, with its work and its step, a token, a person, what somebody
/// did, and a session.
const STORED: [&str; 7] = [
    "INSERT INTO operations (id, key, kind, state, digest, severity, submitted_by, received_at) \
     VALUES (@1, 'order-1', 'ticket', 'uncertain', @2, 'normal', 'token:shop', 5)",
    "INSERT INTO steps (operation_id, position, name, destination, state, key, attempts, last_outcome) \
     VALUES (@1, 0, 'create', 'crm', 'uncertain', @1, 1, 'uncertain')",
    "INSERT INTO attempts (id, operation_id, position, generation, number, cause, requested_by, fence, node, \
     started_at, ended_at, outcome) VALUES (@1, @1, 0, 1, 1, 'automatic', 'engine', 1, 'n', 70, 80, 'uncertain')",
    "INSERT INTO tokens (id, name, hash, scope, created_by, created_at) VALUES (@1, 'shop', @2, 'submit', 'root', 1)",
    "INSERT INTO users (id, name, role, password_hash, created_at) VALUES (@1, 'olga', 'operator', 'h', 1)",
    "INSERT INTO audit (id, at, actor, action, reason, result, detail, origin) \
     VALUES (@1, 5, 'anna', 'replay', 'it is back', 'accepted', 'and more', '::1')",
    "INSERT INTO sessions (hash, user_id, data, expires_at) VALUES (@2, @1, '{}', 9)",
];
const WORK: &str = "INSERT INTO work (operation_id, position, destination, cause, requested_by, requested_at, waived, \
    due_at, since, tries, doubts, waits, fence) VALUES (@1, 0, 'crm', 'automatic', 'engine', 5, '', 90, 5, 1, 1, 0, 1)";

async fn what_the_first_version_stored_survives_every_later_script(db: TestDatabase) {
    let mut raw = Raw::open(&db.url).await.unwrap();
    raw.script(FIRST).await;
    let (id, bytes) = match &raw {
        Raw::Sqlite(_) => ("x'0198c0de000070008000000000000001'", "x'00'"),
        Raw::Postgres(_) => ("'0198c0de-0000-7000-8000-000000000001'", "'\\x00'"),
    };
    for statement in STORED.iter().chain([&WORK]) {
        raw.execute(statement.replace("@1", id).replace("@2", bytes)).await;
    }
    for script in later(&raw) {
        raw.script(&script).await;
    }
    assert_eq!(raw.texts("SELECT state FROM steps").await, ["uncertain"]);
    assert_eq!(raw.number("SELECT doubt_at FROM steps").await, 70, "since the send that may have happened");
    assert_eq!(raw.texts("SELECT lane || ' ' || task FROM work").await, ["crm send"]);
    assert_eq!(raw.texts("SELECT name || ' ' || scope FROM tokens").await, ["shop submit"]);
    assert_eq!(
        raw.texts("SELECT name || ' ' || role || ' ' || password_hash FROM users").await,
        ["olga operator h"]
    );
    let words = "SELECT actor || ' ' || reason || ' ' || detail FROM audit JOIN audit_words ON audit_id = id \
                 WHERE length(salt) = 32";
    assert_eq!(raw.texts(words).await, ["anna it is back and more"]);
    assert_eq!(raw.number("SELECT count(*) FROM sessions").await, 0, "everybody signs in once more");
    // What the first version could not store can be stored now.
    raw.execute("UPDATE steps SET state = 'skipped', completed_at = 99").await;
    raw.execute("UPDATE tokens SET scope = 'work'").await;
    raw.execute("UPDATE users SET role = 'night-shift'").await;
}
