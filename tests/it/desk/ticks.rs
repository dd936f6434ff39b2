//! Rows that are ticked, and the bar that acts on them.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    ticked_rows_go_to_the_page_of_a_new_bulk_action,
    the_bar_offers_what_is_valid_and_says_what_a_reader_lacks,
    a_page_of_long_values_stays_light,
);

async fn ticked_rows_go_to_the_page_of_a_new_bulk_action(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let mut letters = Vec::new();
    for key in ["order-1", "order-2"] {
        letters.push(desk.dead_letter("keyed", key).await.1.to_string());
    }
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get("/dead-letters?destination=keyed").await.expect(200);
    assert!(page.text.contains(r#"<form class="act-on" action="/bulk/new">"#), "looking is no act");
    for letter in &letters {
        assert!(page.text.contains(&format!(r#"name="id" value="{letter}""#)));
    }
    let form = ".act-on > input[type=hidden]";
    assert_eq!(page.all(form).len(), 3, "destination, status, what was put off");
    for (name, value) in [("status", "open"), ("destination", "keyed"), ("snoozed", "awake")] {
        assert!(page.text.contains(&format!(r#"<input type="hidden" name="{name}" value="{value}">"#)));
    }
    assert_eq!(page.first(".acts label.tick"), "All 2 that match");
    assert_eq!(page.all(".acts button[name=action]").len(), 3);
    // Each box is called as its row is.
    let names: Vec<(String, String)> = page.all("td.main a[id]");
    assert_eq!(names.len(), 2);
    assert!(page.text.contains(r#"aria-labelledby="l1""#) && page.text.contains(r#"id="l1""#));
}

async fn the_bar_offers_what_is_valid_and_says_what_a_reader_lacks(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    // Under no filter "all" is no decision, and is not offered.
    let page = olga.get("/dead-letters").await.expect(200);
    assert_eq!(page.all(".acts [name=all]").len(), 0);
    assert!(page.first("[data-ticked]").contains("Set a filter to act on all"));
    // A destination that cannot be asked is not offered to be asked.
    let page = olga.get("/dead-letters?destination=keyed").await.expect(200);
    assert_eq!(page.all(".acts button[value=lookup]").len(), 0);
    assert_eq!(page.all(".acts button[value=replay]").len(), 1);
    // Nothing can be done with what is closed.
    for query in ["status=resolved", "status=replayed", "search=none-such"] {
        let page = olga.get(&format!("/dead-letters?{query}")).await.expect(200);
        assert_eq!(page.all(".acts").len(), 0, "{query}");
    }
    drop(olga);
    let mut reader = desk.signed_in(Role::Viewer).await;
    let page = reader.get("/dead-letters").await.expect(200);
    assert_eq!(page.all(".acts button:not([disabled])").len(), 0);
    assert_eq!(page.all(".acts button[disabled]").len(), 4);
    assert_eq!(page.all("[name=id]").len(), 0);
    assert!(page.first(".acts .needs").contains("Needs the right \u{201c}bulk\u{201d}"));
}

async fn a_page_of_long_values_stays_light(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let long = "long-and-longer-".repeat(40);
    let said = "The order is not acceptable as it stands, since ".repeat(30);
    desk.app.destination.script("/keyed", vec![Behaviour::error(422, "refused", &said); 51]);
    for number in 0..51 {
        let payload =
            format!(r#"{{"order_id":"{long}{number}","customer_id":"{long}","email":"a@example.com"}}"#);
        desk.app.try_submit("keyed", &format!("key-{number}"), &payload).await.unwrap();
    }
    desk.app.run_until_idle().await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get("/dead-letters?destination=keyed&certainty=definitely_failed").await.expect(200);
    assert_eq!(page.all("table.list tbody tr").len(), 50);
    assert_eq!(page.all("[name=id]").len(), 50);
    assert!(page.text.len() <= 60 * 1024, "{} bytes", page.text.len());
}
