//! Signing in, setting a password, changing it.

use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::store::audit;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    the_right_password_opens_and_every_other_answer_is_the_same,
    guesses_have_to_wait_longer_and_longer,
    a_sign_in_leads_where_one_was_going_and_nowhere_else,
    a_setup_link_makes_the_first_admin_once,
    a_password_link_sets_a_password_and_ends_the_sessions,
    a_changed_password_ends_every_session,
);

fn by() -> By<'static> {
    static CLI: std::sync::LazyLock<Actor> = std::sync::LazyLock::new(|| Actor::Cli { user: "root".into() });
    By { actor: &CLI, origin: "cli" }
}

/// Action, actor and detail of every entry of the audit about doors.
async fn door_entries(desk: &Desk) -> Vec<(String, String, String)> {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let page = dead_letter_office::domain::filter::Page { limit: 200, cursor: None };
    let listed = audit::list(&mut tx, &Default::default(), page).await.unwrap();
    let rows = listed.items.into_iter().filter(|entry| entry.row.action.starts_with("sign_in"));
    let mut rows: Vec<_> = rows.map(|entry| (entry.row.action, entry.row.actor, entry.row.detail)).collect();
    rows.sort();
    rows
}

async fn the_right_password_opens_and_every_other_answer_is_the_same(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    desk.add("dora", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    accounts::disable(db, ambient, "dora", &by()).await.unwrap();
    accounts::add_user(db, ambient, "nina", Role::Viewer, None, &by()).await.unwrap();

    let mut answers = Vec::new();
    for (name, password) in
        [("olga", "wrong"), ("nobody", PASSWORD), ("dora", PASSWORD), ("nina", ""), ("", "")]
    {
        let mut person = desk.nobody();
        let reply = person.sign_in(name, password).await.expect(422);
        assert!(reply.words().contains("That name and password do not belong together."));
        assert!(!reply.text.contains(PASSWORD));
        assert!(person.cookie.is_none() && !person.is_in().await, "{name}");
        answers.push(reply.text.replace(&format!("value=\"{name}\""), "value=\"\""));
    }
    answers.dedup();
    assert_eq!(answers.len(), 1, "nothing tells one failure from another");

    let mut olga = desk.nobody();
    assert_eq!(olga.sign_in(" olga ", PASSWORD).await.location(), "/");
    assert!(olga.is_in().await);
    assert_eq!(olga.get("/login").await.location(), "/", "no second sign-in");

    let entries = door_entries(&desk).await;
    let entries: Vec<(&str, &str, &str)> =
        entries.iter().map(|(a, b, c)| (a.as_str(), b.as_str(), c.as_str())).collect();
    assert_eq!(
        entries,
        [
            ("sign_in", "olga", ""),
            ("sign_in_failed", "dora", "the account is disabled"),
            ("sign_in_failed", "nina", "the password was not right"),
            ("sign_in_failed", "olga", "the password was not right"),
            ("sign_in_failed", "unknown", "nobody has this name"),
            ("sign_in_failed", "unknown", "nobody has this name"),
        ]
    );
}

async fn guesses_have_to_wait_longer_and_longer(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut thief = desk.nobody();
    for name in ["olga", "no such name"] {
        for _ in 0..5 {
            thief.sign_in(name, "a guess").await.expect(422);
        }
        let reply = thief.sign_in(name, PASSWORD).await.expect(429);
        assert_eq!(reply.header("retry-after"), "1");
        assert!(reply.words().contains("Wait 1 s"), "{}", reply.words());
    }
    desk.app.clock.advance(Duration::from_secs(1));
    thief.sign_in("olga", "a guess").await.expect(422);
    assert_eq!(thief.sign_in("olga", "a guess").await.header("retry-after"), "2");
    desk.app.clock.advance(Duration::from_secs(2));
    assert_eq!(thief.sign_in("olga", PASSWORD).await.location(), "/", "nobody is shut out for good");
    desk.nobody().sign_in("olga", "a slip").await.expect(422);
}

async fn a_sign_in_leads_where_one_was_going_and_nowhere_else(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let to = desk.nobody().get("/account?x=1&y=%2F").await;
    assert_eq!(to.location(), "/login?next=%2Faccount%3Fx%3D1%26y%3D%252F");
    let form = desk.nobody().get(to.location()).await.expect(200);
    assert_eq!(form.field("next"), "/account?x=1&y=%2F");
    for (next, leads) in [
        ("/account?x=1", "/account?x=1"),
        ("//evil.example/", "/"),
        ("/\\evil.example", "/"),
        ("/\t/evil.example", "/"),
        ("https://evil.example", "/"),
        ("javascript:alert(1)", "/"),
        ("", "/"),
    ] {
        let fields = [("name", "olga"), ("password", PASSWORD), ("next", next)];
        let reply = desk.nobody().post_bare("/login", &fields).await;
        assert_eq!(reply.location(), leads, "{next}");
    }
    for hostile in ["//evil.example", "/%5Cevil.example", "https:%2F%2Fevil.example"] {
        let form = desk.nobody().get(&format!("/login?next={hostile}")).await.expect(200);
        assert!(!form.text.contains("evil"), "{hostile}");
    }
}

async fn a_setup_link_makes_the_first_admin_once(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::first_link(db, ambient, &by()).await.unwrap().unwrap();
    let path = format!("/setup/{secret}");
    let mut ada = desk.nobody();
    let page = ada.get(&path).await.expect(200);
    assert!(page.words().starts_with("Dead Letter Office Make the first account"), "{}", page.words());
    let short = ada.post_bare(&path, &[("name", "ada"), ("password", "short")]).await.expect(422);
    assert!(short.words().contains("needs at least 8 characters") && short.field("name") == "ada");
    ada.post_bare(&path, &[("name", "a:b"), ("password", PASSWORD)]).await.expect(422);
    assert_eq!(ada.post_bare(&path, &[("name", "ada"), ("password", PASSWORD)]).await.location(), "/");
    ada.get("/people").await.expect(200);

    for reply in [
        desk.nobody().get(&path).await,
        desk.nobody().post_bare(&path, &[("name", "eve"), ("password", PASSWORD)]).await,
        desk.nobody().get("/setup/made-up").await,
    ] {
        let reply = reply.expect(404);
        assert!(reply.words().contains("This link does not work"), "{}", reply.words());
    }
}

async fn a_password_link_sets_a_password_and_ends_the_sessions(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut old = desk.signed_in(Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::make_link(db, ambient, Some("operator"), &by()).await.unwrap();
    let path = format!("/setup/{secret}");
    let page = desk.nobody().get(&path).await.expect(200);
    assert!(page.words().contains("Set your password For the account operator ."), "{}", page.words());
    let mut new = desk.nobody();
    let fields = [("name", "admin"), ("password", "a new password")];
    assert_eq!(new.post_bare(&path, &fields).await.location(), "/");
    assert!(new.get("/account").await.words().starts_with("operator operator"), "the link's own person");
    assert!(!old.is_in().await);
    desk.nobody().sign_in("operator", PASSWORD).await.expect(422);

    let secret = accounts::make_link(db, ambient, Some("operator"), &by()).await.unwrap();
    accounts::disable(db, ambient, "operator", &by()).await.unwrap();
    let mut shut_out = desk.nobody();
    let fields = [("password", "yet another one")];
    assert_eq!(shut_out.post_bare(&format!("/setup/{secret}"), &fields).await.location(), "/login");
    assert!(!shut_out.is_in().await);
}

async fn a_changed_password_ends_every_session(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut here = desk.signed_in(Role::Viewer).await;
    let mut there = desk.nobody();
    there.sign_in("viewer", PASSWORD).await;
    for (old, new, why) in [
        ("wrong", "a new password", "That is not your present password."),
        (PASSWORD, "short", "needs at least 8 characters"),
        (PASSWORD, &"x".repeat(1_025), "more than 1024 characters"),
    ] {
        let reply = here.post("/account/password", &[("old", old), ("new", new)]).await.expect(422);
        assert!(reply.words().contains(why), "{}", reply.words());
        assert!(!reply.text.contains(PASSWORD) && !reply.text.contains("a new password"));
    }
    assert!(there.is_in().await);
    // Long enough for the request itself to write down the session's last use.
    desk.app.clock.advance(Duration::from_mins(2));
    let reply = here.post("/account/password", &[("old", PASSWORD), ("new", "a new password")]).await;
    let form = here.get(reply.location()).await.expect(200);
    assert!(form.words().contains("Your password is changed."));
    assert!(!here.is_in().await && !there.is_in().await);
    desk.nobody().sign_in("viewer", PASSWORD).await.expect(422);
    assert_eq!(here.sign_in("viewer", "a new password").await.location(), "/");
}
