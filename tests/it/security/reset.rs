//! One-time links: for the first account, since there is no other one at first, and for a password,
//! which nobody but its owner sets.

use std::time::Duration;

use dead_letter_office::accounts::{self, AccountError};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::store::accounts::users;

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    there_is_no_account_before_the_first_link,
    a_setup_link_makes_the_first_admin_once,
    a_password_link_sets_a_password_and_ends_the_sessions,
    a_link_works_for_half_an_hour,
    only_the_newest_link_works,
    a_link_of_somebody_who_is_shut_out_does_nothing,
    a_password_that_is_refused_uses_no_link_up,
    an_admin_sets_no_password,
);

async fn there_is_no_account_before_the_first_link(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    assert!(users(&mut tx).await.unwrap().is_empty());
    drop(tx);
    for (name, password) in [("admin", "admin"), ("admin", "password"), ("root", ""), ("admin", "")] {
        desk.nobody().sign_in(name, password).await.expect(422);
    }
}

async fn a_setup_link_makes_the_first_admin_once(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::first_link(db, ambient, &by_root()).await.unwrap().unwrap();
    let path = format!("/setup/{secret}");
    let mut ada = desk.nobody();
    let page = ada.get(&path).await.expect(200);
    assert!(page.words().starts_with("Dead Letter Office Make the first account"), "{}", page.words());
    let short = ada.post_bare(&path, &[("name", "ada"), ("password", "short")]).await.expect(422);
    assert!(short.words().contains("needs at least 8 characters") && short.field("name") == "ada");
    ada.post_bare(&path, &[("name", "a:b"), ("password", PASSWORD)]).await.expect(422);
    assert_eq!(ada.post_bare(&path, &[("name", "ada"), ("password", PASSWORD)]).await.location(), "/");
    let people = ada.get("/people").await.expect(200);
    assert!(!people.words().contains("never"), "{}", people.words());
    let entries = ada.get("/audit?action=sign_in").await.expect(200);
    assert!(entries.words().contains("ada signed in: by a one-time link Done"), "{}", entries.words());

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
    let secret = accounts::make_link(db, ambient, Some("operator"), &by_root()).await.unwrap();
    let path = format!("/setup/{secret}");
    let page = desk.nobody().get(&path).await.expect(200);
    assert!(page.words().contains("Set your password For the account operator ."), "{}", page.words());
    let mut new = desk.nobody();
    let fields = [("name", "admin"), ("password", "a new password")];
    let place = new.post_bare(&path, &fields).await.location().to_owned();
    let door = new.get(&place).await.expect(200);
    assert!(door.words().contains("Your password is set. Sign in with it."), "{}", door.words());
    assert!(!new.is_in().await, "a link opens no session: whoever signs in passes all that the door asks");
    assert_eq!(new.sign_in("operator", "a new password").await.location(), "/");
    assert!(new.get("/account").await.words().starts_with("operator operator"), "the link's own person");
    assert!(!old.is_in().await);
    desk.nobody().sign_in("operator", PASSWORD).await.expect(422);
}

async fn a_link_works_for_half_an_hour(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let path =
        format!("/setup/{}", accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap());
    desk.app.clock.advance(Duration::from_mins(30) - Duration::from_secs(1));
    desk.nobody().get(&path).await.expect(200);
    desk.app.clock.advance(Duration::from_secs(1));
    let late = [
        desk.nobody().get(&path).await.expect(404),
        desk.nobody().post_bare(&path, &[("password", "wet violin gasket")]).await.expect(404),
        desk.nobody().get("/setup/made-up").await.expect(404),
    ];
    let words: Vec<String> = late.iter().map(crate::support::desk::Reply::words).collect();
    assert!(words[0].contains("This link does not work"), "{words:?}");
    let same = words.iter().map(|words| words.split("quote").next().unwrap_or_default());
    assert_eq!(same.collect::<std::collections::BTreeSet<_>>().len(), 1, "nothing tells why: {words:?}");
    assert_eq!(desk.nobody().sign_in("olga", PASSWORD).await.location(), "/", "the old one still works");
}

async fn only_the_newest_link_works(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let link = async || {
        format!("/setup/{}", accounts::make_link(db, ambient, Some("operator"), &by_root()).await.unwrap())
    };
    let (first, second) = (link().await, link().await);
    desk.nobody().get(&first).await.expect(404);
    desk.nobody().get(&second).await.expect(200);
    // Whoever knows the password and changes it wants no other way to do so to be left.
    let sent = [("old", PASSWORD), ("new", "a new password")];
    assert_eq!(olga.post("/account/password", &sent).await.location(), "/login?changed");
    desk.nobody().get(&second).await.expect(404);
}

async fn a_link_of_somebody_who_is_shut_out_does_nothing(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    desk.add("olga", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let path =
        format!("/setup/{}", accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap());
    accounts::disable(db, ambient, "olga", &by_root()).await.unwrap();
    let mut olga = desk.nobody();
    olga.get(&path).await.expect(404);
    olga.post_bare(&path, &[("password", "wet violin gasket")]).await.expect(404);
    assert!(!olga.is_in().await);
    let again = accounts::make_link(db, ambient, Some("olga"), &by_root()).await;
    assert!(matches!(again, Err(AccountError::ShutOut(_))), "{again:?}");
    let mut tx = db.read().await.unwrap();
    let id = users(&mut tx).await.unwrap().into_iter().find(|user| user.name == "olga").unwrap().id;
    drop(tx);
    let refused = boss.post(&format!("/people/{id}/link"), &[]).await.expect(409);
    assert!(refused.words().contains("Olga is disabled; let them in again first."), "{}", refused.words());

    accounts::enable(db, ambient, "olga", &by_root()).await.unwrap();
    olga.get(&path).await.expect(404);
    assert_eq!(olga.sign_in("olga", PASSWORD).await.location(), "/", "with the password that they had");
}

async fn a_password_that_is_refused_uses_no_link_up(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let path =
        format!("/setup/{}", accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap());
    for password in ["", "short", "password123"] {
        let again = desk.nobody().post_bare(&path, &[("password", password)]).await.expect(422);
        assert!(again.words().contains("Nothing was changed yet."), "{}", again.words());
    }
    desk.nobody().post_bare(&path, &[("password", "wet violin gasket")]).await.location();
    assert_eq!(desk.nobody().sign_in("olga", "wet violin gasket").await.location(), "/");
}

async fn an_admin_sets_no_password(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let sent = [
        ("name", "olga"),
        ("role", "viewer"),
        ("password", "chosen by the boss"),
        ("new", "chosen by the boss"),
    ];
    boss.post("/people", &sent).await.expect(200);
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let olga = users(&mut tx).await.unwrap().into_iter().find(|user| user.name == "olga").unwrap();
    drop(tx);
    assert_eq!(olga.password_hash, None);
    boss.post(&format!("/people/{}/link", olga.id), &sent).await.expect(200);
    desk.nobody().sign_in("olga", "chosen by the boss").await.expect(422);
}
