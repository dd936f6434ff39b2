//! In whose hands a bulk action is: what was done in one person's name is not done again in
//! another's, and a right that is taken away is gone at once.

use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::bulk::{MemberState, Step};
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::domain::filter::DeadLetterFilter;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, Act, Members, New};
use dead_letter_office::store::Pools;
use dead_letter_office::store::bulk::members::{self, Place};
use dead_letter_office::store::bulk::{self as stored, BulkRow};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    what_a_dead_node_did_for_one_person_is_not_done_again_for_the_next,
    what_a_dead_node_did_is_told_while_it_is_paused,
    who_is_shut_out_in_the_middle_of_a_stretch_does_nothing_more,
    waiting_for_answers_writes_nothing,
);

async fn start(db: TestDatabase, letters: usize) -> TestApp {
    let mut app = TestApp::start(db).await;
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    for name in ["olga", "otto"] {
        let (db, ambient) = (app.engine.db(), app.engine.ambient());
        accounts::add_user(db, ambient, name, Role::Operator, None, &by).await.unwrap();
    }
    for n in 0..letters {
        app.destination.script("/plain", [Behaviour::status(422)]);
        app.submit("plain", &format!("plain-{n}")).await;
        app.run_until_idle().await;
        app.clock.advance(Duration::from_secs(1));
    }
    app
}

fn olga() -> Actor {
    person("olga", Role::Operator)
}

async fn going(app: &TestApp, act: Act) -> Uuid {
    let open = DeadLetterFilter {
        status: Some(DeadLetterStatus::Open),
        kind: Some("plain".to_owned()),
        ..DeadLetterFilter::default()
    };
    let new = New { name: "Monday".into(), act, members: Members::All(open), canary: 0, per_minute: None };
    let gate = app.engine.gate();
    let id = bulk::create(gate, &new, &request(&olga(), "create")).await.unwrap();
    bulk::set_going(gate, id, Step::Start, &request(&olga(), "start")).await.unwrap();
    id
}

async fn row(app: &TestApp, id: Uuid) -> BulkRow {
    let mut tx = app.engine.db().read().await.unwrap();
    stored::by_id(&mut tx, id).await.unwrap().expect("a bulk action")
}

async fn states(app: &TestApp, id: Uuid) -> Vec<MemberState> {
    let mut tx = app.engine.db().read().await.unwrap();
    let rows = members::list(&mut tx, id, None, Place::After(0), 100).await.unwrap();
    rows.into_iter().map(|row| row.state).collect()
}

/// As though the node had died after it acted and before it recorded what became of the members.
async fn forget_the_record(app: &TestApp) {
    let until = app.now().plus(Duration::from_mins(1)).as_micros();
    let mut raw = app.raw().await;
    raw.execute("UPDATE bulk_members SET state = 'waiting', answer = NULL, at = NULL").await;
    raw.execute(format!("UPDATE bulks SET leased_until = {until}")).await;
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
    assert_eq!(app.raw().await.number("SELECT count(*) FROM audit WHERE action = 'bulk'").await, 2);
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
