//! News for open pages.

use std::time::Duration;

use axum::body::Body;
use axum::http::Request;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::web;
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::support::app::install_crypto;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    new_dead_letters_are_announced_and_counted,
    a_page_hears_that_its_operation_changed,
    a_page_hears_that_its_bulk_action_goes_on,
    listening_does_not_make_a_session_last,
);

/// The longest that anything may take here on a busy machine.
const PATIENCE: Duration = Duration::from_secs(30);

/// A page that listens.
struct Ear(Body, String);

impl Ear {
    async fn open(desk: &Desk, cookie: &str, about: &str, since: i64) -> Self {
        let answer = desk.open(listen(cookie, about, &since.to_string())).await;
        assert_eq!(answer.status().as_u16(), 200);
        assert_eq!(answer.headers()["content-type"], "text/event-stream");
        Self(answer.into_body(), String::new())
    }

    /// The next event's name and data; `None` at the end.
    async fn next(&mut self) -> Option<(String, String)> {
        loop {
            if let Some((event, rest)) = self.1.split_once("\n\n") {
                let line = |name: &str| {
                    let lines = event.lines();
                    lines.filter_map(|line| line.strip_prefix(name)).collect::<String>().trim().to_owned()
                };
                let (event, rest) = ((line("event:"), line("data:")), rest.to_owned());
                self.1 = rest;
                if event.0.is_empty() {
                    continue;
                }
                return Some(event);
            }
            let frame = timeout(PATIENCE, self.0.frame()).await.expect("something is said in time")?;
            let bytes = frame.expect("a line that holds").into_data().expect("data");
            self.1.push_str(std::str::from_utf8(&bytes).unwrap());
        }
    }

    async fn news(&mut self) -> Value {
        let (name, data) = self.next().await.expect("a line that goes on");
        assert_eq!(name, "news");
        serde_json::from_str(&data).unwrap()
    }
}

fn listen(cookie: &str, about: &str, since: &str) -> Request<Body> {
    let query: String = url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs([("about", about), ("since", since)])
        .finish();
    Request::builder()
        .uri(format!("/live?{query}"))
        .header("cookie", cookie)
        .header("accept", "text/event-stream")
        .body(Body::empty())
        .unwrap()
}

/// The cookie of somebody who has signed in.
async fn signed_in(desk: &Desk) -> String {
    desk.signed_in(Role::Viewer).await.cookie.expect("a session")
}

async fn new_dead_letters_are_announced_and_counted(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-0").await;
    desk.app.clock.advance(Duration::from_secs(1));
    let (cookie, since) = {
        let mut reader = desk.signed_in(Role::Viewer).await;
        let page = reader.get("/dead-letters").await.expect(200);
        let about = format!(r#"data-live="letters" data-since="{}""#, desk.app.now().as_micros());
        assert!(page.text.contains(&about), "the page says what it shows, and since when");
        (reader.cookie.unwrap(), desk.app.now().as_micros())
    };
    let mut ear = Ear::open(&desk, &cookie, "letters", since).await;
    assert_eq!(ear.news().await, json!({ "open": "1", "changed": false }), "what the page shows is no news");
    desk.app.clock.advance(Duration::from_secs(1));
    for key in ["order-1", "order-2"] {
        desk.dead_letter("keyed", key).await;
    }
    let mut told = ear.news().await;
    if told["new"] == "1" {
        // The look fell between the two.
        told = ear.news().await;
    }
    assert_eq!(told, json!({ "open": "3", "new": "2", "changed": false }));
}

async fn a_page_hears_that_its_operation_changed(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (operation, letter) = desk.dead_letter("keyed", "order-1").await;
    let (other, _) = desk.dead_letter("keyed", "order-2").await;
    desk.app.clock.advance(Duration::from_secs(1));
    let cookie = {
        let mut reader = desk.signed_in(Role::Viewer).await;
        for path in [format!("/dead-letters/{letter}"), format!("/operations/{operation}")] {
            let page = reader.get(&path).await.expect(200);
            assert!(page.text.contains(&format!(r#"data-live="operation:{operation}""#)), "{path}");
        }
        reader.cookie.unwrap()
    };
    let since = desk.app.now().as_micros();
    let mut ear = Ear::open(&desk, &cookie, &format!("operation:{operation}"), since).await;
    let mut others = Ear::open(&desk, &cookie, &format!("operation:{other}"), since).await;
    assert_eq!(ear.news().await, json!({ "open": "2", "changed": false }));
    assert_eq!(others.news().await["changed"], false);
    desk.app.clock.advance(Duration::from_secs(1));
    desk.app.replay(operation, "r1").await.unwrap();
    desk.app.run_until_idle().await;
    let mut told = ear.news().await;
    while told["changed"] == false {
        told = ear.news().await;
    }
    // The other page hears of the count alone.
    let told = others.news().await;
    assert_eq!(told["changed"], false, "{told}");
}

async fn a_page_hears_that_its_bulk_action_goes_on(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    desk.dead_letter("keyed", "order-1").await;
    let (cookie, path) = {
        let mut olga = desk.signed_in(Role::Operator).await;
        let form = olga.get("/bulk/new?action=replay&all=1&type=keyed").await.expect(200);
        let (action, filter) = (form.field("action"), form.field("filter"));
        let typed = [
            ("action", &*action),
            ("filter", &*filter),
            ("ids", ""),
            ("name", "Monday"),
            ("reason", "fixed"),
            ("canary", ""),
            ("speed", ""),
        ];
        let path = olga.post("/bulk/new", &typed).await.location().to_owned();
        let page = olga.get(&path).await.expect(200);
        let id = path.strip_prefix("/bulk/").expect("its page");
        assert!(page.text.contains(&format!(r#"data-live="bulk:{id}""#)), "{path}");
        (olga.cookie.clone().unwrap(), path)
    };
    let about = path.replace("/bulk/", "bulk:");
    let mut ear = Ear::open(&desk, &cookie, &about, desk.app.now().as_micros()).await;
    assert_eq!(ear.news().await["changed"], false);
    desk.app.clock.advance(Duration::from_secs(1));
    let mut olga = desk.nobody();
    olga.cookie = Some(cookie);
    olga.post(&format!("{path}/start"), &[("action_id", "s"), ("step", "start")]).await.location();
    let mut told = ear.news().await;
    while told["changed"] == false {
        told = ear.news().await;
    }
}

async fn listening_does_not_make_a_session_last(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let cookie = signed_in(&desk).await;
    let since = desk.app.now().as_micros();
    let mut ear = Ear::open(&desk, &cookie, "letters", since).await;
    ear.news().await;
    for (minutes, key) in [(7, "order-1"), (7, "order-2")] {
        desk.app.clock.advance(Duration::from_mins(minutes));
        desk.dead_letter("keyed", key).await;
        assert!(ear.news().await["new"].is_string());
        // Another page of the same session, opened by the browser alone.
        Ear::open(&desk, &cookie, "letters", since).await.news().await;
    }
    desk.app.clock.advance(Duration::from_mins(2));
    desk.dead_letter("keyed", "order-3").await;
    let (name, _) = ear.next().await.expect("a last word");
    assert_eq!(name, "ended");
    assert_eq!(ear.next().await, None);
    let answer = desk.open(listen(&cookie, "letters", "0")).await;
    assert!(answer.headers()["location"].to_str().unwrap().starts_with("/login"));
}

#[tokio::test]
async fn a_line_ends_with_the_session_or_the_server_and_there_are_only_so_many() {
    install_crypto();
    let mut desk = Desk::start(TestDatabase::sqlite()).await;
    let cookie = signed_in(&desk).await;
    for (about, since) in [("", "0"), ("letters", ""), ("letters", "noon"), ("operation:7", "0")] {
        assert_eq!(desk.open(listen(&cookie, about, since)).await.status().as_u16(), 400, "{about} {since}");
    }
    let mut ears = Vec::new();
    for _ in 0..10 {
        ears.push(Ear::open(&desk, &cookie, "letters", 0).await);
    }
    assert_eq!(desk.open(listen(&cookie, "letters", "0")).await.status().as_u16(), 409);
    drop(ears.pop());
    ears.push(Ear::open(&desk, &cookie, "letters", 0).await);

    // The same session at a server of its own, which stops.
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(web::serve(desk.app.engine.clone(), listener, stopped));
    let client = reqwest::Client::new();
    let line = client.get(format!("http://{address}/live?about=letters&since=0"));
    let mut line = line.header("cookie", &cookie).header("accept", "text/event-stream").send().await.unwrap();
    assert_eq!(line.status().as_u16(), 200);
    let first = timeout(PATIENCE, line.chunk()).await.expect("news in time").unwrap().unwrap();
    assert!(first.starts_with(b"event: news"), "{first:?}");
    stop.send(true).unwrap();
    let end = timeout(PATIENCE, async { while line.chunk().await.unwrap().is_some() {} });
    end.await.expect("the line ends with the server");
    timeout(PATIENCE, server).await.expect("the server does not wait for listeners").unwrap().unwrap();

    // Who signs out elsewhere hears nothing more.
    let ear = &mut ears[0];
    ear.news().await;
    let mut person = desk.nobody();
    person.cookie = Some(cookie);
    person.post("/logout", &[]).await.expect(303);
    desk.dead_letter("keyed", "order-1").await;
    assert_eq!(ear.next().await.expect("a last word").0, "ended");
    assert_eq!(desk.nobody().sign_in("viewer", PASSWORD).await.status.as_u16(), 303);
}
