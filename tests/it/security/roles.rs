//! Who may ask what: every route of the source has a line here, and every line is asked for by
//! everybody.

use std::collections::BTreeSet;

use axum::http::Method;
use dead_letter_office::domain::actor::{Role, Scope};

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::routes::routes;

on_both!(every_route_is_open_to_whom_it_should_be);

/// A page: nobody, viewer, operator, approver, admin. 303 for nobody leads to the sign-in.
const PAGES: &[(&str, &str, [u16; 5])] = &[
    ("get", "/", [303, 200, 200, 200, 200]),
    ("get", "/account", [303, 200, 200, 200, 200]),
    ("get", "/approvals", [303, 200, 200, 200, 200]),
    ("get", "/approvals/{id}", [303, 404, 404, 404, 404]),
    ("get", "/audit", [303, 200, 200, 200, 200]),
    ("get", "/bulk", [303, 200, 200, 200, 200]),
    ("get", "/bulk/new", [303, 200, 200, 200, 200]),
    ("get", "/bulk/{id}", [303, 404, 404, 404, 404]),
    // The address is no cause's here: whoever may look is told so.
    ("get", "/causes/{id}", [303, 404, 404, 404, 404]),
    ("get", "/dead-letters", [303, 200, 200, 200, 200]),
    ("get", "/dead-letters/{id}", [303, 200, 200, 200, 200]),
    // What one may not do is shown with the right that it needs.
    ("get", "/dead-letters/{id}/correct", [303, 200, 200, 200, 200]),
    ("get", "/dead-letters/{id}/override", [303, 200, 200, 200, 200]),
    ("get", "/dead-letters/{id}/replay", [303, 200, 200, 200, 200]),
    ("get", "/dead-letters/{id}/resolve", [303, 200, 200, 200, 200]),
    ("get", "/destinations", [303, 200, 200, 200, 200]),
    ("get", "/destinations/{name}", [303, 404, 404, 404, 404]),
    // It speaks to pages that listen, and these do not.
    ("get", "/erase", [303, 403, 403, 403, 200]),
    ("get", "/live", [303, 400, 400, 400, 400]),
    ("get", "/login", [200, 303, 303, 303, 303]),
    ("get", "/operations", [303, 200, 200, 200, 200]),
    ("get", "/operations/{id}", [303, 404, 404, 404, 404]),
    ("get", "/people", [303, 403, 403, 403, 200]),
    ("get", "/status", [303, 200, 200, 200, 200]),
    ("get", "/types/{name}", [303, 404, 404, 404, 404]),
    ("get", "/setup/{token}", [404, 404, 404, 404, 404]),
    ("post", "/account/password", [303, 422, 422, 422, 422]),
    ("post", "/account/sign-out", [303, 303, 303, 303, 303]),
    ("post", "/account/zone", [303, 422, 422, 422, 422]),
    ("post", "/audit/export", [303, 403, 200, 200, 200]),
    ("post", "/bulk/new", [303, 403, 422, 422, 422]),
    ("post", "/bulk/{id}/again", [303, 403, 404, 404, 404]),
    ("post", "/bulk/{id}/cancel", [303, 403, 404, 404, 404]),
    ("post", "/bulk/{id}/pause", [303, 403, 404, 404, 404]),
    ("post", "/bulk/{id}/start", [303, 403, 404, 404, 404]),
    ("post", "/causes/{id}/assign", [303, 403, 404, 404, 404]),
    ("post", "/causes/{id}/note", [303, 403, 404, 404, 404]),
    ("post", "/approvals/{id}/approve", [303, 403, 403, 404, 404]),
    ("post", "/approvals/{id}/refuse", [303, 403, 403, 404, 404]),
    ("post", "/approvals/{id}/withdraw", [303, 404, 404, 404, 404]),
    ("post", "/dead-letters/{id}/assign", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/correct", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/note", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/override", [303, 403, 403, 422, 422]),
    ("post", "/dead-letters/{id}/reopen", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/replay", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/resolve", [303, 403, 422, 422, 422]),
    ("post", "/dead-letters/{id}/snooze", [303, 403, 422, 422, 422]),
    ("post", "/destinations/{name}/pause", [303, 403, 404, 404, 404]),
    ("post", "/destinations/{name}/resume", [303, 403, 404, 404, 404]),
    ("post", "/erase", [303, 403, 403, 403, 422]),
    ("post", "/login", [422, 422, 422, 422, 422]),
    ("post", "/logout", [303, 303, 303, 303, 303]),
    ("post", "/operations/{id}/ask", [303, 403, 404, 404, 404]),
    ("post", "/operations/{id}/attempts/{attempt}/answer", [303, 403, 404, 404, 404]),
    ("post", "/operations/{id}/evidence.json", [303, 403, 404, 404, 404]),
    ("post", "/operations/{id}/payload", [303, 403, 404, 404, 404]),
    ("post", "/operations/{id}/unmasked", [303, 403, 404, 404, 404]),
    ("post", "/people", [303, 403, 403, 403, 422]),
    ("post", "/people/{id}/disable", [303, 403, 403, 403, 404]),
    ("post", "/people/{id}/enable", [303, 403, 403, 403, 404]),
    ("post", "/people/{id}/link", [303, 403, 403, 403, 404]),
    ("post", "/people/{id}/role", [303, 403, 403, 403, 422]),
    ("post", "/views", [303, 303, 303, 303, 303]),
    ("post", "/views/{id}/delete", [303, 404, 404, 404, 404]),
    ("post", "/setup/{token}", [404, 404, 404, 404, 404]),
];

/// A call: no token, and tokens to submit, to read, to operate, to work.
const CALLS: &[(&str, &str, [u16; 5])] = &[
    ("get", "/api/v1/audit", [401, 403, 200, 200, 403]),
    ("get", "/api/v1/bulk/{id}", [401, 403, 404, 404, 403]),
    ("get", "/api/v1/dead-letters", [401, 403, 200, 200, 403]),
    ("get", "/api/v1/dead-letters/{id}", [401, 403, 200, 200, 403]),
    ("get", "/api/v1/operations", [401, 403, 200, 200, 403]),
    ("get", "/api/v1/operations/{id}", [401, 403, 404, 404, 403]),
    ("get", "/api/v1/operations/{id}/attempts", [401, 403, 404, 404, 403]),
    ("get", "/api/v1/operations/{id}/events", [401, 403, 404, 404, 403]),
    ("get", "/healthz", [200, 200, 200, 200, 200]),
    ("get", "/readyz", [200, 200, 200, 200, 200]),
    ("post", "/api/v1/bulk", [401, 403, 403, 400, 403]),
    ("post", "/api/v1/bulk/{id}/cancel", [401, 403, 403, 404, 403]),
    ("post", "/api/v1/bulk/{id}/pause", [401, 403, 403, 404, 403]),
    ("post", "/api/v1/bulk/{id}/start", [401, 403, 403, 404, 403]),
    ("post", "/api/v1/claims", [401, 403, 403, 403, 200]),
    ("post", "/api/v1/claims/{id}/complete", [401, 403, 403, 403, 400]),
    ("post", "/api/v1/claims/{id}/fail", [401, 403, 403, 403, 400]),
    ("post", "/api/v1/claims/{id}/heartbeat", [401, 403, 403, 403, 400]),
    ("post", "/api/v1/claims/{id}/unknown", [401, 403, 403, 403, 400]),
    ("post", "/api/v1/dead-letters/{id}/override", [401, 403, 403, 400, 403]),
    ("post", "/api/v1/dead-letters/{id}/replay", [401, 403, 403, 400, 403]),
    ("post", "/api/v1/dead-letters/{id}/resolve", [401, 403, 403, 400, 403]),
    ("post", "/api/v1/operations", [401, 400, 403, 403, 403]),
    ("post", "/api/v1/operations/{id}/correct", [401, 403, 403, 400, 403]),
    ("post", "/api/v1/operations/{id}/lookup", [401, 403, 403, 404, 403]),
    ("post", "/api/v1/operations/batch", [401, 200, 403, 403, 403]),
    // No token opens a source, and which sources there are is told to nobody.
    ("post", "/hooks/{source}", [404, 404, 404, 404, 404]),
];

/// Files, for everybody.
const OPEN: &[(&str, &str)] = &[("get", "/static/{name}")];

async fn every_route_is_open_to_whom_it_should_be(db: TestDatabase) {
    let pages = PAGES.iter().map(|(method, path, _)| (*method, (*path).to_owned()));
    let calls = CALLS.iter().map(|(method, path, _)| (*method, (*path).to_owned()));
    let open = OPEN.iter().map(|(method, path)| (*method, (*path).to_owned()));
    let listed: BTreeSet<(&str, String)> = pages.chain(calls).chain(open).collect();
    assert_eq!(listed, routes(), "every route has a line, and every line a route");

    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let letter = letter.to_string();
    let full = |path: &str| path.replace("{id}", &letter).replace("{token}", "made-up");
    let mut wrong = Vec::new();

    for (place, role) in [Role::Viewer, Role::Operator, Role::Approver, Role::Admin].iter().enumerate() {
        let name = role.as_str();
        desk.add(name, *role).await;
        let mut person = desk.nobody();
        person.sign_in(name, crate::support::desk::PASSWORD).await;
        for (method, path, wanted) in PAGES {
            let reply = match *method {
                "get" => person.get(&full(path)).await,
                _ => person.post(&full(path), &[]).await,
            };
            if reply.status.as_u16() != wanted[place + 1] {
                wrong.push(format!("{role} {method} {path}: {}", reply.status));
            }
            if matches!(*path, "/logout" | "/account/sign-out") {
                person.sign_in(name, crate::support::desk::PASSWORD).await;
            }
        }
    }
    for (method, path, wanted) in PAGES {
        let mut nobody = desk.nobody();
        let reply = match *method {
            "get" => nobody.get(&full(path)).await,
            _ => nobody.post_bare(&full(path), &[]).await,
        };
        let to_door = reply.status.as_u16() != 303 || reply.location().starts_with("/login");
        if reply.status.as_u16() != wanted[0] || !to_door {
            wrong.push(format!("nobody {method} {path}: {}", reply.status));
        }
    }
    let tokens = [
        String::new(),
        desk.token(Scope::Submit).await,
        desk.token(Scope::Read).await,
        desk.token(Scope::Operate).await,
        desk.token(Scope::Work).await,
    ];
    for (method, path, wanted) in CALLS {
        for (token, wanted) in tokens.iter().zip(wanted) {
            let method = method.to_uppercase().parse::<Method>().unwrap();
            let body = if method == Method::POST { "{}" } else { "" };
            let reply = desk.call(method.clone(), &full(path), token, body).await;
            if reply.status.as_u16() != *wanted {
                wrong.push(format!("{method} {path}: {} instead of {wanted}", reply.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}
