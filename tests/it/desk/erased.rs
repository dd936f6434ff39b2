//! What the desk and the API say of an operation whose retention ended.

use std::time::Duration;

use axum::http::Method;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::retention::Round;
use serde_json::Value;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(an_erased_operation_says_so_and_shows_what_is_known);

const KEPT: &str = r#"
[operations.kept]
search = { order = "/order_id" }
retain = "90d"
[[operations.kept.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { who = "{{ payload.who }}" }
"#;

async fn an_erased_operation_says_so_and_shows_what_is_known(db: TestDatabase) {
    let mut desk = Desk::configured(db, KEPT).await;
    let told = Behaviour::error(422, "refused", "zaphod is unknown here");
    desk.app.destination.script("/keyed", [told]);
    let payload = r#"{"order_id":"order-1","who":"zaphod"}"#;
    let Accepted::Created(new) = desk.app.try_submit("kept", "order-1", payload).await.unwrap() else {
        panic!("it is new")
    };
    desk.app.run_to_the_end().await;
    let letter = desk.app.letter(new.id).await.id;
    desk.app.clock.advance(Duration::from_hours(91 * 24));
    let engine = &desk.app.engine;
    let mut round = Round::begin(engine.db(), engine.config(), engine.ambient()).await.unwrap().unwrap();
    while round.step().await.unwrap().is_some() {}

    let mut person = desk.signed_in(Role::Operator).await;
    for path in [format!("/operations/{}", new.id), format!("/dead-letters/{letter}")] {
        let page = person.get(&path).await.expect(200);
        let words = page.words();
        assert!(words.contains("It was erased: this type's payloads are kept for 90 d"), "{words}");
        assert!(words.contains("It was erased."), "{words}");
        assert!(words.contains("422 Unprocessable") && words.contains("order-1"), "{words}");
        assert!(!page.text.contains("zaphod"), "{}", page.text);
        assert!(!words.contains("said \u{201c}\u{201d}"), "{words}");
    }
    for path in ["/", "/dead-letters", "/operations"] {
        let page = person.get(path).await.expect(200);
        assert!(
            !page.text.contains("zaphod") && !page.words().contains("\u{201c}\u{201d}"),
            "{}",
            page.words()
        );
    }
    let page = person.get(&format!("/dead-letters/{letter}/replay")).await.expect(200);
    assert!(page.words().contains("erased"), "{}", page.words());
    drop(person);

    let token = desk.token(Scope::Operate).await;
    let get = async |path: String| desk.call(Method::GET, &path, &token, "").await.expect(200).json();
    let attempts = get(format!("/api/v1/operations/{}/attempts", new.id)).await;
    let attempt = &attempts["items"][0];
    assert_eq!((&attempt["status"], &attempt["error"]), (&Value::from(422), &Value::Null));
    assert_eq!(attempt["request"]["body"], Value::Null);
    let letter = get(format!("/api/v1/dead-letters/{letter}")).await;
    assert_eq!(letter["status"], Value::from("open"));
    let replay = format!("/api/v1/dead-letters/{}/replay", letter["id"].as_str().unwrap());
    let verdict = desk.call(Method::POST, &replay, &token, r#"{"reason":"x"}"#).await.expect(409).json();
    assert_eq!(verdict["verdict"], Value::from("refused"));
}
