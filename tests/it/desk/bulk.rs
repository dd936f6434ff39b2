//! The pages of bulk actions: what is meant is on the page before anything is done, and what became
//! of each is on it afterwards.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::bulk;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Person, Reply};
use crate::support::tables::business;

on_both!(
    all_that_match_are_shown_frozen_and_sent,
    ticked_rows_are_closed_at_once,
    the_first_one_waits_for_a_word_on_the_page,
    a_filter_that_means_everything_is_refused,
    a_button_without_the_right_says_so,
    members_are_turned_page_by_page,
    private_values_stay_hidden,
);

async fn letters(desk: &mut Desk, kind: &str, count: usize) -> Vec<Uuid> {
    let mut letters = Vec::new();
    for n in 0..count {
        letters.push(desk.dead_letter(kind, &format!("{kind}-{n}")).await.1);
        desk.app.clock.advance(Duration::from_millis(10));
    }
    letters
}

/// Turns and work until nothing moves.
async fn carry_on(desk: &mut Desk) {
    while bulk::turn(desk.app.engine.gate()).await.unwrap() + desk.app.run_until_idle().await > 0 {}
}

/// Sends a form of the page on: its hidden fields, and what is typed.
async fn send(who: &mut Person<'_>, page: &Reply, path: &str, typed: &[(&str, &str)]) -> Reply {
    let hidden: Vec<(String, String)> = ["action_id", "action", "filter", "ids"]
        .iter()
        .map(|name| ((*name).to_owned(), page.field(name)))
        .collect();
    let mut fields: Vec<(&str, &str)> =
        hidden.iter().map(|(name, value)| (name.as_str(), value.as_str())).collect();
    fields.extend_from_slice(typed);
    who.post(path, &fields).await
}

async fn press(who: &mut Person<'_>, path: &str, action: &str, step: &str) -> Reply {
    let id = format!("{path} {action} {step}").replace(' ', "-");
    who.post(&format!("{path}/{action}"), &[("action_id", &id), ("step", step)]).await
}

async fn all_that_match_are_shown_frozen_and_sent(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    letters(&mut desk, "keyed", 3).await;
    letters(&mut desk, "lookup", 1).await;
    desk.add("olga", Role::Operator).await;
    let path = {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let form = olga.get("/bulk/new?action=replay&all=1&type=keyed&id=ignored").await.expect(200);
        assert_eq!(form.first(".meant h2"), "Meant are 3 dead letters");
        let meant: Vec<String> = form.all(".meant-by div").into_iter().map(|(text, _)| text).collect();
        assert!(meant.contains(&"Type keyed".to_owned()), "{meant:?}");
        assert!(meant.contains(&"Status Open".to_owned()), "what is meant unsaid is said: {meant:?}");
        let before = business(&desk.app).await;
        let bare = send(&mut olga, &form, "/bulk/new", &[]).await.expect(422);
        assert!(bare.words().contains("Say why") && bare.words().contains("Give it a name"));
        assert_eq!(business(&desk.app).await, before);
        let typed = [("name", "Monday"), ("reason", "the CRM is back"), ("canary", ""), ("speed", "")];
        let first = send(&mut olga, &form, "/bulk/new", &typed).await;
        let again = send(&mut olga, &form, "/bulk/new", &typed).await;
        assert_eq!(first.location(), again.location(), "a double click freezes once");
        first.location().to_owned()
    };
    desk.dead_letter("keyed", "late").await;
    {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let page = olga.get(&path).await.expect(200);
        assert_eq!(page.first(".meant h2"), "Replay: 3 dead letters");
        let words = page.words();
        assert!(words.contains("Of the first 3: 3 would be sent."), "{words}");
        assert!(words.contains("1 arrived since and is left out."), "{words}");
        assert!(words.contains("Not started") && words.contains("3 waiting"), "{words}");
        assert_eq!(page.all(".members tbody tr").len(), 3);
        assert_eq!(press(&mut olga, &path, "start", "start").await.location(), path);
        // The same click again is the first one; another one is told.
        press(&mut olga, &path, "start", "start").await.expect(303);
        let other = olga.post(&format!("{path}/start"), &[("action_id", "x"), ("step", "start")]).await;
        assert!(other.expect(409).words().contains("is running already"));
    }
    carry_on(&mut desk).await;
    let mut olga = desk.nobody();
    olga.sign_in("olga", crate::support::desk::PASSWORD).await;
    let page = olga.get(&path).await.expect(200);
    assert_eq!(page.first(".said-so"), "3 sent \u{b7} 3 confirmed");
    let states: Vec<String> = page.all(".members .mark").into_iter().map(|(text, _)| text).collect();
    assert_eq!(states, ["Confirmed"; 3]);
    assert!(page.words().contains("the CRM is back") && page.words().contains("Nothing is left to be done"));
    assert_eq!(desk.app.destination.effects().len(), 3);
    let list = olga.get("/bulk").await.expect(200);
    assert_eq!(list.all(".bulks .main a"), [("Monday".to_owned(), path)]);
    assert!(list.words().contains("Ended 3 sent \u{b7} 3 confirmed"), "{}", list.words());
    assert!(olga.get("/audit").await.words().contains("started a bulk action"));
}

async fn ticked_rows_are_closed_at_once(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let ids = letters(&mut desk, "keyed", 3).await;
    desk.add("olga", Role::Operator).await;
    let path = {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let address = format!("/bulk/new?action=resolve&type=plain&id={}&id={}", ids[0], ids[2]);
        let form = olga.get(&address).await.expect(200);
        assert_eq!(
            form.first(".meant h2"),
            "Meant are 2 dead letters",
            "the filter means nothing without all"
        );
        let typed =
            [("name", "Twice"), ("reason", "they were twins"), ("resolution", "completed_at_destination")];
        let wrong = send(&mut olga, &form, "/bulk/new", &typed).await.expect(422);
        assert!(wrong.words().contains("have no one reference"), "{}", wrong.words());
        let typed = [("name", "Twice"), ("reason", "they were twins"), ("resolution", "duplicate")];
        let path = send(&mut olga, &form, "/bulk/new", &typed).await.location().to_owned();
        press(&mut olga, &path, "start", "start").await;
        path
    };
    carry_on(&mut desk).await;
    let mut olga = desk.nobody();
    olga.sign_in("olga", crate::support::desk::PASSWORD).await;
    let page = olga.get(&path).await.expect(200);
    assert_eq!(page.first(".said-so"), "2 closed");
    let open = olga.get("/dead-letters").await;
    assert!(open.text.contains(&ids[1].to_string()) && !open.text.contains(&ids[0].to_string()));
}

async fn the_first_one_waits_for_a_word_on_the_page(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    letters(&mut desk, "keyed", 6).await;
    desk.add("olga", Role::Operator).await;
    let path = {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let form = olga.get("/bulk/new?action=replay&all=1&destination=keyed").await.expect(200);
        assert_eq!(form.field("canary"), "1", "many are tried with one first");
        let typed = [("name", "Monday"), ("reason", "back"), ("canary", "1")];
        let path = send(&mut olga, &form, "/bulk/new", &typed).await.location().to_owned();
        assert!(olga.get(&path).await.words().contains("Start with the first one"));
        press(&mut olga, &path, "start", "start").await;
        path
    };
    bulk::turn(desk.app.engine.gate()).await.unwrap();
    {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let page = olga.get(&path).await.expect(200);
        let locked: Vec<String> = page.all("button[disabled]").into_iter().map(|(text, _)| text).collect();
        assert_eq!(locked, ["Confirm and go on with the other 5"]);
        assert!(page.words().contains("What became of the first one is not known yet."));
        assert!(page.all("a").contains(&("Look again".to_owned(), path.clone())), "news without script");
    }
    carry_on(&mut desk).await;
    {
        let mut olga = desk.nobody();
        olga.sign_in("olga", crate::support::desk::PASSWORD).await;
        let page = olga.get(&path).await.expect(200);
        assert!(page.words().contains("Waiting for confirmation"), "{}", page.words());
        assert!(page.all("button[disabled]").is_empty());
        press(&mut olga, &path, "start", "confirm").await.expect(303);
        press(&mut olga, &path, "pause", "").await.expect(303);
        assert!(olga.get(&path).await.words().contains("olga paused it."));
        press(&mut olga, &path, "start", "resume").await.expect(303);
    }
    carry_on(&mut desk).await;
    let mut olga = desk.nobody();
    olga.sign_in("olga", crate::support::desk::PASSWORD).await;
    assert_eq!(olga.get(&path).await.first(".said-so"), "6 sent \u{b7} 6 confirmed");
}

async fn a_filter_that_means_everything_is_refused(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    letters(&mut desk, "keyed", 1).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let before = business(&olga.desk.app).await;
    for (query, said) in [
        ("all=1", "Choose a filter first"),
        ("all=1&status=open", "Choose a filter first"),
        ("action=replay", "Nothing is chosen"),
        ("all=1&type=plain", "Nothing matches this filter now"),
    ] {
        let page = olga.get(&format!("/bulk/new?{query}")).await.expect(200);
        assert!(page.words().contains(said), "{query}: {}", page.words());
        assert!(page.all("main form").is_empty(), "{query}");
    }
    olga.get("/bulk/new?action=delete&all=1&type=keyed").await.expect(400);
    olga.get("/bulk/new?all=1&certainty=perhaps").await.expect(400);
    let fields = [("action", "replay"), ("filter", "status=open"), ("name", "x"), ("reason", "y")];
    olga.post("/bulk/new", &fields).await.expect(422);
    assert_eq!(business(&olga.desk.app).await, before);
}

async fn a_button_without_the_right_says_so(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    letters(&mut desk, "keyed", 2).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get("/bulk/new?action=replay&all=1&type=keyed").await.expect(200);
    let path = send(&mut olga, &form, "/bulk/new", &[("name", "x"), ("reason", "y")]).await;
    let path = path.location().to_owned();
    let mut vera = desk.signed_in(Role::Viewer).await;
    let form = vera.get("/bulk/new?action=replay&all=1&type=keyed").await.expect(200);
    assert!(form.words().contains("Needs the right \u{201c}bulk\u{201d}"), "{}", form.words());
    let page = vera.get(&path).await.expect(200);
    let locked: Vec<String> = page.all("button[disabled]").into_iter().map(|(text, _)| text).collect();
    assert_eq!(locked, ["Start", "Cancel"]);
    assert!(page.words().contains("Needs the right"), "{}", page.words());
    let before = business(&desk.app).await;
    for (action, step) in [("start", "start"), ("pause", ""), ("cancel", ""), ("again", "")] {
        press(&mut vera, &path, action, step).await.expect(403);
    }
    assert_eq!(business(&desk.app).await, before);
}

async fn members_are_turned_page_by_page(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    letters(&mut desk, "keyed", 53).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get("/bulk/new?action=assign&all=1&type=keyed").await.expect(200);
    let typed = [("name", "x"), ("reason", "y"), ("assignee", "operator"), ("canary", "1")];
    let path = send(&mut olga, &form, "/bulk/new", &typed).await.location().to_owned();
    press(&mut olga, &path, "start", "start").await;
    bulk::turn(olga.desk.app.engine.gate()).await.unwrap();
    let places = |page: &Reply| page.all(".members .main small").into_iter().map(|(text, _)| text).collect();
    let first = olga.get(&path).await.expect(200);
    let all: Vec<String> = places(&first);
    assert_eq!((all.len(), all[0].as_str(), all[49].as_str()), (50, "#1", "#50"));
    let to = |page: &Reply, rel: &str| page.all(&format!("a[rel={rel}]")).pop().map(|(_, href)| href);
    assert_eq!(to(&first, "prev"), None);
    let next = to(&first, "next").unwrap();
    let second = olga.get(next.trim_end_matches("#members")).await.expect(200);
    assert_eq!(places(&second), ["#51", "#52", "#53"] as [&str; 3]);
    assert_eq!(to(&second, "next"), None);
    let back = to(&second, "prev").unwrap();
    let back = olga.get(back.trim_end_matches("#members")).await.expect(200);
    let again: Vec<String> = places(&back);
    assert_eq!(again, all, "back where it began");
    let alone = olga.get(&format!("{path}?show=done")).await.expect(200);
    assert_eq!(places(&alone), ["#1"] as [&str; 1]);
    let views: Vec<String> = alone.all(".views a").into_iter().map(|(text, _)| text).collect();
    assert_eq!(views, ["All 53", "Waiting 52", "Assigned 1"]);
    assert!(first.text.len() < 60 * 1024, "{} bytes", first.text.len());
}

async fn private_values_stay_hidden(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let form = olga.get(&format!("/bulk/new?id={letter}")).await.expect(200);
    let path = send(&mut olga, &form, "/bulk/new", &[("name", "x"), ("reason", "y")]).await;
    let path = path.location().to_owned();
    // An answer that quotes what the type marks as private.
    let quote = "UPDATE bulk_members SET state = 'refused', answer = 'anna@example.com is <b>gone</b>'";
    olga.desk.app.raw().await.execute(quote).await;
    let page = olga.get(&path).await.expect(200);
    assert!(!page.text.contains("anna@example.com") && !page.text.contains("<b>gone"), "{}", page.text);
    assert!(page.words().contains("\u{2022}\u{2022}\u{2022} is <b>gone</b>"), "{}", page.words());
}
