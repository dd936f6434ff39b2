//! Acts that send nothing: asking, closing, handing over.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::bulk::{BulkState, Step};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::filter::{DeadLetterFilter, Page};
use dead_letter_office::engine::bulk::{Act, Members, New};
use dead_letter_office::store::dead_letters;
use uuid::Uuid;

use super::{create, failed, members, open, replay, row, said, say, to_the_end, turns};
use crate::support::app::TestApp;
use crate::support::databases::{TestDatabase, on_both};

on_both!(destinations_are_asked_about_many, many_are_closed_and_handed_over);

async fn destinations_are_asked_about_many(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.add("olga", Role::Operator).await;
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
    app.add("olga", Role::Operator).await;
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
