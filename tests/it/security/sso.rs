//! Sign-in at an identity provider: identity is issuer and subject, the role comes by mapping, and
//! nothing but a token that holds lets anybody in.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::{Request, StatusCode, header};
use dead_letter_office::accounts;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::sso::{Sso, SsoError};
use dead_letter_office::store::accounts::{UserRow, users};
use dead_letter_office::store::audit::AuditRow;
use futures_util::future::join_all;
use serde_json::{Value, json};

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person, Reply};
use crate::support::provider::{Cookies, Provider};

on_both!(
    the_role_is_what_the_provider_says_at_each_sign_in,
    an_account_is_its_identitys_and_nobody_elses,
    an_answer_counts_once_and_only_in_the_browser_that_asked,
    a_token_that_does_not_hold_lets_nobody_in,
    new_keys_are_fetched_and_not_too_often,
    a_disabled_person_stays_out,
    whoever_has_no_role_stays_out_unless_there_is_one_for_everybody,
    signing_in_again_there_counts_as_a_fresh_sign_in,
    an_earlier_sign_in_there_is_no_fresh_one_here,
    a_provider_that_does_not_answer_is_said_not_to,
    passwords_can_be_switched_off,
    the_provider_is_asked_behind_the_address_guard,
    one_address_begins_so_many_sign_ins_and_no_more,
);

const ROLES: &str = "button = \"Sign in with Example\"\n[auth.oidc.roles]\n\
    desk-admins = \"admin\"\ndesk-operators = \"operator\"\ndesk-viewers = \"viewer\"";

/// A desk, and the provider at which its people sign in.
async fn both(db: TestDatabase, more: &str) -> (Desk, Provider) {
    let desk = Desk::start(db).await;
    let public = desk.app.engine.config().server.public_url.clone();
    let provider = Provider::start(desk.app.engine.ambient().now(), public.as_str()).await;
    let desk = desk.restarted(&provider.lines(more)).await;
    (desk, provider)
}

/// Signs in there as `name`, in a browser that the provider has not seen; what the desk says then.
async fn comes(person: &mut Person<'_>, provider: &Provider, name: &str) -> Reply {
    let back = there(person, provider, name).await;
    person.get(&back).await
}

/// The same without coming back: the address at which they would.
async fn there(person: &mut Person<'_>, provider: &Provider, name: &str) -> String {
    let to = person.get("/login/oidc?next=%2Fdead-letters").await.location().to_owned();
    provider.walk(&mut Cookies::default(), &to, name).await.0
}

async fn everybody(desk: &Desk) -> Vec<UserRow> {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    users(&mut tx).await.unwrap()
}

/// Actor, action, result and detail of everything on record, oldest first.
async fn record(desk: &Desk) -> Vec<String> {
    let line = |row: AuditRow| format!("{} {} {} {}", row.actor, row.action, row.result, row.detail);
    desk.app.on_record().await.into_iter().map(line).collect()
}

async fn the_role_is_what_the_provider_says_at_each_sign_in(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    let issuer = &provider.issuer;
    let door = desk.nobody().get("/login?next=%2Faudit").await.expect(200);
    assert!(
        door.text.contains("href=\"/login/oidc?next=%2Faudit\">Sign in with Example</a>"),
        "{}",
        door.text
    );
    let anna = |groups: Value| json!({"s-1": {"preferred_username": "anna", "groups": groups}});

    provider.people(anna(json!(["staff", "desk-viewers", "desk-operators"]))).await;
    let mut first = desk.nobody();
    assert_eq!(comes(&mut first, &provider, "s-1").await.location(), "/dead-letters");
    let account = first.get("/account").await.expect(200);
    assert!(account.words().contains("anna operator"), "the one with more rights: {}", account.words());

    // One word instead of a list; the sessions of before end with the change.
    provider.people(anna(json!("desk-admins"))).await;
    let mut second = desk.nobody();
    comes(&mut second, &provider, "s-1").await.expect(303);
    assert!(second.get("/account").await.words().contains("anna admin"));
    assert!(!first.is_in().await, "what they were before is over");

    provider.people(anna(json!(["staff"]))).await;
    let mut third = desk.nobody();
    let refused = comes(&mut third, &provider, "s-1").await.expect(403);
    assert!(refused.words().contains("knows you as anna, and nothing that it says"), "{}", refused.words());
    assert!(!third.is_in().await && !second.is_in().await, "nor by an earlier sign-in");
    assert_eq!(everybody(&desk).await.len(), 1);
    assert_eq!(
        record(&desk).await,
        [
            format!("anna user_add done anna as operator, who is s-1 of {issuer}"),
            format!("anna sign_in done at {issuer}"),
            format!("anna user_role done anna: operator to admin, as {issuer} says"),
            format!("anna sign_in done at {issuer}"),
            format!("anna sign_in_failed refused no role is mapped for s-1 of {issuer}"),
        ]
    );
}

async fn an_account_is_its_identitys_and_nobody_elses(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    desk.add("anna", Role::Admin).await;
    let groups = ["desk-viewers"];
    let said = |name: &str| json!({"preferred_username": name, "groups": groups});
    provider
        .people(json!({
            "s-1": said("Anna"), "s-2": said("anna"), "s-3": said("token:shop\n"), "s-4": said("me"),
            "s-5": {"email": "eve@example.com", "groups": groups},
            "s-6": said(&"x".repeat(300)),
        }))
        .await;
    for subject in ["s-1", "s-2", "s-3", "s-4", "s-5", "s-6"] {
        comes(&mut desk.nobody(), &provider, subject).await.expect(303);
    }
    let mut names: Vec<String> = everybody(&desk).await.into_iter().map(|user| user.name).collect();
    names.sort();
    let long = "x".repeat(56);
    assert_eq!(names, ["Anna 2", "anna", "anna 3", "eve@example.com", "me 2", "token-shop-", &long]);
    let roles: Vec<String> = everybody(&desk).await.into_iter().map(|user| user.role).collect();
    assert_eq!(
        roles.iter().filter(|role| *role == "admin").count(),
        1,
        "nobody came into the other's account"
    );

    // Whatever they are called there later, they are who they were.
    provider.people(json!({"s-1": said("root"), "s-2": said("anna")})).await;
    let mut anna = desk.nobody();
    comes(&mut anna, &provider, "s-1").await.expect(303);
    assert!(anna.get("/account").await.words().contains("Anna 2 viewer"));
    assert_eq!(everybody(&desk).await.len(), 7);
    // An account of theirs has no password that could be guessed.
    let tried = desk.nobody().sign_in("Anna 2", "").await;
    assert_eq!(tried.status, 422);
}

async fn an_answer_counts_once_and_only_in_the_browser_that_asked(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    let again = "was not begun in this browser, took too long, or was finished already";

    let mut anna = desk.nobody();
    let back = there(&mut anna, &provider, "s-1").await;
    let query = |part: &str| back.split(['?', '&']).find(|found| found.starts_with(part)).unwrap().to_owned();
    let code = query("code=");
    // Another browser, such as that of somebody who is to act in our name without knowing it.
    let mut other = desk.nobody();
    let refused = other.get(&back).await.expect(403);
    assert!(refused.words().contains(again), "{}", refused.words());
    other.get("/login/oidc").await.expect(303);
    let refused = other.get(&back).await.expect(403);
    assert!(refused.words().contains(again), "its own sign-in is another one: {}", refused.words());
    assert!(!other.is_in().await);
    // This browser with another state, or none; what such an address says is shown to nobody.
    let pasted = format!("/login/oidc/back?{code}&state=x&error=access_denied&error_description=Call%20555");
    for wrong in [format!("/login/oidc/back?{code}"), format!("/login/oidc/back?{code}&state=x"), pasted] {
        let refused = anna.get(&wrong).await.expect(403);
        assert!(refused.words().contains(again) && !refused.text.contains("555"), "{}", refused.words());
    }
    assert_eq!(anna.get(&back).await.location(), "/dead-letters", "the right one still counts");
    let first = anna.cookie.clone();
    anna.get(&back).await.expect(403);
    assert_eq!(anna.cookie, first);
    assert!(anna.is_in().await, "whoever is in stays in");

    // A code that nobody gave out, or another provider's answer.
    for (query, status) in
        [("code=made-up&STATE", 403), ("STATE", 403), ("code=x&STATE&iss=https%3A%2F%2Fevil.example", 403)]
    {
        let mut person = desk.nobody();
        let back = there(&mut person, &provider, "s-1").await;
        let state = back.split(['?', '&']).find(|found| found.starts_with("state=")).unwrap();
        let reply =
            person.get(&format!("/login/oidc/back?{}", query.replace("STATE", state))).await.expect(status);
        assert!(reply.words().contains("does not hold"), "{}", reply.words());
        assert!(!person.is_in().await);
    }
    // The provider says no: its words are text.
    let mut person = desk.nobody();
    person.get("/login/oidc").await.expect(303);
    let to = person.get("/login/oidc").await.location().to_owned();
    let state = to.split(['?', '&']).find(|found| found.starts_with("state=")).unwrap();
    let said = "%3Cimg%20src%3Dx%3E%0A%20no";
    let path = format!("/login/oidc/back?error=access_denied&error_description={said}&{state}");
    let reply = person.get(&path).await.expect(403);
    assert!(
        reply.words().contains("The identity provider says: \u{201c}<img src=x> no\u{201d}."),
        "{}",
        reply.words()
    );
    assert!(!reply.text.contains("<img"), "{}", reply.text);
    // Too late.
    let mut person = desk.nobody();
    let back = there(&mut person, &provider, "s-1").await;
    desk.app.clock.advance(Duration::from_mins(11));
    let reply = person.get(&back).await.expect(403);
    assert!(reply.words().contains(again), "{}", reply.words());
}

async fn a_token_that_does_not_hold_lets_nobody_in(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-admins"]}})).await;
    for (wrong, why) in [
        (json!({"claims": {"nonce": "another"}}), "nonce"),
        (json!({"claims": {"nonce": null}}), "nonce"),
        (json!({"claims": {"iss": "https://evil.example"}}), "issuer"),
        (json!({"claims": {"aud": "another"}}), "audience"),
        (json!({"claims": {"aud": ["desk", "another"]}}), "audience"),
        (json!({"claims": {"exp": 1_700_000_000}}), "xpired"),
        (json!({"claims": {"at_hash": "AAAAAAAAAAAAAAAAAAAAAA"}}), "access token"),
        (json!({"claims": {"sub": "s-2"}}), "subject"),
        (json!({"sign": "key"}), "ignature"),
        (json!({"sign": "secret"}), "ignature"),
        (json!({"sign": "none"}), "ignature"),
    ] {
        provider.tampers(wrong.clone()).await;
        let mut anna = desk.nobody();
        let reply = comes(&mut anna, &provider, "s-1").await.expect(403);
        assert!(
            reply.words().contains("does not hold, so you were not signed in"),
            "{wrong}: {}",
            reply.words()
        );
        assert!(!anna.is_in().await, "{wrong}");
        let last = record(&desk).await.pop().unwrap();
        assert!(last.starts_with("unknown sign_in_failed refused ") && last.contains(why), "{wrong}: {last}");
    }
    assert!(everybody(&desk).await.is_empty());
    provider.tampers(json!({"claims": {}})).await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(303);
}

async fn new_keys_are_fetched_and_not_too_often(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(303);
    provider.new_keys().await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(403);
    desk.app.clock.advance(Duration::from_secs(61));
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(303);
}

async fn a_disabled_person_stays_out(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    let mut anna = desk.nobody();
    comes(&mut anna, &provider, "s-1").await.expect(303);
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    accounts::disable(db, ambient, "anna", &by_root()).await.unwrap();
    assert!(!anna.is_in().await);
    // More rights there do not open it either.
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-admins"]}})).await;
    let refused = comes(&mut anna, &provider, "s-1").await.expect(403);
    assert!(refused.words().contains("Your account here is disabled"), "{}", refused.words());
    assert!(!anna.is_in().await);
    assert_eq!(everybody(&desk).await[0].role, "viewer");
    let last = record(&desk).await.pop().unwrap();
    assert_eq!(last, "anna sign_in_failed refused the account is disabled");
}

async fn whoever_has_no_role_stays_out_unless_there_is_one_for_everybody(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "realm": {"roles": ["x"]}}})).await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(403);
    assert!(everybody(&desk).await.is_empty(), "nothing is made of them");
    let desk = desk.restarted(&provider.lines("default_role = \"viewer\"")).await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(303);
    let roles: Vec<String> = everybody(&desk).await.into_iter().map(|user| user.role).collect();
    assert_eq!(roles, ["viewer"]);
}

async fn signing_in_again_there_counts_as_a_fresh_sign_in(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    let group = ["desk-operators"];
    provider
        .people(json!({
            "s-1": {"preferred_username": "anna", "groups": group},
            "s-2": {"preferred_username": "ben", "groups": group},
        }))
        .await;
    let mut cookies = Cookies::default();
    let mut anna = desk.nobody();
    let to = anna.get("/login/oidc").await.location().to_owned();
    let (back, asked) = provider.walk(&mut cookies, &to, "s-1").await;
    anna.get(&back).await.expect(303);
    assert_eq!(asked, 1);
    let first = anna.cookie.clone();
    // Whoever is in is not sent there for nothing.
    assert_eq!(anna.get("/login/oidc?next=%2Fbulk").await.location(), "/bulk");

    desk.app.clock.advance(Duration::from_mins(10));
    provider.clock(desk.app.engine.ambient().now()).await;
    let confirm = "/login/oidc?confirm=1&next=%2Fapprovals";
    let to = anna.get(confirm).await.location().to_owned();
    assert!(to.contains("prompt=login") && to.contains("max_age=0"), "{to}");
    let (back, asked) = provider.walk(&mut cookies, &to, "s-1").await;
    assert_eq!(asked, 1, "it knows them, and asks all the same");
    assert_eq!(anna.get(&back).await.location(), "/approvals");
    assert_ne!(anna.cookie, first, "under a new id");
    assert!(anna.get("/account").await.words().starts_with("anna operator \u{b7} signed in just now"));
    assert!(anna.get("/account").await.words().contains(", at the identity provider"));
    assert!(!anna.get("/account").await.text.contains("type=\"password\""), "they have none here");
    let last = record(&desk).await.pop().unwrap();
    assert_eq!(last, format!("anna sign_in done again, at {}", provider.issuer));

    // Somebody else at the same desk.
    let to = anna.get(confirm).await.location().to_owned();
    let (back, _) = provider.walk(&mut Cookies::default(), &to, "s-2").await;
    let reply = anna.get(&back).await.expect(409);
    assert!(reply.words().contains("You are still anna here"), "{}", reply.words());
    assert!(anna.get("/account").await.words().contains("anna operator"));
    // A provider that takes an earlier sign-in's word.
    let earlier = desk.app.engine.ambient().now().as_micros() / 1_000_000 - 300;
    for claims in [json!({"auth_time": earlier}), json!({"auth_time": null})] {
        provider.tampers(json!({"claims": claims})).await;
        let to = anna.get(confirm).await.location().to_owned();
        let (back, _) = provider.walk(&mut cookies, &to, "s-1").await;
        anna.get(&back).await.expect(403);
    }
}

/// A provider that knows from this morning who sits there has asked nobody: they come in, and what is
/// grave asks again.
async fn an_earlier_sign_in_there_is_no_fresh_one_here(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "ada", "groups": ["desk-admins"]}})).await;
    let now = desk.app.engine.ambient().now().as_micros() / 1_000_000;
    for (auth_time, fresh) in
        [(json!(now), true), (json!(now - 299), true), (json!(now - 300), false), (json!(null), false)]
    {
        provider.tampers(json!({"claims": {"auth_time": auth_time}})).await;
        let mut ada = desk.nobody();
        let to = ada.get("/login/oidc").await.location().to_owned();
        assert!(to.contains("max_age=43200"), "it is asked to say when: {to}");
        assert_eq!(comes(&mut ada, &provider, "s-1").await.location(), "/dead-letters");
        assert!(ada.get("/account").await.words().starts_with("ada admin \u{b7} signed in just now"));
        let reply = ada.post("/people", &[("name", "x:"), ("role", "viewer")]).await.expect(422);
        assert_eq!(
            !reply.words().contains("Confirm that it is you"),
            fresh,
            "{auth_time}: {}",
            reply.words()
        );
    }
}

async fn a_provider_that_does_not_answer_is_said_not_to(db: TestDatabase) {
    let (desk, mut provider) = both(db, ROLES).await;
    desk.add("olga", Role::Viewer).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    let mut anna = desk.nobody();
    let back = there(&mut anna, &provider, "s-1").await;
    provider.stop().await;
    let reply = anna.get(&back).await.expect(503);
    assert!(
        reply.words().contains("The identity provider does not answer as it should"),
        "{}",
        reply.words()
    );
    assert!(reply.text.contains("href=\"/login/oidc?next=%2Fdead-letters\""), "the way there is kept");
    assert!(!anna.is_in().await);
    // What it said of itself is forgotten in time, and it is asked for nothing before.
    desk.app.clock.advance(Duration::from_mins(61));
    let reply = desk.nobody().get("/login/oidc").await.expect(503);
    assert!(reply.words().contains("Try again in a minute"), "{}", reply.words());
    assert!(!reply.text.contains("127.0.0.1"), "why is for the log");
    let mut olga = desk.nobody();
    assert_eq!(olga.sign_in("olga", PASSWORD).await.location(), "/", "who has a password comes in with it");
}

async fn passwords_can_be_switched_off(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    desk.add("olga", Role::Admin).await;
    let lines = format!("[auth]\nlocal_sign_in = false\n{}", provider.lines(ROLES));
    let desk = desk.restarted(&lines).await;
    let door = desk.nobody().get("/login").await.expect(200);
    assert!(
        !door.text.contains("type=\"password\"") && door.text.contains("Sign in with Example"),
        "{}",
        door.text
    );
    let mut olga = desk.nobody();
    let refused = olga.sign_in("olga", PASSWORD).await.expect(403);
    assert!(refused.words().contains("Nobody signs in with a password here"), "{}", refused.words());
    assert!(!olga.is_in().await);
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    comes(&mut desk.nobody(), &provider, "s-1").await.expect(303);

    // The way in when the provider is gone: a link from the command line.
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let secret = accounts::make_link(db, ambient, Some("olga"), &by_root()).await.unwrap();
    let mut olga = desk.nobody();
    olga.post_bare(&format!("/setup/{secret}"), &[("password", "another good password")]).await.expect(303);
    assert!(olga.is_in().await);
}

async fn the_provider_is_asked_behind_the_address_guard(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    let mut config = desk.configuration(&provider.lines(ROLES));
    config.server.allow_private_destinations = false;
    for (issuer, why) in [
        (provider.issuer.as_str(), "is plain http"),
        ("https://127.0.0.1:9", "private or reserved network"),
        ("https://[::ffff:10.0.0.1]", "private or reserved network"),
        ("https://localhost:9", "private or reserved network"),
    ] {
        let mut config = config.clone();
        config.auth.oidc.as_mut().unwrap().issuer = issuer.to_owned();
        let sso = Sso::new(Arc::new(config), desk.app.engine.ambient().clone());
        let refused = sso.begin(sso.oidc().unwrap(), false).await.map(|(url, _)| url);
        let Err(SsoError::Unreachable(text)) = refused else { panic!("{issuer}: {refused:?}") };
        assert!(text.contains(why), "{issuer}: {text}");
    }
    let shown = format!("{:?}", config.auth.oidc);
    assert!(shown.contains("[redacted]") && !shown.contains(crate::support::provider::SECRET), "{shown}");
}

async fn one_address_begins_so_many_sign_ins_and_no_more(db: TestDatabase) {
    let (desk, provider) = both(db, ROLES).await;
    provider.people(json!({"s-1": {"preferred_username": "anna", "groups": ["desk-viewers"]}})).await;
    let mut anna = desk.nobody();
    comes(&mut anna, &provider, "s-1").await.expect(303);
    let ask = |path: &str, peer: &str, cookie: &str| {
        let peer: SocketAddr = format!("{peer}:4711").parse().unwrap();
        let request = Request::get(path).header(header::COOKIE, cookie).extension(ConnectInfo(peer));
        desk.send(request.body(Body::empty()).unwrap())
    };
    let begin = |peer: &'static str| ask("/login/oidc?next=%2Faudit", peer, "");

    // All at once, so that no time goes by in which some would come back.
    let answers = join_all((0..60).map(|_| begin("192.0.2.1"))).await;
    let (begun, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|answer| answer.status == StatusCode::SEE_OTHER);
    assert!((20..60).contains(&begun.len()), "{}", begun.len());
    for answer in refused {
        let answer = answer.expect(429);
        assert_eq!(answer.header("retry-after"), "1");
        assert!(answer.words().contains("There were too many tries. Wait 1 s, then try again."));
        assert!(answer.text.contains("href=\"/login/oidc?next=%2Faudit\""), "the way there is kept");
        assert_eq!(answer.header("set-cookie"), "", "and no session is made");
    }
    begin("192.0.2.2").await.expect(303);
    // Whoever is in there shows again who they are, whatever others do.
    let cookie = anna.cookie.clone().unwrap();
    let answers = join_all((0..40).map(|_| ask("/login/oidc?confirm=1", "192.0.2.1", &cookie))).await;
    for answer in answers {
        assert!(answer.location().contains("prompt=login"), "{}", answer.location());
    }
}
