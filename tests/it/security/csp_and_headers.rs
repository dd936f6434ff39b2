//! What every answer carries, whatever it answers.

use axum::body::Body;
use axum::http::{Method, Request};
use dead_letter_office::domain::actor::Role;

use crate::support::databases::TestDatabase;
use crate::support::desk::Desk;
use crate::support::routes::routes;
use crate::support::served::Served;
use crate::support::wire::{PATIENCE, Wire};

#[tokio::test]
async fn every_answer_has_the_headers_that_protect_it() {
    let mut desk = Desk::start(TestDatabase::sqlite()).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let mut asked: Vec<(Method, String)> = routes()
        .into_iter()
        .map(|(method, path)| {
            let path =
                path.replace("{id}", &letter.to_string()).replace("{token}", "x").replace("{name}", "x");
            (method.to_uppercase().parse().unwrap(), path)
        })
        .collect();
    asked.extend([
        (Method::GET, "/nothing/here".to_owned()),
        (Method::GET, "/api/v1/nothing".to_owned()),
        (Method::DELETE, "/login".to_owned()),
        (Method::PUT, "/api/v1/operations".to_owned()),
        (Method::GET, "/login?%ff=%fe".to_owned()),
        (Method::GET, "/setup/%ff".to_owned()),
        (Method::GET, "/api/v1/operations/%ff".to_owned()),
        (Method::GET, "/api/v1/operations?limit=%ff&limit=0".to_owned()),
    ]);
    let mut boss = desk.signed_in(Role::Admin).await;
    boss.get("/account").await;
    let cookie = boss.cookie.clone().unwrap();
    for cookie in ["", &cookie] {
        for (method, path) in &asked {
            let request = Request::builder().method(method).uri(path).header("cookie", cookie);
            let reply = desk.send(request.body(Body::empty()).unwrap()).await;
            let about = format!("{method} {path}: {}", reply.status);
            assert_ne!(reply.status.as_u16(), 500, "{about}");
            let csp = reply.header("content-security-policy");
            for part in [
                "default-src 'none'",
                "script-src 'self'",
                "style-src 'self'",
                "object-src 'none'",
                "base-uri 'none'",
                "frame-ancestors 'none'",
                "form-action 'self'",
            ] {
                assert!(csp.split("; ").any(|each| each == part), "{about}: {csp}");
            }
            assert!(!csp.contains("unsafe"), "{about}");
            for (name, value) in [
                ("x-content-type-options", "nosniff"),
                ("referrer-policy", "same-origin"),
                ("cross-origin-opener-policy", "same-origin"),
                ("cross-origin-resource-policy", "same-origin"),
                ("x-frame-options", "DENY"),
            ] {
                assert_eq!(reply.header(name), value, "{about}: {name}");
            }
            assert_eq!(reply.header("x-request-id").len(), 12, "{about}");
            assert_eq!(reply.header("strict-transport-security"), "", "{about}: over plain http");
            let page = reply.header("content-type").starts_with("text/html");
            assert_eq!(reply.header("cache-control"), "no-store", "{about}");
            let error = reply.status.is_client_error() || reply.status.is_server_error();
            if (path.starts_with("/api/") || path.starts_with("/hooks/")) && error {
                assert_eq!(
                    reply.header("content-type"),
                    "application/problem+json",
                    "{about}: {}",
                    reply.text
                );
                assert_eq!(reply.json()["status"], reply.status.as_u16(), "{about}");
                assert_eq!(reply.json()["request_id"], reply.header("x-request-id"), "{about}");
            } else if error && !path.starts_with("/static/") {
                assert!(page, "{about}: {}", reply.text);
                assert!(reply.text.contains(reply.header("x-request-id")), "{about}: {}", reply.text);
            }
        }
    }
}

#[tokio::test]
async fn over_https_browsers_are_told_to_stay_there() {
    let desk = Desk::reached_at(TestDatabase::sqlite(), "https://desk.example.com").await;
    for path in ["/login", "/nothing", "/api/v1/operations", "/static/nothing", "/healthz"] {
        let reply = desk.send(Request::get(path).body(Body::empty()).unwrap()).await;
        let told = reply.header("strict-transport-security");
        assert_eq!(told, "max-age=31536000; includeSubDomains", "{path}");
    }
}

#[tokio::test]
async fn only_files_of_ours_are_kept_by_browsers() {
    let desk = Desk::start(TestDatabase::sqlite()).await;
    let page = desk.nobody().get("/login").await;
    let address =
        page.text.split("rel=\"stylesheet\" href=\"").nth(1).and_then(|rest| rest.split('"').next());
    let file = Request::get(address.expect("a style sheet")).body(Body::empty()).unwrap();
    let file = desk.send(file).await.expect(200);
    assert!(file.header("cache-control").contains("immutable"), "{}", file.header("cache-control"));
    let gone = desk.send(Request::get("/static/gone.css").body(Body::empty()).unwrap()).await.expect(404);
    assert_eq!(gone.header("cache-control"), "no-store");
}

/// What a server says before it has a request, or to one that it never reads.
#[tokio::test]
async fn answers_from_before_the_router_have_them_too() {
    let served = Served::adjusted("", |config| {
        config.server.max_connections = 16;
        config.server.public_url = "https://desk.example.com".parse().unwrap();
        config.server.client_timeout = PATIENCE / 20;
    })
    .await;
    let address = served.url.strip_prefix("http://").unwrap().parse().unwrap();
    let long = format!("GET / HTTP/1.1\r\nx-long: {}\r\n\r\n", "a".repeat(70_000));
    let form = "POST /login HTTP/1.1\r\nhost: x\r\ncontent-type: application/x-www-form-urlencoded\r\n\
        sec-fetch-site: same-origin\r\nconnection: close\r\ncontent-length: ";
    let large = format!("{form}300000\r\n\r\n{}", "a".repeat(300_000));
    let slow = format!("{form}100\r\n\r\na");
    let mut answers = Vec::new();
    for (status, bytes) in [
        (400, "what is this\r\n\r\n"),
        (431, &long),
        (408, "GET / HTTP/1.1\r\nhost: "),
        (408, &slow),
        (413, &large),
        (404, "GET /nothing HTTP/1.1\r\nconnection: close\r\n\r\n"),
        (405, "BREW /login HTTP/1.1\r\nconnection: close\r\n\r\n"),
        (200, "GET /login HTTP/1.1\r\nconnection: close\r\n\r\n"),
    ] {
        let mut wire = Wire::to(address).await;
        wire.send(bytes).await;
        let answer = wire.rest().await.unwrap_or_else(|| panic!("no answer where {status} was due"));
        assert_eq!(answer.status, status, "{}", answer.body);
        answers.push(answer);
    }
    let mut held = Vec::new();
    for _ in 0..16 {
        held.push(Wire::to(address).await);
    }
    let mut refused = Wire::to(address).await;
    refused.send("GET / HTTP/1.1\r\nhost: x\r\n\r\n").await;
    let refused = refused.rest().await.expect("an answer");
    assert_eq!(refused.status, 503);
    answers.push(refused);
    for answer in &answers {
        for (name, part) in [
            ("content-security-policy", "default-src 'none'; style-src 'self'; script-src 'self'"),
            ("content-security-policy", "frame-ancestors 'none'"),
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
            ("cross-origin-resource-policy", "same-origin"),
            ("x-frame-options", "DENY"),
            ("cache-control", "no-store"),
            ("strict-transport-security", "max-age=31536000; includeSubDomains"),
            ("content-type", "text/html; charset=utf-8"),
        ] {
            assert!(answer.header(name).contains(part), "{}, {name}: {:?}", answer.status, answer);
        }
        assert_eq!(answer.header("x-request-id").len(), 12, "{answer:?}");
        assert!(answer.header("server").is_empty(), "{answer:?}");
    }
}
