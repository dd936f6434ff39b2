//! What every answer carries, whatever it answers.

use axum::body::Body;
use axum::http::{Method, Request};
use dead_letter_office::domain::actor::Role;

use crate::support::databases::TestDatabase;
use crate::support::desk::Desk;
use crate::support::routes::routes;

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
            let page = reply.header("content-type").starts_with("text/html");
            if page && reply.status.as_u16() == 200 {
                assert_eq!(reply.header("cache-control"), "no-store", "{about}");
            }
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
