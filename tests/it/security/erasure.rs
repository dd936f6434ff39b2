//! Erasing a person: nothing of theirs is left in the database, the evidence stays meaningful, the
//! audit's chain stays whole, and the same submission still has no second effect.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::actions::{self, ActionError, Request};
use dead_letter_office::engine::erasure::{self, Subject, Survey};
use dead_letter_office::engine::handling;
use dead_letter_office::engine::journal::verify::verify;
use uuid::Uuid;

use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    nothing_of_the_person_is_left_and_what_became_of_it_is,
    what_is_not_settled_is_named_and_stays,
    only_who_may_erase_does,
    the_page_asks_twice_and_erases_once,
);

/// Everything that could tell who it was.
const PERSONAL: [&str; 4] = ["C-4711", "zaphod@example.com", "Beeblebrox", "order-zb-1"];

const PAYLOAD: &str = r#"{"order_id":"order-zb-1","customer_id":"C-4711","email":"zaphod@example.com","name":"Zaphod Beeblebrox"}"#;
const TYPE: &str = r#"
[operations.personal]
search = { customer = "/customer_id", order = "/order_id" }
mask = ["/email", "/name"]
[[operations.personal.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets?mail={{ payload.email }}"
body = { who = "{{ payload.name }}", mail = "{{ payload.email }}" }
reference = "/id"
effect = "A ticket"
"#;

/// An operation of the person, refused with words that quote them; its dead letter.
async fn refused(desk: &mut Desk, key: &str) -> (Uuid, Uuid) {
    let said =
        Behaviour::error(422, "unknown", "zaphod@example.com (Zaphod Beeblebrox, C-4711) is unknown here");
    desk.app.destination.script("/keyed", [said]);
    let taken = desk.app.try_submit("personal", key, PAYLOAD).await.unwrap();
    let Accepted::Created(new) = taken else { panic!("it is new") };
    desk.app.run_until_idle().await;
    let letter = desk.app.thread(new.id).await.live_letter().expect("refused").id;
    (new.id, letter)
}

fn asked<'a>(
    actor: &'a dead_letter_office::domain::actor::Actor,
    id: &'a str,
    reason: &'a str,
) -> Request<'a> {
    Request { actor, action_id: id, reason, origin: "127.0.0.1" }
}

async fn left(desk: &Desk) -> Vec<(String, String)> {
    let rows = desk.app.raw().await.dump().await;
    let holds = |row: &str| {
        let text = row.to_lowercase();
        PERSONAL.iter().any(|personal| text.contains(&personal.to_lowercase()))
    };
    rows.into_iter().filter(|(_, row)| holds(row)).collect()
}

async fn nothing_of_the_person_is_left_and_what_became_of_it_is(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (operation, letter) = refused(&mut desk, "order-zb-1").await;
    let other = desk.app.submit("keyed", "order-9").await;
    let gate = desk.app.engine.gate().clone();
    let olga = person("olga", Role::Operator);
    let note = "Mr Beeblebrox (C-4711) called";
    handling::note(&gate, letter, note, &asked(&olga, "n1", "")).await.unwrap();
    {
        let mut boss = desk.signed_in(Role::Admin).await;
        let cause = boss.get("/").await.expect(200).all("td.main > a").remove(0).1;
        boss.post(&format!("{cause}/note"), &[("action_id", "c1"), ("note", "ask zaphod@example.com")]).await;
        boss.post("/views", &[("name", "the rude one"), ("query", "status=any&search=C-4711")]).await;
        let fields =
            [("name", "C-4711 all"), ("reason", "for Zaphod Beeblebrox"), ("ids", &*letter.to_string())];
        let all: Vec<(&str, &str)> =
            [("action", "replay"), ("action_id", "b1")].into_iter().chain(fields).collect();
        boss.post("/bulk/new", &all).await;
        boss.post("/destinations/plain/pause", &[("action_id", "p1"), ("reason", "C-4711 complained")]).await;
    }
    actions::replay(&gate, operation, &asked(&olga, "r1", "zaphod@example.com was added there"))
        .await
        .unwrap();
    desk.app.run_until_idle().await;
    let before = desk.app.thread(operation).await;
    assert!(before.live_letter().is_none(), "{:?}", before.letters);
    let tables: std::collections::BTreeSet<String> =
        left(&desk).await.into_iter().map(|(table, _)| table).collect();
    for table in [
        "payloads",
        "requests",
        "attempts",
        "search",
        "operations",
        "audit_words",
        "causes",
        "views",
        "bulks",
    ] {
        assert!(tables.contains(table), "{table} is not planted: {tables:?}");
    }

    let boss = person("boss", Role::Admin);
    let subject = Subject::new(desk.app.engine.config(), "customer", " C-4711 ").unwrap();
    let survey = erasure::survey(&gate, &subject).await.unwrap();
    assert_eq!(survey, Survey { settled: 1, ..Survey::default() });
    let answer = erasure::erase(&gate, &subject, &asked(&boss, "e1", "asked for by letter")).await.unwrap();
    assert!(answer.starts_with("operations erased: 1;"), "{answer}");
    assert_eq!(
        erasure::erase(&gate, &subject, &asked(&boss, "e1", "asked for by letter")).await.unwrap(),
        answer
    );
    assert_eq!(left(&desk).await, []);

    // What became of it.
    let after = desk.app.thread(operation).await;
    let known = |thread: &dead_letter_office::engine::thread::Thread| {
        let attempts = thread.attempts.iter();
        let attempts: Vec<_> =
            attempts.map(|one| (one.id, one.outcome, one.status, one.reference.clone())).collect();
        (thread.operation.state(), attempts, thread.steps[0].reference.clone(), thread.audit.len())
    };
    assert_eq!(known(&after), known(&before));
    assert!(after.steps[0].reference.is_some());
    let mut looks = desk.nobody();
    looks.sign_in("admin", crate::support::desk::PASSWORD).await;
    let page = looks.get(&format!("/operations/{operation}")).await.expect(200);
    assert!(page.words().contains("was erased by boss: asked for by letter"), "{}", page.words());
    for path in ["/", "/dead-letters?status=any", "/operations", "/audit", "/bulk", "/status"] {
        let page = looks.get(path).await.expect(200);
        assert!(PERSONAL.iter().all(|personal| !page.text.contains(personal)), "{path}");
    }
    drop(looks);

    // The same submission is the same one, another under its key is not, and others are not touched.
    let effects = desk.app.destination.effects().len();
    let again = desk.app.try_submit("personal", "order-zb-1", PAYLOAD).await.unwrap();
    assert!(matches!(again, Accepted::Duplicate(id) if id == operation), "{again:?}");
    let changed = desk.app.try_submit("personal", "order-zb-1", r#"{"order_id":"x"}"#).await.unwrap_err();
    assert!(changed.to_string().contains("key"), "{changed}");
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.destination.effects().len(), effects);
    assert!(desk.app.thread(other).await.payload.is_some());
    let outcome = verify(desk.app.engine.db(), vec![]).await.unwrap();
    assert_eq!(outcome.faults, []);
    assert!(outcome.links > 5 && outcome.erased > 2, "{} of {}", outcome.erased, outcome.links);
}

async fn what_is_not_settled_is_named_and_stays(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (open, letter) = refused(&mut desk, "order-1").await;
    let gate = desk.app.engine.gate().clone();
    let boss = person("boss", Role::Admin);
    let subject = Subject::new(desk.app.engine.config(), "customer", "C-4711").unwrap();
    let survey = erasure::survey(&gate, &subject).await.unwrap();
    assert_eq!(survey, Survey { settled: 0, unsettled: 1, named: vec![open] });
    let answer = erasure::erase(&gate, &subject, &asked(&boss, "e1", "by letter")).await.unwrap();
    assert!(answer.contains("must be settled first: 1"), "{answer}");
    let thread = desk.app.thread(open).await;
    assert!(thread.payload.is_some() && thread.operation.key == "order-1");

    let resolve = actions::Resolve {
        resolution: dead_letter_office::domain::dead_letter::Resolution::NotNeeded,
        reference: None,
    };
    actions::resolve(&gate, letter, &resolve, &asked(&boss, "r1", "given up")).await.unwrap();
    let answer = erasure::erase(&gate, &subject, &asked(&boss, "e2", "by letter")).await.unwrap();
    assert!(answer.contains("erased: 1;"), "{answer}");
    assert!(desk.app.thread(open).await.payload.is_none());
}

async fn only_who_may_erase_does(db: TestDatabase) {
    let desk = Desk::configured(db, TYPE).await;
    let gate = desk.app.engine.gate();
    let subject = Subject::new(desk.app.engine.config(), "customer", "C-4711").unwrap();
    for role in [Role::Viewer, Role::Operator, Role::Approver] {
        let refused = erasure::erase(gate, &subject, &asked(&person("x", role), "e1", "why")).await;
        assert!(matches!(refused, Err(ActionError::Forbidden(_))), "{role}: {refused:?}");
    }
    let boss = person("boss", Role::Admin);
    let refused = erasure::erase(gate, &subject, &asked(&boss, "e1", " ")).await;
    assert!(matches!(refused, Err(ActionError::Invalid(_))), "{refused:?}");
    let unknown = Subject::new(desk.app.engine.config(), "custmer", "C-4711").unwrap_err();
    assert!(unknown.to_string().contains("customer, order"), "{unknown}");
}

async fn the_page_asks_twice_and_erases_once(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (operation, letter) = refused(&mut desk, "order-1").await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let look = [("step", "look"), ("name", "customer"), ("value", "C-4711")];
    let page = boss.post("/erase", &look).await.expect(200);
    assert!(page.words().contains("No operation can be erased now."), "{}", page.words());
    assert_eq!(page.all(&format!("main a[href='/operations/{operation}']")).len(), 1);
    let closed = [("action_id", "r"), ("resolution", "not_needed"), ("reason", "given up")];
    boss.post(&format!("/dead-letters/{letter}/resolve"), &closed).await.location();

    let page = boss.post("/erase", &look).await.expect(200);
    assert!(page.words().contains("1 operation can be erased."), "{}", page.words());
    let id = page.field("action_id");
    let form = |again, reason| {
        [("step", "erase"), ("name", "customer"), ("value", "C-4711"), ("again", again), ("reason", reason)]
    };
    for (again, reason, said) in [("C-4712", "by letter", "not the value above"), ("C-4711", "", "Say why")] {
        let mut fields = form(again, reason).to_vec();
        fields.push(("action_id", &id));
        let page = boss.post("/erase", &fields).await.expect(422);
        assert!(page.words().contains(said), "{}", page.words());
    }
    assert!(boss.desk.app.thread(operation).await.payload.is_some());
    let mut fields = form("C-4711", "by letter").to_vec();
    fields.push(("action_id", &id));
    for _ in 0..2 {
        assert_eq!(boss.post("/erase", &fields).await.location(), "/erase");
    }
    let words = boss.get("/erase").await.expect(200).words();
    assert!(words.contains("Operations erased: 1;"), "{words}");
    assert!(boss.desk.app.thread(operation).await.payload.is_none());
    let unknown =
        boss.post("/erase", &[("step", "look"), ("name", "nothing"), ("value", "x")]).await.expect(422);
    assert!(unknown.words().contains("known names are: customer, order"), "{}", unknown.words());
}
