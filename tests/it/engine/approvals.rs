//! A second person's word on an override: never one's own, never on facts that have changed, and once.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::domain::attempt::{Cause, RequestState};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::lookup::Finding;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::{self, ActionError, OverrideMode, Request};
use dead_letter_office::engine::approvals::{self, Approved, Asked};
use dead_letter_office::engine::handling;
use dead_letter_office::store::overrides;
use dead_letter_office::store::{Commit, dead_letters};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::tables::business;
use crate::support::two_people::{GUARDED, anton, berta};

on_both!(
    an_override_waits_for_a_second_person_and_goes_out_in_the_name_of_the_first,
    nobody_overrides_alone_whatever_the_door,
    nobody_approves_their_own,
    two_approvers_at_once_send_once,
    what_has_changed_since_is_out_of_date,
    what_a_question_found_since_makes_it_out_of_date,
    a_requester_who_may_no_longer_override_is_out_of_date,
    a_refusal_and_a_withdrawal_end_it,
    what_would_not_be_sent_is_not_asked_for,
    a_request_is_forgotten_with_its_operation,
);

async fn start(db: TestDatabase) -> TestApp {
    let app = TestApp::configured(db, GUARDED).await;
    for (name, role) in [("anton", Role::Approver), ("berta", Role::Approver), ("carla", Role::Admin)] {
        app.add(name, role).await;
    }
    app
}

fn accepted(answer: &Result<Approved, ActionError>) -> bool {
    matches!(answer, Ok(Approved::Judged(verdict)) if verdict.verdict == VerdictKind::Accepted)
}

async fn an_override_waits_for_a_second_person_and_goes_out_in_the_name_of_the_first(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request = app.anton_waits(id, "a").await;
    assert_eq!(app.anton_waits(id, "a").await, request, "the same click");
    let twice = app.anton_asks(id, "b").await;
    assert!(matches!(twice, Err(ActionError::Busy(_))), "{twice:?}");
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1, "asked for is not sent");
    assert!(accepted(&app.approve(request, &berta(), "c").await));
    assert!(accepted(&app.approve(request, &berta(), "c").await), "the first answer");
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 2);
    let thread = app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    let sent = thread.attempts.last().unwrap();
    assert_eq!((sent.cause, sent.requested_by.as_str()), (Cause::Override, "anton"));
    let acts: Vec<(&str, &str, &str)> = thread
        .audit
        .iter()
        .map(|row| (row.actor.as_str(), row.action.as_str(), row.result.as_str()))
        .collect();
    let wanted = [
        ("anton", "override_ask", "waiting"),
        ("anton", "override", "accepted"),
        ("berta", "override_approve", "approved"),
    ];
    assert_eq!(acts, wanted);
    assert!(thread.audit[1].detail.ends_with("; approved by berta"), "{}", thread.audit[1].detail);
    assert_eq!(thread.audit[1].reason.as_deref(), Some("the CRM is back"), "the requester's words");
    assert_eq!(thread.audit[2].detail, "asked for by anton");
    let row = app.override_request(request).await;
    assert_eq!((row.state, row.decided_by.as_deref()), (RequestState::Approved, Some("berta")));
    assert_eq!(row.word.as_deref(), Some("seen in the CRM"));
}

async fn nobody_overrides_alone_whatever_the_door(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let token = Actor::Token { name: "ops".into(), scope: Scope::Operate };
    let letter = app.letter(id).await;
    for (place, actor) in [anton(), token, Actor::Cli { user: "root".into() }].iter().enumerate() {
        for mode in [OverrideMode::SameKey, OverrideMode::NewEffect] {
            let action_id = format!("{place} {mode}");
            let asked = request(actor, &action_id);
            let verdict =
                actions::override_letter(app.engine.gate(), &letter, mode, true, None, &asked).await.unwrap();
            assert_eq!(verdict.verdict, VerdictKind::Refused, "{actor} {mode}");
            assert!(verdict.reason.contains("a second person"), "{}", verdict.reason);
        }
    }
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1);
}

async fn nobody_approves_their_own(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request_id = app.anton_waits(id, "a").await;
    let before = business(&app).await;
    let own = app.approve(request_id, &anton(), "b").await;
    assert!(matches!(own, Err(ActionError::Forbidden(_))), "{own:?}");
    let own = approvals::refuse(app.engine.gate(), request_id, &request(&anton(), "c")).await;
    assert!(matches!(own, Err(ActionError::Forbidden(_))), "{own:?}");
    let token = Actor::Token { name: "ops".into(), scope: Scope::Operate };
    for actor in [person("olga", Role::Operator), person("vera", Role::Viewer), token] {
        let answer = app.approve(request_id, &actor, "d").await;
        assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{actor}: {answer:?}");
        let answer = approvals::withdraw(app.engine.gate(), request_id, &request(&actor, "e")).await;
        assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{actor}: {answer:?}");
    }
    let nothing = app.approve(Uuid::nil(), &berta(), "f").await;
    assert!(matches!(nothing, Err(ActionError::NotFound)), "{nothing:?}");
    assert_eq!(business(&app).await, before);
}

async fn two_approvers_at_once_send_once(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request_id = app.anton_waits(id, "a").await;
    let other = app.another_node(9).await;
    let (berta, carla) = (berta(), person("carla", Role::Admin));
    let (bertas, carlas) = (request(&berta, "b"), request(&carla, "b"));
    let (first, second) = tokio::join!(
        approvals::approve(app.engine.gate(), request_id, &bertas),
        approvals::approve(other.gate(), request_id, &carlas),
    );
    assert_eq!([accepted(&first), accepted(&second)].iter().filter(|done| **done).count(), 1);
    let lost = [first, second].into_iter().find_map(Result::err).expect("one of them came late");
    assert!(matches!(&lost, ActionError::Settled(why) if why.contains("approved already")), "{lost:?}");
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 2);
}

async fn what_has_changed_since_is_out_of_date(db: TestDatabase) {
    let mut app = start(db).await;
    // A person closed it meanwhile.
    let closed = app.guarded_in_doubt("order-1").await;
    let first = app.anton_waits(closed, "a").await;
    app.resolve(app.letter(closed).await.id, Resolution::NotNeeded, None, "r").await.unwrap();
    // It opened again, as another episode: not the one that was asked about.
    let letter = app.letter(closed).await.id;
    let olga = person("olga", Role::Operator);
    handling::reopen(app.engine.gate(), letter, &request(&olga, "o")).await.unwrap();
    // It failed anew, as after another attempt.
    let tried = app.guarded_in_doubt("order-2").await;
    let second = app.anton_waits(tried, "b").await;
    app.raw()
        .await
        .execute(
            "UPDATE dead_letters SET last_failed_at = last_failed_at + 1 WHERE status = 'open'".to_owned(),
        )
        .await;
    for (request_id, id) in [(first, closed), (second, tried)] {
        let shown =
            approvals::out_of_date(app.engine.gate(), &app.override_request(request_id).await).await.unwrap();
        assert!(shown.is_some());
        let answer = app.approve(request_id, &berta(), &format!("{id}")).await;
        assert!(matches!(answer, Ok(Approved::Stale(_))), "{answer:?}");
        assert_eq!(app.override_request(request_id).await.state, RequestState::Stale);
        let last = app.thread(id).await.audit.pop().unwrap();
        assert_eq!((last.action.as_str(), last.result.as_str()), ("override_approve", "stale"));
    }
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 2, "nothing was sent again");
    app.anton_waits(tried, "anew").await;
}

async fn a_requester_who_may_no_longer_override_is_out_of_date(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request_id = app.anton_waits(id, "a").await;
    app.raw().await.execute("UPDATE users SET role = 'operator' WHERE name = 'anton'".to_owned()).await;
    let answer = app.approve(request_id, &berta(), "b").await;
    assert!(matches!(&answer, Ok(Approved::Stale(why)) if why.contains("anton")), "{answer:?}");
}

async fn a_refusal_and_a_withdrawal_end_it(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let first = app.anton_waits(id, "a").await;
    let berta = berta();
    let silent = Request { reason: " ", ..request(&berta, "x") };
    let refused = approvals::refuse(app.engine.gate(), first, &silent).await;
    assert!(matches!(refused, Err(ActionError::Invalid(_))), "{refused:?}");
    for _ in 0..2 {
        approvals::refuse(app.engine.gate(), first, &request(&berta, "b")).await.unwrap();
    }
    let row_of = app.override_request(first).await;
    assert_eq!((row_of.state, row_of.word.as_deref()), (RequestState::Refused, Some("the CRM is back")));
    assert!(matches!(app.approve(first, &berta, "c").await, Err(ActionError::Settled(_))));

    let second = app.anton_waits(id, "d").await;
    approvals::withdraw(app.engine.gate(), second, &request(&anton(), "e")).await.unwrap();
    assert_eq!(app.override_request(second).await.state, RequestState::Withdrawn);
    let acts: Vec<String> = app.thread(id).await.audit.into_iter().map(|row| row.action).collect();
    assert_eq!(acts, ["override_ask", "override_refuse", "override_ask", "override_withdraw"]);
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1);
}

async fn what_would_not_be_sent_is_not_asked_for(db: TestDatabase) {
    let mut app = start(db).await;
    // Nothing stands in its way: it is replayed, without anybody's word.
    app.destination.script("/plain", [Behaviour::status(422)]);
    let id = app.submit("guarded", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    let answer =
        approvals::ask(app.engine.gate(), &letter, OverrideMode::SameKey, None, &request(&anton(), "a"))
            .await;
    let Ok(Asked::Not(verdict)) = answer else { panic!("{answer:?}") };
    assert_eq!(verdict.verdict, VerdictKind::Refused);
    let mut tx = app.engine.db().read().await.unwrap();
    assert!(overrides::waiting(&mut tx, None, 10).await.unwrap().is_empty());
    drop(tx);
    app.resolve(letter.id, Resolution::NotNeeded, None, "r").await.unwrap();
    let answer = app.anton_asks(id, "b").await;
    assert!(matches!(answer, Ok(Asked::Not(_))), "{answer:?}");
    let olga = person("olga", Role::Operator);
    let forbidden =
        approvals::ask(app.engine.gate(), &letter, OverrideMode::NewEffect, None, &request(&olga, "c")).await;
    assert!(matches!(forbidden, Err(ActionError::Forbidden(_))), "{forbidden:?}");
}

async fn a_request_is_forgotten_with_its_operation(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request_id = app.anton_waits(id, "a").await;
    let mut tx = app.engine.db().begin().await.unwrap();
    dead_letter_office::store::retention::forget(&mut tx, &[id]).await.unwrap();
    assert!(overrides::by_id(&mut tx, request_id).await.unwrap().is_none());
}

async fn what_a_question_found_since_makes_it_out_of_date(db: TestDatabase) {
    let mut app = start(db).await;
    let id = app.guarded_in_doubt("order-1").await;
    let request = app.anton_waits(id, "a").await;
    let mut tx = app.engine.db().begin().await.unwrap();
    dead_letters::learned(&mut tx, id, Finding::OtherPayload).await.unwrap();
    tx.commit(Commit::Action).await.unwrap();
    let answer = app.approve(request, &berta(), "b").await;
    assert!(matches!(answer, Ok(Approved::Stale(_))), "{answer:?}");
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 1);
}
