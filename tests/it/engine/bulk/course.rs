//! From the frozen list to the end: started, held, stopped, and each step by whom.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::bulk::{BulkState, MemberState, Step};
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, New};
use dead_letter_office::store::audit;
use tokio::task::JoinSet;
use uuid::Uuid;

use super::{
    audited, create, failed, members, olga, open, progress, replay, row, said, say, to_the_end, turns,
};
use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    exactly_the_frozen_members_are_sent_and_followed_to_their_end,
    the_first_ones_wait_for_a_person,
    a_pause_holds_and_a_cancel_leaves_the_rest_alone,
    a_second_start_is_told_and_the_same_click_is_one,
);

async fn exactly_the_frozen_members_are_sent_and_followed_to_their_end(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    let meant = failed(&mut app, "keyed", 0..3).await;
    failed(&mut app, "plain", 0..1).await;
    let id = create(&app, &replay(open("keyed")), "a").await;
    let later = failed(&mut app, "keyed", 3..5).await;
    let frozen: Vec<Uuid> = members(&app, id).await.iter().map(|member| member.operation_id).collect();
    assert_eq!(frozen, meant, "the oldest first, and nothing that came later");
    assert_eq!(turns(&app.engine).await, 0, "a preview acts on nothing");
    assert_eq!((row(&app, id).await.state, row(&app, id).await.members), (BulkState::Preview, 3));

    say(&app, id, Step::Start, "b").await.unwrap();
    assert!(turns(&app.engine).await > 0);
    assert_eq!(said(&app, id).await, "3 sent \u{b7} 3 not yet answered");
    assert_eq!(row(&app, id).await.state, BulkState::Running);
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "3 sent \u{b7} 3 confirmed");
    let row = row(&app, id).await;
    assert_eq!((row.state, row.ended_at), (BulkState::Ended, Some(app.now())));
    assert_eq!(app.destination.effects().len(), 3);
    for operation in meant {
        let thread = app.thread(operation).await;
        let last = thread.attempts.last().unwrap();
        assert_eq!((last.cause, last.requested_by.as_str()), (Cause::Bulk, "olga"));
        let [entry] = &thread.audit[..] else { panic!("one entry") };
        assert_eq!((entry.action.as_str(), entry.result.as_str()), ("bulk", "accepted"));
        assert_eq!(entry.reason.as_deref(), Some("the CRM is back"));
        assert_eq!(entry.origin, bulk::subject(id));
        assert_eq!(thread.letters[0].status, DeadLetterStatus::Replayed);
    }
    for operation in later {
        assert_eq!(app.letter(operation).await.status, DeadLetterStatus::Open);
    }
    let mut tx = app.engine.db().read().await.unwrap();
    let history = audit::of_subject(&mut tx, &bulk::subject(id), 9).await.unwrap();
    let history: Vec<(&str, &str)> =
        history.iter().rev().map(|entry| (entry.actor.as_str(), entry.action.as_str())).collect();
    assert_eq!(history, [("olga", "bulk_create"), ("olga", "bulk_start"), ("engine", "bulk_end")]);
}

async fn the_first_ones_wait_for_a_person(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "plain", 0..4).await;
    let id = create(&app, &New { canary: 2, ..replay(open("plain")) }, "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    turns(&app.engine).await;
    assert_eq!(row(&app, id).await.state, BulkState::Confirm);
    assert_eq!(said(&app, id).await, "2 sent \u{b7} 2 not yet answered \u{b7} 2 waiting");
    let early = say(&app, id, Step::Confirm, "c").await.unwrap_err();
    assert!(matches!(&early, ActionError::Busy(text) if text.contains("not known yet")), "{early}");
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "2 sent \u{b7} 2 confirmed \u{b7} 2 waiting");
    assert_eq!(app.destination.effects().len(), 2, "nobody confirmed the others");
    // A start that was clicked in another window confirms nothing.
    assert!(matches!(say(&app, id, Step::Start, "d").await, Err(ActionError::Busy(_))));
    say(&app, id, Step::Confirm, "e").await.unwrap();
    to_the_end(&mut app).await;
    assert_eq!(
        (said(&app, id).await.as_str(), app.destination.effects().len()),
        ("4 sent \u{b7} 4 confirmed", 4)
    );
    assert_eq!(row(&app, id).await.state, BulkState::Ended);
    // First ones that are all of them wait for nobody.
    failed(&mut app, "keyed", 0..2).await;
    let all = create(&app, &New { canary: 2, ..replay(open("keyed")) }, "f").await;
    assert_eq!(row(&app, all).await.canary, 0);
}

async fn a_pause_holds_and_a_cancel_leaves_the_rest_alone(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "plain", 0..6).await;
    let id = create(&app, &New { per_minute: Some(60), ..replay(open("plain")) }, "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    // One a second, over restarts too.
    turns(&app.engine).await;
    assert_eq!(progress(&app, id).await.of(MemberState::Sent), 1);
    app.clock.advance(Duration::from_millis(900));
    assert_eq!(turns(&app.another_node(2).await).await, 0, "the speed is every node's");
    app.clock.advance(Duration::from_millis(100));
    turns(&app.engine).await;
    assert_eq!(progress(&app, id).await.of(MemberState::Sent), 2);

    bulk::pause(app.engine.gate(), id, &request(&olga(), "c")).await.unwrap();
    app.clock.advance(Duration::from_mins(5));
    to_the_end(&mut app).await;
    assert_eq!(
        said(&app, id).await,
        "2 sent \u{b7} 2 confirmed \u{b7} 4 waiting",
        "it looks after what is out"
    );
    assert!(matches!(say(&app, id, Step::Start, "d").await, Err(ActionError::Busy(_))));
    say(&app, id, Step::Resume, "e").await.unwrap();
    turns(&app.engine).await;
    let sent = progress(&app, id).await.of(MemberState::Sent);
    assert_eq!(sent, 1, "a pause saves no speed up");

    bulk::cancel(app.engine.gate(), id, &request(&olga(), "f")).await.unwrap();
    app.clock.advance(Duration::from_mins(5));
    to_the_end(&mut app).await;
    let progress = progress(&app, id).await;
    assert_eq!(
        (progress.of(MemberState::Confirmed), progress.of(MemberState::Waiting)),
        (2 + sent, 4 - sent)
    );
    assert_eq!(app.destination.effects().len(), 2 + sent);
    for step in [Step::Start, Step::Resume] {
        assert!(matches!(say(&app, id, step, step.as_str()).await, Err(ActionError::Busy(_))));
    }
    let watched = "SELECT count(*) FROM bulks WHERE watched";
    assert_eq!(app.raw().await.number(watched).await, 0, "nothing is left to be heard");
}

async fn a_second_start_is_told_and_the_same_click_is_one(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "keyed", 0..2).await;
    let new = replay(open("keyed"));
    let id = create(&app, &new, "form").await;
    assert_eq!(create(&app, &new, "form").await, id, "a double click freezes once");
    let mut clicks = JoinSet::new();
    for _ in 0..3 {
        let gate = app.engine.gate().clone();
        clicks.spawn(async move { bulk::set_going(&gate, id, Step::Start, &request(&olga(), "go")).await });
    }
    for click in clicks.join_all().await {
        click.unwrap();
    }
    let second = say(&app, id, Step::Start, "another window").await.unwrap_err();
    assert_eq!(second.to_string(), "this bulk action is running already");
    assert_eq!((audited(&app, "bulk_create").await, audited(&app, "bulk_start").await), (1, 1));
    let taken = say(&app, id, Step::Confirm, "go").await;
    assert!(matches!(taken, Err(ActionError::IdReused)));
    let viewer = person("vera", Role::Viewer);
    for step in Step::ALL {
        let refused = bulk::set_going(app.engine.gate(), id, *step, &request(&viewer, "v")).await;
        assert!(matches!(refused, Err(ActionError::Forbidden(_))));
    }
    to_the_end(&mut app).await;
    assert_eq!(app.destination.effects().len(), 2);
}
