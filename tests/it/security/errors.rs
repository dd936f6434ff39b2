//! What goes wrong inside stays inside: the reader gets a number, and the log has the rest under it.
//! That a handler that panics says no more is shown where the layer is, in `web`.

use axum::http::Method;
use dead_letter_office::domain::actor::{Role, Scope};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Reply};
use crate::support::hooks::{Hook, NEW, sources};
use crate::support::routes::routes;

on_both!(a_store_that_fails_shows_nothing_of_itself, a_store_that_is_gone_shows_nothing_of_itself);

/// Words of the inside, in lower case.
const INTERNAL: [&str; 16] = [
    "sqlx",
    "sqlite",
    "postgres",
    "no such table",
    "relation",
    "does not exist",
    "select ",
    "insert into",
    "pool",
    "panick",
    "src/",
    ".rs:",
    "unwrap",
    "database:",
    "_gone",
    "tokio",
];

#[track_caller]
fn is_discreet(reply: &Reply, about: &str) {
    if reply.status.as_u16() < 500 {
        return;
    }
    assert_eq!(reply.status.as_u16(), 503, "{about}: {}", reply.text);
    // Who watches the process gets a line, and everybody else the number to ask with.
    let has_number = reply.text.contains(reply.header("x-request-id"));
    assert!(has_number || reply.header("content-type").starts_with("text/plain"), "{about}: {}", reply.text);
    let text = reply.text.to_lowercase();
    for word in INTERNAL {
        assert!(!text.contains(word), "{about} shows {word:?}: {}", reply.text);
    }
}

/// Asks every route as an admin and as a program; how many could not be served.
async fn ask_everything(desk: &Desk, cookie: &str, csrf: &str, token: &str) -> usize {
    let id = uuid::Uuid::nil().to_string();
    let mut failed = 0;
    for (method, path) in routes() {
        let path = path.replace("{id}", &id).replace("{name}", "plain").replace("{token}", "x");
        let path = path.replace("{source}", "standard");
        let mut person = desk.nobody();
        person.cookie = Some(cookie.to_owned());
        let reply = if path.starts_with("/api/") {
            desk.call(method.to_uppercase().parse().unwrap(), &path, token, "{}").await
        } else if method == "post" {
            let fields = [("csrf", csrf), ("action_id", "a1"), ("reason", "why"), ("name", "olga")];
            person.post_bare(&path, &[&fields[..], &[("password", PASSWORD)]].concat()).await
        } else {
            person.get(&path).await
        };
        is_discreet(&reply, &format!("{method} {path}"));
        failed += usize::from(reply.status.as_u16() == 503);
    }
    failed
}

async fn ready(db: TestDatabase) -> (Desk, String, String, String) {
    let desk = Desk::configured(db, &sources()).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let csrf = boss.csrf().await;
    let cookie = boss.cookie.clone().unwrap();
    let token = desk.token(Scope::Operate).await;
    desk.call(Method::GET, "/api/v1/operations", &token, "").await.expect(200);
    (desk, cookie, csrf, token)
}

/// None of those pages reads these: what only acts, doors, the engine and its upkeep look into, and the
/// members of a bulk action, of which there is none here.
const UNREAD: [&str; 8] = [
    "audit_erasures",
    "bulk_members",
    "identities",
    "settings_seen",
    "setup_links",
    "tries",
    "upkeep_later",
    "upkeep_places",
];

async fn a_store_that_fails_shows_nothing_of_itself(db: TestDatabase) {
    let (mut desk, cookie, csrf, token) = ready(db).await;
    // Each table in its turn, asked for by pages that have something to show.
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut raw = desk.app.raw().await;
    let cause = raw.texts("SELECT cause FROM dead_letters").await.remove(0);
    let places = [
        ("/dead-letters/{id}", format!("/dead-letters/{letter}")),
        ("/operations/{id}", format!("/operations/{operation}")),
        ("/causes/{id}", format!("/causes/{cause}")),
        ("{name}", "keyed".to_owned()),
        ("{id}", uuid::Uuid::nil().to_string()),
    ];
    let pages: Vec<String> = routes()
        .into_iter()
        .filter(|(method, path)| *method == "get" && !path.contains("{token}") && !path.contains("/live"))
        .map(|(_, path)| places.iter().fold(path, |path, (place, one)| path.replace(place, one)))
        .collect();
    let mut unread = Vec::new();
    for table in raw.counts().await.into_keys() {
        raw.script(&format!("ALTER TABLE {table} RENAME TO {table}_gone")).await;
        let mut failed = 0;
        for path in &pages {
            let mut person = desk.nobody();
            person.cookie = Some(cookie.clone());
            let reply = if path.starts_with("/api/") {
                desk.call(Method::GET, path, &token, "").await
            } else {
                person.get(path).await
            };
            is_discreet(&reply, &format!("{path} without {table}"));
            failed += usize::from(reply.status.as_u16() == 503);
        }
        if failed == 0 {
            unread.push(table.clone());
        }
        // For the next one, and for what is looked at when a test is over.
        raw.script(&format!("ALTER TABLE {table}_gone RENAME TO {table}")).await;
    }
    assert_eq!(unread, UNREAD);

    // And forms. One of them signs out, so that they come last.
    raw.script("ALTER TABLE operations RENAME TO operations_gone").await;
    let failed = ask_everything(&desk, &cookie, &csrf, &token).await;
    assert!(failed > 5, "{failed}");
    raw.script("ALTER TABLE operations_gone RENAME TO operations").await;
}

async fn a_store_that_is_gone_shows_nothing_of_itself(db: TestDatabase) {
    let (desk, cookie, csrf, token) = ready(db).await;
    desk.app.engine.db().close().await;
    let failed = ask_everything(&desk, &cookie, &csrf, &token).await;
    assert!(failed > 30, "{failed}");
    let event = r#"{"type":"invoice.paid","data":{"object":{"order_id":"1","customer_id":"C-7"}}}"#;
    let hook = desk.deliver(&Hook::standard(NEW, "e1", desk.seconds(), event)).await;
    assert_eq!(hook.json()["type"], "/problems/store-unavailable");
    is_discreet(&hook, "a webhook");
}
