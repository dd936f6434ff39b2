//! Audit: every entry is linked, what is done to one afterwards is found and named, and without an
//! entry there is no action.

mod chain;
mod fails_closed;
mod tampering;
mod told;

use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::journal::verify::{FaultKind, Outcome, verify};
use dead_letter_office::store::audit::{self, AuditRow};
use dead_letter_office::store::{Commit, Db};
use uuid::Uuid;

use crate::support::app::TestApp;
use crate::support::databases::TestDatabase;
use crate::support::ledger::Raw;

pub(super) fn row(ambient: &Ambient, action: &str) -> AuditRow {
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
pub(super) async fn entries(db: TestDatabase, count: usize) -> TestApp {
    let app = TestApp::start(db).await;
    for number in 0..count {
        write(app.engine.db(), app.engine.ambient(), &format!("act_{number}")).await;
    }
    app
}

pub(super) async fn write(db: &Db, ambient: &Ambient, action: &str) {
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
pub(super) async fn unguarded(app: &TestApp) -> Raw {
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
pub(super) async fn at(raw: &mut Raw, seq: i64, statement: &str) {
    let id = format!("(SELECT audit_id FROM audit_chain WHERE seq = {seq})");
    assert_eq!(raw.execute(statement.replace('@', &id)).await, 1, "{statement}");
}
