//! Evidence that leaves the desk, and who looked at what is private.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::filter::{AuditFilter, Page};
use dead_letter_office::store::audit;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    evidence_is_a_document_that_stands_by_itself,
    raw_bodies_are_files_that_run_nowhere,
    evidence_of_an_erased_payload_quotes_nothing,
    a_viewer_is_told_what_it_takes,
);

const PRIVATE: &str = "anna@example.com";

/// An operation that was refused with words that repeat what is private.
async fn refused(desk: &mut Desk, key: &str) -> Uuid {
    let said = format!("<b>{PRIVATE}</b> is not known");
    desk.app.destination.script("/keyed", [Behaviour::error(422, "unknown", &said)]);
    let id = desk.app.submit("keyed", key).await;
    desk.app.run_until_idle().await;
    id
}

/// What was written down of an action: who did it and what it was.
async fn recorded(desk: &Desk, action: &str) -> Vec<(String, String)> {
    let filter = AuditFilter { action: Some(action.to_owned()), ..AuditFilter::default() };
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let rows = audit::list(&mut tx, &filter, Page::default()).await.unwrap().items;
    rows.into_iter().rev().map(|entry| (entry.row.actor, entry.row.detail)).collect()
}

async fn evidence_is_a_document_that_stands_by_itself(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let id = refused(&mut desk, "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/operations/{id}/evidence.json");
    let file = olga.post(&path, &[]).await.expect(200);
    assert_eq!(file.header("content-type"), "application/json");
    assert_eq!(file.header("content-disposition"), format!("attachment; filename=\"evidence-{id}.json\""));
    assert!(!file.text.contains(PRIVATE), "{}", file.text);
    let evidence = file.json();
    assert_eq!(
        (&evidence["product"], &evidence["made_by"]),
        (&"Dead Letter Office".into(), &"operator".into())
    );
    assert_eq!(evidence["version"], env!("CARGO_PKG_VERSION"));
    assert_eq!((&evidence["masked"], &evidence["made_at"]), (&true.into(), &desk.app.now().rfc3339().into()));
    assert_eq!(evidence["operation"]["key"], "order-1");
    assert_eq!(evidence["payload"]["email"], "\u{2022}\u{2022}\u{2022}");
    assert_eq!(
        (&evidence["payload"]["amount"], &evidence["attempts"][0]["status"]),
        (&1250.into(), &422.into())
    );
    assert_eq!(evidence["attempts"][0]["request"]["method"], "POST");
    assert_eq!(evidence["dead_letters"][0]["status"], "open");
    assert_eq!(
        (&evidence["finding"]["state"], &evidence["audit"][0]["action"]),
        (&"not_there".into(), &"export".into())
    );
    assert_eq!(evidence["events"][0]["kind"], "received");
    let promise = evidence["promises"][0]["promise"].as_str().unwrap();
    assert!(promise.starts_with("One operation has at most one effect here"), "{promise}");

    olga.post(&format!("/operations/{id}/unmasked"), &[("reason", "a claim")]).await.expect(303);
    let whole = olga.post(&path, &[("whole", "1")]).await.expect(200);
    let evidence = whole.json();
    assert_eq!((&evidence["masked"], &evidence["payload"]["email"]), (&false.into(), &PRIVATE.into()));
    assert!(evidence["attempts"][0]["response"]["body"].as_str().unwrap().contains(PRIVATE));
    let wanted = [
        ("operator".to_owned(), "all evidence as JSON, private values hidden".to_owned()),
        ("operator".to_owned(), "all evidence as JSON, with private values".to_owned()),
    ];
    assert_eq!(recorded(&desk, "export").await, wanted);
}

async fn raw_bodies_are_files_that_run_nowhere(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let id = refused(&mut desk, "order-1").await;
    let other = refused(&mut desk, "order-2").await;
    let attempt = desk.app.thread(id).await.attempts[0].id;
    let mut olga = desk.signed_in(Role::Operator).await;
    for operation in [id, other] {
        let path = format!("/operations/{operation}/unmasked");
        olga.post(&path, &[("reason", "a claim")]).await.expect(303);
    }
    let payload = olga.post(&format!("/operations/{id}/payload"), &[]).await.expect(200);
    assert_eq!(Some(&payload.text), desk.app.thread(id).await.payload.as_ref());
    let answer = olga.post(&format!("/operations/{id}/attempts/{attempt}/answer"), &[]).await.expect(200);
    assert!(answer.text.contains(&format!("<b>{PRIVATE}</b>")), "{}", answer.text);
    for file in [&payload, &answer] {
        assert_eq!(file.header("content-type"), "text/plain; charset=utf-8");
        assert!(file.header("content-disposition").starts_with("attachment; filename=\""));
        assert_eq!(file.header("x-content-type-options"), "nosniff");
    }
    olga.post(&format!("/operations/{other}/attempts/{attempt}/answer"), &[]).await.expect(404);
    olga.post(&format!("/operations/{id}/attempts/{id}/answer"), &[]).await.expect(404);
    let looks: Vec<String> =
        recorded(&desk, "view_payload").await.into_iter().map(|(_, what)| what).skip(2).collect();
    assert_eq!(looks, ["the payload, as a file", "the answer to attempt 1, as a file"]);
}

async fn evidence_of_an_erased_payload_quotes_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let id = refused(&mut desk, "order-1").await;
    desk.app.raw().await.execute("DELETE FROM payloads").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let file = olga.post(&format!("/operations/{id}/evidence.json"), &[]).await.expect(200);
    assert!(!file.text.contains(PRIVATE), "{}", file.text);
    assert_eq!(
        (&file.json()["payload"], &file.json()["attempts"][0]["status"]),
        (&serde_json::Value::Null, &422.into())
    );
    olga.post(&format!("/operations/{id}/payload"), &[]).await.expect(404);
}

async fn a_viewer_is_told_what_it_takes(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let id = refused(&mut desk, "order-1").await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let page = vera.get(&format!("/operations/{id}")).await.expect(200);
    let payload = page.first("section[aria-labelledby=payload]");
    assert!(
        payload.contains("Needs the right \u{201c}view_payload\u{201d}, which operators have."),
        "{payload}"
    );
    let export = page.first("section[aria-labelledby=export]");
    assert!(export.contains("Needs the right \u{201c}export\u{201d}, which operators have."), "{export}");
    for act in ["unmasked", "payload", "evidence.json"] {
        let refused = vera.post(&format!("/operations/{id}/{act}"), &[]).await.expect(403);
        assert!(!refused.text.contains(PRIVATE));
    }
    assert!(recorded(&desk, "view_payload").await.is_empty() && recorded(&desk, "export").await.is_empty());
}
