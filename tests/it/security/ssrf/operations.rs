//! Whatever the file, the payload or the destination says: operations and questions stay where they belong.

use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::classify::Symptom;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::Engine;
use dead_letter_office::store::Db;
use rand::SeedableRng as _;
use rand::rngs::StdRng;

use super::trap;
use crate::support::app::{TestApp, config};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    no_operation_and_no_question_reaches_a_private_address,
    no_redirect_is_followed_wherever_it_leads,
    no_payload_changes_where_a_request_goes,
);

/// A type of operation whose one step posts to a destination.
fn posts(kind: &str, destination: &str, path: &str, more: &str) -> String {
    format!(
        "[operations.{kind}]\n[[operations.{kind}.steps]]\nname = \"go\"\ndestination = \"{destination}\"\n\
         method = \"POST\"\npath = \"{path}\"\n{more}\n"
    )
}

/// A destination at an address, and a type of operation that posts there, of one name.
fn posts_to(base: &str, name: &str) -> String {
    format!("[destinations.{name}]\nbase_url = \"{base}\"\n{}", posts(name, name, "/x", ""))
}

/// A node with the guard on, which its database's other nodes have not.
async fn guarded(app: &TestApp, more: &str, adjust: impl FnOnce(&mut Config)) -> Engine {
    let mut config = config(&app.database.url, &app.destination.base_url(), more);
    config.server.allow_private_destinations = false;
    adjust(&mut config);
    let db = Db::open(&app.database.url).await.unwrap();
    let ambient = Ambient::new(Arc::clone(&app.clock) as _, StdRng::seed_from_u64(9));
    Engine::new(db, Arc::new(config), ambient)
}

async fn no_operation_and_no_question_reaches_a_private_address(db: TestDatabase) {
    let (trap, knocks) = trap().await;
    let port = trap.port();
    let bases = [
        format!("https://127.0.0.1:{port}"),
        format!("https://2130706433:{port}/x"),
        format!("https://[::ffff:7f00:1]:{port}"),
        format!("https://localhost:{port}"),
        format!("http://localhost:{port}"),
    ];
    let more: String =
        bases.iter().enumerate().map(|(n, base)| posts_to(base, &format!("inside-{n}"))).collect();
    let mut app = TestApp::configured(db, &more).await;
    let engine = guarded(&app, &more, |_| {}).await;
    let mut operations = Vec::new();
    for n in 0..bases.len() {
        operations.push(app.submit(&format!("inside-{n}"), &format!("order-{n}")).await);
    }
    engine.worker().unwrap().run_until_idle().await.unwrap();
    for (id, base) in operations.iter().zip(&bases) {
        let thread = app.thread(*id).await;
        let last = thread.attempts.last().unwrap_or_else(|| panic!("{base}: no attempt"));
        assert_eq!(last.symptom, Some(Symptom::AddressRefused), "{base}: {last:?}");
    }
    // Sent while it was allowed, and asked about when it is not any more.
    app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: false }]);
    let id = app.submit("lookup", "asked").await;
    app.run_until_idle().await;
    assert_ne!(app.state(id).await, OperationState::Completed);
    let (before, sends) = (app.destination.requests_count(), app.thread(id).await.attempts.len());
    let engine = guarded(&app, &more, |config| {
        let inside = format!("https://localhost:{port}").parse().unwrap();
        config.destinations.get_mut("lookup").unwrap().base_url = Some(inside);
    })
    .await;
    let mut worker = engine.worker().unwrap();
    for _ in 0..30 {
        app.clock.advance(Duration::from_secs(5));
        worker.run_until_idle().await.unwrap();
    }
    let asked = app.thread(id).await.attempts.split_off(sends);
    assert!(!asked.is_empty(), "it was asked about");
    for attempt in &asked {
        let why = attempt.error.as_deref().unwrap_or_default();
        assert!(why.contains("private or reserved network"), "{attempt:?}");
    }
    assert_eq!(app.destination.requests_count(), before);
    assert_eq!(knocks.load(Ordering::Relaxed), 0);
}

const CODES: [u16; 5] = [301, 302, 303, 307, 308];

async fn no_redirect_is_followed_wherever_it_leads(db: TestDatabase) {
    let (trap, knocks) = trap().await;
    // A redirect pauses its destination, hence one for each.
    let more: String =
        CODES.map(|code| posts_to(&format!("{{destination}}/to-{code}"), &format!("to-{code}"))).concat();
    let mut app = TestApp::configured(db, &more).await;
    let away = |code| {
        let headers = vec![("location".to_owned(), format!("http://{trap}/latest/meta-data/iam"))];
        Behaviour::Status { code, headers, body: String::new() }
    };
    let mut operations = Vec::new();
    for code in CODES {
        app.destination.script(&format!("/to-{code}"), [away(code)]);
        operations.push((code, app.submit(&format!("to-{code}"), &format!("order-{code}")).await));
    }
    app.destination.script("/lookup", [Behaviour::CloseAfterRead { effect: false }, away(302)]);
    operations.push((302, app.submit("lookup", "asked").await));
    app.run_for(Duration::from_secs(70)).await;
    for (code, id) in operations {
        let attempts = app.thread(id).await.attempts;
        assert!(attempts.iter().any(|attempt| attempt.status == Some(code.into())), "{code}: {attempts:?}");
    }
    assert_eq!(knocks.load(Ordering::Relaxed), 0, "although it may go to loopback here");
}

async fn no_payload_changes_where_a_request_goes(db: TestDatabase) {
    // Steps that put what they are given into every part of a request.
    let types = [
        posts("in-path", "plain", "/{{ payload.at }}", ""),
        posts("in-query", "plain", "/tickets?to={{ payload.at }}", ""),
        posts("in-header", "plain", "/tickets", r#"headers = { X-Order = "{{ payload.at }}" }"#),
    ];
    let mut app = TestApp::configured(db, &types.concat()).await;
    let (trap, knocks) = trap().await;
    let wanted = [
        format!("//{trap}/"),
        format!("/{trap}/"),
        format!("@{trap}/"),
        format!("x@{trap}/"),
        format!(":x@{trap}/"),
        format!("\\\\{trap}\\"),
        format!("http://{trap}/"),
        format!("%40{trap}"),
        format!("?@{trap}"),
        format!("#@{trap}/"),
        format!("x HTTP/1.1\r\nHost: {trap}\r\n\r\n"),
        format!("x\r\nHost: {trap}\r\nEvil: 1"),
        format!("x\nEvil: 1\n\nGET http://{trap}/ HTTP/1.1"),
        "x\rEvil: 1".to_owned(),
        "..".to_owned(),
        "../../admin".to_owned(),
        "%2e%2e/%2e%2e/admin".to_owned(),
        "..\\..\\admin".to_owned(),
        "\t//evil.example".to_owned(),
        "\u{2028}Evil: 1".to_owned(),
        "/".to_owned(),
        "ordinary".to_owned(),
    ];
    for kind in ["in-path", "in-query", "in-header"] {
        for (n, at) in wanted.iter().enumerate() {
            let payload = serde_json::json!({ "at": at }).to_string();
            app.try_submit(kind, &format!("{kind}-{n}"), &payload).await.unwrap();
        }
    }
    app.run_for(Duration::from_secs(5)).await;
    let host = app.destination.base_url().replace("http://", "");
    let requests = app.destination.requests();
    assert!(requests.len() > wanted.len(), "most were sent: {}", requests.len());
    for request in &requests {
        assert!(request.path.starts_with("/plain/"), "{request:?}");
        let plain = request.path.to_lowercase();
        let (path, _) = plain.split_once('?').unwrap_or((&plain, ""));
        assert!(!path.split('/').any(|part| matches!(part, "." | ".." | "%2e%2e")), "{request:?}");
        let hosts: Vec<&String> =
            request.headers.iter().filter(|(name, _)| name == "host").map(|(_, value)| value).collect();
        assert_eq!(hosts, [&host], "{request:?}");
        assert!(request.header("evil").is_none(), "{request:?}");
        assert_eq!(request.method, "POST");
    }
    assert_eq!(knocks.load(Ordering::Relaxed), 0);
}
