//! An override: everything that it asks for, and that it asks.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::domain::operation::OperationState;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::tables::business;

on_both!(an_override_is_asked_for_all_that_it_needs, an_override_needs_a_fresh_sign_in);

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
