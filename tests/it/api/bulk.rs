//! Bulk actions over the API.

use axum::body::Body;
use axum::http::{Method, Request, header};
use dead_letter_office::domain::actor::Scope;
use dead_letter_office::engine::bulk;
use serde_json::{Value, json};

use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};

on_both!(
    a_bulk_action_is_made_started_and_followed,
    what_is_wrong_is_told_and_nothing_is_frozen,
    a_revoked_token_acts_no_more,
);

const PATH: &str = "/api/v1/bulk";

async fn post(desk: &Desk, path: &str, token: &str, body: &Value) -> Reply {
    desk.call(Method::POST, path, token, body.to_string()).await
}

async fn post_as(desk: &Desk, path: &str, token: &str, key: &str, body: &Value) -> Reply {
    let request = Request::builder()
        .method(Method::POST)
        .uri(path)
        .header(header::AUTHORIZATION, token)
        .header("idempotency-key", key);
    desk.send(request.body(Body::from(body.to_string())).unwrap()).await
}

fn replay_all() -> Value {
    json!({
        "action": "replay", "name": "Monday", "reason": "the CRM is back", "canary": 1,
        "filter": {"status": "open", "type": "keyed"},
    })
}

async fn carry_on(desk: &mut Desk) {
    while bulk::turn(desk.app.engine.gate()).await.unwrap() + desk.app.run_until_idle().await > 0 {}
}

async fn a_bulk_action_is_made_started_and_followed(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    for n in 0..3 {
        desk.dead_letter("keyed", &format!("order-{n}")).await;
    }
    let token = desk.token(Scope::Operate).await;
    let made = post_as(&desk, PATH, &token, "make", &replay_all()).await.expect(201).json();
    let again = post_as(&desk, PATH, &token, "make", &replay_all()).await.expect(201).json();
    assert_eq!((&made["id"], &made["state"], &made["members"]), (&again["id"], &json!("preview"), &json!(3)));
    assert_eq!(made["filter"], json!({"status": "open", "type": "keyed"}));
    assert_eq!(made["progress"]["waiting"], 3);
    assert_eq!(made["created_by"], "token:operate");
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    assert!(made["url"].as_str().unwrap().ends_with(&format!("/bulk/{}", made["id"].as_str().unwrap())));

    let started = post_as(&desk, &format!("{path}/start"), &token, "go", &json!({})).await.expect(200).json();
    assert_eq!(started["state"], "canary");
    carry_on(&mut desk).await;
    let waits = desk.call(Method::GET, &path, &token, "").await.expect(200).json();
    assert_eq!(
        (&waits["state"], &waits["summary"]),
        (&json!("confirm"), &json!("1 sent · 1 confirmed · 2 waiting"))
    );
    let blind = post(&desk, &format!("{path}/start"), &token, &json!({})).await.expect(409).json();
    assert_eq!(blind["type"], "/problems/not-confirmed");
    post(&desk, &format!("{path}/start"), &token, &json!({"confirm": true})).await.expect(200);
    let paused = post(&desk, &format!("{path}/pause"), &token, &json!({"reason": "lunch"})).await.expect(200);
    assert_eq!(
        (&paused.json()["paused"]["by"], &paused.json()["paused"]["reason"]),
        (&json!("token:operate"), &json!("lunch"))
    );
    carry_on(&mut desk).await;
    assert_eq!(desk.app.destination.effects().len(), 1);
    post(&desk, &format!("{path}/start"), &token, &json!({})).await.expect(200);
    carry_on(&mut desk).await;
    let ended = desk.call(Method::GET, &path, &token, "").await.expect(200).json();
    assert_eq!((&ended["state"], &ended["progress"]["confirmed"]), (&json!("ended"), &json!(3)));
    let over = post(&desk, &format!("{path}/cancel"), &token, &json!({})).await.expect(409).json();
    assert_eq!(
        (over["type"].as_str(), over["detail"].as_str()),
        (Some("/problems/busy"), Some("This bulk action has ended."))
    );
    assert_eq!(desk.app.destination.effects().len(), 3);
}

async fn what_is_wrong_is_told_and_nothing_is_frozen(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let token = desk.token(Scope::Operate).await;
    let with = |change: &dyn Fn(&mut Value)| {
        let mut body = replay_all();
        change(&mut body);
        body
    };
    for (body, said) in [
        (with(&|b| b["filter"] = json!({})), "Choose a filter first"),
        (with(&|b| b["filter"] = json!({"status": "open"})), "Choose a filter first"),
        (with(&|b| b["filter"] = json!({"tpye": "keyed"})), "Tpye: no such parameter"),
        (with(&|b| b["filter"] = json!({"type": "keyed", "limit": "5"})), "Limit: no such parameter"),
        (with(&|b| b["filter"] = json!({"type": "absent"})), "There is nothing to act on"),
        (with(&|b| b["ids"] = json!([letter])), "Send either a filter or ids"),
        (with(&|b| b["resolution"] = json!("not_needed")), "esolution means nothing for replay"),
        (with(&|b| b["action"] = json!("resolve")), "To resolve takes a resolution"),
        (with(&|b| b["action"] = json!("delete")), "The body"),
        (with(&|b| b["reason"] = json!(" ")), "A reason is required"),
        (with(&|b| b["per_minute"] = json!(0)), "A speed is"),
        (with(&|b| b["more"] = json!(1)), "The body"),
    ] {
        let problem = post(&desk, PATH, &token, &body).await.expect(400).json();
        assert!(problem["detail"].as_str().unwrap().contains(said), "{said}: {problem}");
    }
    assert_eq!(desk.app.raw().await.number("SELECT count(*) FROM bulks").await, 0);
    let absent = format!("{PATH}/{letter}");
    assert_eq!(
        desk.call(Method::GET, &absent, &token, "").await.expect(404).json()["type"],
        "/problems/not-found"
    );
    let read = desk.token(Scope::Read).await;
    post(&desk, PATH, &read, &replay_all()).await.expect(403);
}

async fn a_revoked_token_acts_no_more(db: TestDatabase) {
    use dead_letter_office::accounts::revoke_token;

    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("keyed", "order-1").await;
    let token = desk.token(Scope::Operate).await;
    let body = json!({"action": "replay", "name": "one", "reason": "r", "ids": [letter]});
    let made = post(&desk, PATH, &token, &body).await.expect(201).json();
    let path = format!("{PATH}/{}", made["id"].as_str().unwrap());
    desk.call(Method::POST, &format!("{path}/start"), &token, "").await.expect(200);
    revoke_token(desk.app.engine.db(), desk.app.engine.ambient(), "operate", &by_root()).await.unwrap();
    carry_on(&mut desk).await;
    let read = desk.token(Scope::Read).await;
    let stands = desk.call(Method::GET, &path, &read, "").await.expect(200).json();
    let why = stands["paused"]["reason"].as_str().unwrap();
    assert_eq!(why, "the token operate does not work any more, so nothing is done in its name");
    assert_eq!(desk.app.destination.effects().len(), 0);
}
