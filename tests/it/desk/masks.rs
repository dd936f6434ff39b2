//! Private values of operations whose payload no list reads.

use axum::http::Method;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::engine::accept::Accepted;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::tables::business;

on_both!(
    what_one_searches_by_stays_hidden_however_large_the_payload,
    what_stands_for_a_value_never_becomes_the_value,
    what_paused_a_destination_is_not_quoted_with_a_private_value,
);

const TYPE: &str = r#"
[operations.wide]
mask = ["/email", "/pin"]
search = { order = "/order_id", customer = "/email", pin = "/pin" }
[[operations.wide.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}" }
"#;

async fn what_one_searches_by_stays_hidden_however_large_the_payload(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let filler = "x".repeat(70_000);
    let mut ids = Vec::new();
    for (key, text) in [("large:anna@example.com", filler.as_str()), ("small:anna@example.com", "")] {
        desk.app.destination.script("/keyed", [Behaviour::status(422)]);
        let payload = format!(
            r#"{{"order_id":"order-{}","email":"anna@example.com","pin":"zq","text":"{text}"}}"#,
            &key[..5]
        );
        let Ok(Accepted::Created(new)) = desk.app.try_submit("wide", key, &payload).await else {
            panic!("it is new")
        };
        desk.app.run_until_idle().await;
        ids.push((new.id, desk.app.letter(new.id).await.id));
    }
    let mut boss = desk.signed_in(Role::Admin).await;
    let mut pages = vec!["/dead-letters".to_owned(), "/operations".to_owned(), "/audit".to_owned()];
    for (operation, letter) in ids {
        boss.post(&format!("/dead-letters/{letter}/note"), &[("note", "they called")]).await.location();
        boss.get(&format!("/dead-letters/{letter}")).await.expect(200);
        let evidence = boss.post(&format!("/operations/{operation}/evidence.json"), &[]).await.expect(200);
        assert!(!evidence.text.contains("anna@") && !evidence.text.contains("\"zq\""), "{}", evidence.text);
        assert_eq!(evidence.json()["operation"]["search"]["pin"], "\u{2022}\u{2022}\u{2022}");
        pages.push(format!("/operations/{operation}"));
        pages.push(format!("/dead-letters/{letter}"));
    }
    let mut seen = 0;
    for path in pages {
        let page = boss.get(&path).await.expect(200);
        let words = page.words();
        assert!(!page.text.contains("anna@") && !page.text.contains("anna%40"), "{path}: {words}");
        assert!(!words.contains("zq"), "{path}: {words}");
        seen += usize::from(words.contains("order-large"));
    }
    assert!(seen >= 4, "what is not private is there: {seen}");
}

async fn what_stands_for_a_value_never_becomes_the_value(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}/correct");
    let copied = r#"{"order_id":"order-2","customer_id":"C-7","email":"\u2022\u2022\u2022","amount":1250}"#;
    let token = desk.token(Scope::Operate).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let before = business(&olga.desk.app).await;
    for field in [("json", copied), ("f/email", "\u{2022}\u{2022}\u{2022}")] {
        for step in ["compare", "confirm"] {
            let fields = [("step", step), ("action_id", "a"), ("reason", "the order is 2"), field];
            let reply = olga.post(&path, &fields).await.expect(422);
            assert!(reply.first(".problems").contains("stands for a private value"), "{}", reply.words());
            assert!(reply.text.contains("order-1"), "the form is still there");
        }
    }
    let body = format!(r#"{{"payload":{copied},"reason":"the order is 2"}}"#);
    let call = format!("/api/v1/operations/{operation}/correct");
    desk.call(Method::POST, &call, &token, body).await.expect(409);
    assert_eq!(business(&desk.app).await, before);
}

async fn what_paused_a_destination_is_not_quoted_with_a_private_value(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let said = Behaviour::Status {
        code: 401,
        headers: vec![("content-type".to_owned(), "application/json".to_owned())],
        body: r#"{"error":{"message":"no account of anna@example.com may do this"}}"#.to_owned(),
    };
    desk.app.destination.script("/keyed", [said]);
    let id = desk.app.submit("keyed", "order-1").await;
    desk.app.run_until_idle().await;
    let thread = desk.app.thread(id).await;
    let error = thread.attempts.first().and_then(|attempt| attempt.error.clone()).unwrap_or_default();
    assert!(error.contains("anna@example.com"), "the destination repeats what it was sent: {error}");
    let mut vera = desk.signed_in(Role::Viewer).await;
    let mut told = 0;
    for path in ["/", "/destinations", "/destinations/keyed", "/status", "/dead-letters"] {
        let page = vera.get(path).await.expect(200);
        assert!(!page.text.contains("anna@example.com"), "{path}: {}", page.words());
        told += usize::from(page.words().contains("resumes it") || page.words().contains("Paused by"));
    }
    assert!(told >= 3, "it is paused, and said to be: {told}");
}
