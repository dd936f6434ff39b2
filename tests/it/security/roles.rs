//! Who may ask what: every route of the source has a line here, and every line is asked for by
//! everybody.

use std::collections::BTreeSet;

use axum::http::Method;
use dead_letter_office::accounts::{self, AccountError, By};
use dead_letter_office::domain::actor::Right::*;
use dead_letter_office::domain::actor::{Actor, Right, Rights, Role, Roles, Scope};

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::routes::routes;

on_both!(
    every_route_is_open_to_whom_it_should_be,
    every_right_opens_its_routes_and_no_others,
    a_role_that_the_file_no_longer_has_means_no_rights,
    accounts_refuse_whoever_lacks_the_right_whatever_the_page_says,
    nobody_gives_a_right_that_they_lack,
    nobody_makes_a_token_that_may_do_more_than_they,
    nobody_is_called_like_the_desk_or_like_somebody_else,
    whoever_last_manages_people_stays_whatever_their_role_is_called,
);

/// A page: nobody, viewer, operator, approver, admin, and the rights that it takes. 303 for nobody
/// leads to the sign-in.
const PAGES: &[(&str, &str, [u16; 5], &[Right])] = &[
    ("get", "/", [303, 200, 200, 200, 200], &[View]),
    ("get", "/account", [303, 200, 200, 200, 200], &[]),
    ("get", "/approvals", [303, 200, 200, 200, 200], &[View]),
    ("get", "/approvals/{id}", [303, 404, 404, 404, 404], &[View]),
    ("get", "/audit", [303, 200, 200, 200, 200], &[Audit]),
    ("get", "/bulk", [303, 200, 200, 200, 200], &[View]),
    ("get", "/bulk/new", [303, 200, 200, 200, 200], &[View]),
    ("get", "/bulk/{id}", [303, 404, 404, 404, 404], &[View]),
    // The address is no cause's here: whoever may look is told so.
    ("get", "/causes/{id}", [303, 404, 404, 404, 404], &[View]),
    ("get", "/dead-letters", [303, 200, 200, 200, 200], &[View]),
    ("get", "/dead-letters/{id}", [303, 200, 200, 200, 200], &[View]),
    // Nothing waits for its first code, so that there is no page.
    ("get", "/account/second-factor/app", [303, 303, 303, 303, 303], &[]),
    ("get", "/account/second-factor", [303, 200, 200, 200, 200], &[]),
    ("get", "/confirm", [303, 200, 200, 200, 200], &[]),
    // What one may not do is shown with the right that it needs.
    ("get", "/dead-letters/{id}/correct", [303, 200, 200, 200, 200], &[View]),
    ("get", "/dead-letters/{id}/override", [303, 200, 200, 200, 200], &[View]),
    ("get", "/dead-letters/{id}/replay", [303, 200, 200, 200, 200], &[View]),
    ("get", "/dead-letters/{id}/resolve", [303, 200, 200, 200, 200], &[View]),
    ("get", "/destinations", [303, 200, 200, 200, 200], &[View]),
    ("get", "/destinations/{name}", [303, 404, 404, 404, 404], &[View]),
    // It speaks to pages that listen, and these do not.
    ("get", "/live", [303, 400, 400, 400, 400], &[View]),
    ("get", "/login", [200, 303, 303, 303, 303], &[]),
    // No provider here: `security::sso`.
    ("get", "/login/oidc", [404, 404, 404, 404, 404], &[]),
    ("get", "/login/oidc/back", [404, 404, 404, 404, 404], &[]),
    ("get", "/operations", [303, 200, 200, 200, 200], &[View]),
    ("get", "/operations/{id}", [303, 404, 404, 404, 404], &[View]),
    ("get", "/people", [303, 403, 403, 403, 200], &[ManagePeople]),
    ("get", "/status", [303, 200, 200, 200, 200], &[View]),
    ("get", "/types/{name}", [303, 404, 404, 404, 404], &[View]),
    ("get", "/setup/{token}", [404, 404, 404, 404, 404], &[]),
    ("post", "/account/password", [303, 422, 422, 422, 422], &[]),
    ("post", "/account/sign-out", [303, 303, 303, 303, 303], &[]),
    ("post", "/account/zone", [303, 422, 422, 422, 422], &[]),
    ("post", "/audit/export", [303, 403, 200, 200, 200], &[Audit, Export]),
    ("post", "/bulk/new", [303, 403, 422, 422, 422], &[Bulk, Replay]),
    ("post", "/bulk/{id}/again", [303, 403, 404, 404, 404], &[Bulk]),
    ("post", "/bulk/{id}/cancel", [303, 403, 404, 404, 404], &[Bulk]),
    ("post", "/bulk/{id}/pause", [303, 403, 404, 404, 404], &[Bulk]),
    ("post", "/bulk/{id}/start", [303, 403, 404, 404, 404], &[Bulk]),
    ("post", "/causes/{id}/assign", [303, 403, 404, 404, 404], &[Resolve]),
    ("post", "/causes/{id}/note", [303, 403, 404, 404, 404], &[Resolve]),
    ("post", "/approvals/{id}/approve", [303, 403, 403, 404, 404], &[Approve]),
    ("post", "/approvals/{id}/refuse", [303, 403, 403, 404, 404], &[Approve]),
    ("post", "/approvals/{id}/withdraw", [303, 404, 404, 404, 404], &[View]),
    ("post", "/dead-letters/{id}/assign", [303, 403, 422, 422, 422], &[View, Resolve]),
    ("post", "/dead-letters/{id}/correct", [303, 403, 422, 422, 422], &[Correct]),
    ("post", "/dead-letters/{id}/note", [303, 403, 422, 422, 422], &[View, Resolve]),
    ("post", "/dead-letters/{id}/override", [303, 403, 403, 422, 422], &[Override]),
    ("post", "/dead-letters/{id}/reopen", [303, 403, 422, 422, 422], &[View, Resolve]),
    ("post", "/dead-letters/{id}/replay", [303, 403, 422, 422, 422], &[Replay]),
    ("post", "/dead-letters/{id}/resolve", [303, 403, 422, 422, 422], &[Resolve]),
    ("post", "/dead-letters/{id}/snooze", [303, 403, 422, 422, 422], &[View, Resolve]),
    ("post", "/destinations/{name}/pause", [303, 403, 404, 404, 404], &[PauseDestination]),
    ("post", "/destinations/{name}/resume", [303, 403, 404, 404, 404], &[PauseDestination]),
    ("post", "/login", [422, 422, 422, 422, 422], &[]),
    ("post", "/logout", [303, 303, 303, 303, 303], &[]),
    ("post", "/operations/{id}/ask", [303, 403, 404, 404, 404], &[Replay]),
    ("post", "/operations/{id}/attempts/{attempt}/answer", [303, 403, 404, 404, 404], &[ViewPayload]),
    ("post", "/operations/{id}/evidence.json", [303, 403, 404, 404, 404], &[Export]),
    ("post", "/operations/{id}/payload", [303, 403, 404, 404, 404], &[ViewPayload]),
    ("post", "/operations/{id}/unmasked", [303, 403, 404, 404, 404], &[ViewPayload]),
    ("post", "/operations/{id}/masked", [303, 403, 404, 404, 404], &[ViewPayload]),
    ("post", "/people", [303, 403, 403, 403, 422], &[ManagePeople]),
    ("post", "/people/{id}/disable", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/people/{id}/enable", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/people/{id}/link", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/people/{id}/role", [303, 403, 403, 403, 422], &[ManagePeople]),
    ("post", "/views", [303, 303, 303, 303, 303], &[View]),
    ("post", "/views/{id}/delete", [303, 404, 404, 404, 404], &[View]),
    ("post", "/setup/{token}", [404, 404, 404, 404, 404], &[]),
    // Nobody's second factor is awaited.
    ("get", "/login/second", [303, 303, 303, 303, 303], &[]),
    ("get", "/people/{id}", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("get", "/erase", [303, 403, 403, 403, 200], &[Erase]),
    ("post", "/erase", [303, 403, 403, 403, 422], &[Erase]),
    ("get", "/tokens", [303, 403, 403, 403, 200], &[ManageTokens]),
    ("post", "/account/second-factor/app/confirm", [303, 303, 303, 303, 303], &[]),
    ("post", "/account/second-factor/app/off", [303, 404, 404, 404, 404], &[]),
    ("post", "/account/second-factor/app", [303, 303, 303, 303, 303], &[]),
    ("post", "/account/second-factor/codes", [303, 409, 409, 409, 409], &[]),
    // The desk is reached by a number, where there are no passkeys.
    ("post", "/account/second-factor/passkeys", [303, 409, 409, 409, 409], &[]),
    ("post", "/account/second-factor/passkeys/{id}/remove", [303, 404, 404, 404, 404], &[]),
    // It had ended already, as far as anybody can tell.
    ("post", "/account/sessions/{id}/end", [303, 303, 303, 303, 303], &[]),
    ("post", "/confirm", [303, 303, 303, 303, 303], &[]),
    ("post", "/login/second", [303, 303, 303, 303, 303], &[]),
    ("post", "/people/{id}/second-factor", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/people/{id}/sessions/{session}/end", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/people/{id}/sign-out", [303, 403, 403, 403, 404], &[ManagePeople]),
    ("post", "/tokens", [303, 403, 403, 403, 422], &[ManageTokens]),
    ("post", "/tokens/{id}/revoke", [303, 403, 403, 403, 404], &[ManageTokens]),
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
    let pages = PAGES.iter().map(|(method, path, ..)| (*method, (*path).to_owned()));
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
        person.sign_in(name, PASSWORD).await;
        for (method, path, wanted, _) in PAGES {
            let reply = match *method {
                "get" => person.get(&full(path)).await,
                _ => person.post(&full(path), &[]).await,
            };
            if reply.status.as_u16() != wanted[place + 1] {
                wrong.push(format!("{role} {method} {path}: {}", reply.status));
            }
            if matches!(*path, "/logout" | "/account/sign-out") {
                person.sign_in(name, PASSWORD).await;
            }
        }
    }
    for (method, path, wanted, _) in PAGES {
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

/// `[auth.roles.NAME]` with these rights.
fn role(name: &str, rights: impl IntoIterator<Item = Right>) -> String {
    let words: Vec<String> = rights.into_iter().map(|right| format!("{:?}", right.as_str())).collect();
    format!("[auth.roles.{name}]\nrights = [{}]\n", words.join(", "))
}

async fn every_right_opens_its_routes_and_no_others(db: TestDatabase) {
    // For each right somebody who may look and do this, and somebody who may do all but this.
    let with = |right: Right| BTreeSet::from([View, right]);
    let without = |right: Right| Right::ALL.iter().copied().filter(move |other| *other != right);
    let file: String = Right::ALL
        .iter()
        .flat_map(|right| {
            [role(&format!("with-{right}"), with(*right)), role(&format!("all-but-{right}"), without(*right))]
        })
        .collect();
    let mut desk = Desk::configured(db, &file).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let letter = letter.to_string();
    let full = |path: &str| path.replace("{id}", &letter).replace("{token}", "made-up");
    let people = Right::ALL.iter().flat_map(|right| {
        [(format!("with-{right}"), with(*right)), (format!("all-but-{right}"), without(*right).collect())]
    });
    let mut wrong = Vec::new();
    for (name, held) in people {
        desk.add(&name, &name).await;
        let mut person = desk.nobody();
        person.sign_in(&name, PASSWORD).await;
        let csrf = person.csrf().await;
        for (method, path, _, needs) in PAGES {
            if needs.is_empty() {
                continue;
            }
            let reply = match *method {
                "get" => person.get(&full(path)).await,
                _ => person.post_bare(&full(path), &[("csrf", &csrf)]).await,
            };
            let opens = needs.iter().all(|right| held.contains(right));
            if (reply.status != 403) != opens {
                wrong.push(format!("{name} {method} {path}: {}", reply.status));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let used: BTreeSet<Right> = PAGES.iter().flat_map(|(.., needs)| needs.iter().copied()).collect();
    let unused: Vec<&Right> = Right::ALL.iter().filter(|right| !used.contains(right)).collect();
    assert_eq!(unused, [&Submit, &Work], "what people do not do on pages");
}

async fn a_role_that_the_file_no_longer_has_means_no_rights(db: TestDatabase) {
    let night = role("night-shift", [View, ManagePeople]);
    let desk = Desk::configured(db, &night).await;
    desk.add("nina", "night-shift").await;
    let mut nina = desk.nobody();
    nina.sign_in("nina", PASSWORD).await;
    nina.get("/").await.expect(200);
    let list = nina.get("/people").await.expect(200);
    assert!(list.words().contains("night-shift: view, manage_people."), "{}", list.words());

    // The same database and the same session, after a start with a file that does not have it.
    let cookie = nina.cookie;
    let after = desk.restarted("").await;
    let mut nina = after.nobody();
    nina.cookie = cookie;
    let mut wrong = Vec::new();
    for (method, path, _, needs) in PAGES.iter().filter(|(.., needs)| !needs.is_empty()) {
        let path = path.replace("{id}", "0198c0de-0000-7000-8000-000000000001");
        let reply = if *method == "get" { nina.get(&path).await } else { nina.post(&path, &[]).await };
        // Whether there is such a thing is not for them either, but an address with no id in it is none.
        if reply.status != 403 {
            wrong.push(format!("{method} {path}: {} {needs:?}", reply.status));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
    let own = nina.get("/account").await.expect(200);
    assert!(own.words().contains("Your role is not in the configuration any more"), "{}", own.words());
    after.add("admin", Role::Admin).await;
    let mut boss = after.nobody();
    boss.sign_in("admin", PASSWORD).await;
    let list = boss.get("/people").await.expect(200);
    assert!(
        list.words().contains("night-shift (a role that the configuration does not have"),
        "{}",
        list.words()
    );
    assert!(list.words().contains("Choose a role"), "{}", list.words());
}

/// Somebody with a role of these rights.
fn holder(rights: impl IntoIterator<Item = Right>) -> Actor {
    let own = ("own".to_owned(), Rights::from_iter(rights));
    Actor::Person { name: "olga".to_owned(), role: Roles::with([own]).of("own") }
}

async fn accounts_refuse_whoever_lacks_the_right_whatever_the_page_says(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("vera", Role::Viewer).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let but = |missing: Right| holder(Right::ALL.iter().copied().filter(move |right| *right != missing));
    let scopes = Scope::ALL.iter().map(|scope| Actor::Token { name: "shop".into(), scope: *scope });
    let many = scopes
        .chain([but(ManagePeople), Actor::Person { name: "x".into(), role: Roles::default().of("gone") }]);
    for actor in many {
        let by = By { actor: &actor, origin: "127.0.0.1" };
        let refused = [
            accounts::add_user(db, ambient, "new", Role::Viewer, None, &by).await.map(drop),
            accounts::set_role(db, ambient, "vera", Role::Viewer, &by).await,
            accounts::disable(db, ambient, "vera", &by).await,
            accounts::enable(db, ambient, "vera", &by).await,
            accounts::make_link(db, ambient, Some("vera"), &by).await.map(drop),
            accounts::make_link(db, ambient, None, &by).await.map(drop),
        ];
        for (place, refused) in refused.iter().enumerate() {
            assert!(matches!(refused, Err(AccountError::Forbidden(_))), "{actor} {place}: {refused:?}");
        }
    }
    let actor = but(ManageTokens);
    let by = By { actor: &actor, origin: "127.0.0.1" };
    let refused = accounts::create_token(db, ambient, "shop", Scope::Submit, None, &by).await;
    assert!(matches!(refused, Err(AccountError::Forbidden(_))), "{refused:?}");
    let refused = accounts::revoke_token(db, ambient, "shop", &by).await;
    assert!(matches!(refused, Err(AccountError::Forbidden(_))), "{refused:?}");
    let unknown = By { actor: &Actor::Cli { user: "root".into() }, origin: "cli" };
    let refused = accounts::add_user(db, ambient, "new", "emperor", None, &unknown).await.unwrap_err();
    assert_eq!(
        refused.to_string(),
        "there is no role \"emperor\"; there are viewer, operator, approver and admin"
    );
}

async fn nobody_gives_a_right_that_they_lack(db: TestDatabase) {
    let desk = Desk::configured(db, &role("people-desk", [View, Audit, ManagePeople])).await;
    desk.add("petra", "people-desk").await;
    desk.add("vera", Role::Viewer).await;
    desk.add("anton", Role::Approver).await;
    let mut petra = desk.nobody();
    petra.sign_in("petra", PASSWORD).await;
    let of = async |name: &str| {
        let mut tx = desk.app.engine.db().read().await.unwrap();
        let found = dead_letter_office::store::accounts::user_by_name(&mut tx, name).await.unwrap().unwrap();
        format!("/people/{}", found.id)
    };
    let (vera, anton, own) = (of("vera").await, of("anton").await, of("petra").await);
    for (path, fields) in [
        ("/people".to_owned(), vec![("name", "new"), ("role", "operator")]),
        (format!("{vera}/role"), vec![("role", "approver")]),
        (format!("{own}/role"), vec![("role", "admin")]),
        // Nor by way of somebody else's account.
        (format!("{anton}/link"), vec![]),
        (format!("{anton}/disable"), vec![]),
        (format!("{anton}/role"), vec![("role", "viewer")]),
    ] {
        let reply = petra.post(&path, &fields).await.expect(403);
        assert!(reply.words().contains("You lack rights that this role has"), "{path}: {}", reply.words());
    }
    petra.post("/people", &[("name", "new"), ("role", "viewer")]).await.expect(200);
    petra.post(&format!("{vera}/role"), &[("role", "people-desk")]).await.expect(303);
}

async fn nobody_makes_a_token_that_may_do_more_than_they(db: TestDatabase) {
    let roles = role("token-desk", [View, Submit, ManageTokens]) + &role("key-desk", [View, ManageTokens]);
    let desk = Desk::configured(db, &roles).await;
    desk.add("tom", "token-desk").await;
    desk.add("kim", "key-desk").await;
    let mut tom = desk.nobody();
    tom.sign_in("tom", PASSWORD).await;
    let page = tom.get("/tokens").await.expect(200);
    let offered: Vec<String> = page.all("#scope option").into_iter().map(|(_, words)| words).collect();
    assert_eq!(offered.len(), 1, "{offered:?}");
    for scope in Scope::ALL {
        let fields = [("name", scope.as_str()), ("scope", scope.as_str()), ("days", "30")];
        let reply = tom.post("/tokens", &fields).await;
        assert_eq!(reply.status, if *scope == Scope::Submit { 200 } else { 403 }, "{scope}");
    }
    let mut kim = desk.nobody();
    kim.sign_in("kim", PASSWORD).await;
    let page = kim.get("/tokens").await.expect(200);
    assert!(page.words().contains("no scope is within your rights"), "{}", page.words());
}

/// The audit tells people apart by their names, and from the desk.
async fn nobody_is_called_like_the_desk_or_like_somebody_else(db: TestDatabase) {
    let desk = Desk::start(db).await;
    desk.add("Anna", Role::Viewer).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    for name in ["engine", "Engine", "unknown", "nobody", "me", "anna", "ANNA", "token:x", "cli:root"] {
        let page = boss.post("/people", &[("name", name), ("role", "viewer")]).await.expect(422);
        assert_eq!(page.field("name"), name);
    }
}

async fn whoever_last_manages_people_stays_whatever_their_role_is_called(db: TestDatabase) {
    let desk = Desk::configured(db, &role("people-desk", [View, ManagePeople])).await;
    desk.add("petra", "people-desk").await;
    desk.add("anton", Role::Approver).await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let refused = accounts::disable(db, ambient, "petra", &by_root()).await;
    assert!(matches!(refused, Err(AccountError::LastAdmin(_))), "{refused:?}");
    let refused = accounts::set_role(db, ambient, "petra", Role::Approver, &by_root()).await;
    assert!(matches!(refused, Err(AccountError::LastAdmin(_))), "{refused:?}");
    accounts::set_role(db, ambient, "petra", Role::Admin, &by_root()).await.unwrap();
    accounts::set_role(db, ambient, "anton", "people-desk", &by_root()).await.unwrap();
    accounts::disable(db, ambient, "petra", &by_root()).await.unwrap();
}
