//! What a client can take from the others by being slow, large, many or busy.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Method, Request, header};
use bytes::Bytes;
use dead_letter_office::accounts;
use dead_letter_office::config::{Config, ProxyHeader};
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::web;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::time::{sleep, timeout};
use uuid::Uuid;

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Reply};
use crate::support::hooks::{Hook, NEW, sources};
use crate::support::routes::routes;
use crate::support::served::Served;
use crate::support::wire::{PATIENCE, Wire};

on_both!(
    a_busy_token_is_told_to_slow_down_and_others_are_not,
    a_busy_source_is_told_to_slow_down_and_forgers_take_nothing_from_it,
    who_guesses_is_told_to_slow_down_and_who_knows_is_not,
    a_token_that_has_ended_is_counted_like_a_guess,
    forged_webhooks_keep_no_proven_one_out,
    only_a_trusted_proxy_says_where_a_request_comes_from,
);

/// A server that waits for clients only so long, and its address.
async fn impatient(silence: Duration, connections: usize) -> (Served, SocketAddr) {
    let served = Served::adjusted("", |config| {
        config.server.client_timeout = silence;
        config.server.max_connections = connections;
    })
    .await;
    let address = served.url.strip_prefix("http://").unwrap().parse().unwrap();
    (served, address)
}

const SHORT: Duration = Duration::from_millis(300);

#[tokio::test]
async fn a_head_that_does_not_come_ends_the_connection() {
    let (_served, address) = impatient(SHORT, 64).await;
    assert!(Wire::to(address).await.rest().await.is_none(), "who says nothing is told nothing");

    let mut half = Wire::to(address).await;
    half.send("GET / HTTP/1.1\r\nhost: x\r\nx-half: ").await;
    let answer = half.rest().await.expect("an answer");
    assert_eq!(answer.status, 408);
    assert!(answer.body.contains("This request came too slowly"), "{}", answer.body);

    // A byte now and then does not keep it open.
    let mut drip = Wire::to(address).await;
    for byte in b"GET / HTTP/1.1\r\nx: aaaaa" {
        if !drip.send([*byte]).await {
            break;
        }
        sleep(SHORT / 20).await;
    }
    assert_eq!(drip.rest().await.expect("an answer").status, 408);
}

#[tokio::test]
async fn a_body_that_does_not_come_ends_the_request() {
    let (served, address) = impatient(SHORT, 64).await;
    let (db, ambient) = (served.engine.db(), served.engine.ambient());
    let token = accounts::create_token(db, ambient, "shop", Scope::Submit, None, &by_root()).await.unwrap();
    for (path, kind) in [
        ("/login", "text/html; charset=utf-8"),
        ("/api/v1/operations", "application/problem+json"),
        ("/api/v1/operations/batch", "application/problem+json"),
        ("/hooks/nobody", "application/problem+json"),
    ] {
        let mut wire = Wire::to(address).await;
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {token}\r\ncontent-length: 1000\r\n\
             content-type: application/x-www-form-urlencoded\r\nsec-fetch-site: same-origin\r\n\
             connection: close\r\n\r\nonly this"
        );
        wire.send(head).await;
        let answer = wire.rest().await.expect("an answer");
        assert_eq!((answer.status, answer.header("content-type")), (408, kind), "{path}: {}", answer.body);
    }
}

#[tokio::test]
async fn what_is_too_large_or_no_request_is_refused_in_our_words() {
    let (_served, address) = impatient(PATIENCE, 64).await;
    let long = "a".repeat(70_000);
    let many: String = (0..200).map(|n| format!("x-{n}: 1\r\n")).collect();
    for (request, status) in [
        (format!("GET / HTTP/1.1\r\nhost: x\r\nx-long: {long}\r\n\r\n"), 431),
        (format!("GET / HTTP/1.1\r\nhost: x\r\n{many}\r\n"), 431),
        (format!("GET /?q={long} HTTP/1.1\r\nhost: x\r\n\r\n"), 431),
        ("what is this\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\nbad header\r\n\r\n".to_owned(), 400),
        ("GET / HTTP/1.1\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\nx".to_owned(), 400),
        ("GET / HTTP/9.9\r\nhost: x\r\n\r\n".to_owned(), 400),
    ] {
        let start = &request[..request.len().min(60)];
        let mut wire = Wire::to(address).await;
        wire.send(&request).await;
        let answer = wire.rest().await.unwrap_or_else(|| panic!("no answer to {start}"));
        assert_eq!(answer.status, status, "{start}");
        assert_eq!(answer.header("connection"), "close", "{start}");
        let id = answer.header("x-request-id");
        assert!(id.len() == 12 && answer.body.contains(id), "{start}: {}", answer.body);
        assert_eq!(answer.header("content-length"), answer.body.len().to_string(), "{start}");
    }
    let fine = Wire::to(address).await.ask("GET /healthz HTTP/1.1", "").await;
    assert_eq!(fine.status, 200);
}

#[tokio::test]
async fn one_address_takes_half_of_what_is_free_and_the_desk_stays_usable() {
    let (_served, address) = impatient(PATIENCE * 2, 16).await;
    let mut held = Vec::new();
    for _ in 0..8 {
        let mut wire = Wire::to(address).await;
        wire.send("GET / HTTP/1.1\r\n").await;
        held.push(wire);
    }
    let refused = Wire::to(address).await.rest().await.expect("an answer");
    assert_eq!((refused.status, refused.header("retry-after")), (503, "5"));
    assert!(refused.body.contains("Too many connections"), "{}", refused.body);
    let other = Wire::from("127.0.0.2", address).await.ask("GET /login HTTP/1.1", "").await;
    assert_eq!(other.status, 200, "somebody else is let in");
    drop(held);
    let freed = async {
        while Wire::to(address).await.ask("GET /healthz HTTP/1.1", "").await.status != 200 {
            sleep(Duration::from_millis(10)).await;
        }
    };
    timeout(PATIENCE, freed).await.expect("what was given up is free again");
}

#[tokio::test]
async fn a_stop_lets_answers_end_and_waits_for_nobody_who_is_silent() {
    let desk = Desk::start(TestDatabase::sqlite()).await;
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (stop, stopped) = watch::channel(false);
    let server = tokio::spawn(web::serve(desk.app.engine.clone(), listener, stopped));
    let token = desk.token(Scope::Work).await;
    let mut idle = Wire::to(address).await;
    idle.send("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let waits = tokio::spawn(async move {
        let head = format!("POST /api/v1/claims HTTP/1.1\r\nauthorization: {token}");
        Wire::to(address).await.ask(&head, r#"{"wait": "1s"}"#).await
    });
    // Once its answer is there, both connections are known to the server.
    assert_eq!(Wire::to(address).await.ask("GET /healthz HTTP/1.1", "").await.status, 200);
    sleep(Duration::from_millis(200)).await;
    stop.send(true).unwrap();
    let answer = timeout(PATIENCE, waits).await.expect("in time").unwrap();
    assert_eq!(answer.status, 200, "{}", answer.body);
    timeout(PATIENCE, server).await.expect("the server ends").unwrap().unwrap();
    assert_eq!(idle.rest().await.expect("the answer from before").status, 200);
}

const CHUNK: usize = 64 * 1024;
const MOST_CHUNKS: usize = 1024;
static FULL: [u8; CHUNK] = [b'a'; CHUNK];

#[tokio::test]
async fn no_route_reads_more_than_its_limit() {
    let mut desk = Desk::configured(TestDatabase::sqlite(), &sources()).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let mut boss = desk.signed_in(Role::Admin).await;
    boss.get("/account").await;
    let cookie = boss.cookie.clone().unwrap();
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push(desk.token(*scope).await);
    }
    let mut count = 0;
    for (_, path) in routes().into_iter().filter(|(method, _)| *method == "post") {
        let path = path.replace("{id}", &letter.to_string()).replace("{source}", "standard");
        let path = path.replace("{token}", "x").replace("{name}", "plain");
        let limit = match path.as_str() {
            "/api/v1/operations/batch" => 32 * 1024 * 1024,
            path if path.starts_with("/api/") || path.starts_with("/hooks/") => 1024 * 1024,
            _ => 256 * 1024,
        };
        for token in &tokens {
            let read = Arc::new(AtomicUsize::new(0));
            let counted = Arc::clone(&read);
            let endless = futures_util::stream::iter((0..MOST_CHUNKS).map(move |_| {
                counted.fetch_add(CHUNK, Ordering::Relaxed);
                Ok::<_, std::convert::Infallible>(Bytes::from_static(&FULL))
            }));
            let request = Request::post(&path)
                .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                .header(header::COOKIE, &cookie)
                .header(header::AUTHORIZATION, token)
                .header("sec-fetch-site", "same-origin");
            let reply = desk.send(request.body(Body::from_stream(endless)).unwrap()).await;
            let read = read.load(Ordering::Relaxed);
            assert!(read <= limit + 2 * CHUNK, "{path}: {read} bytes, {}", reply.status);
            // Whoever reads it to the limit says so, or that the token may not.
            if read > limit {
                assert!(matches!(reply.status.as_u16(), 413 | 403), "{path}: {}", reply.text);
                count += usize::from(reply.status.as_u16() == 413);
            }
        }
    }
    assert!(count > 60, "{count}");
}

async fn list(desk: &Desk, token: &str) -> Reply {
    desk.call(Method::GET, "/api/v1/operations", token, "").await
}

/// Calls until it is refused for being too many; how many were not.
async fn until_refused(call: impl AsyncFn() -> Reply) -> (usize, Reply) {
    for n in 0..1_000 {
        let reply = call().await;
        if reply.status.as_u16() == 429 {
            return (n, reply);
        }
    }
    panic!("it is never refused");
}

async fn a_busy_token_is_told_to_slow_down_and_others_are_not(db: TestDatabase) {
    let desk = Desk::adjusted(db, "", |config| config.server.token_rate = 5).await;
    let (busy, other) =
        (desk.token_named("busy", Scope::Read).await, desk.token_named("b", Scope::Read).await);
    let (taken, refused) = until_refused(async || list(&desk, &busy).await).await;
    assert!(taken >= 10, "two seconds' worth at once: {taken}");
    let problem = refused.json();
    assert_eq!(problem["type"], "https://iana.org/assignments/http-problem-types#quota-exceeded");
    assert_eq!(problem["violated-policies"], serde_json::json!(["token"]));
    assert_eq!(refused.header("content-type"), "application/problem+json");
    assert_eq!(refused.header("retry-after"), "1");
    assert_eq!(refused.header("ratelimit-policy"), r#""token";q=10;w=2"#);
    assert_eq!(refused.header("ratelimit"), r#""token";r=0;t=1"#);
    assert_eq!(list(&desk, &other).await.status.as_u16(), 200);
}

async fn a_busy_source_is_told_to_slow_down_and_forgers_take_nothing_from_it(db: TestDatabase) {
    const EVENT: &str = r#"{"type":"invoice.paid","data":{"object":{"order_id":"1","customer_id":"C-7"}}}"#;
    let desk = Desk::adjusted(db, &sources(), |config| config.server.source_rate = 1).await;
    for n in 0..20 {
        let forged = Hook::standard(b"nobody's", &format!("f{n}"), desk.seconds(), EVENT);
        assert_eq!(desk.deliver(&forged).await.status.as_u16(), 401);
    }
    let id = AtomicUsize::new(0);
    let call = async || {
        let id = format!("e{}", id.fetch_add(1, Ordering::Relaxed));
        desk.deliver(&Hook::standard(NEW, &id, desk.seconds(), EVENT)).await
    };
    let (taken, refused) = until_refused(call).await;
    assert!(taken >= 2, "{taken}");
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["source"]));
    assert_ne!(refused.header("retry-after"), "");
}

/// A call over a connection from this address.
async fn over(desk: &Desk, peer: &str, token: &str) -> Reply {
    let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
    let request = Request::get("/api/v1/operations").header(header::AUTHORIZATION, token);
    desk.send(request.extension(ConnectInfo(peer)).body(Body::empty()).unwrap()).await
}

async fn who_guesses_is_told_to_slow_down_and_who_knows_is_not(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let token = desk.token(Scope::Read).await;
    // This process is not shown it before.
    let unseen = desk.token_named("unseen", Scope::Read).await;
    assert_eq!(over(&desk, "192.0.2.1", &token).await.status.as_u16(), 200);
    let guess = async || over(&desk, "192.0.2.1", &format!("Bearer {}", Uuid::new_v4())).await;
    let (taken, refused) = until_refused(guess).await;
    assert!(taken >= 20, "{taken}");
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["address"]));
    assert_eq!(over(&desk, "192.0.2.1", &token).await.status.as_u16(), 200, "who has a token goes on");
    until_refused(guess).await;
    assert_eq!(over(&desk, "192.0.2.1", &unseen).await.status.as_u16(), 200, "or begins");
    assert_eq!(over(&desk, "192.0.2.2", "Bearer x").await.status.as_u16(), 401, "another address");
    let (taken, _) = until_refused(async || over(&desk, "192.0.2.3", "").await).await;
    assert!(taken >= 20, "{taken}");
}

async fn a_token_that_has_ended_is_counted_like_a_guess(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let token = desk.token(Scope::Read).await;
    assert_eq!(over(&desk, "192.0.2.1", &token).await.status.as_u16(), 200);
    // On another node, so that this one does not know of it.
    accounts::revoke_token(desk.app.engine.db(), desk.app.engine.ambient(), "read", &by_root())
        .await
        .unwrap();
    let believed = async {
        while over(&desk, "192.0.2.1", &token).await.status.as_u16() == 200 {
            sleep(Duration::from_millis(50)).await;
        }
    };
    timeout(PATIENCE, believed).await.expect("it ends within a second");
    let (taken, refused) = until_refused(async || over(&desk, "192.0.2.1", &token).await).await;
    assert!(taken >= 10, "{taken}");
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["address"]));
}

async fn forged_webhooks_keep_no_proven_one_out(db: TestDatabase) {
    const EVENT: &str = r#"{"type":"invoice.paid","data":{"object":{"order_id":"1","customer_id":"C-7"}}}"#;
    let desk = Desk::configured(db, &sources()).await;
    let peer: SocketAddr = "192.0.2.1:4711".parse().unwrap();
    let deliver = async |hook: &Hook| {
        let mut request = hook.request();
        request.extensions_mut().insert(ConnectInfo(peer));
        desk.send(request).await
    };
    let forged = Hook::standard(b"nobody's", "f", desk.seconds(), EVENT);
    let (taken, refused) = until_refused(async || deliver(&forged).await).await;
    assert!(taken >= 20, "{taken}");
    assert_eq!(refused.json()["violated-policies"], serde_json::json!(["address"]));
    let counted = desk.app.raw().await.number("SELECT CAST(sum(count) AS BIGINT) FROM hook_counts").await;
    assert_eq!(usize::try_from(counted).unwrap(), taken, "and what came too often is not written down");
    for id in ["1", "2"] {
        assert_eq!(deliver(&Hook::standard(NEW, id, desk.seconds(), EVENT)).await.status.as_u16(), 200);
        until_refused(async || deliver(&forged).await).await;
    }
}

async fn only_a_trusted_proxy_says_where_a_request_comes_from(db: TestDatabase) {
    let trusted = |config: &mut Config| {
        config.server.trusted_proxies = vec!["10.0.0.0/8".parse().unwrap()];
        assert_eq!(config.server.proxy_header, ProxyHeader::XForwardedFor, "unless the file says otherwise");
    };
    let desk = Desk::adjusted(db, "", trusted).await;
    for (peer, said, origin) in [
        ("198.51.100.7", &[("x-forwarded-for", "192.0.2.1")][..], "198.51.100.7"),
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.1")], "192.0.2.1"),
        ("10.0.0.1", &[("x-forwarded-for", "192.0.2.99, 192.0.2.2")], "192.0.2.2"),
        (
            "10.0.0.1",
            &[("x-forwarded-for", "192.0.2.99"), ("x-forwarded-for", "192.0.2.3, 10.0.0.2")],
            "192.0.2.3",
        ),
        ("10.0.0.1", &[("forwarded", "for=192.0.2.4")], "10.0.0.1"),
        ("10.0.0.1", &[("x-real-ip", "192.0.2.5"), ("x-client-ip", "192.0.2.5")], "10.0.0.1"),
        ("10.0.0.1", &[("x-forwarded-for", "<script>")], "10.0.0.1"),
    ] {
        let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
        let mut request = Request::post("/login")
            .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .extension(ConnectInfo(peer));
        for (name, value) in said {
            request = request.header(*name, *value);
        }
        desk.app.clock.advance(Duration::from_secs(60));
        let body = format!("name=nobody&password={PASSWORD}");
        desk.send(request.body(body.into()).unwrap()).await.expect(422);
        let newest = "SELECT origin FROM audit ORDER BY at DESC, id DESC LIMIT 1";
        assert_eq!(desk.app.raw().await.texts(newest).await, [origin], "{said:?}");
    }
}
