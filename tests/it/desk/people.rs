//! Who works here, and that somebody always can say so.

use dead_letter_office::accounts::{self, AccountError};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::store::accounts::users;

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    an_admin_adds_people_by_a_link_that_is_shown_once,
    the_last_admin_stays,
    two_admins_cannot_shut_each_other_out,
    a_change_of_a_person_holds_at_once,
);

async fn id_of(desk: &Desk, name: &str) -> String {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let all = users(&mut tx).await.unwrap();
    all.iter().find(|user| user.name == name).expect("they are there").id.to_string()
}

async fn an_admin_adds_people_by_a_link_that_is_shown_once(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let reply = boss.post("/people", &[("name", "<b>olga</b>"), ("role", "approver")]).await.expect(200);
    assert!(reply.words().contains("A link for <b>olga</b>") && !reply.text.contains("<b>olga"));
    let link = reply.text.split("http://127.0.0.1:8080/setup/").nth(1).expect("a link");
    let secret = link.split('<').next().unwrap().to_owned();
    let list = boss.get("/people").await.expect(200);
    assert!(!list.text.contains(&secret), "it is shown once");
    assert!(list.words().contains("2 accounts"));

    let path = format!("/setup/{secret}");
    let mut olga = desk.nobody();
    let own = "olga's own password";
    assert_eq!(olga.post_bare(&path, &[("password", own)]).await.location(), "/login?set");
    assert_eq!(olga.sign_in("<b>olga</b>", own).await.location(), "/");
    assert!(olga.get("/account").await.words().contains("<b>olga</b> approver"));

    let taken = boss.post("/people", &[("name", "<b>olga</b>"), ("role", "viewer")]).await.expect(422);
    assert!(taken.words().contains("is taken"), "{}", taken.words());
    for name in ["", "token:shop", "a\nb"] {
        let reply = boss.post("/people", &[("name", name), ("role", "viewer")]).await.expect(422);
        assert!(reply.words().contains("1 to 64 characters"), "{name:?}");
    }
    boss.post("/people", &[("name", "otto"), ("role", "emperor")]).await.expect(422);
    let again = boss.post(&format!("/people/{}/link", id_of(&desk, "<b>olga</b>").await), &[]).await;
    assert!(again.expect(200).text.contains("/setup/"));
}

async fn the_last_admin_stays(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    desk.add("olga", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    // Somebody who was never let in cannot manage anything yet.
    accounts::add_user(db, ambient, "invited", Role::Admin, None, &by_root()).await.unwrap();
    let id = id_of(&desk, "admin").await;
    for (what, fields) in [("disable", vec![]), ("role", vec![("role", "viewer")])] {
        let reply = boss.post(&format!("/people/{id}/{what}"), &fields).await.expect(409);
        assert!(
            reply.words().contains("Admin is the last who can sign in and manage people"),
            "{}",
            reply.words()
        );
    }
    let refused = accounts::disable(db, ambient, "admin", &by_root()).await;
    assert!(matches!(refused, Err(AccountError::LastAdmin(_))), "nor at the command line");
    let refused = accounts::set_role(db, ambient, "admin", Role::Approver, &by_root()).await;
    assert!(matches!(refused, Err(AccountError::LastAdmin(_))));
    assert!(boss.is_in().await, "nothing happened to them");
    accounts::set_role(db, ambient, "olga", Role::Admin, &by_root()).await.unwrap();
    accounts::set_role(db, ambient, "admin", Role::Viewer, &by_root()).await.unwrap();
    assert!(!boss.is_in().await);
}

async fn two_admins_cannot_shut_each_other_out(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    desk.add("ada", Role::Admin).await;
    desk.add("eve", Role::Admin).await;
    let by = by_root();
    for _ in 0..10 {
        let (one, other) = tokio::join!(
            accounts::disable(db, ambient, "eve", &by),
            accounts::set_role(db, ambient, "ada", Role::Viewer, &by),
        );
        assert!(one.is_ok() != other.is_ok(), "{one:?} {other:?}");
        accounts::enable(db, ambient, "eve", &by).await.unwrap();
        accounts::set_role(db, ambient, "ada", Role::Admin, &by).await.unwrap();
    }
}

async fn a_change_of_a_person_holds_at_once(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let path = format!("/people/{}", id_of(&desk, "operator").await);
    let reply = boss.post(&format!("{path}/role"), &[("role", "approver")]).await;
    assert_eq!(reply.location(), "/people");
    let list = boss.get("/people").await;
    assert!(list.words().contains("operator is approver now and has to sign in again."), "{}", list.words());
    assert!(!boss.get("/people").await.words().contains("has to sign in again."), "said once");
    assert!(!olga.is_in().await);
    olga.sign_in("operator", PASSWORD).await;
    boss.post(&format!("{path}/disable"), &[]).await.location();
    assert!(!olga.is_in().await);
    olga.sign_in("operator", PASSWORD).await.expect(422);
    boss.post(&format!("{path}/enable"), &[]).await.location();
    assert_eq!(olga.sign_in("operator", PASSWORD).await.location(), "/");
    for id in ["x", "00000000-0000-0000-0000-000000000000"] {
        boss.post(&format!("/people/{id}/disable"), &[]).await.expect(404);
    }
}
