//! Assign, snooze, note and reopen as a person meets them on a dead letter's page.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use scraper::{Html, Selector};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};
use crate::support::tables::business;

on_both!(
    a_dead_letter_is_mine_in_one_click,
    it_is_put_off_and_woken_up,
    a_note_stands_in_the_history_once,
    a_closed_one_is_opened_again,
    every_action_stands_in_one_bar,
    what_a_viewer_may_not_do_is_said_in_one_line,
    the_next_step_is_what_the_first_button_does,
    a_replay_is_two_clicks_away,
);

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

/// The hidden fields of the form that posts there, by the words of its button.
fn hidden(page: &Reply, action: &str, words: &str) -> Vec<(String, String)> {
    let page = Html::parse_document(&page.text);
    let forms = Selector::parse(&format!("form[action$=\"{action}\"]")).unwrap();
    let (fields, buttons) =
        (Selector::parse("input[type=hidden]").unwrap(), Selector::parse("button").unwrap());
    let has = |form: &scraper::ElementRef<'_>| {
        form.select(&buttons).any(|button| button.text().collect::<String>().contains(words))
    };
    let form = page.select(&forms).find(has).unwrap_or_else(|| panic!("no form {action} with {words}"));
    let value =
        |field: scraper::ElementRef<'_>, name| field.value().attr(name).unwrap_or_default().to_owned();
    form.select(&fields).map(|field| (value(field, "name"), value(field, "value"))).collect()
}

fn pairs(fields: &[(String, String)]) -> Vec<(&str, &str)> {
    fields.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect()
}

async fn a_dead_letter_is_mine_in_one_click(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    desk.add("bob", Role::Operator).await;
    desk.add("vera", Role::Viewer).await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&path).await.expect(200);
    assert!(page.words().contains("Nobody has it yet"), "{}", page.words());
    let offered: Vec<String> = page.all("select#to option").into_iter().map(|(name, _)| name).collect();
    assert_eq!(offered, ["Nobody", "bob", "operator"], "those who may act on it");
    let click = hidden(&page, "/assign", "Assign to me");
    for _ in 0..2 {
        assert_eq!(olga.post_bare(&format!("{path}/assign"), &pairs(&click)).await.location(), path);
    }
    let page = olga.get(&path).await.expect(200);
    assert!(page.words().contains("It is yours now.") && page.words().contains("operator has it"));
    assert!(!page.words().contains("Assign to me"));
    assert_eq!(page.first("select#to option[selected]"), "operator");
    let form = hidden(&page, "/assign", "Assign");
    let mut fields = pairs(&form);
    fields.push(("to", "bob"));
    olga.post_bare(&format!("{path}/assign"), &fields).await.location();
    assert!(olga.get(&path).await.words().contains("bob has it now."));
    let wrong = olga.post(&format!("{path}/assign"), &[("to", HOSTILE)]).await.expect(422);
    assert!(wrong.first("details[open] .wrong").starts_with("Nobody who may sign in"), "{}", wrong.text);
    assert!(!wrong.text.contains("<script>alert"));
    let thread = desk.app.thread(operation).await;
    assert_eq!(thread.audit.iter().filter(|row| row.action == "assign").count(), 2);
    let told = olga.get(&path).await.all(".thread h3");
    let acts: Vec<&str> =
        told.iter().map(|(text, _)| text.as_str()).filter(|text| text.starts_with("operator")).collect();
    let wanted = ["operator assigned a dead letter: To operator", "operator assigned a dead letter: To bob"];
    assert_eq!(acts, wanted);
}

async fn it_is_put_off_and_woken_up(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&path).await.expect(200);
    // It is a Sunday, 9:00.
    let offers: Vec<String> = page.all(".offers button").into_iter().map(|(words, _)| words).collect();
    assert_eq!(offers, ["1 hour", "This evening, 18:00", "Tomorrow, 9:00"]);
    let place = format!("{path}/snooze");
    for wrong in ["", "soon", "2026-11-29T08:59", "2027-03-01T09:00", "2026-02-30T09:00"] {
        let reply = olga.post(&place, &[("until", wrong)]).await.expect(422);
        assert!(!reply.first("details[open] .wrong").is_empty(), "{wrong}: {}", reply.words());
    }
    for (until, shown) in [
        ("1h", "Snoozed until 29 Nov 2026, 10:00:00 UTC by operator"),
        ("2026-12-24T18:30", "Snoozed until 24 Dec 2026, 18:30:00 UTC by operator"),
        ("2026-12-24T18:30:15", "Snoozed until 24 Dec 2026, 18:30:15 UTC by operator"),
    ] {
        assert_eq!(olga.post(&place, &[("until", until)]).await.location(), path);
        let words = olga.get(&path).await.words();
        assert!(words.contains(shown), "{words}");
    }
    let page = olga.get(&path).await;
    let wake = hidden(&page, "/snooze", "Wake up now");
    olga.post_bare(&place, &pairs(&wake)).await.location();
    let words = olga.get(&path).await.words();
    assert!(words.contains("It is awake again.") && !words.contains("Snoozed until"), "{words}");
    assert_eq!(desk.app.letter(operation).await.snoozed_until, None);
    // What was put off comes back by itself.
    olga.post(&place, &[("until", "1h")]).await.location();
    desk.app.clock.advance(Duration::from_mins(14));
    assert!(olga.get(&path).await.words().contains("Snoozed until"));
    for _ in 0..4 {
        desk.app.clock.advance(Duration::from_mins(13));
        olga.get(&path).await.expect(200);
    }
    assert!(!olga.get(&path).await.words().contains("Snoozed until"));
}

async fn a_note_stands_in_the_history_once(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let before = business(&desk.app).await;
    let long = "x".repeat(2_001);
    for wrong in ["", " \r\n ", &long] {
        let reply = olga.post(&format!("{path}/note"), &[("note", wrong)]).await.expect(422);
        assert!(!reply.first("details[open] .wrong").is_empty(), "{}", reply.words());
    }
    assert!(before == business(&desk.app).await);
    let text = format!("{HOSTILE}\r\nanna@example.com called");
    for _ in 0..2 {
        let fields = [("note", &*text), ("action_id", "a")];
        assert_eq!(olga.post(&format!("{path}/note"), &fields).await.location(), path);
    }
    for page in [path, format!("/operations/{operation}")] {
        let page = olga.get(&page).await.expect(200);
        let words = page.words();
        assert_eq!(words.matches(HOSTILE).count(), 1, "{words}");
        assert!(words.contains("operator noted") && !page.text.contains("<script>alert"));
        assert!(!page.text.contains("anna@example.com"), "private wherever it is written");
    }
    assert!(olga.get("/audit").await.words().contains("wrote a note"));
}

async fn a_closed_one_is_opened_again(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let fields = [("resolution", "fixed_elsewhere"), ("reason", "made it by hand")];
    olga.post(&format!("{path}/resolve"), &fields).await.location();
    let page = olga.get(&path).await.expect(200);
    assert!(page.words().contains("Open it again\u{2026}") && !page.words().contains("Snooze"));
    let reply = olga.post(&format!("{path}/reopen"), &[("reason", " ")]).await.expect(422);
    assert!(reply.first("details[open] .wrong").starts_with("Say why"), "{}", reply.words());
    let fields = [("reason", "it was not done after all"), ("action_id", "a")];
    let new = olga.post(&format!("{path}/reopen"), &fields).await.location().to_owned();
    assert_ne!(new, path);
    assert_eq!(olga.post(&format!("{path}/reopen"), &fields).await.location(), new);
    let page = olga.get(&new).await.expect(200);
    let words = page.words();
    assert!(words.contains("Opened again, as a new dead letter. Nothing was sent."), "{words}");
    assert_eq!(words.matches("opened a dead letter again").count(), 1, "{words}");
    assert_eq!(words.matches("Put before a person").count(), 1, "{words}");
    assert!(words.contains("it was not done after all"));
    let thread = desk.app.thread(operation).await;
    let states: Vec<DeadLetterStatus> = thread.letters.iter().map(|row| row.status).collect();
    assert_eq!(states, [DeadLetterStatus::Open, DeadLetterStatus::Resolved]);
    // What is recorded as done says what to do instead.
    let done = [("resolution", "completed_at_destination"), ("reference", "T-1"), ("reason", "found it")];
    olga.post(&format!("{new}/resolve"), &done).await.location();
    let page = olga.get(&new).await.expect(200);
    assert!(page.first(".needs").contains("hand in a new operation for what is missing"), "{}", page.text);
    let refused = olga.post(&format!("{new}/reopen"), &[("reason", "x")]).await.expect(409);
    assert!(refused.words().contains("never sent again"), "{}", refused.words());
}

async fn every_action_stands_in_one_bar(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let mut bars = Vec::new();
    for (kind, key) in [("lookup", "order-1"), ("plain", "order-2")] {
        let (_, letter) = desk.dead_letter(kind, key).await;
        bars.push(format!("/dead-letters/{letter}"));
    }
    let mut anton = desk.signed_in(Role::Approver).await;
    let shown = |page: &Reply| -> Vec<String> {
        let all = page.all(".actions > .bar .button, .actions > .menu > summary");
        all.into_iter().map(|(words, _)| words).collect()
    };
    let page = anton.get(&bars[0]).await.expect(200);
    let wanted = [
        "Correct\u{2026}",
        "Replay: Lookup did not do it",
        "Ask Lookup now",
        "Found at Lookup: record as completed",
        "Resolve\u{2026}",
        "Assign",
        "Snooze",
        "Note",
        "More",
    ];
    assert_eq!(shown(&page), wanted);
    assert_eq!(page.words().matches("Ask Lookup now").count(), 1, "in the bar, and nowhere else");
    let page = anton.get(&bars[1]).await.expect(200);
    assert_eq!(shown(&page)[0], "Found at Plain: record as completed");
    let more: Vec<String> =
        page.all(".actions > .menu:last-child .button").into_iter().map(|(words, _)| words).collect();
    assert_eq!(
        more,
        ["More", "See what a replay would meet", "Correct\u{2026}", "Send again anyway\u{2026}"]
    );
}

async fn what_a_viewer_may_not_do_is_said_in_one_line(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let page = vera.get(&format!("/dead-letters/{letter}")).await.expect(200);
    let lines: Vec<String> = page.all(".lead > .needs").into_iter().map(|(words, _)| words).collect();
    assert_eq!(lines.len(), 3, "replay, correct and resolve: {lines:?}");
    assert!(lines.iter().any(|line| line.contains("Assign, Snooze, Note")), "{lines:?}");
    assert!(page.all(".actions form").is_empty() && page.all(".standing form").is_empty());
    assert_eq!(page.all(".actions > button[disabled]").len(), 3);
}

async fn the_next_step_is_what_the_first_button_does(db: TestDatabase) {
    use dead_letter_office::demo::destination::Behaviour;
    let mut desk = Desk::start(db).await;
    // A destination that recognises our key, and cannot be asked.
    desk.app.destination.script("/keyed", vec![Behaviour::CloseAfterRead { effect: false }; 20]);
    let id = desk.app.submit("keyed", "order-1").await;
    desk.app.run_to_the_end().await;
    let letter = desk.app.letter(id).await.id;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert_eq!(page.first(".actions .button"), "Replay with the same key: Keyed recognises it");
    let advice = page.first(".advice");
    assert_eq!(advice, "Safest next step: replay it with the same key, which Keyed recognises.");
    // A day later it recognises nothing any more.
    drop(olga);
    desk.app.clock.advance(Duration::from_hours(25));
    let mut olga = desk.nobody();
    olga.sign_in("operator", crate::support::desk::PASSWORD).await;
    let page = olga.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert_eq!(page.first(".advice"), "Safest next step: find out by other means whether it happened.");
    assert_eq!(page.first(".actions .button"), "Found at Keyed: record as completed");
}

async fn a_replay_is_two_clicks_away(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let page = olga.get(&format!("/dead-letters/{letter}")).await.expect(200);
    let (_, form) =
        page.all(".actions .button").into_iter().find(|(words, _)| words.starts_with("Replay")).unwrap();
    let form_page = olga.get(&form).await.expect(200);
    let (id, reason) = (form_page.field("action_id"), "the CRM is back");
    olga.post(&form, &[("action_id", &id), ("reason", reason)]).await.location();
    assert!(olga.get(&format!("/dead-letters/{letter}")).await.words().contains("All checks passed"));
}
