//! One dead letter: what the destination knows, and what may be done about it.

use std::time::Duration;

use dead_letter_office::demo::destination::{Behaviour, Mix};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::ask;

use crate::support::app::{person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};

on_both!(
    each_of_the_four_answers_has_its_card_and_its_button,
    a_viewer_sees_every_button_and_the_right_that_is_missing,
    the_thread_tells_what_was_sent_and_why_each_wait_is_as_long_as_it_is,
    operations_with_the_same_business_ids_lead_to_each_other,
    an_absence_that_was_proved_decides_title_card_button_and_list,
    what_a_key_still_settles_is_replayed_in_every_place,
    a_paused_destination_is_resumed_first,
    a_closed_letter_leads_to_its_correction,
);

/// A type whose destination takes no connection.
const GONE: &str = r#"
[destinations.gone]
base_url = "http://127.0.0.1:9"
timeout = "300ms"
connect_timeout = "200ms"
[operations.gone]
retry = { attempts = 1 }
[[operations.gone.steps]]
name = "send receipt"
destination = "gone"
method = "POST"
path = "/receipts"
"#;

fn card(page: &Reply) -> String {
    page.first("section.know .answer .mark")
}

fn buttons(page: &Reply) -> Vec<String> {
    page.all(".actions .button:not(summary)").into_iter().map(|(words, _)| words).collect()
}

async fn each_of_the_four_answers_has_its_card_and_its_button(db: TestDatabase) {
    let mut desk = Desk::configured(db, GONE).await;
    let (refused, not_there) = desk.dead_letter("keyed", "refused").await;
    let (_, cannot_tell) = desk.dead_letter("plain", "in-doubt").await;
    let gone = desk.app.submit("gone", "gone-1").await;
    desk.app.run_until_idle().await;
    let never = desk.app.thread(gone).await.live_letter().unwrap().id;
    let mut olga = desk.signed_in(Role::Operator).await;

    let page = olga.get(&format!("/dead-letters/{not_there}")).await.expect(200);
    assert_eq!(card(&page), "Not there");
    // What was refused for its data is corrected first.
    assert_eq!(buttons(&page)[..2], ["Correct\u{2026}", "Replay: Keyed did not do it"]);
    assert!(
        page.first("h1").starts_with("Keyed refused \u{201c}create ticket\u{201d}"),
        "{}",
        page.first("h1")
    );
    assert_eq!(page.first(".advice"), "Safest next step: correct the data and send the correction.");

    let page = olga.get(&format!("/dead-letters/{cannot_tell}")).await.expect(200);
    assert_eq!(card(&page), "Cannot tell");
    assert_eq!(buttons(&page)[0], "Found at Plain: record as completed");
    assert!(!buttons(&page)[..2].iter().any(|words| words.contains("again")), "{:?}", buttons(&page));
    assert!(page.first("section.know").contains("neither recognises a repeat nor can be asked"));

    let page = olga.get(&format!("/dead-letters/{never}")).await.expect(200);
    assert_eq!(card(&page), "Never reached");
    assert_eq!(buttons(&page)[0], "Replay: Gone never saw it");
    assert_eq!(page.all(".exchange").len(), 0, "nothing was sent");

    olga.desk.app.replay(refused, "a1").await.unwrap();
    let page = olga.get(&format!("/dead-letters/{not_there}")).await.expect(200);
    assert_eq!(page.first(".marks .mark:nth-of-type(2)"), "Being tried again");
    assert!(page.all(".actions a.button").is_empty(), "nothing but its handling is left to do");
    drop(olga);
    desk.app.run_until_idle().await;
    let reference = desk.app.thread(refused).await.steps[0].reference.clone().unwrap();
    let mut olga = desk.nobody();
    olga.sign_in("operator", crate::support::desk::PASSWORD).await;
    let page = olga.get(&format!("/dead-letters/{not_there}")).await.expect(200);
    assert_eq!(card(&page), "Done there");
    assert_eq!(page.first("section.know .as"), format!("as {reference}"));
    assert_eq!(page.first(".marks .mark:nth-of-type(2)"), "Replayed and confirmed");
}

async fn a_viewer_sees_every_button_and_the_right_that_is_missing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut viewer = desk.signed_in(Role::Viewer).await;
    let page = viewer.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert_eq!(page.all(".actions button[disabled]").len(), 8);
    assert_eq!(page.all(".actions a.button").len(), 0);
    let needs = page.words();
    for right in ["replay", "correct", "resolve", "override"] {
        let wanted = format!("Needs the right \u{201c}{right}\u{201d}, which ");
        assert!(needs.contains(&wanted), "{needs}");
    }
    let mut approver = desk.signed_in(Role::Approver).await;
    let page = approver.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert_eq!((page.all(".actions button[disabled]").len(), page.all(".actions a.button").len()), (0, 5));
    // Each leads to a form that is there.
    for (words, href) in page.all(".actions a.button") {
        approver.get(&href).await.expect(200);
        assert!(!words.is_empty());
    }
}

async fn the_thread_tells_what_was_sent_and_why_each_wait_is_as_long_as_it_is(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let told = Behaviour::Status {
        code: 429,
        headers: vec![("retry-after".into(), "30".into())],
        body: "slower".into(),
    };
    desk.app.destination.script("/keyed", [Behaviour::CloseAfterRead { effect: true }, told]);
    let id = desk.app.submit("keyed", "order-1").await;
    let payload = r#"{"order_id":"order-1","customer_id":"C-7","email":"anna@example.com","amount":1250}"#;
    for _ in 0..2 {
        desk.app.try_submit("keyed", "order-1", payload).await.unwrap();
    }
    desk.app.run_for(Duration::from_mins(3)).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&format!("/operations/{id}")).await.expect(200);
    let tops: Vec<String> = page.all("ol.thread > li").into_iter().map(|(text, _)| text).collect();
    assert!(tops[0].starts_with("Received"), "{tops:?}");
    assert!(tops.iter().any(|text| text.contains("2 times within")), "{tops:?}");
    let waits: Vec<String> = page.all("p.waits").into_iter().map(|(text, _)| text).collect();
    assert_eq!(waits.len(), 2, "{tops:?}");
    assert!(waits[0].contains("drawn at random"), "{waits:?}");
    assert!(waits[1].contains("Keyed asked for 30 s"), "{waits:?}");
    // What was sent is shown once: every attempt sends the same bytes.
    let bodies: Vec<String> =
        page.all(".exchange details .wire pre").into_iter().map(|(text, _)| text).collect();
    assert_eq!(bodies.iter().filter(|text| text.contains("raised_at")).count(), 1, "{bodies:?}");
    assert!(bodies.iter().any(|text| text == "The same, to the byte, as in attempt 1."), "{bodies:?}");
    assert!(!page.text.contains("planted-credential"));
}

async fn operations_with_the_same_business_ids_lead_to_each_other(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let first = desk.app.submit("lookup", "order-1").await;
    let (_, letter) = desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Viewer).await;
    let page = olga.get(&format!("/dead-letters/{letter}")).await.expect(200);
    let related = page.all("section[aria-labelledby=related] a");
    assert_eq!(related.len(), 1, "the same customer");
    assert!(related[0].0.starts_with("lookup \u{b7} customer C-7 \u{b7} order order-1"), "{related:?}");
    assert_eq!(related[0].1, format!("/operations/{first}"));
    let words = page.first("section[aria-labelledby=promise]");
    // The window of 24 h, without one exchange and what clocks may differ by.
    assert!(words.contains("Safe to repeat until") && words.contains("30 Nov 2026, 08:59:29 UTC"), "{words}");
}

const LOOKED: &str = r#"
[operations.looked]
retry = { attempts = 1 }
[[operations.looked.steps]]
name = "create ticket"
destination = "lookup"
method = "POST"
path = "/tickets"
body = { external_ref = "{{ key }}" }
"#;

/// What the list of dead letters says is to be done next.
fn next(list: &Reply) -> Vec<String> {
    list.all("table.letters td.todo").into_iter().map(|(words, _)| words).collect()
}

async fn an_absence_that_was_proved_decides_title_card_button_and_list(db: TestDatabase) {
    let mut desk = Desk::configured(db, LOOKED).await;
    desk.app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: false }]);
    let id = desk.app.submit("looked", "order-1").await;
    desk.app.run_to_the_end().await;
    let letter = format!("/dead-letters/{}", desk.app.letter(id).await.id);
    desk.add("olga", Role::Operator).await;
    let looks = async |desk: &Desk| {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await.location();
        let page = olga.get(&letter).await.expect(200);
        assert!(page.first("h1").contains("does not have it"), "{}", page.first("h1"));
        assert_eq!(page.first(".advice"), "Safest next step: replay it.");
        assert_eq!(card(&page), "Not there");
        assert!(page.first("section.know").contains("It was asked and does not have it."));
        assert_eq!(buttons(&page)[0], "Replay: Lookup did not do it");
        assert_eq!(next(&olga.get("/dead-letters").await.expect(200)), ["Replay"]);
        let form = olga.get(&format!("{letter}/replay")).await.expect(200);
        assert_eq!(form.first("form.decide .first"), "Replay: Lookup did not do it");
    };
    looks(&desk).await;
    // Asked again, it cannot say: what was proved stands.
    let question = "/lookup/tickets?external_ref";
    desk.app.destination.default_behaviour(question, Mix::new([(1, Behaviour::status(503))]));
    let olga = person("olga", Role::Operator);
    ask::ask(desk.app.engine.gate(), id, &request(&olga, "q1")).await.unwrap();
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.thread(id).await.attempts.last().and_then(|last| last.status), Some(503));
    looks(&desk).await;
    assert_eq!(desk.app.replay(id, "a1").await.unwrap().verdict, VerdictKind::Accepted, "as the gate has it");
    desk.app.run_until_idle().await;
}

async fn what_a_key_still_settles_is_replayed_in_every_place(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.app.destination.script("/keyed", vec![Behaviour::CloseAfterRead { effect: false }; 6]);
    let id = desk.app.submit("keyed", "order-1").await;
    desk.app.run_to_the_end().await;
    let letter = format!("/dead-letters/{}", desk.app.letter(id).await.id);
    let clock = desk.app.clock.clone();
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&letter).await.expect(200);
    assert_eq!(
        page.first(".advice"),
        "Safest next step: replay it with the same key, which Keyed recognises."
    );
    assert_eq!(
        (card(&page), next(&olga.get("/dead-letters").await)),
        ("Cannot tell".into(), vec!["Replay".into()])
    );
    assert_eq!(buttons(&page)[0], "Replay with the same key: Keyed recognises it");
    // The key is forgotten: now it has to be found out by other means, in every place.
    clock.advance(Duration::from_hours(25));
    let mut olga = desk.nobody();
    olga.sign_in("operator", crate::support::desk::PASSWORD).await.location();
    let page = olga.get(&letter).await.expect(200);
    assert_eq!(page.first(".advice"), "Safest next step: find out by other means whether it happened.");
    assert_eq!(next(&olga.get("/dead-letters").await), ["Check the destination"]);
    assert!(!buttons(&page).iter().any(|words| words.starts_with("Replay")), "{:?}", buttons(&page));
}

async fn a_paused_destination_is_resumed_first(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.app.destination.script("/keyed", [Behaviour::status(401)]);
    let id = desk.app.submit("keyed", "order-1").await;
    desk.app.run_until_idle().await;
    let letter = format!("/dead-letters/{}", desk.app.letter(id).await.id);
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&letter).await.expect(200);
    assert_eq!(buttons(&page)[..2], ["Resume Keyed\u{2026}", "Replay: Keyed did not do it"]);
    assert!(
        page.first(".advice").starts_with("Keyed is paused: nothing is sent there until it is resumed."),
        "{}",
        page.first(".advice")
    );
    let form = olga.get(&format!("{letter}/replay")).await.expect(200);
    let offered = form.all(".stop .bar .button");
    assert_eq!(offered[0], ("Resume Keyed\u{2026}".to_owned(), "/destinations/keyed".to_owned()));
    assert_eq!(form.first(".stop .bar .first"), "Resume Keyed\u{2026}");
    let place = olga.get("/destinations/keyed").await.expect(200);
    assert_eq!(place.first("main h2"), "Resume it", "it stands on top");
    assert_eq!(place.first("main button.first"), "Resume");
    olga.post("/destinations/keyed/resume", &[("reason", "a new key")]).await.location();
    let place = olga.get("/destinations/keyed").await.expect(200);
    assert_ne!(place.first("main h2"), "Pause it");
    assert!(place.first("header.lead").contains("Working"), "{}", place.first("header.lead"));
    let page = olga.get(&letter).await.expect(200);
    assert_eq!(buttons(&page)[0], "Replay: Keyed did not do it");

    olga.post("/destinations/keyed/pause", &[("reason", "again"), ("action_id", "p2")]).await.location();
    let mut vera = desk.signed_in(Role::Viewer).await;
    let form = vera.get(&format!("{letter}/replay")).await.expect(200);
    assert_eq!(form.first(".stop .bar button[disabled]"), "Resume Keyed\u{2026}");
    assert!(
        form.first(".stop").contains("the right \u{201c}pause_destination\u{201d}"),
        "{}",
        form.first(".stop")
    );
}

async fn a_closed_letter_leads_to_its_correction(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let json = r#"{"order_id":"order-2","customer_id":"C-7","amount":1250}"#;
    let fields = [("step", "confirm"), ("action_id", "c1"), ("reason", "the order is 2"), ("json", json)];
    let new = olga.post(&format!("{path}/correct"), &fields).await.location().to_owned();
    assert!(new != format!("/operations/{operation}"), "{new}");
    let page = olga.get(&path).await.expect(200);
    let place = ("The correction that took its place".to_owned(), new);
    assert!(page.all(".ended a").contains(&place), "{:?}", page.all(".ended a"));
}
