//! The page of one destination.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    a_destination_tells_how_it_stands,
    it_is_paused_and_resumed_from_its_page,
    what_it_answered_is_drawn_and_counted,
    every_number_is_that_of_its_list_though_one_is_snoozed,
);

const MORE: &str = r#"
[destinations.billing]
base_url = "{destination}/billing"
preset = "stripe"
limit = { per_second = 20, in_flight = 8 }
"#;

async fn a_destination_tells_how_it_stands(db: TestDatabase) {
    let mut desk = Desk::configured(db, MORE).await;
    desk.dead_letter("plain", "order-1").await;
    desk.dead_letter("keyed", "order-2").await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let list = vera.get("/destinations").await.expect(200);
    let places: Vec<String> = list.all(".places h2 a").into_iter().map(|(_, href)| href).collect();
    assert_eq!(
        places,
        ["/destinations/billing", "/destinations/keyed", "/destinations/lookup", "/destinations/plain"]
    );
    assert!(list.words().contains("repeated until 30 Nov 2026, 08:59:20 UTC"), "{}", list.words());

    let plain = vera.get("/destinations/plain").await.expect(200);
    assert!(plain.first("section[aria-labelledby=promised]").contains("Sent once."));
    let letters = plain.all("section[aria-labelledby=letters] a");
    let doubtful = letters.iter().find(|(_, href)| href.contains("may_have_completed")).expect("a link");
    assert!(doubtful.0.starts_with('1'), "{letters:?}");
    let behind = vera.get(&doubtful.1).await.expect(200);
    assert_eq!(behind.all("table.list tbody tr").len(), 1, "the count and the list agree");
    assert!(
        plain
            .first("section[aria-labelledby=change]")
            .contains("Needs the right \u{201c}pause_destination\u{201d}")
    );

    let billing = vera.get("/destinations/billing").await.expect(200);
    let promised = billing.first("section[aria-labelledby=promised]");
    assert!(promised.contains("Stripe API v1, as documented on 20"), "{promised}");
    let limits = billing.first("section[aria-labelledby=limits]");
    assert!(
        limits.contains("Requests a second 20") && limits.contains("Opens after 10 failures in a row"),
        "{limits}"
    );
    assert!(billing.words().contains("Nothing was sent there in the last 48 h."));
    assert!(billing.all(".chart").is_empty());
    vera.get("/destinations/nowhere").await.expect(404);
}

async fn it_is_paused_and_resumed_from_its_page(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get("/destinations/keyed").await.expect(200);
    let (csrf, action) = (page.field("csrf"), page.field("action_id"));
    let wordless = olga.post("/destinations/keyed/pause", &[("reason", " ")]).await.expect(422);
    assert!(wordless.first("section[aria-labelledby=change] .wrong").starts_with("Say why"));
    let fields = [("csrf", csrf.as_str()), ("action_id", &action), ("reason", "they move <b>house</b>")];
    for _ in 0..2 {
        let paused = olga.post_bare("/destinations/keyed/pause", &fields).await;
        assert_eq!(paused.location(), "/destinations/keyed");
    }
    let page = olga.get("/destinations/keyed").await.expect(200);
    assert!(
        page.first("header.lead").contains("Paused by operator. they move <b>house</b>."),
        "{}",
        page.first("header.lead")
    );
    let history = page.all("section[aria-labelledby=change] ul li");
    assert_eq!(history.len(), 1, "a double click is one click: {history:?}");
    assert!(page.text.contains("action=\"/destinations/keyed/resume\""));
    olga.post("/destinations/keyed/resume", &[("reason", "moved")]).await.location();
    let page = olga.get("/destinations/keyed").await.expect(200);
    let history = page.all("section[aria-labelledby=change] ul li");
    assert!(history[0].0.starts_with("operator resumed a destination just now moved"), "{history:?}");
}

async fn what_it_answered_is_drawn_and_counted(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }]);
    desk.app.submit("plain", "doubtful").await;
    desk.app.run_until_idle().await;
    desk.app.clock.advance(Duration::from_hours(3));
    for key in ["a", "b"] {
        desk.app.submit("plain", key).await;
    }
    desk.app.run_until_idle().await;
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.post("/account/zone", &[("zone", "Asia/Tokyo")]).await;
    let page = olga.get("/destinations/plain").await.expect(200);
    let health = page.first("section[aria-labelledby=health]");
    assert!(health.contains("3 attempts of the last 48 h"), "{health}");
    assert!(health.contains("Half of 2 answers took up to"), "{health}");
    assert!(page.text.contains(
        "aria-label=\"Outcomes by the hour in the last 48 h: done 2, may have happened 1, refused 0, put off or not sent 0.\""
    ));
    assert_eq!(page.all("section[aria-labelledby=health] rect").len(), 2);
    let rows: Vec<String> =
        page.all("section[aria-labelledby=health] tbody tr").into_iter().map(|(text, _)| text).collect();
    assert_eq!(rows.len(), 2);
    assert!(
        rows[0].starts_with("29 Nov, 21:00 Done 2 May have happened 0 Refused 0 Put off or not sent 0")
            && rows[1].starts_with("29 Nov, 18:00 Done 0 May have happened 1 Refused 0 Put off or not sent 0 half within no answer"),
        "{rows:?}"
    );
}

async fn every_number_is_that_of_its_list_though_one_is_snoozed(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, snoozed) = desk.dead_letter("keyed", "order-1").await;
    desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let until = [("action_id", "s1"), ("until", "1h")];
    olga.post(&format!("/dead-letters/{snoozed}/snooze"), &until).await.location();
    for path in ["/destinations/keyed", "/types/keyed"] {
        let tallies = olga.get(path).await.expect(200).all("section[aria-labelledby=letters] li a");
        let mut sum = 0;
        for (text, href) in &tallies {
            let counted: usize = text.split_whitespace().next().unwrap().parse().unwrap();
            let listed = olga.get(href).await.expect(200).all("table.letters tbody tr").len();
            assert_eq!(counted, listed, "{path}: {text} {href}");
            sum += counted;
        }
        assert_eq!((tallies.len(), sum), (3, 1), "{path}");
    }
}
