//! Tokens for programs, made and revoked on the desk.

use std::time::Duration;

use axum::http::Method;
use dead_letter_office::accounts::{self, AccountError, By};
use dead_letter_office::domain::actor::{Actor, Role, Scope};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};

on_both!(
    a_token_is_made_shown_once_used_and_revoked,
    a_token_lapses_when_it_was_said_to,
    a_form_with_a_mistake_keeps_what_was_chosen,
    only_those_who_manage_tokens_make_them,
);

fn secret(page: &Reply) -> String {
    let secret = page.first(".handout .code");
    assert!(secret.starts_with("dlo_"), "{secret}");
    secret
}

fn row(page: &Reply, name: &str) -> String {
    let rows = page.all(".tokens tbody tr");
    rows.into_iter().map(|(text, _)| text).find(|text| text.starts_with(name)).unwrap_or_default()
}

async fn a_token_is_made_shown_once_used_and_revoked(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let empty = boss.get("/tokens").await.expect(200);
    assert!(empty.words().contains("There is no token yet."), "{}", empty.words());
    let chosen = empty.all("select option[selected]");
    assert_eq!(chosen[0].0, "Submit. Hands in operations and reads their answers.");
    assert_eq!(chosen[1].0, "90 days");
    let fields = [("name", "<b>shop</b>"), ("scope", "read"), ("days", "90")];
    let made = boss.post("/tokens", &fields).await.expect(200);
    let secret = secret(&made);
    assert!(!made.text.contains("<b>shop"));
    let list = boss.get("/tokens").await.expect(200);
    assert!(!list.text.contains(&secret), "it is shown once");
    let shown = row(&list, "<b>shop</b>");
    assert_eq!(
        shown,
        "<b>shop</b> read Works lapses in 90 d never used made just now by admin Revoke <b>shop</b> \
         Revoke it for good : <b>shop</b>"
    );

    let header = format!("Bearer {secret}");
    desk.call(Method::GET, "/api/v1/operations", &header, "").await.expect(200);
    desk.app.clock.advance(Duration::from_mins(3));
    let list = boss.get("/tokens").await.expect(200);
    assert!(row(&list, "<b>shop</b>").contains("used 3 min ago made 3 min ago by admin"), "{}", list.words());

    let html = scraper::Html::parse_document(&list.text);
    let forms = scraper::Selector::parse(".tokens form").unwrap();
    let revoke = html.select(&forms).next().unwrap().value().attr("action").unwrap().to_owned();
    for said in ["no longer works", "was revoked already"] {
        assert_eq!(boss.post(&revoke, &[]).await.location(), "/tokens");
        let list = boss.get("/tokens").await;
        assert!(list.words().contains(said), "{}", list.words());
        assert!(row(&list, "<b>shop</b>").contains("Revoked just now"));
        assert!(list.all(".tokens form").is_empty());
    }
    desk.call(Method::GET, "/api/v1/operations", &header, "").await.expect(401);

    let rows = desk.app.on_record().await;
    let mut acts: Vec<(&str, &str, &str)> = rows
        .iter()
        .filter(|row| row.action.starts_with("token_"))
        .map(|row| (row.action.as_str(), row.actor.as_str(), row.detail.as_str()))
        .collect();
    acts.sort_unstable();
    let wanted =
        [("token_create", "admin", "<b>shop</b> for read"), ("token_revoke", "admin", "<b>shop</b>")];
    assert_eq!(acts, wanted);
}

async fn a_token_lapses_when_it_was_said_to(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let mut headers = Vec::new();
    for (name, days) in [("week", "7"), ("endless", "0")] {
        let made =
            boss.post("/tokens", &[("name", name), ("scope", "read"), ("days", days)]).await.expect(200);
        headers.push(format!("Bearer {}", secret(&made)));
    }
    assert!(row(&boss.get("/tokens").await, "endless").contains("until it is revoked"));
    desk.app.clock.advance(Duration::from_hours(24 * 7));
    let answers = [
        desk.call(Method::GET, "/api/v1/operations", &headers[0], "").await.status.as_u16(),
        desk.call(Method::GET, "/api/v1/operations", &headers[1], "").await.status.as_u16(),
    ];
    assert_eq!(answers, [401, 200]);
    boss.sign_in("admin", crate::support::desk::PASSWORD).await;
    let list = boss.get("/tokens").await.expect(200);
    assert!(row(&list, "week").contains("Lapsed just now"), "{}", list.words());
    assert!(list.all(".tokens tbody tr")[0].0.starts_with("endless"), "those that work come first");
}

async fn a_form_with_a_mistake_keeps_what_was_chosen(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    desk.token_named("shop", Scope::Submit).await;
    for (name, why) in [("shop", "exists already"), ("a:b", "without colons"), ("", "1 to 64 characters")] {
        let fields = [("name", name), ("scope", "work"), ("days", "365")];
        let again = boss.post("/tokens", &fields).await.expect(422);
        assert!(again.words().contains(why) && again.field("name") == name, "{}", again.words());
        let chosen = again.all("select option[selected]");
        assert!(chosen[0].0.starts_with("Work.") && chosen[1].0 == "a year", "{chosen:?}");
    }
    for fields in [
        [("name", "x"), ("scope", "everything"), ("days", "90")],
        [("name", "x"), ("scope", "read"), ("days", "91")],
        [("name", "x"), ("scope", "read"), ("days", "")],
    ] {
        boss.post("/tokens", &fields).await.expect(422);
    }
    assert_eq!(boss.get("/tokens").await.all(".tokens tbody tr").len(), 1);
    for made_up in ["x", "00000000-0000-0000-0000-000000000000"] {
        boss.post(&format!("/tokens/{made_up}/revoke"), &[]).await.expect(404);
    }
}

async fn only_those_who_manage_tokens_make_them(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    desk.token_named("shop", Scope::Submit).await;
    let actors = [
        Actor::Person { name: "anton".into(), role: Role::Approver.into() },
        Actor::Token { name: "shop".into(), scope: Scope::Operate },
    ];
    for actor in &actors {
        let by = By { actor, origin: "here" };
        let made = accounts::create_token(db, ambient, "mine", Scope::Read, None, &by).await;
        assert!(matches!(made, Err(AccountError::Forbidden(_))), "{actor}: {made:?}");
        let revoked = accounts::revoke_token(db, ambient, "shop", &by).await;
        assert!(matches!(revoked, Err(AccountError::Forbidden(_))), "{actor}: {revoked:?}");
        let added = accounts::add_user(db, ambient, "eve", Role::Admin, None, &by).await;
        assert!(matches!(added, Err(AccountError::Forbidden(_))), "{actor}: {added:?}");
        let link = accounts::make_link(db, ambient, None, &by).await;
        assert!(matches!(link, Err(AccountError::Forbidden(_))), "{actor}: {link:?}");
    }
    let mut anton = desk.signed_in(Role::Approver).await;
    let page = anton.get("/account").await;
    assert!(!page.text.contains("href=\"/tokens\""), "no entry in the rail");
}
