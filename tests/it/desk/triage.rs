//! The first screen.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    a_quiet_desk_says_so_kindly,
    every_number_leads_to_the_list_that_it_counts,
    what_cannot_wait_is_named_and_leads_there,
);

/// Its failures cannot wait.
const CRITICAL: &str = r#"
[operations.payout]
severity = "critical"
search = { order = "/order_id" }
[[operations.payout.steps]]
name = "pay out"
destination = "lookup"
method = "POST"
path = "/payouts"
"#;

async fn a_quiet_desk_says_so_kindly(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let mut reader = desk.signed_in(Role::Viewer).await;
    assert_eq!(reader.get("/").await.expect(200).first("section.empty h2"), "Nothing has arrived yet");
    drop(reader);
    desk.app.submit("keyed", "order-1").await;
    desk.app.run_until_idle().await;
    let mut reader = desk.nobody();
    reader.sign_in("viewer", crate::support::desk::PASSWORD).await;
    let page = reader.get("/").await.expect(200);
    assert_eq!(page.first("section.empty h2"), "Nothing waits for you");
    let figures: Vec<String> = page.all(".figures .value").into_iter().map(|(text, _)| text).collect();
    assert_eq!(figures, ["0", "0", "none", "0"]);
    assert_eq!(page.all(".urgent li").len(), 0);
}

async fn every_number_leads_to_the_list_that_it_counts(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("plain", "doubt-1").await;
    desk.app.clock.advance(Duration::from_hours(30));
    for number in 0..3 {
        desk.dead_letter("keyed", &format!("refused-{number}")).await;
        desk.app.clock.advance(Duration::from_mins(25));
    }
    desk.dead_letter("plain", "doubt-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get("/").await.expect(200);
    let causes = page.all("table.causes tbody tr td.main > a");
    assert_eq!(causes.len(), 2);
    assert!(causes.iter().any(|(text, _)| {
        text.starts_with("Plain closed the connection without an answer to \u{201c}create ticket\u{201d}")
    }));
    let numbers =
        [".figures li:not(:nth-child(3)) .value a", "table.causes td.n a", "table.causes td.split a"];
    let numbers: Vec<(String, String)> = numbers.iter().flat_map(|selector| page.all(selector)).collect();
    assert!(numbers.len() >= 10, "{numbers:?}");
    for (number, href) in numbers {
        let list = olga.get(&href).await.expect(200);
        assert_eq!(list.all("table.list tbody tr").len().to_string(), number, "{href}");
    }
    let oldest = page.all(".figures li:nth-child(3) .value a");
    assert_eq!(oldest[0].0, "31 h");
    assert_eq!(olga.get(&oldest[0].1).await.expect(200).all("table.list tbody tr").len(), 1);
}

async fn what_cannot_wait_is_named_and_leads_there(db: TestDatabase) {
    let mut desk = Desk::configured(db, CRITICAL).await;
    desk.app.destination.script("/lookup", [Behaviour::status(422)]);
    desk.app.submit("payout", "payout-1").await;
    desk.app.destination.script("/keyed", vec![Behaviour::CloseAfterRead { effect: true }; 20]);
    let doubtful = desk.app.submit("keyed", "order-1").await;
    desk.app.run_for(Duration::from_mins(30)).await;
    let letter = desk.app.thread(doubtful).await.live_letter().expect("it is in doubt").id;
    desk.app.clock.advance(Duration::from_hours(22));
    let mut reader = desk.signed_in(Role::Viewer).await;
    let page = reader.get("/").await.expect(200);
    let lines = page.all(".urgent li");
    let words: Vec<&str> = lines.iter().map(|(text, _)| text.as_str()).collect();
    let begins = |start: &str| {
        words.iter().position(|text| text.starts_with(start)).unwrap_or_else(|| panic!("{words:?}"))
    };
    let (window, critical, unclear) = (begins("Window closing"), begins("Critical"), begins("Unclear"));
    assert!(window < critical && critical < unclear);
    assert!(words[window].contains("Keyed will soon no longer recognise a repeat"), "{words:?}");
    assert!(words[window].contains("in 1 h"), "{words:?}");
    assert!(words[critical].contains("Order payout-1: Lookup refused"), "{words:?}");
    for (_, href) in page.all(".urgent li a") {
        reader.get(&href).await.expect(200);
    }
    assert!(page.all(".urgent li a").iter().any(|(_, href)| *href == format!("/dead-letters/{letter}")));
    // Once it has closed, the promise is gone and the line with it.
    desk.app.clock.advance(Duration::from_hours(3));
    let mut reader = desk.nobody();
    reader.sign_in("viewer", crate::support::desk::PASSWORD).await;
    let page = reader.get("/").await.expect(200);
    assert!(!page.words().contains("will soon no longer recognise"));
    let page = reader.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert!(page.first("section[aria-labelledby=promise]").contains("Key forgotten since"));
}
