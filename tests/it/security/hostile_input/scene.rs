//! A desk to be swept, and what may not change there.

use std::collections::BTreeMap;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::actions;
use dead_letter_office::engine::thread;
use serde_json::{Map, Value};
use uuid::Uuid;

use super::strings::strings;
use crate::support::app::{TestApp, person, request};
use crate::support::databases::TestDatabase;
use crate::support::desk::{Desk, PASSWORD};
use crate::support::hooks;

const NASTY: &str = "\"><x-hostile onclick=alert(1)>'</textarea><script>alert(2)</script>{{ 7*7 }}\u{202e}";

/// A desk with something on each of its pages, most of it hostile, and nothing left to send: what is
/// asked of it can be refused only.
pub(super) async fn scene(db: TestDatabase) -> Desk {
    let mut desk = Desk::configured(db, &hooks::sources()).await;
    desk.add("admin", Role::Admin).await;
    let (first, _) = desk.dead_letter("keyed", "order-1").await;
    let texts =
        strings().into_iter().filter(|one| one.len() < 300).filter_map(|one| String::from_utf8(one).ok());
    let members: Map<String, Value> = texts.map(|text| (text.clone(), Value::from(text))).collect();
    let mut payload = Value::Object(members);
    payload["order_id"] = NASTY.into();
    payload["customer_id"] = NASTY.into();
    desk.app.destination.script("/keyed", [Behaviour::error(422, NASTY, NASTY)]);
    let key = NASTY.replace('\u{202e}', "");
    desk.app.try_submit("keyed", &key, &payload.to_string()).await.expect("taken");
    desk.app.run_until_idle().await;
    let mut boss = desk.nobody();
    boss.sign_in("admin", PASSWORD).await;
    for letter in boss.get("/dead-letters").await.all("a[href^='/dead-letters/']") {
        let path = letter.1.split(['?', '#']).next().unwrap_or_default().to_owned();
        if path.matches('/').count() != 2 {
            continue;
        }
        let id = path.rsplit('/').next().unwrap_or_default().to_owned();
        boss.post(&format!("{path}/note"), &[("action_id", &id), ("note", NASTY)]).await;
        let bulk = [
            ("action", "assign"),
            ("name", NASTY),
            ("reason", NASTY),
            ("ids", &id),
            ("action_id", &*format!("b{id}")),
        ];
        boss.post("/bulk/new", &bulk).await;
    }
    boss.post("/views", &[("name", NASTY), ("query", "status=any&search=%22%3E%3Cx-hostile%3E")]).await;
    let actor = person(NASTY, Role::Operator);
    for (nth, operation) in
        [Some(first), operation_of(&desk.app, &key).await].into_iter().flatten().enumerate()
    {
        let gate = desk.app.engine.gate();
        let action = format!("replay {nth}");
        let asked = request(&actor, &action);
        actions::replay(gate, operation, &asked).await.expect("a verdict");
    }
    desk.app.run_until_idle().await;
    desk
}

async fn operation_of(app: &TestApp, key: &str) -> Option<Uuid> {
    let mut tx = app.engine.db().read().await.expect("a database");
    thread::find(&mut tx, key).await.expect("a database")
}

/// What a sweep may not change.
pub(super) struct Ledger(BTreeMap<&'static str, Vec<String>>);

/// What is known of operations, and what is to be done with them.
const LEDGER: [&str; 9] = [
    "operations",
    "payloads",
    "steps",
    "requests",
    "attempts",
    "work",
    "dead_letters",
    "override_requests",
    "search",
];

impl Ledger {
    pub(super) async fn of(app: &TestApp) -> Self {
        let mut tables = BTreeMap::new();
        for (table, row) in app.raw().await.dump().await {
            if let Some(table) = LEDGER.iter().find(|known| **known == table) {
                tables.entry(*table).or_insert_with(Vec::new).push(row);
            }
        }
        Self(tables)
    }

    /// Besides operations that were handed in, and told to have been.
    pub(super) async fn is_unchanged(&self, app: &TestApp, created: usize) {
        let now = Self::of(app).await;
        for table in LEDGER {
            let none = Vec::new();
            let (before, after) = (self.0.get(table).unwrap_or(&none), now.0.get(table).unwrap_or(&none));
            for row in before {
                assert!(after.contains(row), "{table}: this row was changed or is gone: {row}");
            }
            let more = after.len() - before.len();
            match table {
                "operations" => assert_eq!(more, created, "new operations and those that were told"),
                "attempts" | "dead_letters" | "override_requests" => {
                    assert_eq!(more, 0, "new rows of {table}")
                }
                _ => assert!(more <= created * 4, "{more} new rows of {table} for {created} operations"),
            }
        }
        assert_eq!(app.raw().await.violations().await, Vec::<String>::new());
    }
}
