//! In whose hands a bulk action is: what was done in one person's name is not done again in
//! another's, and a right that is taken away is gone at once.

use std::time::Duration;

use dead_letter_office::accounts;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::bulk::{MemberState, Step};
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, Act, New};
use dead_letter_office::store::Pools;
use uuid::Uuid;

use super::{
    audited, create, failed, forget_the_record, members, olga, open, progress, replay, row, say, turns,
};
use crate::support::app::{TestApp, by_root, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    it_pauses_itself_when_its_person_may_no_more,
    what_a_dead_node_did_for_one_person_is_not_done_again_for_the_next,
    what_a_dead_node_did_is_told_while_it_is_paused,
    who_is_shut_out_in_the_middle_of_a_stretch_does_nothing_more,
    waiting_for_answers_writes_nothing,
);

async fn start(db: TestDatabase, letters: usize) -> TestApp {
    let mut app = TestApp::start(db).await;
    for name in ["olga", "otto"] {
        app.add(name, Role::Operator).await;
    }
    failed(&mut app, "plain", 0..letters).await;
    app
}

async fn going(app: &TestApp, act: Act) -> Uuid {
    let id = create(app, &New { act, ..replay(open("plain")) }, "create").await;
    say(app, id, Step::Start, "start").await.unwrap();
    id
}

async fn states(app: &TestApp, id: Uuid) -> Vec<MemberState> {
    members(app, id).await.into_iter().map(|row| row.state).collect()
}

async fn it_pauses_itself_when_its_person_may_no_more(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (name, role) in [("olga", Role::Operator), ("otto", Role::Operator), ("ada", Role::Admin)] {
        app.add(name, role).await;
    }
    failed(&mut app, "plain", 0..3).await;
    let id = create(&app, &New { per_minute: Some(60), ..replay(open("plain")) }, "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    turns(&app.engine).await;
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    accounts::set_role(db, ambient, "olga", Role::Viewer, &by_root()).await.unwrap();
    app.clock.advance(Duration::from_secs(10));
    turns(&app.engine).await;
    let stopped = row(&app, id).await;
    assert_eq!(stopped.paused_by.as_deref(), Some("engine"));
    let why = stopped.pause_reason.unwrap();
    assert!(why.starts_with("olga may not do this any more") && why.contains("yours is viewer"), "{why}");
    assert_eq!(progress(&app, id).await.of(MemberState::Waiting), 2);

    accounts::disable(db, ambient, "olga", &by_root()).await.unwrap();
    let otto = person("otto", Role::Operator);
    bulk::set_going(app.engine.gate(), id, Step::Resume, &request(&otto, "c")).await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    turns(&app.engine).await;
    accounts::disable(app.engine.db(), app.engine.ambient(), "otto", &by_root()).await.unwrap();
    app.clock.advance(Duration::from_secs(5));
    turns(&app.engine).await;
    let why = row(&app, id).await.pause_reason.unwrap();
    assert_eq!(why, "otto was shut out since, so nothing is done in their name");
    app.run_until_idle().await;
    let mut who: Vec<String> = Vec::new();
    for member in members(&app, id).await {
        who.extend(
            app.thread(member.operation_id).await.attempts.into_iter().skip(1).map(|a| a.requested_by),
        );
    }
    who.sort();
    who.dedup();
    assert_eq!(who, ["olga", "otto"], "each in the name of whoever set it going");
    assert_eq!(audited(&app, "bulk_pause").await, 2);
}

async fn what_a_dead_node_did_for_one_person_is_not_done_again_for_the_next(db: TestDatabase) {
    let mut app = start(db, 2).await;
    let id = going(&app, Act::Replay).await;
    bulk::turn(app.engine.gate()).await.unwrap();
    forget_the_record(&app).await;
    // What was sent failed again meanwhile: a second look would find it open.
    app.destination.script("/plain", [Behaviour::status(422), Behaviour::status(422)]);
    app.run_until_idle().await;
    bulk::pause(app.engine.gate(), id, &request(&olga(), "pause")).await.unwrap();
    let otto = person("otto", Role::Operator);
    let early = bulk::set_going(app.engine.gate(), id, Step::Resume, &request(&otto, "early")).await;
    assert!(matches!(early, Err(ActionError::Busy(_))), "the node may still live: {early:?}");
    app.clock.advance(Duration::from_secs(61));
    bulk::set_going(app.engine.gate(), id, Step::Resume, &request(&otto, "resume")).await.unwrap();
    while bulk::turn(app.engine.gate()).await.unwrap() + app.run_until_idle().await > 0 {}
    assert_eq!(states(&app, id).await, [MemberState::Failed; 2]);
    assert_eq!(audited(&app, "bulk").await, 2);
    assert_eq!(app.destination.requests_count(), 4, "each once at first, and once more");
}

async fn what_a_dead_node_did_is_told_while_it_is_paused(db: TestDatabase) {
    let app = start(db, 2).await;
    let id = going(&app, Act::Assign(Some("otto".to_owned()))).await;
    bulk::turn(app.engine.gate()).await.unwrap();
    let mut raw = app.raw().await;
    raw.execute("UPDATE bulks SET state = 'running', ended_at = NULL, watched = TRUE").await;
    forget_the_record(&app).await;
    bulk::pause(app.engine.gate(), id, &request(&olga(), "pause")).await.unwrap();
    bulk::turn(app.engine.gate()).await.unwrap();
    assert_eq!(states(&app, id).await, [MemberState::Waiting; 2], "the node may still live");
    app.clock.advance(Duration::from_secs(61));
    bulk::turn(app.engine.gate()).await.unwrap();
    assert_eq!(states(&app, id).await, [MemberState::Done; 2]);
}

async fn who_is_shut_out_in_the_middle_of_a_stretch_does_nothing_more(db: TestDatabase) {
    let app = start(db, 3).await;
    let id = going(&app, Act::Replay).await;
    // In the very moment of the first act.
    let shut_out = "UPDATE users SET disabled_at = NEW.at WHERE name = 'olga'";
    app.raw()
        .await
        .execute(match &app.engine.db().pools {
            Pools::Sqlite { .. } => format!(
                "CREATE TRIGGER shut_out AFTER INSERT ON audit WHEN NEW.action = 'bulk' BEGIN {shut_out}; END"
            ),
            Pools::Postgres(_) => format!(
                "CREATE RULE shut_out AS ON INSERT TO audit WHERE NEW.action = 'bulk' DO ALSO {shut_out}"
            ),
        })
        .await;
    bulk::turn(app.engine.gate()).await.unwrap();
    assert_eq!(
        states(&app, id).await,
        [MemberState::Sent, MemberState::Waiting, MemberState::Waiting],
        "what she did before stays done"
    );
    let row = row(&app, id).await;
    let why = row.pause_reason.unwrap_or_default();
    assert!(why.starts_with("olga was shut out since"), "{why}");
    assert_eq!(row.leased_until, None);
    let mut app = app;
    app.run_until_idle().await;
}

async fn waiting_for_answers_writes_nothing(db: TestDatabase) {
    let mut app = start(db, 2).await;
    let id = going(&app, Act::Replay).await;
    bulk::turn(app.engine.gate()).await.unwrap();
    let before = row(&app, id).await.fence;
    for _ in 0..3 {
        assert_eq!(bulk::turn(app.engine.gate()).await.unwrap(), 0);
    }
    assert_eq!(row(&app, id).await.fence, before, "nothing was taken up");
    app.run_until_idle().await;
    bulk::turn(app.engine.gate()).await.unwrap();
    assert_eq!(states(&app, id).await, [MemberState::Confirmed; 2]);
}
