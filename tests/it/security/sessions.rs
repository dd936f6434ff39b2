//! Cookies and the sessions behind them.

use std::time::Duration;

use axum::http::header;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::store::accounts as rows;
use sha2::{Digest as _, Sha256};

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person};
use crate::support::tables::everything;

on_both!(
    the_cookie_is_out_of_reach_of_scripts_and_other_sites,
    a_sign_in_changes_the_session,
    a_session_ends_when_it_should,
    a_session_lapses_by_our_clock,
    a_request_under_way_does_not_bring_a_session_back,
    looking_writes_nothing,
    a_token_has_128_random_bits_and_only_its_hash_is_stored,
    the_limits_are_those_of_the_file,
    people_see_where_they_are_signed_in_and_end_what_they_like,
    an_admin_ends_anybodys,
    nobody_ends_somebody_elses,
    every_end_is_on_record,
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
    for end in 0..3 {
        let mut olga = desk.nobody();
        olga.sign_in("olga", PASSWORD).await;
        let cookie = olga.cookie.clone();
        match end {
            0 => assert_eq!(olga.post("/logout", &[]).await.location(), "/login?left=1"),
            1 => accounts::set_role(db, ambient, "olga", Role::Viewer, &by_root()).await.unwrap(),
            _ => accounts::disable(db, ambient, "olga", &by_root()).await.unwrap(),
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

    // Nor by showing again and again that it is they.
    olga.sign_in("operator", PASSWORD).await;
    for passed in 1..72 {
        desk.app.clock.advance(Duration::from_mins(10));
        assert!(olga.is_in().await, "{passed}");
        if passed % 12 == 11 {
            let confirmed = olga.post("/confirm", &[("password", PASSWORD)]).await;
            assert_eq!(confirmed.location(), "/", "{passed}");
        }
    }
    desk.app.clock.advance(Duration::from_mins(10));
    assert!(!olga.is_in().await, "half a day after the sign-in");
}

async fn a_request_under_way_does_not_bring_a_session_back(db: TestDatabase) {
    use dead_letter_office::web::sessions::Sessions;
    use tower_sessions::SessionStore as _;
    use tower_sessions::session::{Id, Record};

    let desk = Desk::start(db).await;
    let store = Sessions::new(&desk.app.engine);
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

async fn id_of(desk: &Desk, name: &str) -> String {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    rows::user_by_name(&mut tx, name).await.unwrap().expect("they are there").id.to_string()
}

/// The forms of a page that end a session.
fn ends(page: &crate::support::desk::Reply) -> Vec<String> {
    let html = scraper::Html::parse_document(&page.text);
    let forms = scraper::Selector::parse(".sessions form").unwrap();
    html.select(&forms).map(|form| form.value().attr("action").unwrap().to_owned()).collect()
}

/// Signs in with a browser that calls itself so.
async fn with<'d>(desk: &'d Desk, name: &str, agent: &str) -> Person<'d> {
    let mut person = desk.nobody();
    let fields = [("name", name), ("password", PASSWORD)];
    assert_eq!(person.post_with("/login", &fields, &[("user-agent", agent)]).await.location(), "/");
    person
}

const FIREFOX: &str = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0";
const IPHONE: &str = "Mozilla/5.0 (iPhone; CPU iPhone OS 19_0 like Mac OS X) CriOS/140.0 Mobile Safari/604.1";

async fn a_token_has_128_random_bits_and_only_its_hash_is_stored(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut tokens: Vec<u128> = Vec::new();
    let mut last = String::new();
    for _ in 0..40 {
        let mut olga = desk.nobody();
        olga.sign_in("olga", PASSWORD).await;
        last = olga.cookie.unwrap().trim_start_matches("dlo=").to_owned();
        let bytes: [u8; 16] = URL_SAFE_NO_PAD.decode(&last).unwrap().try_into().expect("128 bits");
        tokens.push(u128::from_be_bytes(bytes));
    }
    // Each bit is sometimes set and sometimes not: none is fixed, as some of a UUID are.
    let (all, none) =
        tokens.iter().fold((u128::MAX, u128::MAX), |(all, none), token| (all & token, none & !token));
    assert_eq!((all, none), (0, 0));
    let bytes = URL_SAFE_NO_PAD.decode(&last).unwrap();
    let hexadecimal = |bytes: &[u8]| bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>();
    let dump = desk.app.raw().await.dump().await;
    let as_number: Vec<u8> = bytes.iter().rev().copied().collect();
    let hash = hexadecimal(&Sha256::digest(as_number));
    assert!(dump.iter().any(|(table, row)| table == "sessions" && row.to_lowercase().contains(&hash)));
    for (table, row) in &dump {
        assert!(!row.contains(&last) && !row.to_lowercase().contains(&hexadecimal(&bytes)), "{table}: {row}");
    }
}

async fn the_limits_are_those_of_the_file(db: TestDatabase) {
    let desk = Desk::configured(db, "[auth]\nidle = \"1m\"\nlongest = \"5m\"\n").await;
    desk.add("olga", Role::Operator).await;
    let mut olga = desk.nobody();
    let reply = olga.sign_in("olga", PASSWORD).await;
    assert!(reply.header("set-cookie").ends_with("Max-Age=60"), "{}", reply.header("set-cookie"));
    let mut lasted = Duration::ZERO;
    // Used all the time it lasts, though its last use is written down a few times a minute only.
    while olga.is_in().await {
        desk.app.clock.advance(Duration::from_secs(20));
        lasted += Duration::from_secs(20);
    }
    assert_eq!(lasted, Duration::from_mins(5));
    olga.sign_in("olga", PASSWORD).await;
    let cookie = olga.cookie.clone();
    desk.app.clock.advance(Duration::from_mins(1));
    olga.cookie = cookie;
    assert!(!olga.is_in().await);
}

async fn people_see_where_they_are_signed_in_and_end_what_they_like(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut phone = with(&desk, "olga", IPHONE).await;
    desk.app.clock.advance(Duration::from_mins(10));
    let mut here = with(&desk, "olga", FIREFOX).await;
    let page = here.get("/account").await.expect(200);
    let rows = page.all(".sessions tbody tr");
    assert_eq!(rows.len(), 2, "{rows:?}");
    assert!(
        rows[0]
            .0
            .starts_with("Firefox on Linux from unknown signed in just now with a password used just now"),
        "{rows:?}"
    );
    assert!(rows[0].0.ends_with("This one"), "{rows:?}");
    assert!(rows[1].0.starts_with("Chrome on an iPhone from unknown signed in 10 min ago"), "{rows:?}");
    assert!(!page.text.contains(here.cookie.as_deref().unwrap().trim_start_matches("dlo=")));

    // Used, it is the last used one; its last use is written down to the minute.
    desk.app.clock.advance(Duration::from_mins(2));
    assert!(phone.is_in().await);
    let rows = here.get("/account").await.all(".sessions tbody tr");
    assert!(
        rows[0].0.starts_with(
            "Chrome on an iPhone from unknown signed in 12 min ago with a password used just now"
        ),
        "{rows:?}"
    );

    let forms = ends(&here.get("/account").await);
    assert_eq!(forms.len(), 1);
    assert_eq!(here.post(&forms[0], &[]).await.location(), "/account");
    let page = here.get("/account").await.expect(200);
    assert!(page.words().contains("Chrome on an iPhone, from unknown, is signed out."), "{}", page.words());
    assert!(!phone.is_in().await && here.is_in().await);
    here.post(&forms[0], &[]).await.location();
    assert!(here.get("/account").await.words().contains("That session had ended already."));

    // A password once more: the same session in the list, under a new token.
    let listed = page.all(".sessions tbody tr").len();
    let mut again = with(&desk, "olga", IPHONE).await;
    assert_eq!(here.post("/account/sign-out", &[]).await.location(), "/login?left=1");
    assert!(!here.is_in().await && !again.is_in().await);
    assert_eq!(listed, 1);
}

async fn an_admin_ends_anybodys(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let (mut one, mut two) = (with(&desk, "olga", FIREFOX).await, with(&desk, "olga", IPHONE).await);
    let path = format!("/people/{}", id_of(&desk, "olga").await);
    assert!(boss.get("/people").await.all("td.main a").iter().any(|(_, href)| *href == path));
    let page = boss.get(&path).await.expect(200);
    assert!(page.words().contains("operator \u{b7} can sign in"), "{}", page.words());
    let rows = page.all(".sessions tbody tr");
    let place = rows.iter().position(|(row, _)| row.starts_with("Firefox")).expect("hers");
    let forms = ends(&page);
    assert_eq!(boss.post(&forms[place], &[]).await.location(), path);
    assert!(boss.get(&path).await.words().contains("Firefox on Linux, from unknown, is signed out."));
    assert!(!one.is_in().await && two.is_in().await);
    one.sign_in("olga", PASSWORD).await;
    assert_eq!(boss.post(&format!("{path}/sign-out"), &[]).await.location(), path);
    let page = boss.get(&path).await;
    assert!(page.words().contains("olga is signed out everywhere."), "{}", page.words());
    assert!(page.words().contains("Nowhere at this moment."));
    assert!(!one.is_in().await && !two.is_in().await && boss.is_in().await);

    let own = format!("/people/{}", id_of(&desk, "admin").await);
    assert!(boss.get(&own).await.words().contains("This one"));
    assert_eq!(boss.post(&format!("{own}/sign-out"), &[]).await.location(), "/login?left=1");
    for made_up in ["x", "00000000-0000-0000-0000-000000000000"] {
        boss.sign_in("admin", PASSWORD).await;
        boss.get(&format!("/people/{made_up}")).await.expect(404);
    }
}

async fn nobody_ends_somebody_elses(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let mut other = desk.nobody();
    other.sign_in("operator", PASSWORD).await;
    let end = ends(&olga.get("/account").await).remove(0);
    let session = end.split('/').nth(3).unwrap();
    let mut anton = desk.signed_in(Role::Approver).await;
    // It is no session of theirs, and they are not told whether it is one at all.
    anton.post(&end, &[]).await.location();
    assert!(anton.get("/account").await.words().contains("That session had ended already."));
    let id = id_of(&desk, "operator").await;
    anton.post(&format!("/people/{id}/sessions/{session}/end"), &[]).await.expect(403);
    anton.post(&format!("/people/{id}/sign-out"), &[]).await.expect(403);
    assert!(olga.is_in().await && other.is_in().await);

    // Nor below the pages.
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let actor = Actor::Person { name: "approver".into(), role: Role::Approver.into() };
    let by = By { actor: &actor, origin: "here" };
    let mut tx = db.read().await.unwrap();
    let user = rows::user_by_name(&mut tx, "operator").await.unwrap().unwrap();
    drop(tx);
    let ended = accounts::end_session(db, ambient, &user, session.parse().unwrap(), &by).await;
    assert!(matches!(ended, Err(accounts::AccountError::Forbidden(_))), "{ended:?}");
    let ended = accounts::sign_out_everywhere(db, ambient, "operator", &by).await;
    assert!(matches!(ended, Err(accounts::AccountError::Forbidden(_))), "{ended:?}");
    assert!(olga.is_in().await && other.is_in().await);
}

async fn every_end_is_on_record(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("olga", Role::Operator).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let path = format!("/people/{}", id_of(&desk, "olga").await);
    with(&desk, "olga", FIREFOX).await.post("/logout", &[]).await.location();
    with(&desk, "olga", FIREFOX).await.post("/account/sign-out", &[]).await.location();
    let mut here = with(&desk, "olga", FIREFOX).await;
    let _there = with(&desk, "olga", IPHONE).await;
    let own = ends(&here.get("/account").await).remove(0);
    here.post(&own, &[]).await.location();
    here.post(&own, &[]).await.location();
    let theirs = ends(&boss.get(&path).await).remove(0);
    boss.post(&theirs, &[]).await.location();
    boss.post(&format!("{path}/sign-out"), &[]).await.location();
    let rows = desk.app.on_record().await;
    let mut acts: Vec<(&str, &str, &str)> = rows
        .iter()
        .filter(|row| ["sign_out", "session_end"].contains(&row.action.as_str()))
        .map(|row| (row.action.as_str(), row.actor.as_str(), row.detail.as_str()))
        .collect();
    acts.sort_unstable();
    assert_eq!(
        acts,
        [
            ("session_end", "admin", "olga: Firefox on Linux, from unknown"),
            ("session_end", "olga", "olga: Chrome on an iPhone, from unknown"),
            ("sign_out", "admin", "olga, everywhere"),
            ("sign_out", "olga", ""),
            ("sign_out", "olga", "everywhere"),
        ]
    );
}
