//! Where nothing can be put on record, nothing is done.

use dead_letter_office::accounts;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::store::accounts::user_by_name;

use crate::support::app::{TestApp, by_root};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::ledger::Raw;
use crate::support::tables::business;

on_both!(without_an_entry_there_is_no_action,);

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
    for (number, (path, fields)) in acts.into_iter().enumerate() {
        let action_id = format!("0198c0de-0000-7000-8000-{number:012}");
        let mut all =
            vec![("csrf", csrf.as_str()), ("action_id", action_id.as_str()), ("reason", "they asked")];
        all.extend(fields);
        let reply = admin.post_bare(&path, &all).await;
        // Exactly this: the form was in order, and its act came as far as the audit.
        assert_eq!(reply.status, 503, "{path}: {}", reply.text);
        assert!(
            !reply.text.contains("anna@example.com"),
            "{path} shows what nobody is on record to have seen"
        );
        assert_eq!(business(&desk.app).await, before, "{path} changed something");
    }
    // Nor does anybody come in.
    let mut somebody = desk.nobody();
    let reply = somebody.sign_in("otto", PASSWORD).await;
    assert!(reply.status.is_server_error(), "{}", reply.status);
    assert!(!somebody.is_in().await);
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    accounts::create_token(db, ambient, "x", Scope::Read, None, &by_root()).await.unwrap_err();
    assert_eq!(business(&desk.app).await, before);
    assert!(desk.app.destination.requests_count() > 0);
}
