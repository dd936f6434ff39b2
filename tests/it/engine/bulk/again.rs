//! What was refused or failed again is gathered in another bulk action.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::bulk::{BulkState, MemberState, Step};
use dead_letter_office::domain::dead_letter::DeadLetterStatus;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::bulk;

use super::{create, failed, members, olga, open, replay, row, said, say, to_the_end};
use crate::support::app::{TestApp, request};
use crate::support::databases::{TestDatabase, on_both};

on_both!(what_was_refused_is_acted_on_again, what_failed_again_is_told_and_acted_on_again);

async fn what_was_refused_is_acted_on_again(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
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
    app.add("olga", Role::Operator).await;
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
