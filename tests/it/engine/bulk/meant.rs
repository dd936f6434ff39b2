//! Which dead letters are meant: a choice somebody made, these letters and no later ones.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::bulk::Step;
use dead_letter_office::domain::dead_letter::{DeadLetterStatus, Resolution};
use dead_letter_office::domain::filter::DeadLetterFilter;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk::{self, Act, Members, New};
use dead_letter_office::store::{Commit, retention};
use uuid::Uuid;

use super::{create, failed, members, olga, open, replay, row, said, say, to_the_end};
use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    what_cannot_be_meant_is_refused,
    a_later_dead_letter_of_the_same_operation_is_not_meant,
    what_members_quote_goes_when_it_is_erased,
);

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
    app.add("olga", Role::Operator).await;
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
    app.add("olga", Role::Operator).await;
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
