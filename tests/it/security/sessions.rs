//! Cookies and the sessions behind them.

use std::time::Duration;

use axum::http::header;
use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::{Actor, Role};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::tables::everything;

on_both!(
    the_cookie_is_out_of_reach_of_scripts_and_other_sites,
    a_sign_in_changes_the_session,
    a_session_ends_when_it_should,
    a_session_lapses_by_our_clock,
    a_request_under_way_does_not_bring_a_session_back,
    looking_writes_nothing,
);

async fn the_cookie_is_out_of_reach_of_scripts_and_other_sites(db: TestDatabase) {
    let database = {
        let desk = Desk::start(db).await;
        desk.add("olga", Role::Operator).await;
        let reply = desk.nobody().sign_in("olga", PASSWORD).await;
        let cookie = reply.header("set-cookie");
        let (name, attributes) = cookie.split_once('=').unwrap();
        let attributes: Vec<&str> = attributes.split("; ").skip(1).collect();
        assert_eq!((name, attributes), ("dlo", vec!["HttpOnly", "SameSite=Lax", "Path=/", "Max-Age=900"]));
        assert_eq!(reply.header("strict-transport-security"), "");
        desk.app.database
    };

    let desk = Desk::reached_at(database, "https://desk.example.com").await;
    let mut olga = desk.nobody();
    let reply = olga.sign_in("olga", PASSWORD).await;
    let cookie = reply.header("set-cookie");
    let (name, attributes) = cookie.split_once('=').unwrap();
    let attributes: Vec<&str> = attributes.split("; ").skip(1).collect();
    assert_eq!(name, "__Host-dlo", "browsers take it only with Secure, for this host alone");
    assert_eq!(attributes, ["HttpOnly", "SameSite=Lax", "Secure", "Path=/", "Max-Age=900"]);
    assert_eq!(reply.header("strict-transport-security"), "max-age=31536000; includeSubDomains");
    assert!(olga.is_in().await);
}

async fn a_sign_in_changes_the_session(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (first, token) = (olga.cookie.clone().unwrap(), olga.csrf().await);
    olga.sign_in("operator", PASSWORD).await;
    let second = olga.cookie.clone().unwrap();
    assert_ne!(first, second);
    assert_ne!(token, olga.csrf().await);
    let mut old = desk.nobody();
    old.cookie = Some(first);
    assert!(!old.is_in().await, "the session before is gone");

    // An id that somebody planted is not taken over.
    let mut victim = desk.nobody();
    victim.cookie = Some("dlo=AAAAAAAAAAAAAAAAAAAAAA".into());
    victim.sign_in("operator", PASSWORD).await;
    assert!(victim.cookie.as_deref().is_some_and(|cookie| cookie != "dlo=AAAAAAAAAAAAAAAAAAAAAA"));
    for planted in ["dlo=", "dlo=x", "dlo=AAAAAAAAAAAAAAAAAAAAAA", "dlo=\"; DROP TABLE sessions"] {
        let mut thief = desk.nobody();
        thief.cookie = Some(planted.into());
        assert!(!thief.is_in().await, "{planted}");
    }
}

async fn a_session_ends_when_it_should(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("boss", Role::Admin).await;
    desk.add("olga", Role::Operator).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    for end in 0..3 {
        let mut olga = desk.nobody();
        olga.sign_in("olga", PASSWORD).await;
        let cookie = olga.cookie.clone();
        match end {
            0 => assert_eq!(olga.post("/logout", &[]).await.location(), "/login?left=1"),
            1 => accounts::set_role(db, ambient, "olga", Role::Viewer, &by).await.unwrap(),
            _ => accounts::disable(db, ambient, "olga", &by).await.unwrap(),
        }
        olga.cookie = cookie;
        assert!(!olga.is_in().await, "end {end}");
    }
}

async fn a_session_lapses_by_our_clock(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let cookie = olga.cookie.clone();
    desk.app.clock.advance(Duration::from_mins(15) - Duration::from_secs(1));
    assert!(olga.is_in().await);
    desk.app.clock.advance(Duration::from_mins(15));
    olga.cookie = cookie;
    assert!(!olga.is_in().await, "not used for a quarter of an hour");

    olga.sign_in("operator", PASSWORD).await;
    let mut lasted = Duration::ZERO;
    while olga.is_in().await {
        desk.app.clock.advance(Duration::from_mins(10));
        lasted += Duration::from_mins(10);
        assert!(lasted <= Duration::from_hours(12), "used all the time, and still in");
    }
    assert_eq!(lasted, Duration::from_hours(12));
}

async fn a_request_under_way_does_not_bring_a_session_back(db: TestDatabase) {
    use dead_letter_office::web::sessions::Sessions;
    use tower_sessions::SessionStore as _;
    use tower_sessions::session::{Id, Record};

    let desk = Desk::start(db).await;
    let store = Sessions::new(desk.app.engine.db().clone(), desk.app.engine.ambient().clone());
    let mut record =
        Record { id: Id::default(), data: Default::default(), expiry_date: time::OffsetDateTime::UNIX_EPOCH };
    store.create(&mut record).await.unwrap();
    let read = store.load(&record.id).await.unwrap().expect("it lives by our clock, not by its own");
    store.delete(&record.id).await.unwrap();
    store.save(&read).await.unwrap();
    assert!(store.load(&record.id).await.unwrap().is_none());
}

async fn looking_writes_nothing(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let before = everything(&desk.app).await;
    for path in
        ["/", "/account", "/people", "/audit", "/dead-letters", "/login", "/nothing/here", "/static/x"]
    {
        let reply = boss.get(path).await;
        assert!(reply.headers.get(header::SET_COOKIE).is_none(), "{path}");
    }
    assert_eq!(everything(&desk.app).await, before);
}
