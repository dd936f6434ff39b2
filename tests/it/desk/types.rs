//! The page of one type of operation.

use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(a_type_tells_what_it_brings_about_and_what_a_duplicate_would_do);

const MORE: &str = r#"
[operations.order]
key = "order:{{ payload.order_id }}"
severity = "critical"
owner = "support"
runbook = "https://wiki.example.com/orders"
search = { order = "/order_id" }
mask = ["/email"]
retain = "90d"
retry = { attempts = 3, first_delay = "1m", factor = 2.0, max_delay = "10m", max_age = "20m" }
[[operations.order.steps]]
name = "charge_card"
destination = "keyed"
method = "POST"
path = "/charges"
effect = "Money is taken"
save = { charge = "/id" }
[[operations.order.steps]]
name = "tell customer"
destination = "plain"
method = "POST"
path = "/mails"
optional = true
"#;

async fn a_type_tells_what_it_brings_about_and_what_a_duplicate_would_do(db: TestDatabase) {
    let mut desk = Desk::configured(db, MORE).await;
    desk.dead_letter("plain", "in-doubt").await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let list = vera.get("/destinations").await.expect(200);
    let types: Vec<String> =
        list.all("section[aria-labelledby=types] a").into_iter().map(|(_, href)| href).collect();
    assert_eq!(types, ["/types/keyed", "/types/lookup", "/types/order", "/types/plain"]);

    let page = vera.get("/types/order").await.expect(200);
    let steps: Vec<String> = page.all(".places > li").into_iter().map(|(text, _)| text).collect();
    assert_eq!(steps.len(), 2);
    for said in [
        "charge card at Keyed",
        "Money is taken",
        "POST /charges",
        "For 24 h from the first send Keyed recognises a repeat and does nothing. \
         Later a duplicate would be a second one of this: \u{201c}Money is taken\u{201d}.",
        "Kept of its answer: charge.",
    ] {
        assert!(steps[0].contains(said), "{said}: {}", steps[0]);
    }
    for said in [
        "A duplicate would be what it does at Plain, a second time.",
        "Nobody has said what it brings about",
        "It is optional",
        "Sent once. When the answer is lost we cannot know",
    ] {
        assert!(steps[1].contains(said), "{said}: {}", steps[1]);
    }
    let retries = page.first("section[aria-labelledby=retries]");
    assert!(retries.contains("At most 3 tries in 20 min."), "{retries}");
    let rows: Vec<String> =
        page.all("section[aria-labelledby=retries] tbody tr").into_iter().map(|(t, _)| t).collect();
    assert_eq!(
        rows[1..],
        [
            "try 2 waits up to 1 min on average after 30 s at the latest after 1 min",
            "try 3 waits up to 2 min on average after 1 min 30 s at the latest after 3 min",
        ]
    );
    let facts = page.first("section[aria-labelledby=facts]");
    for said in
        ["Critical", "support", "https://wiki.example.com/orders", "order:{{ payload.order_id }}", "90 days"]
    {
        assert!(facts.contains(said), "{said}: {facts}");
    }
    let inputs = page.first("section[aria-labelledby=inputs]");
    assert_eq!(inputs, "In its payload Order (people search by it) /order_id Private and hidden /email");

    let plain = vera.get("/types/plain").await.expect(200);
    let letters = plain.all("section[aria-labelledby=letters] a");
    let doubtful = letters.iter().find(|(_, href)| href.contains("may_have_completed")).expect("a link");
    assert!(doubtful.0.starts_with('1'), "{letters:?}");
    assert_eq!(vera.get(&doubtful.1).await.expect(200).all("table.list tbody tr").len(), 1);
    vera.get("/types/nothing").await.expect(404);
}
