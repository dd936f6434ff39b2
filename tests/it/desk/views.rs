//! Filters: those that stay true as time passes, and those that people keep.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::{handling, views};
use dead_letter_office::store::views as kept_views;

use crate::support::app::{TestApp, person, request};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Reply};

on_both!(
    who_has_it_and_how_old_it_is_can_be_asked,
    a_kept_filter_is_a_link_and_stays_relative,
    a_shared_filter_is_everybodys_to_see_and_its_owners_to_drop,
    what_is_no_filter_is_not_kept,
    nobody_is_called_by_a_filters_word,
    who_keeps_as_many_as_one_may_can_still_change_one,
);

const ROWS: &str = "table.list tbody tr";

async fn who_has_it_and_how_old_it_is_can_be_asked(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, old) = desk.dead_letter("keyed", "order-1").await;
    desk.app.clock.advance(Duration::from_hours(2));
    desk.dead_letter("keyed", "order-2").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let actor = person("operator", Role::Operator);
    handling::assign(olga.desk.app.engine.gate(), old, Some("operator"), &request(&actor, "a1"))
        .await
        .unwrap();
    for (query, wanted) in [
        ("assignee=me", 1),
        ("assignee=operator", 1),
        ("assignee=nobody", 1),
        ("assignee=somebody", 0),
        ("age=1h", 1),
        ("age=over_1h", 1),
        ("age=24h", 2),
        ("age=over_24h", 0),
        ("age=7d&assignee=me", 1),
        ("age=1h&assignee=me", 0),
    ] {
        let page = olga.get(&format!("/dead-letters?{query}")).await.expect(200);
        assert_eq!(page.all(ROWS).len(), wanted, "{query}");
        assert_eq!(page.all(".chips li:not(.clear)").len(), query.split('&').count(), "{query}");
        let chosen: Vec<String> =
            page.all("select option[selected]").into_iter().map(|(text, _)| text).collect();
        assert!(!chosen.contains(&query.to_owned()), "{chosen:?}");
    }
    let page = olga.get("/dead-letters?assignee=me").await.expect(200);
    assert_eq!(page.first("select[name=assignee] option[selected]"), "Me");
    assert_eq!(page.first("td.o"), "operator");
    // What the bar would act on names the person, whoever opens that link.
    assert_eq!(page.field("assignee"), "");
    assert!(page.text.contains(r#"<input type="hidden" name="assignee" value="operator">"#));
    olga.get("/dead-letters?age=2h").await.expect(400);
    olga.get("/dead-letters?snoozed=maybe").await.expect(400);
}

fn kept(page: &Reply) -> Vec<(String, String)> {
    page.all(".kept nav li > a")
}

async fn a_kept_filter_is_a_link_and_stays_relative(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-1").await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let query = "destination=keyed&assignee=nobody&age=24h";
    assert!(kept(&olga.get("/dead-letters").await.expect(200)).is_empty());
    let page = olga.get(&format!("/dead-letters?{query}")).await.expect(200);
    let form = page.all(".kept form[action='/views']");
    assert_eq!(form.len(), 1);
    let save = [("name", " Keyed, today "), ("query", query), ("action_id", "v1")];
    assert_eq!(olga.post("/views", &save).await.location(), format!("/dead-letters?{query}"));
    assert_eq!(olga.post("/views", &save).await.location(), format!("/dead-letters?{query}"));
    let page = olga.get("/dead-letters").await.expect(200);
    assert_eq!(kept(&page), [("Keyed, today".to_owned(), format!("/dead-letters?{query}"))]);
    let view = olga.get(&kept(&page)[0].1).await.expect(200);
    assert_eq!(view.all(ROWS).len(), 1);
    assert_eq!(view.first(".kept [aria-current=page]"), "Keyed, today");
    // Under the same name the later filter counts.
    let again = [("name", "Keyed, today"), ("query", "destination=keyed&assignee=me"), ("action_id", "v2")];
    olga.post("/views", &again).await;
    let page = olga.get("/dead-letters").await.expect(200);
    assert_eq!(kept(&page)[0].1, "/dead-letters?destination=keyed&assignee=me");
    assert_eq!(kept(&page).len(), 1);
    // Nobody else sees it.
    drop(olga);
    let mut otto = desk.signed_in(Role::Approver).await;
    assert!(kept(&otto.get("/dead-letters").await.expect(200)).is_empty());
}

async fn a_shared_filter_is_everybodys_to_see_and_its_owners_to_drop(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut reader = desk.signed_in(Role::Viewer).await;
    let shared = [("name", "Doubt"), ("query", "certainty=may_have_completed"), ("shared", "1")];
    let with = |id: &'static str| [shared[0], shared[1], shared[2], ("action_id", id)];
    reader.post("/views", &with("v0")).await.expect(403);
    let mut olga = desk.signed_in(Role::Operator).await;
    assert!(olga.post("/views", &with("v1")).await.location().starts_with("/dead-letters?"));
    let page = reader.get("/dead-letters").await.expect(200);
    assert_eq!(kept(&page).len(), 1);
    assert_eq!(page.first(".kept li small"), "by operator");
    assert_eq!(page.all(".kept li form").len(), 0);
    let own = olga.get("/dead-letters").await.expect(200);
    assert_eq!(own.first(".kept li small"), "shared");
    let text = &own.text;
    let at = text.find("/views/").expect("a form to drop it");
    let place = text[at..].split('"').next().unwrap().to_owned();
    reader.post(&place, &[("action_id", "d0")]).await.expect(404);
    assert_eq!(olga.post(&place, &[("action_id", "d1")]).await.location(), "/dead-letters");
    assert_eq!(olga.post(&place, &[("action_id", "d1")]).await.location(), "/dead-letters");
    olga.post(&place, &[("action_id", "d2")]).await.expect(404);
    assert!(kept(&reader.get("/dead-letters").await.expect(200)).is_empty());
    let told = olga.get("/audit?action=view_save").await.expect(200);
    assert_eq!(told.all("table.audit tbody tr").len(), 1);
}

async fn what_is_no_filter_is_not_kept(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.post("/views", &[("name", "x"), ("query", "status=dead"), ("action_id", "v1")]).await.expect(400);
    for (name, query) in [("x", ""), ("", "type=keyed"), ("x\ny", "type=keyed"), ("x", "evil=https://x")] {
        let sent = [("name", name), ("query", query), ("action_id", name)];
        olga.post("/views", &sent).await.location();
        let page = olga.get("/dead-letters").await.expect(200);
        assert!(kept(&page).is_empty(), "{name:?} {query}");
        assert_eq!(page.all(".flash.bad").len(), 1, "{name:?} {query}");
    }
}

async fn nobody_is_called_by_a_filters_word(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    for name in ["nobody", "Me", "NOBODY"] {
        let sent = [("name", name), ("role", "viewer"), ("action_id", name)];
        boss.post("/people", &sent).await.expect(422);
    }
    assert_eq!(desk.nobody().sign_in("nobody", PASSWORD).await.status.as_u16(), 422);
}

async fn who_keeps_as_many_as_one_may_can_still_change_one(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let (gate, olga) = (app.engine.gate(), person("olga", Role::Operator));
    for number in 0..50 {
        let (name, click) = (format!("view {number}"), format!("a{number}"));
        views::save(gate, &name, "status=open", false, &request(&olga, &click)).await.unwrap();
    }
    let more = views::save(gate, "one more", "status=open", false, &request(&olga, "b")).await;
    assert!(matches!(more, Err(ActionError::Invalid(_))), "{more:?}");
    views::save(gate, "view 7", "status=replaying", false, &request(&olga, "c")).await.unwrap();
    let mut tx = app.engine.db().read().await.unwrap();
    let kept = kept_views::seen_by(&mut tx, "olga").await.unwrap();
    let changed = kept.iter().filter(|view| view.query == "status=replaying").count();
    assert_eq!((kept.len(), changed), (50, 1));
}
