//! Whoever dies on the way, and however many work on it: each member is acted on once.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::bulk::{BulkState, Step};
use dead_letter_office::engine::bulk::{self, Act, New};
use tokio::task::JoinSet;

use super::{
    audited, create, failed, forget_the_record, olga, open, replay, row, said, say, to_the_end, turns,
};
use crate::support::app::{TestApp, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    a_node_that_died_between_acting_and_recording_acts_once,
    what_was_done_before_a_cancel_is_recorded_after_a_crash,
    two_nodes_at_once_act_once,
);

async fn a_node_that_died_between_acting_and_recording_acts_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "plain", 0..3).await;
    let id = create(&app, &replay(open("plain")), "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    bulk::turn(app.engine.gate()).await.unwrap();
    forget_the_record(&app).await;
    let other = app.another_node(2).await;
    assert_eq!(turns(&other).await, 0, "its lease holds");
    app.run_until_idle().await;
    assert_eq!(app.destination.effects().len(), 3);
    app.clock.advance(Duration::from_secs(61));
    turns(&other).await;
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "3 sent \u{b7} 3 confirmed", "answered as the first time");
    assert_eq!((app.destination.effects().len(), audited(&app, "bulk").await), (3, 3));
    assert_eq!(row(&app, id).await.state, BulkState::Ended);
}

async fn what_was_done_before_a_cancel_is_recorded_after_a_crash(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "plain", 0..3).await;
    failed(&mut app, "lookup", 0..2).await;
    app.clock.advance(Duration::from_mins(5));
    let sent = create(&app, &New { per_minute: Some(60), ..replay(open("plain")) }, "a").await;
    let asked = create(&app, &New { act: Act::Lookup, ..replay(open("lookup")) }, "b").await;
    for (id, click) in [(sent, "c"), (asked, "d")] {
        say(&app, id, Step::Start, click).await.unwrap();
    }
    bulk::turn(app.engine.gate()).await.unwrap();
    forget_the_record(&app).await;
    for (id, click) in [(sent, "e"), (asked, "f")] {
        bulk::cancel(app.engine.gate(), id, &request(&olga(), click)).await.unwrap();
    }
    assert_eq!(turns(&app.engine).await, 0, "the node may still live");
    app.clock.advance(Duration::from_secs(61));
    to_the_end(&mut app).await;
    assert_eq!(
        said(&app, sent).await,
        "1 sent \u{b7} 1 confirmed \u{b7} 2 waiting",
        "and nothing more is sent"
    );
    assert_eq!(said(&app, asked).await, "2 asked \u{b7} 2 answered");
    assert_eq!(app.destination.effects().len(), 1);
    assert_eq!(app.raw().await.number("SELECT count(*) FROM bulks WHERE watched").await, 0);
}

async fn two_nodes_at_once_act_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
    failed(&mut app, "plain", 0..12).await;
    let id = create(&app, &replay(open("plain")), "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    let mut nodes = JoinSet::new();
    for seed in 2..5 {
        let node = app.another_node(seed).await;
        nodes.spawn(async move { turns(&node).await });
    }
    let moved: usize = nodes.join_all().await.into_iter().sum();
    assert!(moved >= 12, "{moved}");
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "12 sent \u{b7} 12 confirmed");
    assert_eq!((app.destination.effects().len(), audited(&app, "bulk").await), (12, 12));
    assert_eq!(audited(&app, "bulk_end").await, 1);
}
