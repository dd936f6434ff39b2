//! Nothing that was typed is lost, and a double click is one click.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;

on_both!(
    an_error_hands_back_what_was_typed,
    a_session_that_ended_loses_no_note,
    a_correction_of_what_was_closed_meanwhile_is_handed_back,
    a_bulk_form_that_is_refused_keeps_its_words,
    an_hours_sleep_is_one_click_a_moment_later,
    a_wide_correction_shows_what_changes,
);

const NOTE: &str = "They called.\nThe ticket is <b>there</b>.";

async fn an_error_hands_back_what_was_typed(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = [("csrf", "stale"), ("action_id", "a"), ("note", NOTE), ("password", "not to be seen")];
    let stale = olga.post_bare(&format!("{path}/note"), &form).await.expect(403);
    assert_eq!(stale.all(".oops textarea").len(), 1, "{}", stale.text);
    assert!(stale.text.contains("They called.\nThe ticket is") && !stale.text.contains("<b>there"));
    assert!(!stale.text.contains("not to be seen"));

    // It is open, so that there is nothing to open again.
    let reason = [("action_id", "b"), ("reason", "the customer called again")];
    let settled = olga.post(&format!("{path}/reopen"), &reason).await.expect(409);
    assert!(settled.first(".oops textarea").contains("the customer called again"), "{}", settled.text);

    let evil = [("sec-fetch-site", "cross-site")];
    let other = olga.post_with(&format!("{path}/note"), &form, &evil).await.expect(403);
    assert!(!other.text.contains("They called"), "another site's words are not said in our name");
}

async fn a_session_that_ended_loses_no_note(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let place = format!("/dead-letters/{letter}/note");
    let mut olga = desk.signed_in(Role::Operator).await;
    let csrf = olga.csrf().await;
    olga.desk.app.clock.advance(Duration::from_mins(16));
    let reply = olga.post_bare(&place, &[("csrf", &csrf), ("note", NOTE)]).await.expect(403);
    assert!(reply.first(".oops textarea").contains("They called."), "{}", reply.text);
    assert!(reply.all("main a").contains(&("Sign in".to_owned(), "/login".to_owned())), "{}", reply.text);
    assert_eq!(olga.post_bare(&place, &[("csrf", &csrf)]).await.location(), "/login");
    let thread = desk.app.thread(operation).await;
    assert!(thread.audit.iter().all(|row| row.action != "note"), "nothing was written");
}

async fn a_correction_of_what_was_closed_meanwhile_is_handed_back(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let resolution = [("action_id", "r"), ("resolution", "not_needed"), ("reason", "they paid by card")];
    olga.post(&format!("{path}/resolve"), &resolution).await.location();
    let typed = [("step", "compare"), ("f/order_id", "order-17"), ("f/email", "")];
    let shut = olga.post(&format!("{path}/correct"), &typed).await.expect(422);
    assert!(shut.words().contains("This cannot be corrected now"), "{}", shut.words());
    assert_eq!(shut.all(".typed label"), [("order_id".to_owned(), String::new())]);
    assert_eq!(shut.first(".typed textarea"), "order-17");
    assert!(!shut.text.contains("anna@example.com"));
}

async fn a_bulk_form_that_is_refused_keeps_its_words(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let letter = letter.to_string();
    let form = [
        ("action_id", "a"),
        ("action", "assign"),
        ("filter", ""),
        ("ids", &letter),
        ("name", "Monday"),
        ("reason", "the CRM is back"),
        ("assignee", "somebody who left"),
    ];
    let again = olga.post("/bulk/new", &form).await.expect(422);
    assert!(again.first(".problems").contains("somebody who left"), "{}", again.words());
    assert_eq!((again.field("name"), again.field("action_id")), ("Monday".into(), "a".into()));
    assert_eq!(again.first("textarea[name=reason]"), "the CRM is back");
}

async fn an_hours_sleep_is_one_click_a_moment_later(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = format!("/dead-letters/{letter}");
    let mut olga = desk.signed_in(Role::Operator).await;
    for _ in 0..2 {
        let reply = olga.post(&format!("{path}/snooze"), &[("action_id", "a"), ("until", "1h")]).await;
        assert_eq!(reply.location(), path);
        olga.desk.app.clock.advance(Duration::from_millis(300));
    }
    let thread = desk.app.thread(operation).await;
    assert_eq!(thread.audit.iter().filter(|row| row.action == "snooze").count(), 1);
}

async fn a_wide_correction_shows_what_changes(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let items: Vec<String> = (0..8_000).map(|n| (n % 10).to_string()).collect();
    let items = items.join(",");
    // Without an order no request can be built, so that it waits for its data.
    let new = desk
        .app
        .try_submit("keyed", "order-1", &format!(r#"{{"customer_id":"C-7","items":[{items},1]}}"#))
        .await
        .unwrap();
    let dead_letter_office::engine::accept::Accepted::Created(new) = new else { panic!("it is new") };
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(new.id).await.id;
    let mut olga = desk.signed_in(Role::Operator).await;
    let new = format!(r#"{{"customer_id":"C-7","items":[{items},2],"order_id":"order-1"}}"#);
    let path = format!("/dead-letters/{letter}/correct");
    let sides = olga.post(&path, &[("step", "compare"), ("json", &new)]).await.expect(200);
    assert_eq!(sides.all(".compare tbody tr").len(), 3, "both values and the key");
    assert!(sides.words().contains("8,001 more values stay as they are"), "{}", sides.words());
}
