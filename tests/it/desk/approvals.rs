//! The page where a second person decides: the same facts, a fresh sign-in, never one's own.

use std::time::Duration;

use axum::http::Method;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::domain::operation::OperationState;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person};
use crate::support::tables::everything;
use crate::support::two_people::GUARDED;

on_both!(
    an_override_is_asked_for_and_approved_on_the_same_facts,
    an_approval_needs_a_fresh_sign_in,
    ones_own_request_can_only_be_taken_back,
    a_refusal_says_why,
    a_request_out_of_date_cannot_be_approved,
    the_api_says_that_a_second_person_is_needed,
    others_see_their_own_requests_only,
    a_new_key_where_the_same_one_is_safe_says_what_either_does,
);

const HOSTILE: &str = "<script>alert(1)</script>\"'>";

async fn start(db: TestDatabase) -> (Desk, Uuid, Uuid) {
    let mut desk = Desk::configured(db, GUARDED).await;
    let id = desk.app.guarded_in_doubt("order-1").await;
    let letter = desk.app.letter(id).await.id;
    desk.add("berta", Role::Approver).await;
    (desk, id, letter)
}

/// Asks for a second effect; the request's page.
async fn asks(anton: &mut Person<'_>, operation: Uuid, letter: Uuid) -> String {
    let path = format!("/dead-letters/{letter}/override");
    let form = anton.get(&path).await.expect(200);
    assert!(form.words().contains("Ask a second person to approve it"), "{}", form.words());
    let (id, facts) = (form.field("action_id"), form.field("facts"));
    let short = operation.simple().to_string()[24..].to_owned();
    let fields = [
        ("action_id", &*id),
        ("facts", &*facts),
        ("mode", "new_effect"),
        ("typed", &*short),
        ("reason", HOSTILE),
        ("accept_duplicate", "true"),
    ];
    let place = anton.post(&path, &fields).await.location().to_owned();
    assert_eq!(anton.post(&path, &fields).await.location(), place, "the same click");
    place
}

async fn berta(desk: &Desk) -> Person<'_> {
    let mut berta = desk.nobody();
    berta.sign_in("berta", PASSWORD).await;
    berta
}

async fn an_override_is_asked_for_and_approved_on_the_same_facts(db: TestDatabase) {
    let (mut desk, operation, letter) = start(db).await;
    {
        let mut anton = desk.signed_in(Role::Approver).await;
        let place = asks(&mut anton, operation, letter).await;
        let again = anton.get(&format!("/dead-letters/{letter}/override")).await.expect(200);
        assert!(again.words().contains("approver asked for this override already"), "{}", again.words());
        let mut berta = berta(&desk).await;
        let before = everything(&desk.app).await;
        let list = berta.get("/approvals").await.expect(200);
        assert_eq!(list.first("nav .count").split(' ').next(), Some("1"), "counted in the rail");
        let words = list.words();
        assert!(words.contains("order order-1") && words.contains("approver asked"), "{words}");
        let page = berta.get(&place).await.expect(200);
        let words = page.words();
        for said in [
            HOSTILE,
            "What a duplicate would mean",
            "A ticket, for order order-1.",
            "The check that this waives",
            "What Plain knows",
            "POST http://127.0.0.1",
            "a new key, for a second effect",
        ] {
            assert!(words.contains(said), "{said} is not in: {words}");
        }
        assert!(!page.text.contains("<script>alert") && !page.text.contains("anna@example.com"));
        assert_eq!(everything(&desk.app).await, before, "looking changes nothing");
        let id = page.field("action_id");
        for _ in 0..2 {
            let fields = [("action_id", &*id), ("word", "I checked the CRM")];
            let reply = berta.post(&format!("{place}/approve"), &fields).await;
            assert_eq!(reply.location(), format!("/dead-letters/{letter}"));
        }
        let words = berta.get(&format!("/dead-letters/{letter}")).await.words();
        for said in [
            "Approved. It will be sent under a new key, as a second effect.",
            "approver asked for a second person\u{2019}s word",
            "approver asked for an override: Accepted",
            "approved by berta",
            "berta approved an override",
            "I checked the CRM",
        ] {
            assert!(words.contains(&said.replace('\u{2019}', "'")), "{said} is not in: {words}");
        }
        let decided = berta.get(&place).await.expect(200);
        assert!(decided.words().contains("Approved by berta"), "{}", decided.words());
        assert!(decided.all("main form").is_empty());
        let late = berta.post(&format!("{place}/approve"), &[("action_id", "x")]).await.expect(409);
        assert!(late.words().contains("approved already"), "{}", late.words());
    }
    desk.app.run_to_the_end().await;
    assert_eq!(desk.app.state(operation).await, OperationState::Completed);
    assert_eq!(desk.app.destination.effects().len(), 2);
}

async fn an_approval_needs_a_fresh_sign_in(db: TestDatabase) {
    let (desk, operation, letter) = start(db).await;
    let place = asks(&mut desk.signed_in(Role::Approver).await, operation, letter).await;
    let mut berta = berta(&desk).await;
    desk.app.clock.advance(Duration::from_mins(6));
    let page = berta.get(&place).await.expect(200);
    assert!(page.words().contains("you will be asked to confirm that it is you"), "{}", page.words());
    let id = page.field("action_id");
    for password in ["", "wrong"] {
        let fields = [("action_id", &*id), ("password", password), ("word", "fine")];
        let reply = berta.post(&format!("{place}/approve"), &fields).await.expect(422);
        assert!(reply.words().contains("Confirm that it is you"), "{}", reply.words());
        assert_eq!((reply.field("word"), reply.field("action_id")), ("fine".to_owned(), id.clone()));
    }
    let fields = [("action_id", &*id), ("password", PASSWORD)];
    berta.post(&format!("{place}/approve"), &fields).await.location();
}

async fn ones_own_request_can_only_be_taken_back(db: TestDatabase) {
    let (desk, operation, letter) = start(db).await;
    let mut anton = desk.signed_in(Role::Approver).await;
    let place = asks(&mut anton, operation, letter).await;
    let page = anton.get(&place).await.expect(200);
    assert!(page.words().contains("It waits for somebody else"), "{}", page.words());
    let forms: Vec<(String, String)> = page.all("main form .button");
    assert_eq!(forms.len(), 1, "{forms:?}");
    let own = anton.post(&format!("{place}/approve"), &[("action_id", "x")]).await.expect(403);
    assert!(own.words().contains("you asked for it yourself"), "{}", own.words());
    let id = page.field("action_id");
    for _ in 0..2 {
        let reply = anton.post(&format!("{place}/withdraw"), &[("action_id", &id)]).await;
        assert_eq!(reply.location(), "/approvals");
    }
    assert!(anton.get("/approvals").await.words().contains("Taken back by approver"));
    let other = berta(&desk).await.post(&format!("{place}/withdraw"), &[]).await.expect(409);
    assert!(other.words().contains("withdrawn already"), "{}", other.words());
    assert_eq!(desk.app.destination.effects().len(), 1);
}

async fn a_refusal_says_why(db: TestDatabase) {
    let (desk, operation, letter) = start(db).await;
    let mut anton = desk.signed_in(Role::Approver).await;
    let place = asks(&mut anton, operation, letter).await;
    let mut berta = berta(&desk).await;
    let silent = berta.post(&format!("{place}/refuse"), &[("action_id", "a")]).await.expect(422);
    assert!(silent.words().contains("Say why"), "{}", silent.words());
    let fields = [("action_id", "a"), ("reason", HOSTILE)];
    assert_eq!(berta.post(&format!("{place}/refuse"), &fields).await.location(), "/approvals");
    let page = anton.get(&place).await.expect(200);
    assert!(page.words().contains("Refused by berta") && page.words().contains(HOSTILE));
    assert!(!page.text.contains("<script>alert"));
    let decided = anton.get("/approvals").await.expect(200).first("section[aria-labelledby=decided]");
    assert!(decided.contains("Refused by berta") && decided.contains(HOSTILE), "{decided}");
    let words = anton.get(&format!("/dead-letters/{letter}")).await.words();
    assert!(words.contains("berta refused to approve an override"), "{words}");
    // It can be asked for again.
    asks(&mut anton, operation, letter).await;
}

async fn a_request_out_of_date_cannot_be_approved(db: TestDatabase) {
    let (desk, operation, letter) = start(db).await;
    let mut anton = desk.signed_in(Role::Approver).await;
    let place = asks(&mut anton, operation, letter).await;
    let mut berta = berta(&desk).await;
    let id = berta.get(&place).await.field("action_id");
    let fields = [("resolution", "not_needed"), ("reason", "cancelled")];
    anton.post(&format!("/dead-letters/{letter}/resolve"), &fields).await.location();
    let page = berta.get(&place).await.expect(200);
    assert!(page.words().contains("It is out of date"), "{}", page.words());
    assert!(page.all("form[action$='/approve']").is_empty());
    let reply = berta.post(&format!("{place}/approve"), &[("action_id", &id)]).await;
    assert_eq!(reply.location(), place);
    let words = berta.get(&place).await.words();
    assert!(words.contains("Nothing was sent: the dead letter is resolved meanwhile."), "{words}");
    assert!(words.contains("Out of date by berta"), "{words}");
    assert_eq!(desk.app.destination.effects().len(), 1);
}

async fn the_api_says_that_a_second_person_is_needed(db: TestDatabase) {
    let (desk, _, letter) = start(db).await;
    let token = desk.token(Scope::Operate).await;
    let body = r#"{"reason":"x","mode":"new_effect","accept_duplicate":true}"#;
    let path = format!("/api/v1/dead-letters/{letter}/override");
    let reply = desk.call(Method::POST, &path, &token, body).await.expect(409);
    let verdict = reply.json();
    assert_eq!(verdict["verdict"], "refused");
    let reason = verdict["reason"].as_str().unwrap();
    assert!(reason.contains("a second person") && reason.contains("on the desk"), "{reason}");
}

async fn others_see_their_own_requests_only(db: TestDatabase) {
    let (desk, operation, letter) = start(db).await;
    let place = asks(&mut desk.signed_in(Role::Approver).await, operation, letter).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let list = olga.get("/approvals").await.expect(200);
    assert!(list.words().contains("Nothing waits.") && !list.words().contains("order-1"));
    assert!(!list.text.contains("href=\"/approvals\""), "no entry in the rail");
    let refused = olga.get(&place).await.expect(403);
    assert!(refused.words().contains("\u{201c}approve\u{201d}"), "{}", refused.words());
}

async fn a_new_key_where_the_same_one_is_safe_says_what_either_does(db: TestDatabase) {
    let keyed = GUARDED.replace("destination = \"plain\"", "destination = \"keyed\"");
    let mut desk = Desk::configured(db, &keyed).await;
    desk.app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = desk.app.submit("guarded", "order-1").await;
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(id).await.id;
    desk.add("berta", Role::Approver).await;
    let key = desk.app.thread(id).await.steps[0].key.to_string();
    let mut anton = desk.signed_in(Role::Approver).await;
    let form = anton.get(&format!("/dead-letters/{letter}/override")).await.expect(200);
    assert!(form.first("section[aria-labelledby=sends]").contains(&key), "the form has the key as it is");
    let place = asks(&mut anton, id, letter).await;
    let page = berta(&desk).await.get(&place).await.expect(200);
    let danger = page.first("section.danger");
    assert!(
        danger.contains("A replay under the same key passes every check at this moment: nothing that was sent is unaccounted for.")
            && danger.contains("it can cause a second effect"),
        "{danger}"
    );
    assert!(!danger.contains("No check stands in the way"), "{danger}");
    let sends = page.first("section[aria-labelledby=sends]");
    assert!(
        sends.contains("idempotency-key (a new key)") || sends.contains("Idempotency-Key (a new key)"),
        "{sends}"
    );
    assert!(sends.contains("\"external_ref\": \"(a new key)\"") && !sends.contains(&key), "{sends}");
    assert!(page.words().contains("As a replay under the same key meets them."), "{}", page.words());
}
