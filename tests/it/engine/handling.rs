//! Looking after a dead letter: who has it, until when it may wait, notes, and opening it again.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction, Resolution};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::{self, ActionError, Request};
use dead_letter_office::engine::causes;
use dead_letter_office::engine::handling::{self, MAX_NOTE, MAX_SNOOZE};
use dead_letter_office::store::accounts as users;
use dead_letter_office::store::causes as causes_stored;
use dead_letter_office::store::events::EventKind;
use uuid::Uuid;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::tables::business;

on_both!(
    a_dead_letter_is_handed_to_people_who_can_sign_in,
    a_dead_letter_sleeps_for_ninety_days_at_most,
    a_replay_that_fails_again_wakes_it_up,
    a_note_is_kept_as_it_was_written_and_told_once,
    what_is_closed_is_neither_handed_on_nor_put_off,
    only_those_who_may_resolve_look_after_it,
    a_closed_one_opens_again_as_a_new_episode,
    what_was_learned_since_is_known_when_it_opens_again,
    what_is_settled_does_not_open_again,
    two_people_who_open_it_again_open_one,
    a_resolution_waits_while_the_destination_is_asked,
    names_that_no_database_can_hold_are_nobodys,
);

async fn failed(app: &mut TestApp, key: &str) -> (Uuid, Uuid) {
    app.destination.script("/keyed", [Behaviour::status(422)]);
    let id = app.submit("keyed", key).await;
    app.run_until_idle().await;
    (id, app.letter(id).await.id)
}

async fn in_doubt(app: &mut TestApp, kind: &str, key: &str) -> (Uuid, Uuid) {
    app.destination.script(&format!("/{kind}"), [Behaviour::CloseAfterRead { effect: false }]);
    let id = app.submit(kind, key).await;
    app.run_to_the_end().await;
    (id, app.letter(id).await.id)
}

/// The send is lost, and the questions after it are not answered.
fn unanswered(app: &TestApp) {
    app.destination.script("/lookup/tickets", [Behaviour::CloseAfterRead { effect: false }]);
    app.destination.script("/lookup/tickets?external_ref", vec![Behaviour::status(500); 60]);
}

fn olga() -> Actor {
    person("olga", Role::Operator)
}

/// Without a reason, which these acts do not need.
fn plain<'a>(actor: &'a Actor, action_id: &'a str) -> Request<'a> {
    Request { reason: "", ..request(actor, action_id) }
}

async fn acts(app: &TestApp, id: Uuid) -> Vec<(String, String)> {
    app.thread(id).await.audit.into_iter().map(|row| (row.action, row.result)).collect()
}

async fn a_dead_letter_is_handed_to_people_who_can_sign_in(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    app.add("bob", Role::Operator).await;
    app.add("gone", Role::Operator).await;
    {
        let mut tx = app.engine.db().begin().await.unwrap();
        let gone = users::user_by_name(&mut tx, "gone").await.unwrap().unwrap();
        users::disable(&mut tx, gone.id, app.now()).await.unwrap();
        tx.commit(dead_letter_office::store::Commit::Account).await.unwrap();
    }
    let gate = app.engine.gate();
    let before = business(&app).await;
    for nobody in ["gone", "made-up", "", "Bob"] {
        let answer = handling::assign(gate, letter, Some(nobody), &plain(&olga(), "a")).await;
        assert!(matches!(answer, Err(ActionError::Invalid(_))), "{nobody}: {answer:?}");
    }
    assert_eq!(business(&app).await, before);
    for _ in 0..2 {
        handling::assign(gate, letter, Some("bob"), &plain(&olga(), "a")).await.unwrap();
    }
    assert_eq!(app.letter(id).await.assignee.as_deref(), Some("bob"));
    let other = handling::assign(gate, letter, None, &plain(&olga(), "a")).await;
    assert!(matches!(other, Err(ActionError::IdReused)), "{other:?}");
    let olga = olga();
    let why = Request { reason: "on leave", ..request(&olga, "b") };
    handling::assign(gate, letter, None, &why).await.unwrap();
    assert_eq!(app.letter(id).await.assignee, None);
    let pair = |result: &str| ("assign".to_owned(), result.to_owned());
    assert_eq!(acts(&app, id).await, [pair("to bob"), pair("nobody")]);
    assert_eq!(app.thread(id).await.audit[1].reason.as_deref(), Some("on leave"));
    let nothing = handling::assign(gate, Uuid::nil(), None, &plain(&olga, "c")).await;
    assert!(matches!(nothing, Err(ActionError::NotFound)));
}

async fn a_dead_letter_sleeps_for_ninety_days_at_most(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    let (gate, now) = (app.engine.gate(), app.now());
    let moment = Duration::from_micros(1);
    for wrong in [now, now.minus(moment), now.plus(MAX_SNOOZE).plus(moment)] {
        let answer = handling::snooze(gate, letter, Some(wrong), &plain(&olga(), "a")).await;
        assert!(matches!(answer, Err(ActionError::Invalid(_))), "{wrong}: {answer:?}");
    }
    for until in [now.plus(MAX_SNOOZE), now.plus(moment)] {
        let id_of_act = until.rfc3339();
        handling::snooze(gate, letter, Some(until), &plain(&olga(), &id_of_act)).await.unwrap();
        assert_eq!(app.letter(id).await.snoozed_until, Some(until));
    }
    handling::snooze(gate, letter, None, &plain(&olga(), "wake")).await.unwrap();
    assert_eq!(app.letter(id).await.snoozed_until, None);
    let acts = acts(&app, id).await;
    assert_eq!(acts[0].1, "until 27 Feb 2027, 09:00:00 UTC");
    assert_eq!(acts[2], ("snooze".to_owned(), "awake".to_owned()));
}

async fn a_replay_that_fails_again_wakes_it_up(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    let until = app.now().plus(Duration::from_hours(5));
    handling::snooze(app.engine.gate(), letter, Some(until), &plain(&olga(), "a")).await.unwrap();
    app.destination.script("/keyed", [Behaviour::status(422)]);
    assert_eq!(app.replay(id, "b").await.unwrap().verdict, VerdictKind::Accepted);
    app.run_until_idle().await;
    let row = app.letter(id).await;
    assert_eq!((row.id, row.status, row.snoozed_until), (letter, DeadLetterStatus::Open, None));
}

async fn a_note_is_kept_as_it_was_written_and_told_once(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    let gate = app.engine.gate();
    let before = business(&app).await;
    for wrong in ["", " \n ", &*"x".repeat(MAX_NOTE + 1)] {
        let answer = handling::note(gate, letter, wrong, &plain(&olga(), "a")).await;
        assert!(matches!(answer, Err(ActionError::Invalid(_))), "{answer:?}");
    }
    assert_eq!(business(&app).await, before);
    let words = "  <b>Called</b> the shop \u{202e}:\n\"they *know*\".  ";
    for _ in 0..2 {
        handling::note(gate, letter, words, &plain(&olga(), "a")).await.unwrap();
    }
    let other = handling::note(gate, letter, "something else", &plain(&olga(), "a")).await;
    assert!(matches!(other, Err(ActionError::IdReused)), "{other:?}");
    handling::note(gate, letter, &"é".repeat(MAX_NOTE), &plain(&olga(), "b")).await.unwrap();
    app.resolve(letter, Resolution::NotNeeded, None, "r").await.unwrap();
    handling::note(gate, letter, "and afterwards", &plain(&olga(), "c")).await.unwrap();

    let thread = app.thread(id).await;
    let notes: Vec<(&str, &str)> = thread
        .events
        .iter()
        .filter(|event| event.kind == EventKind::Note)
        .map(|event| (event.actor.as_str(), event.detail.as_str()))
        .collect();
    assert_eq!((notes.len(), notes[0]), (3, ("olga", words.trim())));
    let told = thread.entries().into_iter().filter(|entry| entry.kind == "note").count();
    assert_eq!(told, 3, "by its event, and not by the audit as well");
    assert_eq!(thread.audit.iter().filter(|row| row.action == "note").count(), 3);
    assert!(thread.audit.iter().all(|row| !row.detail.contains("Called")));
}

async fn what_is_closed_is_neither_handed_on_nor_put_off(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (_, letter) = failed(&mut app, "order-1").await;
    app.resolve(letter, Resolution::Duplicate, None, "r").await.unwrap();
    let (gate, before) = (app.engine.gate(), business(&app).await);
    let until = Some(app.now().plus(Duration::from_hours(1)));
    let closed = DeadLetterStatus::Resolved;
    let assigned = handling::assign(gate, letter, None, &plain(&olga(), "a")).await;
    assert!(matches!(assigned, Err(ActionError::NotOpen(status)) if status == closed), "{assigned:?}");
    let snoozed = handling::snooze(gate, letter, until, &plain(&olga(), "b")).await;
    assert!(matches!(snoozed, Err(ActionError::NotOpen(status)) if status == closed), "{snoozed:?}");
    assert_eq!(business(&app).await, before);
}

async fn only_those_who_may_resolve_look_after_it(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (_, letter) = failed(&mut app, "order-1").await;
    let (gate, before) = (app.engine.gate(), business(&app).await);
    let reader = Actor::Token { name: "reader".into(), scope: Scope::Read };
    for actor in [person("vera", Role::Viewer), reader] {
        let asked = request(&actor, "a");
        let answers = [
            handling::assign(gate, letter, None, &asked).await,
            handling::snooze(gate, letter, None, &asked).await,
            handling::note(gate, letter, "words", &asked).await,
            handling::reopen(gate, letter, &asked).await.map(|_| ()),
        ];
        for answer in answers {
            assert!(matches!(answer, Err(ActionError::Forbidden(_))), "{answer:?}");
        }
    }
    assert_eq!(business(&app).await, before);
}

async fn a_closed_one_opens_again_as_a_new_episode(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    app.resolve(letter, Resolution::FixedElsewhere, None, "r").await.unwrap();
    app.clock.advance(Duration::from_hours(3));
    let gate = app.engine.gate();
    let silent = handling::reopen(gate, letter, &plain(&olga(), "x")).await;
    assert!(matches!(silent, Err(ActionError::Invalid(_))), "{silent:?}");
    let new = handling::reopen(gate, letter, &request(&olga(), "a")).await.unwrap();
    assert_eq!(handling::reopen(gate, letter, &request(&olga(), "a")).await.unwrap(), new);
    let thread = app.thread(id).await;
    let [now, before] = &thread.letters[..] else { panic!("{:?}", thread.letters) };
    assert_eq!((now.id, now.status, now.opened_at), (new, DeadLetterStatus::Open, app.now()));
    assert_eq!((before.id, before.resolution), (letter, Some(Resolution::FixedElsewhere)));
    let facts = |row: &dead_letter_office::store::dead_letters::DeadLetterRow| {
        (row.why, row.symptom, row.answer_status, row.error.clone(), row.cause.clone(), row.first_failed_at)
    };
    assert_eq!(facts(now), facts(before));
    assert_eq!((now.certainty, now.next_action), (before.certainty, before.next_action));
    assert_eq!((now.closed_at, now.closed_by.as_ref(), now.reason.as_ref()), (None, None, None));
    let told: Vec<String> = thread.entries().into_iter().map(|entry| entry.kind).collect();
    assert_eq!(told.iter().filter(|kind| *kind == "reopen").count(), 1);
    assert_eq!(told.iter().filter(|kind| *kind == "dead_letter").count(), 1, "the first episode's");

    let live = handling::reopen(gate, letter, &request(&olga(), "b")).await;
    assert!(matches!(&live, Err(ActionError::Settled(why)) if why.contains("act on that one")), "{live:?}");
    let itself = handling::reopen(gate, new, &request(&olga(), "c")).await;
    assert!(matches!(&itself, Err(ActionError::Settled(why)) if why.contains("it is open")), "{itself:?}");

    // What was closed can be sent again from the new one.
    let row = app.letter(id).await;
    let verdict = actions::replay_letter(app.engine.gate(), &row, &request(&olga(), "d")).await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Accepted);
    app.run_until_idle().await;
    assert_eq!(app.state(id).await, OperationState::Completed);
    let done = handling::reopen(app.engine.gate(), new, &request(&olga(), "e")).await;
    assert!(matches!(&done, Err(ActionError::Settled(why)) if why.contains("is done")), "{done:?}");
    let earlier = handling::reopen(app.engine.gate(), letter, &request(&olga(), "f")).await;
    assert!(matches!(&earlier, Err(ActionError::Settled(why)) if why.contains("later")), "{earlier:?}");
}

async fn what_was_learned_since_is_known_when_it_opens_again(db: TestDatabase) {
    use dead_letter_office::engine::ask;
    let mut app = TestApp::start(db).await;
    // It never comes to an answer by itself, so that a person closes it in doubt.
    unanswered(&app);
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await;
    assert_eq!(letter.certainty, Certainty::MayHaveCompleted);
    app.resolve(letter.id, Resolution::NotNeeded, None, "r").await.unwrap();
    app.destination.clear();
    ask::ask(app.engine.gate(), id, &request(&olga(), "q")).await.unwrap();
    app.run_to_the_end().await;
    let new = handling::reopen(app.engine.gate(), letter.id, &request(&olga(), "a")).await.unwrap();
    let row = app.letter(id).await;
    assert_eq!((row.id, row.certainty), (new, Certainty::DefinitelyFailed));
    assert_eq!(row.next_action, NextAction::Replay);
}

async fn what_is_settled_does_not_open_again(db: TestDatabase) {
    use dead_letter_office::engine::correct::{self, Correction};
    let mut app = TestApp::start(db).await;
    let why = async |app: &TestApp, letter: Uuid, action_id: &str| {
        let before = business(app).await;
        let answer = handling::reopen(app.engine.gate(), letter, &request(&olga(), action_id)).await;
        assert_eq!(business(app).await, before);
        answer.unwrap_err()
    };
    // Recorded as done: the record stands, and what to do is said.
    let (_, letter) = in_doubt(&mut app, "plain", "order-1").await;
    app.resolve(letter, Resolution::CompletedAtDestination, Some("TCK-1"), "r1").await.unwrap();
    let error = why(&app, letter, "a").await;
    assert!(matches!(error, ActionError::Settled(_)));
    assert!(error.to_string().contains("hand in a new operation"), "{error}");
    // Another operation took its place.
    let (id, letter) = failed(&mut app, "order-2").await;
    let payload = serde_json::value::RawValue::from_string(r#"{"order_id":"x"}"#.into()).unwrap();
    let other = Correction { payload, key: None };
    let new = correct::correct(app.engine.gate(), id, other, &request(&olga(), "c0")).await.unwrap();
    let error = why(&app, letter, "b").await;
    assert!(error.to_string().contains(&format!("operation {new} took its place")), "{error}");
    app.run_until_idle().await;
    // In the queue: somebody had it replayed after it was closed.
    let (id, letter) = failed(&mut app, "order-3").await;
    app.resolve(letter, Resolution::NotNeeded, None, "r3").await.unwrap();
    assert_eq!(app.replay(id, "again").await.unwrap().verdict, VerdictKind::Accepted);
    assert!(matches!(why(&app, letter, "c").await, ActionError::Busy(_)));
    app.run_until_idle().await;
    assert!(matches!(why(&app, letter, "d").await, ActionError::Settled(_)), "it is done now");
}

async fn two_people_who_open_it_again_open_one(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    app.resolve(letter, Resolution::NotNeeded, None, "r").await.unwrap();
    let other = app.another_node(9).await;
    let (bob, olga) = (person("bob", Role::Operator), olga());
    let (bobs, olgas) = (request(&bob, "a"), request(&olga, "a"));
    let (first, second) = tokio::join!(
        handling::reopen(app.engine.gate(), letter, &bobs),
        handling::reopen(other.gate(), letter, &olgas),
    );
    assert_eq!([first.is_ok(), second.is_ok()].iter().filter(|done| **done).count(), 1);
    let lost = first.err().or(second.err()).unwrap();
    assert!(matches!(lost, ActionError::Settled(_)), "{lost:?}");
    assert_eq!(app.thread(id).await.letters.len(), 2);
}

async fn a_resolution_waits_while_the_destination_is_asked(db: TestDatabase) {
    use dead_letter_office::engine::ask;
    let mut app = TestApp::start(db).await;
    unanswered(&app);
    let id = app.submit("lookup", "order-1").await;
    app.run_to_the_end().await;
    let letter = app.letter(id).await.id;
    ask::ask(app.engine.gate(), id, &request(&olga(), "q")).await.unwrap();
    let answer = app.resolve(letter, Resolution::CompletedAtDestination, Some("T-1"), "r").await;
    assert!(matches!(answer, Err(ActionError::Busy(_))), "{answer:?}");
    app.run_to_the_end().await;
}

async fn names_that_no_database_can_hold_are_nobodys(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let (id, letter) = failed(&mut app, "order-1").await;
    let cause = app.letter(id).await.cause;
    let (gate, olga) = (app.engine.gate(), olga());
    let handed = handling::assign(gate, letter, Some("ol\0ga"), &plain(&olga, "a")).await;
    assert!(matches!(handed, Err(ActionError::Invalid(_))), "{handed:?}");
    let given = causes::assign(gate, &cause, Some("ol\0ga"), &plain(&olga, "b")).await;
    assert!(matches!(given, Err(ActionError::Invalid(_))), "{given:?}");
    let noted = causes::note(gate, "0123\0", "a note", &plain(&olga, "c")).await;
    assert!(matches!(noted, Err(ActionError::NotFound)), "{noted:?}");
    let mut tx = app.engine.db().read().await.unwrap();
    assert!(causes_stored::by_id(&mut tx, "0123\0", app.now()).await.unwrap().is_none());
}
