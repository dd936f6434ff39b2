//! A bulk action acts on exactly the dead letters that were frozen, once each, whoever dies or
//! clicks twice on the way.

use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::bulk::{BulkState, MemberState, Progress, Step};
use dead_letter_office::domain::dead_letter::{DeadLetterStatus, Resolution};
use dead_letter_office::domain::filter::{DeadLetterFilter, Page};
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, Act, Members, New};
use dead_letter_office::store::bulk::members::{self, MemberRow, Place};
use dead_letter_office::store::bulk::{self as stored, BulkRow};
use dead_letter_office::store::{Commit, audit, dead_letters, retention};
use tokio::task::JoinSet;
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    exactly_the_frozen_members_are_sent_and_followed_to_their_end,
    the_first_ones_wait_for_a_person,
    a_pause_holds_and_a_cancel_leaves_the_rest_alone,
    a_node_that_died_between_acting_and_recording_acts_once,
    what_was_done_before_a_cancel_is_recorded_after_a_crash,
    two_nodes_at_once_act_once,
    a_second_start_is_told_and_the_same_click_is_one,
    it_pauses_itself_when_its_person_may_no_more,
    what_was_refused_is_acted_on_again,
    what_failed_again_is_told_and_acted_on_again,
    destinations_are_asked_about_many,
    many_are_closed_and_handed_over,
    what_cannot_be_meant_is_refused,
    a_later_dead_letter_of_the_same_operation_is_not_meant,
    what_members_quote_goes_when_it_is_erased,
);

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

async fn add(app: &TestApp, name: &str, role: Role) {
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    accounts::add_user(app.engine.db(), app.engine.ambient(), name, role, None, &by).await.unwrap();
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

async fn exactly_the_frozen_members_are_sent_and_followed_to_their_end(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
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
    add(&app, "olga", Role::Operator).await;
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
    add(&app, "olga", Role::Operator).await;
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

async fn a_node_that_died_between_acting_and_recording_acts_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    failed(&mut app, "plain", 0..3).await;
    let id = create(&app, &replay(open("plain")), "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    bulk::turn(app.engine.gate()).await.unwrap();
    // As though the node had died before it recorded what became of them.
    let until = app.now().plus(Duration::from_secs(60)).as_micros();
    let mut raw = app.raw().await;
    raw.execute("UPDATE bulk_members SET state = 'waiting', answer = NULL, at = NULL").await;
    raw.execute(format!("UPDATE bulks SET leased_until = {until}")).await;
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
    add(&app, "olga", Role::Operator).await;
    failed(&mut app, "plain", 0..3).await;
    failed(&mut app, "lookup", 0..2).await;
    app.clock.advance(Duration::from_mins(5));
    let sent = create(&app, &New { per_minute: Some(60), ..replay(open("plain")) }, "a").await;
    let asked = create(&app, &New { act: Act::Lookup, ..replay(open("lookup")) }, "b").await;
    for (id, click) in [(sent, "c"), (asked, "d")] {
        say(&app, id, Step::Start, click).await.unwrap();
    }
    bulk::turn(app.engine.gate()).await.unwrap();
    let until = app.now().plus(Duration::from_secs(60)).as_micros();
    let mut raw = app.raw().await;
    raw.execute("UPDATE bulk_members SET state = 'waiting', answer = NULL, at = NULL").await;
    raw.execute(format!("UPDATE bulks SET leased_until = {until}")).await;
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
    add(&app, "olga", Role::Operator).await;
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

async fn a_second_start_is_told_and_the_same_click_is_one(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
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

async fn it_pauses_itself_when_its_person_may_no_more(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    for (name, role) in [("olga", Role::Operator), ("otto", Role::Operator), ("ada", Role::Admin)] {
        add(&app, name, role).await;
    }
    failed(&mut app, "plain", 0..3).await;
    let id = create(&app, &New { per_minute: Some(60), ..replay(open("plain")) }, "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    turns(&app.engine).await;
    let root = Actor::Cli { user: "root".into() };
    let by = By { actor: &root, origin: "cli" };
    let (db, ambient) = (app.engine.db(), app.engine.ambient());
    accounts::set_role(db, ambient, "olga", Role::Viewer, &by).await.unwrap();
    app.clock.advance(Duration::from_secs(10));
    turns(&app.engine).await;
    let stopped = row(&app, id).await;
    assert_eq!(stopped.paused_by.as_deref(), Some("engine"));
    let why = stopped.pause_reason.unwrap();
    assert!(why.starts_with("olga may not do this any more") && why.contains("yours is viewer"), "{why}");
    assert_eq!(progress(&app, id).await.of(MemberState::Waiting), 2);

    accounts::disable(db, ambient, "olga", &by).await.unwrap();
    let otto = person("otto", Role::Operator);
    bulk::set_going(app.engine.gate(), id, Step::Resume, &request(&otto, "c")).await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    turns(&app.engine).await;
    accounts::disable(app.engine.db(), app.engine.ambient(), "otto", &by).await.unwrap();
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

async fn what_was_refused_is_acted_on_again(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    failed(&mut app, "plain", 0..2).await;
    // In doubt where nobody can be asked: only an override sends it.
    app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }]);
    let doubtful = app.submit("plain", "doubt").await;
    app.run_until_idle().await;
    let id = create(&app, &replay(open("plain")), "a").await;
    let mut tx = app.engine.db().read().await.unwrap();
    let verdicts = bulk::verdicts(app.engine.gate(), &mut tx, id, &olga()).await.unwrap();
    drop(tx);
    let counts: Vec<(&str, usize)> = verdicts.iter().map(|(verdict, n)| (verdict.as_str(), *n)).collect();
    assert_eq!(counts, [("accepted", 2), ("needs_override", 1)]);
    let again = bulk::again(app.engine.gate(), id, &request(&olga(), "early")).await;
    assert!(matches!(again, Err(ActionError::Invalid(_))), "nothing was refused yet");
    say(&app, id, Step::Start, "b").await.unwrap();
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "2 sent \u{b7} 2 confirmed \u{b7} 1 refused");
    let refused = members(&app, id).await.into_iter().find(|m| m.state == MemberState::Refused).unwrap();
    assert_eq!(refused.operation_id, doubtful);
    assert!(refused.answer.is_some_and(|answer| !answer.is_empty()), "with the reason");

    let second = bulk::again(app.engine.gate(), id, &request(&olga(), "again")).await.unwrap();
    assert_eq!(bulk::again(app.engine.gate(), id, &request(&olga(), "again")).await.unwrap(), second);
    let new = row(&app, second).await;
    assert_eq!((new.follows, new.members, new.state), (Some(id), 1, BulkState::Preview));
    assert_eq!(new.name, "Monday's outage (again)");
    assert_eq!(members(&app, second).await[0].operation_id, doubtful);
    say(&app, second, Step::Start, "c").await.unwrap();
    to_the_end(&mut app).await;
    assert_eq!(said(&app, second).await, "1 refused", "the same checks as before");
    assert_eq!(app.destination.effects().len(), 2);
}

async fn what_failed_again_is_told_and_acted_on_again(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    let operations = failed(&mut app, "keyed", 0..2).await;
    // Somebody replayed one of them before.
    let id = create(&app, &replay(open("keyed")), "a").await;
    app.replay(operations[0], "alone").await.unwrap();
    app.run_until_idle().await;
    say(&app, id, Step::Start, "b").await.unwrap();
    app.destination.script("/keyed", [Behaviour::status(422)]);
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "1 sent \u{b7} 1 failed again \u{b7} 1 already done");
    assert_eq!(app.letter(operations[1]).await.status, DeadLetterStatus::Open);
    let second = bulk::again(app.engine.gate(), id, &request(&olga(), "c")).await.unwrap();
    say(&app, second, Step::Start, "d").await.unwrap();
    to_the_end(&mut app).await;
    assert_eq!(said(&app, second).await, "1 sent \u{b7} 1 confirmed");
    assert_eq!(app.destination.effects().len(), 2);
}

async fn destinations_are_asked_about_many(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    failed(&mut app, "lookup", 0..3).await;
    failed(&mut app, "plain", 0..1).await;
    // An absence counts once nothing can be on its way any more.
    app.clock.advance(Duration::from_mins(5));
    let sent = app.destination.requests_count();
    let ids: Vec<Uuid> = {
        let mut tx = app.engine.db().read().await.unwrap();
        let (all, page) = (DeadLetterFilter::default(), Page::default());
        let listed = dead_letters::list(&mut tx, &all, page).await.unwrap();
        listed.items.into_iter().map(|letter| letter.id).collect()
    };
    let new = New { act: Act::Lookup, ..replay(Members::Chosen(ids)) };
    let id = create(&app, &new, "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    turns(&app.engine).await;
    assert_eq!(said(&app, id).await, "3 asked \u{b7} 3 not yet answered \u{b7} 1 refused");
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "3 asked \u{b7} 3 answered \u{b7} 1 refused");
    let answers: Vec<Option<String>> = members(&app, id).await.into_iter().map(|m| m.answer).collect();
    assert_eq!(answers[0].as_deref(), Some("It is not there."));
    assert!(answers[3].as_deref().is_some_and(|text| text.contains("cannot be asked")), "{answers:?}");
    assert_eq!(app.destination.requests_count() - sent, 3);
    assert_eq!(app.destination.effects().len(), 0, "asking sends nothing");
}

async fn many_are_closed_and_handed_over(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    let operations = failed(&mut app, "keyed", 0..3).await;
    let hand = New { act: Act::Assign(Some("olga".into())), ..replay(open("keyed")) };
    let handed = create(&app, &hand, "a").await;
    let close = New { act: Act::Resolve(Resolution::NotNeeded), ..replay(open("keyed")) };
    let closed = create(&app, &close, "b").await;
    say(&app, handed, Step::Start, "c").await.unwrap();
    turns(&app.engine).await;
    assert_eq!(said(&app, handed).await, "3 assigned");
    assert_eq!(app.letter(operations[0]).await.assignee.as_deref(), Some("olga"));
    let first = app.letter(operations[0]).await.id;
    app.resolve(first, Resolution::Duplicate, None, "alone").await.unwrap();
    say(&app, closed, Step::Start, "d").await.unwrap();
    turns(&app.engine).await;
    assert_eq!(said(&app, closed).await, "2 closed \u{b7} 1 already done");
    let letter = app.letter(operations[1]).await;
    assert_eq!(
        (letter.resolution, letter.reason.as_deref()),
        (Some(Resolution::NotNeeded), Some("the CRM is back"))
    );
    assert_eq!(
        app.letter(operations[0]).await.resolution,
        Some(Resolution::Duplicate),
        "the first word stands"
    );
    for id in [handed, closed] {
        assert_eq!(row(&app, id).await.state, BulkState::Ended);
    }
    assert_eq!(app.destination.effects().len(), 0);
}

async fn what_cannot_be_meant_is_refused(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let operations = failed(&mut app, "keyed", 0..1).await;
    let letter = app.letter(operations[0]).await.id;
    let before = app.raw().await.counts().await;
    let only_open = DeadLetterFilter { status: Some(DeadLetterStatus::Open), ..DeadLetterFilter::default() };
    let good = || replay(open("keyed"));
    let wrong = [
        (replay(Members::All(DeadLetterFilter::default())), "choose a filter first"),
        (replay(Members::All(only_open)), "choose a filter first"),
        (replay(open("plain")), "nothing to act on"),
        (replay(Members::Chosen(Vec::new())), "nothing to act on"),
        (replay(Members::Chosen(vec![letter, Uuid::nil()])), "1 of the ids are of no dead letter"),
        (replay(Members::Chosen(vec![letter; 1_001])), "1001 were chosen one by one"),
        (New { name: " ".into(), ..good() }, "a name is one line"),
        (New { canary: -1, ..good() }, "goes first"),
        (New { per_minute: Some(0), ..good() }, "a speed is"),
        (New { act: Act::Assign(Some("nobody here".into())), ..good() }, "nobody who may sign in"),
    ];
    for (n, (new, why)) in wrong.iter().enumerate() {
        let error =
            bulk::create(app.engine.gate(), new, &request(&olga(), &n.to_string())).await.unwrap_err();
        assert!(matches!(error, ActionError::Invalid(_)) && error.to_string().contains(why), "{error}");
    }
    let viewer = person("vera", Role::Viewer);
    let refused = bulk::create(app.engine.gate(), &good(), &request(&viewer, "v")).await;
    assert!(matches!(refused, Err(ActionError::Forbidden(_))));
    assert_eq!(app.raw().await.counts().await, before, "and nothing of it stays");
    // The same one twice is meant once.
    let id = create(&app, &replay(Members::Chosen(vec![letter, letter])), "twice").await;
    assert_eq!(row(&app, id).await.members, 1);
}

async fn a_later_dead_letter_of_the_same_operation_is_not_meant(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    let operations = failed(&mut app, "plain", 0..1).await;
    let id = create(&app, &replay(open("plain")), "a").await;
    let first = app.letter(operations[0]).await.id;
    app.resolve(first, Resolution::FixedElsewhere, None, "b").await.unwrap();
    app.clock.advance(Duration::from_secs(1));
    app.destination.script("/plain", [Behaviour::status(422)]);
    app.replay(operations[0], "c").await.unwrap();
    app.run_until_idle().await;
    assert_ne!(app.letter(operations[0]).await.id, first, "it waits as another dead letter");
    say(&app, id, Step::Start, "d").await.unwrap();
    to_the_end(&mut app).await;
    assert_eq!(said(&app, id).await, "1 refused");
    let answer = members(&app, id).await[0].answer.clone().unwrap();
    assert!(answer.contains("closed this dead letter as fixed elsewhere"), "{answer}");
    assert_eq!(app.destination.effects().len(), 0);
}

async fn what_members_quote_goes_when_it_is_erased(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    add(&app, "olga", Role::Operator).await;
    let operations = failed(&mut app, "keyed", 0..2).await;
    let id = create(&app, &replay(open("keyed")), "a").await;
    say(&app, id, Step::Start, "b").await.unwrap();
    to_the_end(&mut app).await;
    let mut tx = app.engine.db().begin().await.unwrap();
    retention::erase(&mut tx, &operations[..1], &[]).await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    let answers: Vec<bool> = members(&app, id).await.iter().map(|member| member.answer.is_some()).collect();
    assert_eq!(answers, [false, true]);
    let mut tx = app.engine.db().begin().await.unwrap();
    retention::forget(&mut tx, &operations).await.unwrap();
    tx.commit(Commit::Tidy).await.unwrap();
    assert_eq!(said(&app, id).await, "2 sent \u{b7} 2 confirmed", "what became of them stays");
    assert!(members(&app, id).await.iter().all(|member| member.answer.is_none() && member.kind.is_none()));
}

/// Measures what freezing 100,000 dead letters takes, and how long others wait meanwhile:
/// `cargo nextest run --test it --run-ignored only -E 'test(freezing_a_hundred_thousand)' --no-capture`.
mod freezing_a_hundred_thousand {
    use std::time::Instant;

    use super::*;

    const MANY: usize = 100_000;

    /// Copies of one dead letter, made in the database.
    async fn copies(app: &TestApp) {
        let postgres = app.database.url.starts_with("postgres:");
        let (numbers, id) = if postgres {
            (format!("generate_series(2, {MANY}) AS n (n)"), "gen_random_uuid()")
        } else {
            let numbers = format!(
                "(WITH RECURSIVE c (n) AS (SELECT 2 UNION ALL SELECT n + 1 FROM c WHERE n < {MANY}) SELECT n FROM c) n"
            );
            (numbers, "randomblob(16)")
        };
        let columns = "position, step, kind, destination, status, certainty, why, outcome, symptom, error, cause, \
            cause_text, next_action, severity, attempts, first_failed_at, last_failed_at";
        let copied: String = columns.split(',').map(|c| format!(", d.{}", c.trim())).collect();
        let sql = format!(
            "INSERT INTO dead_letters (id, operation_id, opened_at, {columns}) \
             SELECT {id}, {id}, d.opened_at + n.n{copied} FROM dead_letters d CROSS JOIN {numbers}"
        );
        app.raw().await.execute(sql).await;
    }

    async fn measured(db: TestDatabase) {
        let mut app = TestApp::start(db).await;
        failed(&mut app, "keyed", 0..1).await;
        copies(&app).await;
        let engine = app.engine.clone();
        let freezing = tokio::spawn(async move {
            let began = Instant::now();
            let id =
                bulk::create(engine.gate(), &replay(open("keyed")), &request(&olga(), "a")).await.unwrap();
            (id, began.elapsed())
        });
        let (mut reads, mut longest) = (0, Duration::ZERO);
        while !freezing.is_finished() {
            let began = Instant::now();
            let mut tx = app.engine.db().read().await.unwrap();
            let listed = dead_letters::list(&mut tx, &DeadLetterFilter::default(), Page::default()).await;
            assert_eq!(listed.unwrap().items.len(), 50);
            longest = longest.max(began.elapsed());
            reads += 1;
        }
        let (id, took) = freezing.await.unwrap();
        let began = Instant::now();
        assert_eq!(progress(&app, id).await.of(MemberState::Waiting), MANY);
        println!(
            "{}: frozen in {took:?}; {reads} lists read meanwhile, the slowest in {longest:?}; counted in {:?}",
            app.engine.db().product(),
            began.elapsed()
        );
        assert!(took < Duration::from_secs(5), "{took:?}");
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a measurement, of many seconds"]
    async fn sqlite() {
        measured(TestDatabase::sqlite()).await;
    }

    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    #[ignore = "a measurement, of many seconds"]
    async fn postgres() {
        measured(TestDatabase::postgres().await).await;
    }
}
