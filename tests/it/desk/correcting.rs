//! A correction as a person makes it: the form, old and new side by side, and the new operation.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::accept::Accepted;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::tables::business;

on_both!(
    a_correction_is_compared_before_it_is_stored,
    values_keep_their_kind_and_their_digits,
    what_is_private_is_kept_and_never_filled_in,
    what_makes_no_operation_is_said_beside_the_form,
    lists_are_edited_as_json,
    a_key_of_facts_changes_with_them,
    what_cannot_be_corrected_says_why_and_what_else_to_do,
    a_correction_posted_twice_is_one,
);

const TYPES: &str = r#"
[operations.listed]
mask = ["/who/email"]
[[operations.listed.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { items = "{{ payload.items }}", mail = "{{ payload.who.email }}" }
[operations.derived]
key = "d:{{ payload.order_id }}:{{ payload.version }}"
[[operations.derived.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"
"#;

async fn refused(desk: &mut Desk, kind: &str, key: Option<&str>, payload: &str) -> (Uuid, Uuid) {
    desk.app.destination.script("/keyed", [Behaviour::status(422)]);
    let submission = dead_letter_office::engine::accept::Submission {
        key: key.map(str::to_owned),
        ..crate::support::app::submission(kind, "unused", payload)
    };
    let Accepted::Created(new) = desk.app.engine.intake().submit(submission).await.unwrap() else {
        panic!("it is new")
    };
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(new.id).await.id;
    (new.id, letter)
}

async fn a_correction_is_compared_before_it_is_stored(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}/correct");
    let cookie = {
        let mut olga = desk.signed_in(Role::Operator).await;
        let form = olga.get(&path).await.expect(200);
        let labels: Vec<String> = form.all(".values label").into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, ["order_id", "customer_id", "email", "amount"]);
        assert_eq!((form.field("f/order_id"), form.field("f/amount")), ("order-1".into(), "1250".into()));
        let id = form.field("action_id");
        let before = business(&desk.app).await;
        let typed =
            [("f/order_id", "order-1"), ("f/customer_id", "C-7"), ("f/email", ""), ("f/amount", "99.90")];
        let mut fields = typed.to_vec();
        fields.extend([("step", "compare"), ("action_id", &*id)]);
        let compared = olga.post(&path, &fields).await.expect(200);
        let words = compared.words();
        assert!(words.contains("1 value changes. Nothing is stored yet."), "{words}");
        let changed: Vec<String> = compared.all("tr.changed").into_iter().map(|(row, _)| row).collect();
        assert!(changed[0].starts_with("amount changed 1250 99.90"), "{changed:?}");
        assert!(changed[1].contains("order-1 order-1:c1"), "{changed:?}");
        assert!(changed[1].contains("a number behind it"), "why the key differs: {changed:?}");
        assert!(!compared.text.contains("anna@example.com"));
        assert_eq!(compared.field("f/amount"), "99.90", "carried on");
        assert_eq!(compared.field("action_id"), id, "still the same click");
        // Without a reason nothing happens; and one can go back.
        fields.retain(|(name, _)| *name != "step");
        let confirm = |more: &[(&'static str, &'static str)]| {
            let mut fields = fields.clone();
            fields.extend_from_slice(more);
            fields
        };
        let silent = olga.post(&path, &confirm(&[("step", "confirm"), ("reason", " ")])).await.expect(422);
        assert!(silent.words().contains("Say why"), "{}", silent.words());
        let back = olga.post(&path, &confirm(&[("step", "edit"), ("reason", "x")])).await.expect(200);
        assert_eq!(back.field("f/amount"), "99.90");
        assert_eq!(business(&desk.app).await, before);

        let reply = olga.post(&path, &confirm(&[("step", "confirm"), ("reason", "typed wrongly")])).await;
        let place = reply.location().to_owned();
        assert!(place.starts_with("/operations/"), "{place}");
        let page = olga.get(&place).await.expect(200);
        assert!(page.words().contains("in the queue and not sent yet"), "{}", page.words());
        olga.cookie.clone()
    };
    let old = desk.app.thread(operation).await;
    let new = old.operation.corrected_by.expect("a new operation");
    assert_eq!(old.letters[0].status, DeadLetterStatus::Corrected);
    let payload = desk.app.thread(new).await.payload.unwrap();
    let wanted = r#"{"order_id":"order-1","customer_id":"C-7","email":"anna@example.com","amount":99.90}"#;
    assert_eq!(payload, wanted, "what is private was kept, and the digits are as typed");
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.state(new).await, OperationState::Completed);
    let mut olga = desk.nobody();
    olga.cookie = cookie;
    let closed = olga.get(&path).await.expect(200);
    assert!(closed.words().contains("It was corrected already"), "{}", closed.words());
}

async fn values_keep_their_kind_and_their_digits(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let text = r#"{"n":12345678901234567890.10,"yes":true,"none":null,"lines":"a\nb","who":{"name":" Jo "},"less":{}}"#;
    let (operation, letter) = refused(&mut desk, "keyed", Some("k"), text).await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get(&path).await.expect(200);
    assert_eq!(form.field("f/n"), "12345678901234567890.10");
    assert_eq!(form.all("select[name='f/yes'] option[selected]")[0].0, "true");
    assert_eq!(form.all("textarea[name='f/lines']").len(), 1);
    assert_eq!(form.field("f/who/name"), " Jo ");
    let same = [
        ("f/n", "12345678901234567890.10"),
        ("f/yes", "true"),
        ("f/none", ""),
        ("f/lines", "a\r\nb"),
        ("f/who/name", " Jo "),
    ];
    let reply = olga.post(&path, &same).await.expect(422);
    // Its first step cannot be built of this payload either way, but that is not what is wrong first.
    assert!(reply.words().contains("Nothing is changed"), "{}", reply.words());
    let mut typed = same;
    typed[0].1 = "a lot";
    let reply = olga.post(&path, &typed).await.expect(422);
    assert!(reply.words().contains("n: a number is needed"), "{}", reply.words());
    assert_eq!(reply.field("f/n"), "a lot", "what was typed is still there");
    assert_eq!(desk.app.thread(operation).await.operation.corrected_by, None);
}

async fn what_is_private_is_kept_and_never_filled_in(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    for place in [path.clone(), format!("{path}?as=json")] {
        let form = olga.get(&place).await.expect(200);
        assert!(!form.text.contains("anna@") && !form.text.contains("\u{2022}\u{2022}"), "{place}");
        assert!(form.words().contains("kept"), "{}", form.words());
    }
    assert_eq!(olga.get(&path).await.field("f/email"), "");
    // As JSON it is not there, and comes back by itself.
    let json = r#"{"order_id":"order-2","customer_id":"C-7","amount":1250}"#;
    let compared = olga.post(&path, &[("json", json)]).await.expect(200);
    assert!(compared.words().contains("1 value changes"), "{}", compared.words());
    // Typed anew, it changes.
    let compared = olga.post(&path, &[("f/email", "bob@example.com")]).await.expect(200);
    let changed: Vec<String> = compared.all("tr.changed").into_iter().map(|(row, _)| row).collect();
    assert!(changed[0].contains("\u{2022}\u{2022}\u{2022} bob@example.com"), "{changed:?}");
}

async fn what_makes_no_operation_is_said_beside_the_form(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    let before = business(&desk.app).await;
    for (json, said) in
        [("{", "This is no JSON"), ("[]", "A JSON object is needed"), (r#"{"amount":1}"#, "payload.order_id")]
    {
        for step in ["compare", "confirm"] {
            let fields = [("json", json), ("step", step), ("reason", "x")];
            let reply = olga.post(&path, &fields).await.expect(422);
            assert!(reply.first(".problems").contains(said), "{json}: {}", reply.words());
            assert!(reply.words().contains("Nothing was changed yet"));
            assert_eq!(reply.first("textarea#json"), json.trim(), "what was typed is still there");
        }
    }
    assert_eq!(business(&desk.app).await, before);
}

async fn lists_are_edited_as_json(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPES).await;
    let text = r#"{"items":[{"sku":"A","n":1.50}],"who":{"email":"anna@example.com","n":1}}"#;
    let (operation, letter) = refused(&mut desk, "listed", Some("k"), text).await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get(&path).await.expect(200);
    let shown = form.first("textarea#json");
    assert!(shown.contains("1.50") && !shown.contains("email"), "{shown}");
    assert!(form.words().contains("1 private value is left out here."), "{}", form.words());
    let json = r#"{"items":[{"sku":"A","n":2.50},{"sku":"B","n":1}],"who":{"n":1}}"#;
    let compared = olga.post(&path, &[("json", json), ("action_id", "a")]).await.expect(200);
    let changed: Vec<String> = compared.all("tr.changed").into_iter().map(|(row, _)| row).collect();
    assert!(changed[0].starts_with("items.0.n changed 1.50 2.50"), "{changed:?}");
    assert!(changed[1].starts_with("items.1.sku changed not there B"), "{changed:?}");
    let fields = [("json", json), ("action_id", "a"), ("step", "confirm"), ("reason", "two of them")];
    olga.post(&path, &fields).await.location();
    let new = desk.app.thread(operation).await.operation.corrected_by.unwrap();
    let payload = desk.app.thread(new).await.payload.unwrap();
    let wanted =
        r#"{"items":[{"sku":"A","n":2.50},{"sku":"B","n":1}],"who":{"n":1,"email":"anna@example.com"}}"#;
    assert_eq!(payload, wanted);
}

async fn a_key_of_facts_changes_with_them(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPES).await;
    let (_, letter) = refused(&mut desk, "derived", None, r#"{"order_id":"1","version":1}"#).await;
    let (taken, _) = refused(&mut desk, "derived", None, r#"{"order_id":"1","version":2}"#).await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    let compared = olga.post(&path, &[("f/version", "3")]).await.expect(200);
    let key = compared.first("tr.key");
    assert!(key.contains("d:1:1 d:1:3") && key.contains("facts in the payload"), "{key}");
    let reply = olga.post(&path, &[("f/version", "2")]).await.expect(422);
    assert!(reply.words().contains(&taken.to_string()), "{}", reply.words());
    let compared = olga.post(&path, &[("f/version", "2"), ("key", "by-hand")]).await.expect(200);
    assert!(compared.first("tr.key").contains("d:1:1 by-hand You chose it."));
}

async fn what_cannot_be_corrected_says_why_and_what_else_to_do(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, doubted) = desk.dead_letter("plain", "order-1").await;
    let (_, closed) = desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/dead-letters/{doubted}/correct");
    let form = olga.get(&path).await.expect(200);
    let words = form.words();
    assert!(words.contains("may have happened") && words.contains("resolve its dead letter"), "{words}");
    assert!(form.all("main form").is_empty(), "no form for what is refused");
    assert!(form.all(".bar a").iter().any(|(words, _)| words.contains("record as completed")));
    let reply =
        olga.post(&path, &[("f/amount", "1"), ("step", "confirm"), ("reason", "x")]).await.expect(422);
    assert!(reply.words().contains("may have happened"), "{}", reply.words());
    let fields = [("resolution", "fixed_elsewhere"), ("reason", "made it by hand")];
    olga.post(&format!("/dead-letters/{closed}/resolve"), &fields).await.location();
    let form = olga.get(&format!("/dead-letters/{closed}/correct")).await.expect(200);
    assert!(form.words().contains("closed this dead letter as fixed elsewhere"), "{}", form.words());
}

async fn a_correction_posted_twice_is_one(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}/correct");
    let mut olga = desk.signed_in(Role::Operator).await;
    let fields = [("f/amount", "5"), ("step", "confirm"), ("reason", "typed wrongly"), ("action_id", "a")];
    let first = olga.post(&path, &fields).await.location().to_owned();
    assert_eq!(olga.post(&path, &fields).await.location(), first);
    let thread = desk.app.thread(operation).await;
    assert_eq!(thread.audit.iter().filter(|row| row.action == "correct").count(), 1);
    let other = [("f/amount", "6"), ("step", "confirm"), ("reason", "typed wrongly"), ("action_id", "b")];
    let late = olga.post(&path, &other).await.expect(422);
    assert!(late.words().contains("It was corrected already"), "{}", late.words());
}
