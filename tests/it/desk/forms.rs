//! Replay, resolve and override as a person meets them: what the form says, what it refuses, and
//! that it acts once.

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::accept::Accepted;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::tables::{business, everything};

on_both!(
    a_replay_says_what_it_sends_and_acts_once,
    a_replay_that_cannot_be_taken_says_what_would_help,
    a_request_that_cannot_be_built_is_said_before_anybody_asks,
    a_resolution_is_asked_for_all_that_it_needs,
    a_form_from_before_somebody_closed_it_sends_nothing,
    a_form_that_is_looked_at_changes_nothing,
    what_one_may_not_do_is_shown_with_the_right_it_needs,
);

const HOSTILE: &str = "<script>alert(1)</script>\"'><img src=x onerror=alert(2)>";

async fn a_replay_says_what_it_sends_and_acts_once(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let (_, next) = desk.dead_letter("keyed", "order-2").await;
    let key = desk.app.thread(operation).await.steps[0].key.to_string();
    let (page, path) = (format!("/dead-letters/{letter}"), format!("/dead-letters/{letter}/replay"));
    let cookie = {
        let mut olga = desk.signed_in(Role::Operator).await;
        let form = olga.get(&path).await.expect(200);
        let words = form.words();
        for said in ["POST http://127.0.0.1", "/keyed/tickets", "Idempotency-Key", &key, "order-1"] {
            assert!(words.contains(said), "{said} is not in: {words}");
        }
        assert!(words.contains("Replay: Keyed did not do it"), "{words}");
        assert!(!form.text.contains("planted-credential") && !form.text.contains("anna@example.com"));
        let id = form.field("action_id");
        assert_ne!(id, olga.get(&path).await.field("action_id"), "each form its own");

        let before = business(&desk.app).await;
        for (reason, error) in [(" \r\n ", "Say why"), (&*"x".repeat(1_001), "1001 characters")] {
            let again = olga.post(&path, &[("action_id", &id), ("reason", reason)]).await.expect(422);
            assert!(again.words().contains(error), "{}", again.words());
            assert_eq!(again.field("action_id"), id, "still the same click");
            assert!(again.text.contains(reason.trim()), "what was typed is still there");
        }
        assert_eq!(business(&desk.app).await, before);

        for _ in 0..2 {
            let reply = olga.post(&path, &[("action_id", &id), ("reason", HOSTILE)]).await;
            assert_eq!(reply.location(), page);
        }
        let shown = olga.get(&page).await.expect(200);
        assert!(
            shown
                .words()
                .contains("All checks passed: it will be sent with its own key. It goes out in a moment")
        );
        assert!(shown.words().contains(HOSTILE) && !shown.text.contains("<script>alert"));
        let offered = olga.get(&format!("/dead-letters/{next}/replay")).await;
        assert!(offered.words().contains(HOSTILE) && !offered.text.contains("<img"), "as a recent reason");
        let other = olga.post(&path, &[("action_id", "another"), ("reason", "again")]).await.expect(409);
        assert!(other.words().contains("Already under way") && other.words().contains("Watch it"));
        olga.cookie.clone()
    };
    assert_eq!(desk.app.destination.effects().len(), 0, "queued is not sent");
    desk.app.run_until_idle().await;
    let mut olga = desk.nobody();
    olga.cookie = cookie;
    let late = olga.post(&path, &[("action_id", "late"), ("reason", "again")]).await.expect(200);
    assert!(late.words().contains("Already done"), "{}", late.words());
    assert_eq!(desk.app.destination.effects().len(), 1);
    let thread = desk.app.thread(operation).await;
    let replays: Vec<&str> =
        thread.audit.iter().filter(|row| row.action == "replay").map(|row| row.result.as_str()).collect();
    assert_eq!(replays, ["accepted", "in_flight", "already_done"]);
}

async fn a_replay_that_cannot_be_taken_says_what_would_help(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/replay");
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get(&path).await.expect(200);
    assert!(form.words().contains("Nothing can be sent now"), "{}", form.words());
    assert!(!form.text.contains("name=\"reason\""), "no form for what is refused");
    let reply = olga.post(&path, &[("action_id", "a"), ("reason", "why not")]).await.expect(409);
    let words = reply.words();
    assert!(words.contains("Only an override can send this"), "{words}");
    assert!(words.contains("Resolve\u{2026}") && words.contains("which approvers have"), "{words}");
    let again = olga.post(&path, &[("action_id", "a"), ("reason", "why not")]).await.expect(409);
    assert_eq!(again.words(), words, "the first answer");
    for id in ["x", "00000000-0000-0000-0000-000000000000"] {
        olga.get(&format!("/dead-letters/{id}/replay")).await.expect(404);
        olga.post(&format!("/dead-letters/{id}/replay"), &[("reason", "x")]).await.expect(404);
    }
}

async fn a_request_that_cannot_be_built_is_said_before_anybody_asks(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let Ok(Accepted::Created(new)) = desk.app.try_submit("keyed", "order-1", "{}").await else {
        panic!("it is accepted");
    };
    desk.app.run_until_idle().await;
    let letter = desk.app.thread(new.id).await.live_letter().expect("a dead letter").id;
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get(&format!("/dead-letters/{letter}/replay")).await.expect(200);
    let words = form.words();
    assert!(words.contains("payload.order_id is missing"), "{words}");
    assert!(words.contains("Nothing can be sent now"), "{words}");
}

async fn a_resolution_is_asked_for_all_that_it_needs(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let path = format!("/dead-letters/{letter}/resolve");
    let mut olga = desk.signed_in(Role::Operator).await;
    let before = business(&desk.app).await;
    let done = ("resolution", "completed_at_destination");
    let cases: &[(&[(&str, &str)], &[&str])] = &[
        (&[], &["Say how it was settled.", "Say why"]),
        (&[("resolution", "forget_it"), ("reason", "x")], &["Say how it was settled."]),
        (&[done, ("reason", "x")], &["Give the id that it has there, or tick that it has none."]),
        (&[done, ("reason", "x"), ("reference", "a\nb")], &["one line"]),
        (&[done, ("reference", "TCK-9")], &["Say why"]),
    ];
    for (fields, errors) in cases {
        let reply = olga.post(&path, fields).await.expect(422);
        for error in *errors {
            assert!(reply.words().contains(error), "{fields:?}: {}", reply.words());
        }
        assert!(reply.words().contains("Nothing was changed yet"));
    }
    assert_eq!(business(&desk.app).await, before);

    let filled =
        olga.get(&format!("{path}?resolution=completed_at_destination&reference=%22%3E%3Cb%3E")).await;
    assert_eq!(filled.field("reference"), "\"><b>");
    let fields = [done, ("reference", "TCK-9"), ("reason", HOSTILE), ("action_id", "a")];
    for _ in 0..2 {
        assert_eq!(olga.post(&path, &fields).await.location(), format!("/dead-letters/{letter}"));
    }
    let shown = olga.get(&format!("/dead-letters/{letter}")).await.expect(200);
    assert!(shown.words().contains("Nothing was sent for it."), "{}", shown.words());
    assert!(shown.words().contains(HOSTILE) && !shown.text.contains("<script>alert"));
    let thread = desk.app.thread(operation).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.audit.iter().filter(|row| row.action == "resolve").count(), 1);
    let twice = olga.post(&path, &[done, ("reference", "X"), ("reason", "x"), ("action_id", "b")]).await;
    assert!(twice.expect(409).words().contains("this cannot be done with it now"));
    let closed = olga.get(&path).await.expect(200);
    assert!(closed.words().contains("It is resolved already.") && !closed.text.contains("name=\"reason\""));
}

async fn a_form_from_before_somebody_closed_it_sends_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let path = |what: &str| format!("/dead-letters/{letter}/{what}");
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut anton = desk.signed_in(Role::Approver).await;
    let (replay, over) = (olga.get(&path("replay")).await, anton.get(&path("override")).await);
    let fields = [("resolution", "fixed_elsewhere"), ("reason", "made it by hand"), ("action_id", "r")];
    anton.post(&path("resolve"), &fields).await.location();

    let id = replay.field("action_id");
    let reply = olga.post(&path("replay"), &[("action_id", &id), ("reason", "late")]).await.expect(409);
    assert!(
        reply.words().contains("approver closed this dead letter as fixed elsewhere"),
        "{}",
        reply.words()
    );
    let (id, short) = (over.field("action_id"), operation.simple().to_string()[24..].to_owned());
    let fields = [
        ("action_id", &*id),
        ("mode", "new_effect"),
        ("typed", &*short),
        ("reason", "late"),
        ("accept_duplicate", "true"),
    ];
    anton.post(&path("override"), &fields).await.expect(409);
    let form = olga.get(&path("replay")).await.expect(200);
    assert!(form.words().contains("closed this dead letter as fixed elsewhere"), "{}", form.words());
    desk.app.run_until_idle().await;
    assert_eq!(desk.app.destination.effects().len(), 0);
}

async fn a_form_that_is_looked_at_changes_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("plain", "order-1").await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let before = everything(&desk.app).await;
    for page in ["", "/replay", "/resolve", "/correct", "/correct?as=json", "/override"] {
        boss.get(&format!("/dead-letters/{letter}{page}")).await.expect(200);
    }
    boss.get(&format!("/operations/{operation}")).await.expect(200);
    assert_eq!(everything(&desk.app).await, before);
}

async fn what_one_may_not_do_is_shown_with_the_right_it_needs(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    for (form, right, least) in [
        ("replay", "replay", "operator"),
        ("resolve", "resolve", "operator"),
        ("correct", "correct", "operator"),
        ("override", "override", "approver"),
    ] {
        let reply = vera.get(&format!("/dead-letters/{letter}/{form}")).await.expect(200);
        let words = reply.words();
        assert!(
            words.contains(&format!("the right \u{201c}{right}\u{201d}")) && words.contains(least),
            "{words}"
        );
        assert!(!reply.text.contains("name=\"reason\""), "{form}");
        let refused = vera.post(&format!("/dead-letters/{letter}/{form}"), &[("reason", "x")]).await;
        assert!(refused.expect(403).words().contains(&format!("\u{201c}{right}\u{201d}")));
    }
}
