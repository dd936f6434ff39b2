//! Webhooks that are refused: told why in a way that helps an honest sender, counted, and nothing
//! else changed.

use std::collections::BTreeMap;
use std::time::Duration;

use axum::http::Method;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::domain::webhook::{Headers, HookOutcome};
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::hooks::HookError;
use dead_letter_office::store::hooks;
use futures_util::future::join_all;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::Desk;
use crate::support::hooks::{Hook, NEW, OLD, sources};
use crate::support::tables::business;

on_both!(
    what_is_not_proven_is_refused_and_counted,
    what_is_proven_and_cannot_be_taken_is_refused_and_counted,
    no_other_way_in_opens_a_source,
    junk_adds_to_a_number_and_not_to_the_database,
    nodes_count_together,
    an_unreachable_store_asks_for_another_try,
    the_status_page_tells_what_sources_send,
);

const EVENT: &str = r#"{"type":"invoice.paid","data":{"object":{"order_id":"1","customer_id":"C-7"}}}"#;
const WRONG: &[u8] = b"a secret of nobody's";

/// What stands in the database besides counts.
async fn rest(desk: &Desk) -> Vec<(String, String)> {
    let mut rows = business(&desk.app).await;
    rows.retain(|(table, _)| table != "hook_counts");
    rows
}

async fn counts(desk: &Desk) -> BTreeMap<(String, HookOutcome), i64> {
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let rows = hooks::since(&mut tx, desk.app.now().minus(Duration::from_hours(24))).await.unwrap();
    rows.into_iter().map(|row| ((row.source, row.outcome), row.count)).collect()
}

async fn what_is_not_proven_is_refused_and_counted(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let at = desk.seconds();
    let before = rest(&desk).await;
    let standard = |at| Hook::standard(NEW, "msg_1", at, EVENT);
    let stripe = |at| Hook::stripe(OLD, at, EVENT);
    let github = || Hook::github(NEW, "1", "issues", EVENT);
    let cloud = || Hook::cloud(NEW, "{}");
    let altered = |mut hook: Hook, place: usize| {
        hook.body[place] ^= 1;
        hook
    };
    use HookOutcome::{BadSignature, Stale, Unsigned};
    let cases = [
        (Hook::standard(WRONG, "msg_1", at, EVENT), BadSignature, "No secret of this source matches."),
        (altered(standard(at), 0), BadSignature, "No secret"),
        (altered(standard(at), EVENT.len() - 1), BadSignature, "No secret"),
        (standard(at).with("webhook-id", "msg_2"), BadSignature, "No secret"),
        (standard(at).with("webhook-timestamp", &(at + 1).to_string()), BadSignature, "No secret"),
        (standard(at - 301), Stale, "too far from the time here"),
        (standard(at + 301), Stale, "too far from the time here"),
        (standard(at).without("webhook-id"), Unsigned, "The header webhook-id is missing"),
        (standard(at).without("webhook-timestamp"), Unsigned, "webhook-timestamp is missing"),
        (standard(at).without("webhook-signature"), Unsigned, "webhook-signature is missing"),
        (standard(at).with("webhook-timestamp", "now"), Unsigned, "seconds since 1970"),
        (Hook::stripe(WRONG, at, EVENT), BadSignature, "No secret"),
        (altered(stripe(at), 7), BadSignature, "No secret"),
        // A minute, as this source says.
        (stripe(at - 61), Stale, "too far"),
        (stripe(at + 61), Stale, "too far"),
        (stripe(at).without("stripe-signature"), Unsigned, "stripe-signature is missing"),
        (stripe(at).with("stripe-signature", "v1=00"), Unsigned, "t=<seconds since 1970>"),
        (Hook::github(WRONG, "1", "issues", EVENT), BadSignature, "No secret"),
        (altered(github(), 3), BadSignature, "No secret"),
        (github().without("x-hub-signature-256"), Unsigned, "x-hub-signature-256 is missing"),
        (github().with("x-hub-signature-256", "sha1=00"), Unsigned, "sha256="),
        (Hook::cloud(WRONG, "{}"), BadSignature, "No secret"),
        (cloud().without("authorization"), Unsigned, "authorization is missing"),
        (cloud().with("authorization", "Basic abc"), Unsigned, "Bearer <token>"),
        // One source's proof is no other's.
        (standard(at).to("stripe"), Unsigned, "stripe-signature is missing"),
    ];
    let mut wanted: BTreeMap<(String, HookOutcome), i64> = BTreeMap::new();
    for (hook, outcome, says) in &cases {
        let reply = desk.deliver(hook).await.expect(401);
        assert_eq!(reply.header("content-type"), "application/problem+json");
        let problem = reply.json();
        assert_eq!(problem["type"], "/problems/bad-signature");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(says), "{detail}");
        *wanted.entry((hook.source.to_owned(), *outcome)).or_default() += 1;
    }
    assert_eq!(counts(&desk).await, wanted);

    let reply = desk.deliver(&standard(at).to("unknown")).await.expect(404);
    assert_eq!(reply.json()["type"], "/problems/not-found");
    for method in [Method::GET, Method::PUT, Method::DELETE] {
        let reply = desk.call(method, "/hooks/standard", "", "").await.expect(405);
        assert_eq!(reply.header("content-type"), "application/problem+json");
    }
    assert_eq!(counts(&desk).await, wanted, "names that are not configured are not kept");
    assert_eq!(rest(&desk).await, before);
}

async fn what_is_proven_and_cannot_be_taken_is_refused_and_counted(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let at = desk.seconds();
    let before = rest(&desk).await;
    let large = format!(r#"{{"id":"evt_1","note":"{}"}}"#, "x".repeat(1024 * 1024));
    let deep = format!(r#"{{"id":"evt_1","a":{}1{}}}"#, "[".repeat(100), "]".repeat(100));
    let cases = [
        (Hook::github(NEW, "1", "push", EVENT), 422, "unmatched", "No mapping of this source"),
        (Hook::github(NEW, "1", "issues", "a=b"), 400, "malformed", "not JSON"),
        (Hook::github(NEW, "1", "issues", "[1]"), 400, "malformed", "JSON object"),
        (
            Hook::github(NEW, "1", "issues", "{}").without("x-github-delivery"),
            400,
            "malformed",
            "x-github-delivery",
        ),
        (
            Hook::standard(NEW, "1", at, r#"{"type":"invoice.paid"}"#),
            400,
            "malformed",
            "nothing at /data/object",
        ),
        (Hook::stripe(NEW, at, r#"{"id":"a","id":"b"}"#), 400, "malformed", "there twice"),
        (Hook::stripe(NEW, at, &deep), 400, "malformed", "nested deeper"),
        (Hook::stripe(NEW, at, &large), 413, "too-large", "bytes"),
        (Hook::cloud(NEW, "{}"), 400, "malformed", "specversion"),
    ];
    for (hook, status, kind, says) in &cases {
        let reply = desk.deliver(hook).await.expect(*status);
        let problem = reply.json();
        assert_eq!(problem["type"], format!("/problems/{kind}"));
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
    let ignored = Hook::standard(NEW, "1", at, r#"{"type":"customer.seen"}"#);
    assert_eq!(desk.deliver(&ignored).await.expect(200).json(), serde_json::json!({ "ignored": true }));
    let counts = counts(&desk).await;
    let of = |source: &str, outcome| counts[&(source.to_owned(), outcome)];
    assert_eq!(of("github", HookOutcome::Unmatched), 1);
    assert_eq!(of("github", HookOutcome::Malformed), 3);
    assert_eq!(of("stripe", HookOutcome::Malformed), 2);
    assert_eq!(of("stripe", HookOutcome::TooLarge), 1);
    assert_eq!(of("standard", HookOutcome::Ignored), 1);
    assert_eq!(rest(&desk).await, before);
}

async fn no_other_way_in_opens_a_source(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let mut boss = desk.signed_in(Role::Admin).await;
    for scope in [Scope::Submit, Scope::Operate] {
        let token = desk.token(scope).await;
        for source in ["standard", "cloud"] {
            desk.call(Method::POST, &format!("/hooks/{source}"), &token, EVENT).await.expect(401);
        }
    }
    boss.post("/hooks/standard", &[("type", "invoice.paid")]).await.expect(401);
    // A proof is enough wherever it comes from: there is no session for another site to ride on.
    let hook = Hook::standard(NEW, "1", desk.seconds(), EVENT).with("sec-fetch-site", "cross-site");
    let reply = desk.deliver(&hook).await.expect(200);
    assert_eq!(reply.header("set-cookie"), "");
}

async fn junk_adds_to_a_number_and_not_to_the_database(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let before = rest(&desk).await;
    let junk: Vec<Hook> =
        (0..200).map(|n| Hook::standard(WRONG, &format!("msg_{n}"), desk.seconds(), EVENT)).collect();
    for reply in join_all(junk.iter().map(|hook| desk.deliver(hook))).await {
        reply.expect(401);
    }
    assert_eq!(desk.app.raw().await.counts().await["hook_counts"], 1);
    let wanted = (("standard".to_owned(), HookOutcome::BadSignature), 200);
    assert_eq!(counts(&desk).await.into_iter().collect::<Vec<_>>(), [wanted]);
    assert_eq!(rest(&desk).await, before);

    // An hour later it is another number, and after a month the first is dropped.
    desk.app.clock.advance(Duration::from_hours(1));
    desk.deliver(&Hook::standard(WRONG, "1", desk.seconds(), EVENT)).await.expect(401);
    assert_eq!(desk.app.raw().await.counts().await["hook_counts"], 2);
    let mut tx = desk.app.engine.db().begin().await.unwrap();
    hooks::delete_before(&mut tx, desk.app.now().minus(Duration::from_mins(30))).await.unwrap();
    tx.commit(dead_letter_office::store::Commit::Hooks).await.unwrap();
    assert_eq!(desk.app.raw().await.counts().await["hook_counts"], 1);
}

/// A delivery without any proof.
async fn unproven(node: &Engine, address: &str) {
    let headers = Headers::default();
    let refused = node.hooks().prove("standard", &headers, b"{}").unwrap_err();
    assert!(matches!(refused, HookError::Unproven(_)), "{refused:?}");
    node.hooks().unproven("standard", &refused, address).await;
}

async fn nodes_count_together(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let nodes = [desk.app.engine.clone(), desk.app.another_node(2).await];
    let deliver = |n: usize| {
        let node = nodes[n % 2].clone();
        async move {
            unproven(&node, "203.0.113.1").await;
        }
    };
    join_all((0..40).map(deliver)).await;
    desk.app.clock.advance(Duration::from_secs(1));
    unproven(&nodes[1], "203.0.113.2").await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let rows = hooks::since(&mut tx, desk.app.now().minus(Duration::from_hours(24))).await.unwrap();
    let [row] = &rows[..] else { panic!("{rows:?}") };
    assert_eq!((row.count, row.outcome), (41, HookOutcome::Unsigned));
    assert_eq!((row.last_at, row.last_address.as_str()), (desk.app.now(), "203.0.113.2"));
}

async fn an_unreachable_store_asks_for_another_try(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    desk.app.engine.db().close().await;
    let reply = desk.deliver(&Hook::standard(NEW, "1", desk.seconds(), EVENT)).await.expect(503);
    assert_eq!(reply.json()["type"], "/problems/store-unavailable");
    assert_eq!(reply.header("retry-after"), "1");
    // A refusal needs no store.
    desk.deliver(&Hook::standard(WRONG, "1", desk.seconds(), EVENT)).await.expect(401);
}

async fn the_status_page_tells_what_sources_send(db: TestDatabase) {
    let desk = Desk::configured(db, &sources()).await;
    let at = desk.seconds();
    let mut viewer = desk.signed_in(Role::Viewer).await;
    let page = viewer.get("/status").await.expect(200);
    assert_eq!(page.all(".sources tbody tr").len(), 5, "each source, silent or not");
    assert!(page.words().contains("not in 30 days"));

    let hook = Hook::standard(NEW, "msg_1", at, EVENT);
    let id = desk.deliver(&hook).await.expect(200).json()["operation"].as_str().unwrap().to_owned();
    desk.deliver(&hook).await.expect(200);
    desk.deliver(&Hook::standard(NEW, "msg_2", at, r#"{"type":"other"}"#)).await.expect(200);
    for _ in 0..3 {
        desk.deliver(&Hook::standard(WRONG, "msg_3", at, EVENT)).await.expect(401);
    }
    let page = viewer.get("/status").await.expect(200);
    let rows = page.all(".sources tbody tr");
    let (row, _) = rows.iter().find(|(words, _)| words.starts_with("standard")).expect("the source");
    assert_eq!(
        row,
        "standard /hooks/standard standard-webhooks just now 1 new, 1 repeated, 1 ignored \
         3 with a signature that no secret matches, last just now from unknown"
    );
    let (other, _) = rows.iter().find(|(words, _)| words.starts_with("github")).expect("the source");
    assert!(other.ends_with("not in 30 days 0 new, 0 repeated, 0 ignored none refused"), "{other}");
    let page = viewer.get(&format!("/operations/{id}")).await.expect(200);
    assert!(page.words().contains("The same submission came again"), "the repeat is shown: {}", page.words());
    assert!(page.words().contains("source:standard"));

    let nobody = Desk::configured(TestDatabase::sqlite(), "").await;
    let mut viewer = nobody.signed_in(Role::Viewer).await;
    assert!(viewer.get("/status").await.expect(200).words().contains("No source of webhooks is configured"));
}
