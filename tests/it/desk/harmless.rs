//! Looking changes nothing, shows nothing private, and runs nothing that came from outside.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::actions;
use dead_letter_office::engine::actions::Request;
use scraper::{Html, Selector};

use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::tables::business;

on_both!(
    text_from_outside_is_never_markup,
    private_values_are_hidden_wherever_they_are_repeated,
    looking_at_any_page_changes_nothing,
);

const NASTY: &str = "\"><img src=x onerror=alert(1)><x-hostile>'</script><script>alert(2)</script>\u{202e}";

/// A type that repeats what is private in its address, its body and its business ids.
const PRIVATE: &str = r#"
[operations.private]
search = { mail = "/email", order = "/order_id" }
mask = ["/email", "/who", "/card"]
[[operations.private.steps]]
name = "create ticket"
destination = "lookup"
method = "POST"
path = "/tickets?mail={{ payload.email }}&name={{ payload.who.name }}"
body = { mail = "{{ payload.email }}", text = "for {{ payload.who.name }}", card = "{{ payload.card }}" }
"#;

async fn text_from_outside_is_never_markup(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let payload = serde_json::json!({
        "order_id": NASTY, "customer_id": NASTY, "email": "a@example.com", NASTY: [NASTY],
    });
    desk.app.destination.script("/keyed", [Behaviour::HostileText, Behaviour::error(422, NASTY, NASTY)]);
    let key = NASTY.replace('\u{202e}', "");
    let mut letters = Vec::new();
    for key in [format!("{key}1"), format!("{key}2")] {
        desk.app.try_submit("keyed", &key, &payload.to_string()).await.unwrap();
        desk.app.run_for(std::time::Duration::from_mins(40)).await;
        let mut tx = desk.app.engine.db().read().await.unwrap();
        let id = dead_letter_office::engine::thread::find(&mut tx, &key).await.unwrap().unwrap();
        drop(tx);
        let thread = desk.app.thread(id).await;
        letters.push((id, thread.letters.first().map(|letter| letter.id)));
    }
    let (operation, letter) = letters[1];
    let actor = person(NASTY, Role::Operator);
    let asked = Request { actor: &actor, action_id: "a1", reason: NASTY, origin: NASTY };
    actions::replay(desk.app.engine.gate(), operation, &asked).await.unwrap();
    let query: String = url::form_urlencoded::byte_serialize(NASTY.as_bytes()).collect();
    let mut paths = vec![
        "/".to_owned(),
        "/dead-letters?status=any".to_owned(),
        "/operations".to_owned(),
        "/audit".to_owned(),
        "/destinations/keyed".to_owned(),
        "/types/keyed".to_owned(),
        "/status".to_owned(),
        format!(
            "/dead-letters?search={query}&type={query}&destination={query}&cause={query}&assignee={query}"
        ),
        format!("/operations?search={query}&type={query}&key={query}"),
        format!("/audit?actor={query}&action={query}&operation={query}"),
        format!("/dead-letters?status={query}"),
        format!("/dead-letters/{query}"),
    ];
    for (operation, letter) in letters {
        paths.push(format!("/operations/{operation}"));
        paths.extend(letter.map(|letter| format!("/dead-letters/{letter}")));
    }
    assert!(letter.is_some());
    let mut olga = desk.signed_in(Role::Operator).await;
    for path in paths {
        let page = olga.get(&path).await;
        let parsed = Html::parse_document(&page.text);
        assert!(parsed.errors.is_empty(), "{path}: {:?}", parsed.errors);
        let count = |selector: &str| parsed.select(&Selector::parse(selector).unwrap()).count();
        assert_eq!(count("script"), 1, "{path}");
        assert_eq!(count("img, iframe, style, x-hostile, [onerror], [onload], [style]"), 0, "{path}");
        for href in page.all("a").into_iter().map(|(_, href)| href) {
            let known = ["/", "#", "http://", "https://"].iter().any(|start| href.starts_with(start));
            assert!(known && !href.starts_with("//"), "{path}: {href}");
        }
    }
}

async fn private_values_are_hidden_wherever_they_are_repeated(db: TestDatabase) {
    let mut desk = Desk::configured(db, PRIVATE).await;
    let said = "anna.b+x@example.com is not known; Jo \"X\" Miller either, nor 4111111111111111";
    desk.app.destination.script("/lookup", [Behaviour::error(422, "unknown", said)]);
    let payload = r#"{"order_id":"O-1","email":"Anna.B+x@example.com","who":{"name":"Jo \"X\" Miller"},"card":4111111111111111,"note":"kept"}"#;
    desk.app.try_submit("private", "private-1", payload).await.unwrap();
    desk.app.run_until_idle().await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let id = dead_letter_office::engine::thread::find(&mut tx, "private-1").await.unwrap().unwrap();
    drop(tx);
    let letter = desk.app.thread(id).await.live_letter().expect("refused").id;
    let actor = person("olga", Role::Operator);
    let reason = "anna.b+x@example.com called";
    let asked = Request { actor: &actor, action_id: "a1", reason, origin: "here" };
    actions::replay(desk.app.engine.gate(), id, &asked).await.unwrap();
    desk.app.destination.script("/lookup", [Behaviour::error(422, "unknown", said)]);
    desk.app.run_until_idle().await;
    let mut admin = desk.signed_in(Role::Admin).await;
    let cause = admin.get("/").await.expect(200).all("td.main > a").remove(0).1;
    for path in [
        "/".to_owned(),
        cause,
        "/dead-letters".to_owned(),
        "/operations".to_owned(),
        "/audit".to_owned(),
        format!("/dead-letters/{letter}"),
        format!("/operations/{id}"),
    ] {
        let page = admin.get(&path).await.expect(200);
        let text = page.text.to_lowercase();
        for secret in ["anna.b", "jo \"x\"", "jo &#34;x", "miller", "4111111111111111"] {
            assert!(!text.contains(secret), "{path} shows {secret}");
        }
    }
    let page = admin.get(&format!("/dead-letters/{letter}")).await.expect(200);
    let payload = page.first("section[aria-labelledby=payload]");
    assert!(payload.contains("\"note\": \"kept\""), "{payload}");
    assert!(payload.contains("3 fields are private and hidden. Show all for 10 minutes"), "{payload}");
    let wires: Vec<String> = page.all(".wire").into_iter().map(|(text, _)| text).collect();
    assert!(
        wires[0].contains("/tickets?mail=\u{2022}\u{2022}\u{2022}&name=\u{2022}\u{2022}\u{2022}"),
        "{wires:?}"
    );
    assert!(wires[0].contains("Private values are hidden; what was sent holds them."), "{wires:?}");
    assert!(wires[1].contains("\u{2022}\u{2022}\u{2022} is not known"), "{wires:?}");
}

/// One address that is asked by GET makes a session, as its protocol has it: `security::sso` says what
/// keeps others from using it.
async fn looking_at_any_page_changes_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (refused, letter) = desk.dead_letter("keyed", "order-1").await;
    let (doubtful, doubt) = desk.dead_letter("plain", "order-2").await;
    let mut olga = desk.signed_in(Role::Approver).await;
    let before = business(&olga.desk.app).await;
    for path in [
        "/".to_owned(),
        "/dead-letters?status=any".to_owned(),
        "/operations?search=order-1".to_owned(),
        "/audit".to_owned(),
        "/destinations".to_owned(),
        "/destinations/keyed".to_owned(),
        "/types/keyed".to_owned(),
        "/status".to_owned(),
        "/account".to_owned(),
        format!("/dead-letters/{letter}"),
        format!("/dead-letters/{doubt}"),
        format!("/operations/{refused}"),
        format!("/operations/{doubtful}"),
    ] {
        olga.get(&path).await.expect(200);
    }
    assert_eq!(business(&olga.desk.app).await, before);
}
