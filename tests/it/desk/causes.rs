//! Causes: what people say of them, what came after a replay, what was put off.

use std::time::Duration;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::{causes, handling};

use crate::support::app::{person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Person, Reply};

on_both!(
    a_cause_has_a_note_an_owner_and_a_history,
    what_people_may_not_say_is_refused,
    what_came_after_the_last_replay_is_its_own_number,
    what_is_put_off_is_counted_apart_until_its_time,
    a_cause_leads_to_acts_on_all_of_it,
    where_data_was_refused_a_replay_of_all_is_not_the_first_thing,
);

/// The page of the largest cause.
async fn largest(who: &mut Person<'_>) -> (String, Reply) {
    let href = who.get("/").await.expect(200).all("table.causes td.main > a").remove(0).1;
    let page = who.get(&href).await.expect(200);
    (href, page)
}

async fn a_cause_has_a_note_an_owner_and_a_history(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    for key in ["order-1", "order-2"] {
        desk.dead_letter("keyed", key).await;
    }
    let mut olga = desk.signed_in(Role::Operator).await;
    let (cause, page) = largest(&mut olga).await;
    assert_eq!(page.all("table.letters tbody tr").len(), 2);
    assert!(page.words().contains("Nobody wrote about this cause"));
    for (number, href) in page.all(".figures .value a, .split a") {
        let list = olga.get(&href).await.expect(200);
        assert_eq!(list.all("table.list tbody tr").len().to_string(), number, "{href}");
    }

    let note = [("action_id", "n1"), ("note", "The CRM refuses orders <b>of 2025</b>")];
    assert_eq!(olga.post(&format!("{cause}/note"), &note).await.location(), cause);
    let to = [("action_id", "a1"), ("to", "operator")];
    assert_eq!(olga.post(&format!("{cause}/assign"), &to).await.location(), cause);
    // A double click is one click.
    assert_eq!(olga.post(&format!("{cause}/note"), &note).await.location(), cause);

    let row = olga.get("/").await.expect(200);
    assert_eq!(row.first("table.causes .said"), "The CRM refuses orders <b>of 2025</b>");
    assert_eq!(row.first("table.causes td.o"), "operator");
    let page = olga.get(&cause).await.expect(200);
    let told: Vec<String> =
        page.all("section[aria-labelledby=history] li").into_iter().map(|(text, _)| text).collect();
    assert_eq!(told.len(), 2, "{told:?}");
    assert!(told[0].starts_with("operator assigned it to operator"), "{told:?}");
    assert!(told[1].starts_with("operator wrote"), "{told:?}");
    assert_eq!(page.first("select[name=to] option[selected]"), "operator");

    // What is taken away is gone from the desk and stays in the history.
    olga.post(&format!("{cause}/note"), &[("action_id", "n2"), ("note", " ")]).await;
    olga.post(&format!("{cause}/assign"), &[("action_id", "a2"), ("to", "")]).await;
    let page = olga.get(&cause).await.expect(200);
    assert_eq!(page.all("section[aria-labelledby=history] li").len(), 4);
    assert!(page.first("header.lead").contains("who has it: nobody"));
}

async fn what_people_may_not_say_is_refused(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (cause, _) = largest(&mut olga).await;
    let long = "x".repeat(causes::MAX_NOTE + 1);
    let page = olga.post(&format!("{cause}/note"), &[("action_id", "n"), ("note", &long)]).await.expect(422);
    assert!(page.words().contains("2001 characters"), "{}", page.words());
    assert_eq!(page.first("textarea[name=note]"), long, "what was typed is kept");
    for name in ["nobody-here", "nobody"] {
        olga.post(&format!("{cause}/assign"), &[("action_id", name), ("to", name)]).await.expect(409);
    }
    olga.post("/causes/0000000000000000/note", &[("action_id", "m"), ("note", "x")]).await.expect(404);
    drop(olga);
    let mut reader = desk.signed_in(Role::Viewer).await;
    reader.post(&format!("{cause}/note"), &[("action_id", "v"), ("note", "x")]).await.expect(403);
    reader.post(&format!("{cause}/assign"), &[("action_id", "v"), ("to", "viewer")]).await.expect(403);
    let page = reader.get(&cause).await.expect(200);
    assert_eq!(page.all("main form").len(), 0);
    assert_eq!(page.all(".actions a").len(), 0);
    assert!(page.all(".actions button[disabled]").len() >= 3);
    assert!(page.words().contains("Needs the right \u{201c}resolve\u{201d}"), "{}", page.words());
    assert!(page.words().contains("Needs the right \u{201c}bulk\u{201d}"), "{}", page.words());
}

async fn what_came_after_the_last_replay_is_its_own_number(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, _) = desk.dead_letter("keyed", "order-1").await;
    let before = {
        let mut olga = desk.signed_in(Role::Operator).await;
        largest(&mut olga).await.1
    };
    assert!(!before.words().contains("since the last replay"), "there was none");
    // The replay fails as before: what is open again is as old as it was.
    desk.app.destination.script("/keyed", [Behaviour::status(422)]);
    desk.app.clock.advance(Duration::from_mins(1));
    desk.app.replay(operation, "r1").await.unwrap();
    desk.app.run_until_idle().await;
    // One that comes in the same moment as the replay was not there to be replayed; it is none after.
    desk.app.clock.advance(Duration::from_mins(1));
    for key in ["order-2", "order-3"] {
        desk.dead_letter("keyed", key).await;
    }
    let mut olga = desk.nobody();
    olga.sign_in("operator", crate::support::desk::PASSWORD).await;
    let page = olga.get("/").await.expect(200);
    let fresh = page.all("table.causes td.main small b a");
    assert_eq!(fresh[0].0, "2");
    assert!(page.first("table.causes td.main").contains("2 new since the last replay"));
    assert_eq!(olga.get(&fresh[0].1).await.expect(200).all("table.list tbody tr").len(), 2);
    assert_eq!(page.first("table.causes td.c4"), "3");
}

async fn what_is_put_off_is_counted_apart_until_its_time(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let actor = person("operator", Role::Operator);
    let until = olga.desk.app.now().plus(Duration::from_mins(10));
    handling::snooze(olga.desk.app.engine.gate(), letter, Some(until), &request(&actor, "s1")).await.unwrap();

    let page = olga.get("/").await.expect(200);
    assert_eq!(page.first(".figures .value"), "1");
    assert_eq!(page.first("nav .count"), "1 open");
    assert_eq!(page.first("table.causes td.c4"), "1");
    let aside = page.all(".aside a");
    assert_eq!(page.first(".aside"), "1 snoozed, not counted above.");
    let rows = async |who: &mut Person<'_>, path: &str| {
        who.get(path).await.expect(200).all("table.list tbody tr").len()
    };
    let list = olga.get(&aside[0].1).await.expect(200);
    assert_eq!(list.all("table.list tbody tr").len(), 1);
    assert!(list.first("td.main small").starts_with("snoozed, back in 10 min"), "{}", list.first("td.main"));
    for (path, wanted) in [
        ("/dead-letters", 1),
        ("/dead-letters?snoozed=any", 2),
        ("/dead-letters?snoozed=asleep", 1),
        ("/dead-letters?status=any", 2),
        ("/dead-letters?status=any&snoozed=awake", 1),
    ] {
        assert_eq!(rows(&mut olga, path).await, wanted, "{path}");
    }
    olga.desk.app.clock.advance(Duration::from_mins(10));
    let page = olga.get("/").await.expect(200);
    assert_eq!((page.first(".figures .value"), page.all(".aside").len()), ("2".to_owned(), 0));
    assert_eq!(rows(&mut olga, "/dead-letters").await, 2);
}

async fn a_cause_leads_to_acts_on_all_of_it(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.app.destination.script("/lookup", [Behaviour::status(403)]);
    let operation = desk.app.submit("lookup", "order-1").await;
    desk.app.run_until_idle().await;
    let letter = desk.app.thread(operation).await.live_letter().unwrap().id;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (cause, page) = largest(&mut olga).await;
    let acts = page.all(".actions a");
    let words: Vec<&str> = acts.iter().map(|(text, _)| text.as_str()).collect();
    let wanted =
        ["Replay all, one first\u{2026}", "Ask for all\u{2026}", "Resolve all\u{2026}", "Assign all\u{2026}"];
    assert_eq!(words, wanted);
    let fingerprint = cause.trim_start_matches("/causes/");
    for part in ["/bulk/new?action=replay&all=1", "status=open", "snoozed=awake", "canary=1", fingerprint] {
        assert!(acts[0].1.contains(part), "{acts:?}");
    }
    // Once none waits, there is nothing to act on, and the cause is still there to be read.
    let actor = person("operator", Role::Operator);
    let how = dead_letter_office::engine::actions::Resolve {
        resolution: dead_letter_office::domain::dead_letter::Resolution::NotNeeded,
        reference: None,
    };
    let gate = olga.desk.app.engine.gate();
    dead_letter_office::engine::actions::resolve(gate, letter, &how, &request(&actor, "x")).await.unwrap();
    let page = olga.get(&cause).await.expect(200);
    assert_eq!(page.all(".actions").len(), 0);
    assert!(page.words().contains("One in all, counting closed ones."), "{}", page.words());
    assert!(page.words().contains("None waits now."));
}

async fn where_data_was_refused_a_replay_of_all_is_not_the_first_thing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (_, page) = largest(&mut olga).await;
    let words: Vec<String> = page.all(".actions a").into_iter().map(|(text, _)| text).collect();
    assert_eq!(words, ["Assign all\u{2026}", "Resolve all\u{2026}", "Replay all, one first\u{2026}"]);
}
