//! How far erasing somebody reaches: everything that people wrote and that quotes them, and nothing
//! else.

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode};
use dead_letter_office::engine::approvals::{self, Asked};
use dead_letter_office::engine::erasure::{self, Subject};
use dead_letter_office::engine::journal::verify::verify;
use dead_letter_office::engine::{destinations, handling, views};
use uuid::Uuid;

use super::{PAYLOAD, TYPE, asked, left, refused};
use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    only_what_quotes_them_loses_its_words,
    words_that_the_audit_uses_itself_end_nothing,
    a_short_value_goes_only_where_it_is_all_that_is_said,
    what_people_wrote_on_other_operations_goes_too,
    what_stays_keeps_its_words,
    a_reason_that_quotes_them_is_refused,
    keys_that_look_erased_are_keys,
);

/// An operation of the type with this payload that went through.
pub(super) async fn done(desk: &mut Desk, key: &str, payload: &str) -> Uuid {
    let taken = desk.app.try_submit("personal", key, payload).await.unwrap();
    let Accepted::Created(new) = taken else { panic!("it is new") };
    desk.app.run_until_idle().await;
    new.id
}

pub(super) fn subject(desk: &Desk, value: &str) -> Subject {
    Subject::new(desk.app.engine.config(), "customer", value).unwrap()
}

/// What the audit says of an action, entry by entry.
async fn said(desk: &Desk, action: &str) -> Vec<String> {
    let sql = format!(
        "SELECT coalesce(w.reason, '') || '/' || coalesce(w.detail, '(erased)') FROM audit a \
         LEFT JOIN audit_words w ON w.audit_id = a.id WHERE a.action = '{action}' ORDER BY a.at, a.id"
    );
    desk.app.raw().await.texts(sql).await
}

/// Two overlapping names, and every kind of entry that has its target in its words alone.
async fn only_what_quotes_them_loses_its_words(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (gate, ambient) = (desk.app.engine.gate().clone(), desk.app.engine.ambient().clone());
    let (boss, vera) = (person("boss", Role::Admin), person("vera", Role::Viewer));
    let by = By { actor: &boss, origin: "127.0.0.1" };
    accounts::add_user(gate.db(), &ambient, "anna", "viewer", Some("correct horse battery".into()), &by)
        .await
        .unwrap();
    accounts::set_role(gate.db(), &ambient, "anna", "operator", &by).await.unwrap();
    accounts::disable(gate.db(), &ambient, "anna", &by).await.unwrap();
    views::save(&gate, "anna's", "search=anna", false, &asked(&vera, "v1", "")).await.unwrap();
    destinations::pause(&gate, "plain", &asked(&boss, "p1", "Hanna said annas")).await.unwrap();

    // Nobody is found under it: nothing at all is changed.
    let before = desk.app.raw().await.dump().await;
    let refused = erasure::erase(&gate, &subject(&desk, "anna"), &asked(&boss, "e1", "by letter")).await;
    assert!(
        matches!(&refused, Err(ActionError::Invalid(why)) if why.contains("no operation")),
        "{refused:?}"
    );
    assert_eq!(desk.app.raw().await.dump().await, before);

    done(&mut desk, "order-1", r#"{"order_id":"1","customer_id":"anna","email":"a@example.com","name":"A"}"#)
        .await;
    let answer =
        erasure::erase(&gate, &subject(&desk, "anna"), &asked(&boss, "e1", "by letter")).await.unwrap();
    assert!(answer.starts_with("operations erased: 1;"), "{answer}");
    assert_eq!(said(&desk, "user_add").await, ["/anna as viewer"]);
    assert_eq!(said(&desk, "user_role").await, ["/anna: viewer to operator"]);
    assert_eq!(said(&desk, "user_disable").await, ["/anna"]);
    assert_eq!(said(&desk, "pause").await.len(), 1);
    assert!(said(&desk, "pause").await[0].starts_with("Hanna said annas"));
    assert_eq!(said(&desk, "view_save").await, ["/(erased)"]);
    assert_eq!(desk.app.raw().await.number("SELECT count(*) FROM views").await, 0);

    // The same click again: it was taken, and does nothing a second time.
    let again = views::save(&gate, "anna's", "search=anna", false, &asked(&vera, "v1", "")).await;
    assert!(matches!(again, Err(ActionError::Settled(_))), "{again:?}");
    assert_eq!(desk.app.raw().await.number("SELECT count(*) FROM views").await, 0);
    destinations::pause(&gate, "plain", &asked(&boss, "p1", "Hanna said annas")).await.unwrap();
    assert_eq!(said(&desk, "pause").await.len(), 1, "nobody else's action is forgotten");
    assert_eq!(verify(gate.db(), vec![]).await.unwrap().faults, []);
}

async fn words_that_the_audit_uses_itself_end_nothing(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let payload = r#"{"order_id":"1","customer_id":"somebody","email":"quoted","name":"erased"}"#;
    done(&mut desk, "order-1", payload).await;
    let (gate, boss) = (desk.app.engine.gate().clone(), person("boss", Role::Admin));
    destinations::pause(&gate, "plain", &asked(&boss, "p1", "somebody called")).await.unwrap();
    let answer =
        erasure::erase(&gate, &subject(&desk, "somebody"), &asked(&boss, "e1", "by letter")).await.unwrap();
    assert!(answer.starts_with("operations erased: 1; audit entries that lost their words: 1;"), "{answer}");
    assert_eq!(said(&desk, "pause").await, ["/(erased)"]);
    let own = said(&desk, "erase").await;
    assert_eq!(own, ["by letter/everything under one customer"]);
    assert_eq!(said(&desk, "erased").await, [format!("/{answer}")]);
    assert_eq!(
        erasure::erase(&gate, &subject(&desk, "somebody"), &asked(&boss, "e1", "by letter")).await.unwrap(),
        answer,
        "its own answer stays"
    );
    assert_eq!(verify(gate.db(), vec![]).await.unwrap().faults, []);
}

async fn a_short_value_goes_only_where_it_is_all_that_is_said(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    done(&mut desk, "order-1", r#"{"order_id":"1","customer_id":"7","email":"Bob","name":"B"}"#).await;
    let (gate, boss) = (desk.app.engine.gate().clone(), person("boss", Role::Admin));
    destinations::pause(&gate, "plain", &asked(&boss, "p1", "7 calls about Bob")).await.unwrap();
    destinations::pause(&gate, "lookup", &asked(&boss, "p2", "bob")).await.unwrap();
    views::save(&gate, "mine", "status=open&search=7", false, &asked(&boss, "v1", "")).await.unwrap();
    views::save(&gate, "others", "limit=7&search=77", false, &asked(&boss, "v2", "")).await.unwrap();
    let answer = erasure::erase(&gate, &subject(&desk, "7"), &asked(&boss, "e1", "7 days went by")).await;
    assert!(answer.unwrap().starts_with("operations erased: 1; audit entries that lost their words: 2;"));
    let mut raw = desk.app.raw().await;
    assert_eq!(raw.texts("SELECT name FROM views").await, ["others"]);
    let reasons = "SELECT pause_reason FROM destinations WHERE paused_at IS NOT NULL ORDER BY name";
    assert_eq!(raw.texts(reasons).await, ["Erased", "7 calls about Bob"]);
    assert_eq!(said(&desk, "view_save").await, ["/(erased)", "/others: limit=7&search=77"]);
}

async fn what_people_wrote_on_other_operations_goes_too(db: TestDatabase) {
    let mut desk = Desk::configured(db, &format!("{TYPE}{GUARDED}")).await;
    done(&mut desk, "order-zb-1", PAYLOAD).await;
    let gate = desk.app.engine.gate().clone();
    let (olga, anton) = (person("olga", Role::Operator), person("anton", Role::Approver));

    let (other, letter) = desk.dead_letter("keyed", "order-9").await;
    handling::note(&gate, letter, "same as zaphod@example.com", &asked(&olga, "n1", "")).await.unwrap();
    handling::note(&gate, letter, "nothing of theirs", &asked(&olga, "n2", "")).await.unwrap();
    let resolve = actions::Resolve { resolution: Resolution::NotNeeded, reference: None };
    actions::resolve(&gate, letter, &resolve, &asked(&olga, "r1", "C-4711 has it")).await.unwrap();

    desk.app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }]);
    let waiting = desk.app.submit("guarded", "order-10").await;
    desk.app.run_until_idle().await;
    let waits = desk.app.letter(waiting).await;
    let why = asked(&anton, "a1", "Zaphod Beeblebrox waits");
    let asked_for = approvals::ask(&gate, &waits, OverrideMode::NewEffect, None, &why).await.unwrap();
    assert!(matches!(asked_for, Asked::Waits(_)), "{asked_for:?}");

    assert!(!left(&desk).await.is_empty());
    let boss = person("boss", Role::Admin);
    erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&boss, "e1", "by letter")).await.unwrap();
    assert_eq!(left(&desk).await, []);
    let thread = desk.app.thread(other).await;
    let notes: Vec<&str> = thread.events.iter().map(|event| event.detail.as_str()).collect();
    assert_eq!(notes, ["Erased.", "nothing of theirs"]);
    assert!(thread.payload.is_some() && thread.letters[0].reason.is_none());
    let requests = "SELECT reason FROM override_requests WHERE state = 'waiting'";
    assert_eq!(desk.app.raw().await.texts(requests).await, ["Erased."], "it waits as before");
    assert_eq!(verify(gate.db(), vec![]).await.unwrap().faults, []);
}

const GUARDED: &str = r#"
[operations.guarded]
override_approval = true
[[operations.guarded.steps]]
name = "create ticket"
destination = "plain"
method = "POST"
path = "/tickets"
body = { external_ref = "{{ key }}" }
reference = "/id"
effect = "A ticket"
"#;

/// An operation that must be settled first stays with everything that was written of it.
async fn what_stays_keeps_its_words(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (open, letter) = refused(&mut desk, "order-zb-1").await;
    let settled = done(&mut desk, "order-2", PAYLOAD).await;
    let gate = desk.app.engine.gate().clone();
    let olga = person("olga", Role::Operator);
    handling::note(&gate, letter, "C-4711 is in court with us", &asked(&olga, "n1", "")).await.unwrap();
    handling::assign(&gate, letter, None, &asked(&olga, "n2", "zaphod@example.com wrote")).await.unwrap();
    let before = desk.app.thread(open).await;
    let boss = person("boss", Role::Admin);
    let answer = erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&boss, "e1", "by letter")).await;
    assert!(answer.unwrap().ends_with("operations that must be settled first: 1"));
    assert!(desk.app.thread(settled).await.payload.is_none());
    let after = desk.app.thread(open).await;
    let known = |thread: &dead_letter_office::engine::thread::Thread| {
        format!("{:?} {:?} {:?}", thread.payload, thread.events, thread.audit)
    };
    assert_eq!(known(&after), known(&before));
}

async fn a_reason_that_quotes_them_is_refused(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let operation = done(&mut desk, "order-zb-1", PAYLOAD).await;
    let gate = desk.app.engine.gate().clone();
    let boss = person("boss", Role::Admin);
    for reason in ["c-4711 asked", "asked for by ZAPHOD@example.com", "Mr Zaphod Beeblebrox wrote"] {
        let before = desk.app.raw().await.dump().await;
        let refused = erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&boss, "e1", reason)).await;
        assert!(matches!(&refused, Err(ActionError::Invalid(why)) if why.contains("quotes")), "{refused:?}");
        assert_eq!(desk.app.raw().await.dump().await, before);
    }
    let mut admin = desk.signed_in(Role::Admin).await;
    let look = [("step", "look"), ("name", "customer"), ("value", "C-4711")];
    let id = admin.post("/erase", &look).await.expect(200).field("action_id");
    let fields = [
        ("step", "erase"),
        ("name", "customer"),
        ("value", "C-4711"),
        ("again", "C-4711"),
        ("reason", "C-4711 asked"),
        ("action_id", &id),
    ];
    let page = admin.post("/erase", &fields).await.expect(422);
    assert!(page.words().contains("The reason quotes what is to go"), "{}", page.words());
    assert_eq!(page.field("action_id"), id);
    let nobody = [("step", "look"), ("name", "customer"), ("value", "C-9")];
    let page = admin.post("/erase", &nobody).await.expect(200);
    assert!(page.words().contains("there is nothing to erase"), "{}", page.words());
    assert!(page.all("main form").is_empty(), "nothing is offered");
    assert!(desk.app.thread(operation).await.payload.is_some());
}

/// A caller may choose any key, also one that looks like what an erased operation is called by.
async fn keys_that_look_erased_are_keys(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let operation = done(&mut desk, "erased:order-zb-1", PAYLOAD).await;
    for taken in [format!("erased:{operation}"), format!("erased:{}", operation.simple())] {
        let payload = r#"{"order_id":"2","customer_id":"C-8","email":"e","name":"n"}"#;
        done(&mut desk, &taken, payload).await;
    }
    let (gate, boss) = (desk.app.engine.gate().clone(), person("boss", Role::Admin));
    let answer =
        erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&boss, "e1", "by letter")).await.unwrap();
    assert!(answer.starts_with("operations erased: 1;"), "{answer}");
    assert_eq!(left(&desk).await, []);
    assert!(desk.app.thread(operation).await.payload.is_none());
    let again = desk.app.try_submit("personal", "erased:order-zb-1", PAYLOAD).await.unwrap();
    assert!(matches!(again, Accepted::Duplicate(id) if id == operation), "{again:?}");
}
