//! The audit as a file.

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::actions::{self, Request};
use dead_letter_office::engine::journal::proof;
use dead_letter_office::store::audit::AuditRow;
use dead_letter_office::store::{Commit, audit};

use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    a_file_holds_what_the_filter_means_and_runs_no_formula,
    a_long_file_is_whole,
    entries_lead_to_what_they_are_about,
);

fn lines(text: &str) -> Vec<&str> {
    text.split_terminator("\r\n").collect()
}

async fn a_file_holds_what_the_filter_means_and_runs_no_formula(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, _) = desk.dead_letter("keyed", "order-1").await;
    let (other, _) = desk.dead_letter("keyed", "order-2").await;
    let actor = person("@olga", Role::Operator);
    for (id, action_id, reason) in [
        (operation, "a", "=HYPERLINK(\"http://evil.example\",\"anna@example.com\")"),
        (other, "b", "said, \"no\""),
    ] {
        let asked = Request { actor: &actor, action_id, reason, origin: "127.0.0.1" };
        actions::replay(desk.app.engine.gate(), id, &asked).await.unwrap();
    }
    let mut vera = desk.signed_in(Role::Viewer).await;
    let page = vera.get("/audit").await.expect(200);
    assert!(page.first("section[aria-labelledby=export]").contains("Needs the right \u{201c}export\u{201d}"));
    vera.post("/audit/export", &[]).await.expect(403);

    let mut olga = desk.signed_in(Role::Operator).await;
    let fields = [("action", "replay"), ("operation", "order-1"), ("format", "csv")];
    let file = olga.post("/audit/export", &fields).await.expect(200);
    assert_eq!(file.header("content-type"), "text/csv; charset=utf-8");
    assert_eq!(file.header("content-disposition"), "attachment; filename=\"audit.csv\"");
    let rows = lines(&file.text);
    assert_eq!(
        rows[0],
        "id,at,actor,action,operation,dead_letter,subject,reason,result,detail,origin,seq,mac,key_id"
    );
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(rows[1].contains(",\"'@olga\",replay,"), "{}", rows[1]);
    // A formula is text, and what is private on the page is private in the file.
    let reason = ",\"'=HYPERLINK(\"\"http://evil.example\"\",\"\"\u{2022}\u{2022}\u{2022}\"\")\",";
    assert!(rows[1].contains(reason), "{}", rows[1]);

    let json = olga.post("/audit/export", &[("format", "json"), ("actor", "@olga")]).await.expect(200);
    let keyring = desk.app.engine.db().keyring().unwrap();
    let checked = proof::check(&json.text, keyring).unwrap();
    assert_eq!((checked.entries, checked.unread, &checked.faults), (2, 1, &vec![]), "one was masked");
    let entries = &json.json()["entries"];
    assert_eq!(
        (&entries[0]["reason"], &entries[0]["operation"]),
        (&"said, \"no\"".into(), &other.to_string().into())
    );
    let none = olga.post("/audit/export", &[("format", "json"), ("to", "2020-01-01")]).await.expect(200);
    assert_eq!((&none.json()["entries"], &none.json()["from"]), (&serde_json::json!([]), &().into()));
    olga.post("/audit/export", &[("format", "xls")]).await.expect(400);
    olga.post("/audit/export", &[("from", "noon")]).await.expect(400);

    let page = olga.get("/audit?action=export").await.expect(200);
    let taken: Vec<String> =
        page.all("table.audit tbody td.main").into_iter().map(|(text, _)| text).collect();
    assert_eq!(taken.len(), 3, "{taken:?}");
    assert!(taken[2].contains("the audit as csv: action replay, operation"), "{taken:?}");
    let form = page.first("section[aria-labelledby=export]");
    assert!(form.contains("All entries that the filter means, not only this page"), "{form}");
}

async fn a_long_file_is_whole(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let ambient: &Ambient = desk.app.engine.ambient();
    let mut tx = desk.app.engine.db().begin().await.unwrap();
    for number in 0..450 {
        let row = AuditRow {
            id: ambient.id(),
            at: ambient.now(),
            actor: "robot".into(),
            action: "replay".into(),
            operation_id: None,
            dead_letter_id: None,
            subject: None,
            reason: Some(format!("number {number}")),
            result: "done".into(),
            detail: String::new(),
            origin: String::new(),
        };
        audit::insert(&mut tx, &row).await.unwrap();
    }
    tx.commit(Commit::Action).await.unwrap();
    let mut olga = desk.signed_in(Role::Operator).await;
    let csv = olga.post("/audit/export", &[("actor", "robot")]).await.expect(200);
    let rows = lines(&csv.text);
    assert_eq!(rows.len(), 451);
    assert!(rows[1].contains("number 449") && rows[450].contains("number 0"), "newest first");
    let json = olga.post("/audit/export", &[("actor", "robot"), ("format", "json")]).await.expect(200).json();
    assert_eq!(json["entries"].as_array().map(Vec::len), Some(450));
    assert_eq!(
        (&json["from"]["seq"], &json["to"]["seq"], &json["count"]),
        (&1.into(), &450.into(), &450.into())
    );
}

async fn entries_lead_to_what_they_are_about(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.post("/destinations/keyed/pause", &[("reason", "they move")]).await.location();
    let page = olga.get("/audit?action=pause").await.expect(200);
    let row = page.all("table.audit tbody td.main a");
    assert_eq!(row, [("keyed".to_owned(), "/destinations/keyed".to_owned())]);
}
