//! An override: everything that it asks for, and that it asks.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::domain::operation::OperationState;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person};
use crate::support::tables::business;

on_both!(
    an_override_is_asked_for_all_that_it_needs,
    an_override_needs_a_fresh_sign_in,
    what_was_sent_in_spite_of_a_check_says_so_for_good,
    one_act_has_one_name_and_what_is_wrong_stands_at_its_field,
    without_a_key_nobody_is_asked_for_one,
);

const KEYLESS: &str = r#"
[operations.keyless]
[[operations.keyless.steps]]
name = "print label"
destination = "plain"
method = "POST"
path = "/labels"
body = { order = "{{ payload.order_id }}" }
"#;

async fn an_override_is_asked_for_all_that_it_needs(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let short = operation.simple().to_string()[24..].to_owned();
    let mut anton = desk.signed_in(Role::Approver).await;
    let form = anton.get(&path).await.expect(200);
    let words = form.words();
    for said in [
        &format!("Type {short} to confirm"),
        "What a duplicate would mean",
        "A ticket, for customer C-7 \u{b7} order order-1.",
        "The check that this waives",
    ] {
        assert!(words.contains(said), "{said} is not in: {words}");
    }
    assert!(!words.contains("once more"), "the sign-in is fresh");

    let before = business(&desk.app).await;
    let facts = form.field("facts");
    let good = [
        ("facts", &*facts),
        ("mode", "new_effect"),
        ("typed", &*short),
        ("reason", "the customer waits"),
        ("accept_duplicate", "true"),
        ("action_id", "a"),
    ];
    let swap = |name: &str, value: &'static str| {
        let mut fields = good;
        fields.iter_mut().filter(|(known, _)| *known == name).for_each(|field| field.1 = value);
        fields
    };
    for (fields, error) in [
        (swap("mode", ""), "Choose the key"),
        (swap("mode", "gently"), "Choose the key"),
        (swap("typed", "01a22688"), "That is not"),
        (swap("typed", ""), "That is not"),
        (swap("reason", " "), "Say why"),
        (swap("accept_duplicate", "false"), "Tick this"),
        (swap("accept_duplicate", ""), "Tick this"),
    ] {
        let reply = anton.post(&path, &fields).await.expect(422);
        assert!(reply.words().contains(error), "{fields:?}: {}", reply.words());
    }
    assert_eq!(business(&desk.app).await, before);

    for _ in 0..2 {
        assert_eq!(anton.post(&path, &good).await.location(), format!("/dead-letters/{letter}"));
    }
    let shown = anton.get(&format!("/dead-letters/{letter}")).await;
    assert!(
        shown.words().contains("It will be sent under a new key, as a second effect."),
        "{}",
        shown.words()
    );
    desk.app.run_until_idle().await;
    let thread = desk.app.thread(operation).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!((thread.steps[0].generation, desk.app.destination.effects().len()), (2, 1));
    assert_eq!(thread.letters[0].status, DeadLetterStatus::Replayed);
    let overrides: Vec<&str> =
        thread.audit.iter().filter(|row| row.action == "override").map(|row| row.detail.as_str()).collect();
    assert!(overrides.len() == 1 && overrides[0].contains("outcome_known"), "{overrides:?}");
}

async fn an_override_needs_a_fresh_sign_in(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let short = operation.simple().to_string()[24..].to_owned();
    let mut anton = desk.signed_in(Role::Approver).await;
    desk.app.clock.advance(Duration::from_mins(5));
    let form = anton.get(&path).await.expect(200);
    assert!(form.words().contains("you will be asked to confirm that it is you"), "{}", form.words());
    let before = business(&desk.app).await;
    let facts = form.field("facts");
    let good = [
        ("facts", &*facts),
        ("mode", "new_effect"),
        ("typed", &*short),
        ("reason", "the customer waits"),
        ("accept_duplicate", "true"),
        ("action_id", "a"),
    ];
    let without = anton.post(&path, &good).await.expect(422);
    assert!(without.words().contains("Confirm that it is you"), "{}", without.words());
    for (name, value) in good {
        assert_eq!(without.field(name), value, "what was typed goes along");
    }
    assert_eq!(business(&desk.app).await, before);
    let with = |password: &'static str| {
        let mut fields = good.to_vec();
        fields.push(("password", password));
        fields
    };
    anton.post(&path, &with("not it")).await.expect(422);
    assert_eq!(desk.app.thread(operation).await.audit.len(), 0);
    let old = anton.cookie.clone();
    assert_eq!(anton.post(&path, &with(PASSWORD)).await.location(), format!("/dead-letters/{letter}"));
    assert_ne!(anton.cookie, old, "a session under a new id");
    let shown = anton.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert!(shown.words().contains("It will be sent under a new key"), "{}", shown.words());
    let mut thief = desk.nobody();
    thief.cookie = old;
    assert!(!thief.is_in().await);
}

/// Sends a dead letter again in spite of what stands in the way, as the form has it.
async fn overrides(approver: &mut Person<'_>, operation: Uuid, letter: Uuid, mode: &str) {
    let path = format!("/dead-letters/{letter}/override");
    let facts = approver.get(&path).await.expect(200).field("facts");
    let short = operation.simple().to_string()[24..].to_owned();
    let fields = [
        ("facts", &*facts),
        ("mode", mode),
        ("typed", &*short),
        ("reason", "the customer waits"),
        ("accept_duplicate", "true"),
        ("action_id", &*short),
    ];
    approver.post(&path, &fields).await.location();
}

async fn what_was_sent_in_spite_of_a_check_says_so_for_good(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (doubtful, doubt) = desk.dead_letter("plain", "order-1").await;
    let (refused, refusal) = desk.dead_letter("keyed", "order-2").await;
    let (replayed, harmless) = desk.dead_letter("keyed", "order-3").await;
    {
        let mut anton = desk.signed_in(Role::Approver).await;
        let page = anton.get(&format!("/dead-letters/{doubt}")).await.expect(200);
        assert!(!page.first(".marks").contains("Overridden"), "{}", page.first(".marks"));
        overrides(&mut anton, doubtful, doubt, "same_key").await;
        overrides(&mut anton, refused, refusal, "new_effect").await;
    }
    desk.app.replay(replayed, "r").await.unwrap();
    desk.app.run_until_idle().await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let twice = "Sent again by approver in spite of a check: the first send may also have happened.";
    let once = "Sent again by approver, as an override.";
    for (operation, letter, said) in [(doubtful, doubt, twice), (refused, refusal, once)] {
        let page = vera.get(&format!("/dead-letters/{letter}")).await.expect(200);
        assert!(page.first(".marks").contains("Overridden"), "{}", page.first(".marks"));
        assert_eq!(page.first("header .advice"), said);
        let words = page.words();
        assert!(words.contains(&format!("It is confirmed. {said}")), "{words}");
        assert!(!words.contains("nobody has to look at it"), "{words}");
        let whole = vera.get(&format!("/operations/{operation}")).await.expect(200);
        assert!(whole.first("h1").ends_with(said), "{}", whole.first("h1"));
    }
    let page = vera.get(&format!("/dead-letters/{harmless}")).await.expect(200);
    assert!(page.words().contains("nobody has to look at it any more"), "{}", page.words());
    assert!(!page.words().contains("Overridden") && page.first("header .advice").is_empty());
}

async fn one_act_has_one_name_and_what_is_wrong_stands_at_its_field(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/override");
    let mut anton = desk.signed_in(Role::Approver).await;
    let page = anton.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert!(page.all(".actions a").iter().any(|(words, _)| words == "Send again anyway\u{2026}"));
    let form = anton.get(&path).await.expect(200);
    assert_eq!(form.first("h1"), "Send again anyway");
    assert_eq!(form.first("form.decide button"), "Send again anyway");
    let words = form.words();
    assert!(words.contains("The check that this waives") && !words.contains("ask an approver"), "{words}");
    let replay = anton.get(&format!("/dead-letters/{letter}/replay")).await.expect(200);
    assert!(replay.words().contains("the right to override"), "{}", replay.words());
    let wrong = anton.post(&path, &[("reason", "x")]).await.expect(422);
    assert_eq!(wrong.first("fieldset.bad .wrong"), "Choose the key that it goes out under.");
    let resolve =
        anton.post(&format!("/dead-letters/{letter}/resolve"), &[("reason", "x")]).await.expect(422);
    assert_eq!(resolve.first("fieldset.bad .wrong"), "Say how it was settled.");
}

async fn without_a_key_nobody_is_asked_for_one(db: TestDatabase) {
    let mut desk = Desk::configured(db, KEYLESS).await;
    desk.app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: true }]);
    let id = desk.app.submit("keyless", "order-1").await;
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(id).await.id;
    {
        let mut anton = desk.signed_in(Role::Approver).await;
        let form = anton.get(&format!("/dead-letters/{letter}/override")).await.expect(200);
        assert!(!form.words().contains("Under which key?") && form.all("[type=radio]").is_empty());
        assert!(form.words().contains("Plain does not recognise a repeat"), "{}", form.words());
        let mode = form.field("mode");
        overrides(&mut anton, id, letter, &mode).await;
    }
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.state(id).await, OperationState::Completed);
    // Where no check stands in the way there is nothing but a replay.
    desk.app.destination.script("/plain", [Behaviour::status(422)]);
    let id = desk.app.submit("keyless", "order-2").await;
    desk.app.run_until_idle().await;
    let letter = desk.app.letter(id).await.id;
    let mut anton = desk.nobody();
    anton.sign_in("approver", PASSWORD).await.location();
    let form = anton.get(&format!("/dead-letters/{letter}/override")).await.expect(200);
    assert!(form.words().contains("replay it, without an override"), "{}", form.words());
    assert!(form.all("form.decide").is_empty());
}
