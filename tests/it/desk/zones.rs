//! Each person reads moments in the zone that they chose; and what the page of one's own account
//! and the page of the program's state tell.

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::time::Timestamp;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    moments_are_written_in_the_readers_zone,
    one_puts_off_by_ones_own_clock,
    a_day_of_the_audit_is_the_readers,
    one_signs_out_everywhere,
    the_status_tells_what_waits_and_who_works,
);

async fn moments_are_written_in_the_readers_zone(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let utc = "title=\"29 Nov 2026, 09:00:00 UTC\"";
    let paths = [
        format!("/operations/{operation}"),
        format!("/dead-letters/{letter}"),
        "/".to_owned(),
        "/dead-letters".to_owned(),
        "/operations".to_owned(),
        "/dead-letters".to_owned(),
        "/dead-letters?from=2026-11-29T09:00:00Z".to_owned(),
        "/".to_owned(),
        "/audit".to_owned(),
        "/account".to_owned(),
    ];
    for path in &paths {
        assert!(olga.get(path).await.expect(200).text.contains(utc), "{path}");
    }
    let page = olga.get("/account").await.expect(200);
    assert_eq!(page.first("#in-zone option[selected]"), "UTC");
    for wrong in ["", "Mars/Olympus", "europe/berlin"] {
        let reply = olga.post("/account/zone", &[("zone", wrong)]).await.expect(422);
        assert!(reply.words().contains("Choose a zone of the list."), "{wrong}");
    }
    assert_eq!(olga.post("/account/zone", &[("zone", "America/New_York")]).await.location(), "/account");
    let page = olga.get("/account").await.expect(200);
    assert_eq!(page.first("#in-zone option[selected]"), "America/New York");
    assert!(page.words().contains("Full times are in America/New_York."));
    let both = "title=\"29 Nov 2026, 04:00:00 America/New_York; 29 Nov 2026, 09:00:00 UTC\"";
    for path in &paths {
        assert!(olga.get(path).await.expect(200).text.contains(both), "{path}");
        assert!(vera.get(path).await.expect(200).text.contains(utc), "{path} for another reader");
    }
    desk.app.raw().await.execute("UPDATE users SET zone = 'Gone/Nowhere'").await;
    assert!(olga.get("/account").await.expect(200).text.contains(utc), "a zone that is no more");
}

async fn one_puts_off_by_ones_own_clock(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.post("/account/zone", &[("zone", "America/New_York")]).await.location();
    let page = olga.get(&path).await.expect(200);
    // It is four in the morning there.
    for offer in ["2026-11-29T18:00", "2026-11-30T09:00"] {
        assert!(page.text.contains(&format!("value=\"{offer}\"")), "{offer}");
    }
    assert!(page.text.contains("min=\"2026-11-29T04:00\""));
    assert!(page.words().contains("Until a day and time in America/New_York"), "{}", page.words());
    olga.post(&format!("{path}/snooze"), &[("until", "2026-11-30T09:00")]).await.location();
    let words = olga.get(&path).await.words();
    for said in [
        "Snoozed until 30 Nov 2026, 09:00:00 America/New_York.",
        "Snoozed until 30 Nov 2026, 09:00:00 America/New_York by operator",
    ] {
        assert!(words.contains(said), "{said}: {words}");
    }
    let until = desk.app.letter(operation).await.snoozed_until;
    assert_eq!(until, Timestamp::parse("2026-11-30T14:00:00Z"));
}

async fn a_day_of_the_audit_is_the_readers(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    // The sign-in was at 9:00 UTC, at 23:00 on Kiritimati, and at 22:00 of the day before in Pago Pago.
    for (zone, day) in
        [("UTC", "2026-11-29"), ("Pacific/Kiritimati", "2026-11-29"), ("Pacific/Pago_Pago", "2026-11-28")]
    {
        boss.post("/account/zone", &[("zone", zone)]).await.location();
        let page = boss.get(&format!("/audit?action=sign_in&from={day}&to={day}")).await.expect(200);
        assert_eq!(page.all("table.audit tbody tr").len(), 1, "{zone}");
        assert!(page.words().contains(&format!("From day, {zone}")), "{zone}");
    }
    let page = boss.get("/audit?action=sign_in&from=2026-11-29").await.expect(200);
    assert!(page.all("table.audit tbody tr").is_empty(), "it is the day before in Pago Pago");
}

async fn one_signs_out_everywhere(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut here = desk.signed_in(Role::Operator).await;
    let mut elsewhere = desk.nobody();
    elsewhere.sign_in("operator", PASSWORD).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    assert_eq!(here.post("/account/sign-out", &[]).await.location(), "/login?left=1");
    assert!(!here.is_in().await && !elsewhere.is_in().await && vera.is_in().await);
    let audit = vera.get("/audit?action=sign_out").await.expect(200);
    assert!(
        audit.first("table.audit tbody").contains("operator signed out: everywhere"),
        "{}",
        audit.words()
    );
}

async fn the_status_tells_what_waits_and_who_works(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let before = vera.get("/status").await.expect(200);
    assert!(before.first("section[aria-labelledby=nodes]").contains("No attempt was made so far."));
    desk.app.submit("keyed", "done").await;
    desk.app.run_until_idle().await;
    desk.app.submit("plain", "waits").await;
    desk.app.clock.advance(std::time::Duration::from_mins(4));
    let mut vera = desk.nobody();
    vera.sign_in("viewer", PASSWORD).await;
    let page = vera.get("/status").await.expect(200);
    let program = page.first("section[aria-labelledby=program]");
    let product = desk.app.engine.db().product();
    for said in [
        format!("Dead Letter Office {}", env!("CARGO_PKG_VERSION")),
        format!("Database {product}, "),
        "this program's own".to_owned(),
    ] {
        assert!(program.contains(&said), "{said}: {program}");
    }
    let rows: Vec<String> =
        page.all("section[aria-labelledby=queues] tbody tr").into_iter().map(|(text, _)| text).collect();
    assert_eq!(
        rows,
        [
            "Keyed waiting 0 none due under way 0 no lease",
            "Lookup waiting 0 none due under way 0 no lease",
            "Plain waiting 1 longest due 4 min under way 0 no lease",
        ]
    );
    let nodes = page.first("section[aria-labelledby=nodes] tbody tr");
    assert!(nodes.contains("answers here") && nodes.ends_with("attempts 1 under way 0"), "{nodes}");
}
