//! A bulk action acts on exactly the dead letters that were frozen, once each, whoever dies or
//! clicks twice on the way.

mod again;
mod course;
mod crashes;
mod freezing;
mod hands;
mod meant;
mod other_acts;

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::bulk::{Progress, Step};
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::domain::filter::DeadLetterFilter;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, Act, Members, New};
use dead_letter_office::store::bulk::members::{self, MemberRow, Place};
use dead_letter_office::store::bulk::{self as stored, BulkRow};
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};

/// Dead letters that definitely failed, a second apart; their operations.
async fn failed(app: &mut TestApp, kind: &str, keys: std::ops::Range<usize>) -> Vec<Uuid> {
    let mut operations = Vec::new();
    for n in keys {
        app.destination.script(&format!("/{kind}"), [Behaviour::status(422)]);
        operations.push(app.submit(kind, &format!("{kind}-{n}")).await);
        app.run_until_idle().await;
        app.clock.advance(Duration::from_secs(1));
    }
    operations
}

fn open(kind: &str) -> Members {
    Members::All(DeadLetterFilter {
        status: Some(DeadLetterStatus::Open),
        kind: Some(kind.to_owned()),
        ..DeadLetterFilter::default()
    })
}

fn replay(members: Members) -> New {
    New { name: "Monday's outage".into(), act: Act::Replay, members, canary: 0, per_minute: None }
}

async fn create(app: &TestApp, new: &New, action_id: &str) -> Uuid {
    bulk::create(app.engine.gate(), new, &request(&olga(), action_id)).await.unwrap()
}

fn olga() -> Actor {
    person("olga", Role::Operator)
}

async fn say(app: &TestApp, id: Uuid, step: Step, action_id: &str) -> Result<(), ActionError> {
    bulk::set_going(app.engine.gate(), id, step, &request(&olga(), action_id)).await
}

/// Turns until nothing moves any more.
async fn turns(engine: &Engine) -> usize {
    let mut moved = 0;
    loop {
        match bulk::turn(engine.gate()).await.unwrap() {
            0 => return moved,
            more => moved += more,
        }
    }
}

/// Turns and work, until neither moves.
async fn to_the_end(app: &mut TestApp) {
    while turns(&app.engine).await + app.run_until_idle().await > 0 {}
}

async fn row(app: &TestApp, id: Uuid) -> BulkRow {
    let mut tx = app.engine.db().read().await.unwrap();
    stored::by_id(&mut tx, id).await.unwrap().expect("a bulk action")
}

async fn progress(app: &TestApp, id: Uuid) -> Progress {
    let mut tx = app.engine.db().read().await.unwrap();
    members::progress(&mut tx, &[id]).await.unwrap()[0].1
}

async fn said(app: &TestApp, id: Uuid) -> String {
    let row = row(app, id).await;
    progress(app, id).await.words(row.action)
}

async fn members(app: &TestApp, id: Uuid) -> Vec<MemberRow> {
    let mut tx = app.engine.db().read().await.unwrap();
    members::list(&mut tx, id, None, Place::After(0), 1_000).await.unwrap()
}

async fn audited(app: &TestApp, action: &str) -> i64 {
    app.raw().await.number(format!("SELECT count(*) FROM audit WHERE action = '{action}'")).await
}

/// As though the node had died after it acted and before it recorded what became of the members.
async fn forget_the_record(app: &TestApp) {
    let until = app.now().plus(Duration::from_mins(1)).as_micros();
    let mut raw = app.raw().await;
    raw.execute("UPDATE bulk_members SET state = 'waiting', answer = NULL, at = NULL").await;
    raw.execute(format!("UPDATE bulks SET leased_until = {until}")).await;
}
