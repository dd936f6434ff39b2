//! `/api/v1/claims`: steps that programs carry out, as a program meets them.

use std::collections::HashSet;
use std::time::Duration;

use axum::http::Method;
use dead_letter_office::domain::actor::Scope;
use dead_letter_office::domain::dead_letter::Certainty;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::store::events::EventKind;
use serde_json::{Value, json};
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};
use crate::support::tables::business;

on_both!(
    a_claim_says_what_to_do_and_what_came_of_it_counts_once,
    what_cannot_be_claimed_says_why,
    a_heartbeat_keeps_a_claim,
    a_wrong_fence_an_unknown_claim_and_another_program_change_nothing,
    what_is_said_after_the_lease_is_evidence,
    a_failure_is_a_dead_letter_unless_trying_again_can_help,
    a_doubt_is_settled_by_what_the_destination_promises,
    two_programs_never_get_one_step,
    a_paused_destination_gives_nothing_out,
    what_a_program_saved_goes_into_the_next_step,
);

const CLAIMS: &str = "/api/v1/claims";

/// `letter` is recognised by its key, `parcel` by nothing; `order` has a step for each runner.
const TYPES: &str = r#"
[destinations.post]
key = { header = "Idempotency-Key", window = "24h" }
limit = { retries_per_minute = 1000 }
[destinations.courier]
[operations.letter]
[[operations.letter.steps]]
name = "send letter"
destination = "post"
runner = "worker"
body = { order = "{{ payload.order_id }}", ref = "{{ key }}" }
reference = "/id"
[operations.parcel]
[[operations.parcel.steps]]
name = "send parcel"
destination = "courier"
runner = "worker"
[operations.order]
[[operations.order.steps]]
name = "send letter"
destination = "post"
runner = "worker"
save = { letter_id = "/id" }
reference = "/id"
[[operations.order.steps]]
name = "tell the helpdesk"
destination = "keyed"
method = "POST"
path = "/tickets"
body = { letter = "{{ steps['send letter'].letter_id }}" }
reference = "/id"
"#;

struct Program {
    desk: Desk,
    token: String,
}

impl Program {
    async fn start(db: TestDatabase) -> Self {
        let desk = Desk::configured(db, TYPES).await;
        let token = desk.token(Scope::Work).await;
        Self { desk, token }
    }

    /// Another program's token.
    async fn another_token(&self) -> String {
        self.desk.token_named("other", Scope::Work).await
    }

    async fn post_as(&self, token: &str, path: &str, body: &Value) -> Reply {
        self.desk.call(Method::POST, path, token, body.to_string()).await
    }

    async fn post(&self, path: &str, body: &Value) -> Reply {
        self.post_as(&self.token, path, body).await
    }

    async fn claims(&self, wanted: &Value) -> Vec<Value> {
        self.post(CLAIMS, wanted).await.expect(200).json()["claims"].as_array().unwrap().clone()
    }

    /// The only step that is there, for ten seconds.
    async fn claim(&self) -> Value {
        let mut claims = self.claims(&json!({"limit": 50, "lease": "10s"})).await;
        assert_eq!(claims.len(), 1, "{claims:?}");
        claims.remove(0)
    }

    async fn say(&self, claim: &Value, word: &str, facts: Value) -> Reply {
        let mut body = json!({ "fence": claim["fence"] });
        body.as_object_mut().unwrap().extend(facts.as_object().unwrap().clone());
        self.post(&path(claim, word), &body).await
    }

    async fn state(&self, operation: Uuid) -> OperationState {
        self.desk.app.state(operation).await
    }

    /// Lets time pass, and what falls due be done.
    async fn pass(&mut self, seconds: u64) {
        self.desk.app.clock.advance(Duration::from_secs(seconds));
        self.desk.app.run_until_idle().await;
    }
}

fn path(claim: &Value, word: &str) -> String {
    format!("{CLAIMS}/{}/{word}", claim["id"].as_str().unwrap())
}

#[track_caller]
fn refused(reply: Reply, status: u16, kind: &str) -> String {
    let reply = reply.expect(status);
    let problem = reply.json();
    assert_eq!(problem["type"], format!("/problems/{kind}"), "{problem}");
    problem["detail"].as_str().unwrap().to_owned()
}

async fn a_claim_says_what_to_do_and_what_came_of_it_counts_once(db: TestDatabase) {
    let program = Program::start(db).await;
    let id = program.desk.app.submit("letter", "order-1").await;
    let claim = program.claim().await;
    assert_eq!(claim["operation"]["id"], id.to_string());
    assert_eq!(claim["operation"]["key"], "order-1");
    assert_eq!(claim["operation"]["type"], "letter");
    assert_eq!((&claim["step"], &claim["destination"]), (&json!("send letter"), &json!("post")));
    assert_eq!(claim["body"], json!({"order": "order-1", "ref": claim["key"]}));
    assert_eq!((&claim["attempt"], &claim["uncertain"]), (&json!(1), &json!(false)));
    assert!(claim["key"].as_str().unwrap().parse::<Uuid>().is_ok());
    assert_eq!(program.state(id).await, OperationState::Running);
    assert!(program.claims(&json!({})).await.is_empty(), "it is taken");

    let facts = json!({"result": {"id": "LTR-1"}});
    let told = program.say(&claim, "complete", facts.clone()).await.expect(200).json();
    assert_eq!(told, json!({"outcome": "done", "duplicate": false}));
    let thread = program.desk.app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.steps[0].reference.as_deref(), Some("LTR-1"));
    let before = business(&program.desk.app).await;
    let again = program.say(&claim, "complete", facts).await.expect(200).json();
    assert_eq!(again, json!({"outcome": "done", "duplicate": true}));
    assert_eq!(business(&program.desk.app).await, before);
    // Another word after that is too late, and is kept.
    refused(program.say(&claim, "fail", json!({"error": "no"})).await, 409, "claim-lost");
    assert_eq!(program.state(id).await, OperationState::Completed);
}

async fn what_cannot_be_claimed_says_why(db: TestDatabase) {
    let program = Program::start(db).await;
    program.desk.app.submit("letter", "order-1").await;
    let mut others = Vec::new();
    for scope in [Scope::Submit, Scope::Read, Scope::Operate] {
        others.push((scope, program.desk.token(scope).await));
    }
    let before = business(&program.desk.app).await;
    for (wanted, status, kind, says) in [
        (json!({"types": ["lettre"]}), 422, "unknown-type", "lettre"),
        (json!({"types": ["letter", "keyed"]}), 422, "unknown-type", "keyed"),
        (json!({"limit": 0}), 400, "malformed", "1 to 50"),
        (json!({"limit": 51}), 400, "malformed", "1 to 50"),
        (json!({"lease": "soon"}), 400, "malformed", "lease"),
        (json!({"lease": "2h"}), 400, "malformed", "lease"),
        (json!({"lease": "10ms"}), 400, "malformed", "one second"),
        (json!({"wait": "31s"}), 400, "malformed", "wait"),
        (json!({"type": "letter"}), 400, "malformed", "unknown field"),
    ] {
        let detail = refused(program.post(CLAIMS, &wanted).await, status, kind);
        assert!(detail.contains(says), "{wanted}: {detail}");
    }
    for (scope, token) in others {
        let detail = refused(program.post_as(&token, CLAIMS, &json!({})).await, 403, "forbidden");
        assert!(detail.contains(scope.as_str()), "{detail}");
    }
    refused(program.post_as("", CLAIMS, &json!({})).await, 401, "unauthorized");
    assert_eq!(business(&program.desk.app).await, before);
    assert!(
        program.claims(&json!({"types": ["parcel"]})).await.is_empty(),
        "only of the types that it named"
    );
}

async fn a_heartbeat_keeps_a_claim(db: TestDatabase) {
    let mut program = Program::start(db).await;
    let id = program.desk.app.submit("parcel", "order-1").await;
    let claim = program.claim().await;
    for _ in 0..3 {
        program.pass(8).await;
        let told = program.say(&claim, "heartbeat", json!({"lease": "10s"})).await.expect(200).json();
        let until = program.desk.app.now().plus(Duration::from_secs(10));
        assert_eq!(told["lease_expires_at"], until.rfc3339());
    }
    program.pass(9).await;
    assert_eq!(program.state(id).await, OperationState::Running);
    program.say(&claim, "complete", json!({"reference": "PCL-1"})).await.expect(200);
    assert_eq!(program.desk.app.thread(id).await.steps[0].reference.as_deref(), Some("PCL-1"));
    refused(program.say(&claim, "heartbeat", json!({})).await, 409, "claim-lost");
}

async fn a_wrong_fence_an_unknown_claim_and_another_program_change_nothing(db: TestDatabase) {
    let program = Program::start(db).await;
    let id = program.desk.app.submit("letter", "order-1").await;
    let claim = program.claim().await;
    let other = program.another_token().await;
    let read = program.desk.token(Scope::Read).await;
    let before = business(&program.desk.app).await;
    let mut wrong = claim.clone();
    wrong["fence"] = json!(claim["fence"].as_i64().unwrap() + 1);
    let mut unknown = claim.clone();
    unknown["id"] = json!("0198c0de-0000-7000-8000-000000000000");
    let words = [
        ("heartbeat", json!({})),
        ("complete", json!({})),
        ("fail", json!({"error": "no"})),
        ("unknown", json!({})),
    ];
    for (word, facts) in words {
        refused(program.say(&wrong, word, facts.clone()).await, 409, "claim-lost");
        let (status, kind) = if word == "heartbeat" { (409, "claim-lost") } else { (404, "not-found") };
        refused(program.say(&unknown, word, facts.clone()).await, status, kind);
        let mut body = facts;
        body["fence"] = claim["fence"].clone();
        refused(program.post_as(&other, &path(&claim, word), &body).await, status, kind);
        refused(program.post_as(&read, &path(&claim, word), &body).await, 403, "forbidden");
    }
    let mut after = business(&program.desk.app).await;
    after.retain(|(table, _)| table != "events");
    assert_eq!(after, before);
    let refusals = program.desk.app.thread(id).await.events;
    assert_eq!(refusals.len(), 3, "each word that would have settled it");
    assert!(refusals.iter().all(|event| event.kind == EventKind::OtherFence));
    program.say(&claim, "complete", json!({})).await.expect(200);
    assert_eq!(program.state(id).await, OperationState::Completed);
}

async fn what_is_said_after_the_lease_is_evidence(db: TestDatabase) {
    let mut program = Program::start(db).await;
    let id = program.desk.app.submit("parcel", "order-1").await;
    let claim = program.claim().await;
    program.pass(11).await;
    let letter = program.desk.app.letter(id).await;
    assert_eq!(letter.certainty, Certainty::MayHaveCompleted, "nobody can know");
    refused(program.say(&claim, "heartbeat", json!({})).await, 409, "claim-lost");
    let late = program.say(&claim, "complete", json!({"result": {"id": "PCL-1"}})).await;
    assert!(refused(late, 409, "claim-lost").contains("evidence"));
    let thread = program.desk.app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Uncertain);
    assert!(thread.live_letter().is_some_and(|live| live.id == letter.id), "it still waits for a person");
    let late: Vec<&str> = thread
        .events
        .iter()
        .filter(|event| event.kind == EventKind::LateDone)
        .map(|event| event.detail.as_str())
        .collect();
    assert!(matches!(late.as_slice(), [detail] if detail.contains("PCL-1")), "{late:?}");
}

async fn a_failure_is_a_dead_letter_unless_trying_again_can_help(db: TestDatabase) {
    let mut program = Program::start(db).await;
    let id = program.desk.app.submit("letter", "order-1").await;
    let first = program.claim().await;
    let busy = json!({"error": "the printer is out of paper", "retry": true});
    let told = program.say(&first, "fail", busy).await.expect(200).json();
    assert_eq!(told["outcome"], "not_sent");
    assert_eq!(program.state(id).await, OperationState::Pending);
    program.pass(30).await;
    let second = program.claim().await;
    assert_eq!((&second["attempt"], &second["uncertain"]), (&json!(2), &json!(false)));
    assert_eq!(second["key"], first["key"], "the key is the same on every try");
    assert_eq!(second["body"], first["body"]);
    // What the first claim has to say does not count any more.
    refused(program.say(&first, "complete", json!({})).await, 409, "claim-lost");
    assert_eq!(program.state(id).await, OperationState::Running);
    let told = program.say(&second, "fail", json!({"error": "there is no such street"})).await.expect(200);
    assert_eq!(told.json()["outcome"], "rejected");
    let letter = program.desk.app.letter(id).await;
    assert!(letter.error.contains("there is no such street"), "{}", letter.error);
    assert_eq!(letter.certainty, Certainty::DefinitelyFailed);
    assert_eq!(letter.attempts, 2);
    // A replay puts it before the program again.
    program.desk.app.replay(id, "a1").await.unwrap();
    let third = program.claim().await;
    program.say(&third, "complete", json!({})).await.expect(200);
    assert_eq!(program.state(id).await, OperationState::Completed);
}

async fn a_doubt_is_settled_by_what_the_destination_promises(db: TestDatabase) {
    let mut program = Program::start(db).await;
    let parcel = program.desk.app.submit("parcel", "order-1").await;
    let claim = program.claim().await;
    let told = program.say(&claim, "unknown", json!({"error": "the line went dead"})).await.expect(200);
    assert_eq!(told.json()["outcome"], "uncertain");
    let letter = program.desk.app.letter(parcel).await;
    assert_eq!(letter.certainty, Certainty::MayHaveCompleted);
    assert!(letter.error.contains("the line went dead"), "{}", letter.error);
    program.pass(3_600).await;
    assert!(program.claims(&json!({})).await.is_empty(), "nobody does it again by themselves");

    let sent = program.desk.app.submit("letter", "order-2").await;
    let first = program.claim().await;
    program.say(&first, "unknown", json!({})).await.expect(200);
    assert_eq!(program.state(sent).await, OperationState::Uncertain);
    program.pass(60).await;
    let second = program.claim().await;
    assert_eq!((&second["uncertain"], &second["key"]), (&json!(true), &first["key"]));
    assert!(second["key_valid_until"].is_string(), "{second}");
    // A program that dies says nothing: that is a doubt as well.
    program.pass(11).await;
    assert_eq!(program.state(sent).await, OperationState::Uncertain);
    program.pass(60).await;
    let third = program.claim().await;
    program.say(&third, "complete", json!({"result": {"id": "LTR-2"}})).await.expect(200);
    assert_eq!(program.state(sent).await, OperationState::Completed);
}

async fn two_programs_never_get_one_step(db: TestDatabase) {
    let program = Program::start(db).await;
    for number in 0..40 {
        program.desk.app.submit("letter", &format!("order-{number}")).await;
    }
    let other = program.another_token().await;
    let wanted = json!({"limit": 15, "types": ["letter"]});
    let (mine, theirs) = (&program.token, &other);
    let (a, b, c, d) = tokio::join!(
        program.post_as(mine, CLAIMS, &wanted),
        program.post_as(theirs, CLAIMS, &wanted),
        program.post_as(mine, CLAIMS, &wanted),
        program.post_as(theirs, CLAIMS, &wanted),
    );
    let (mut operations, mut given) = (HashSet::new(), 0);
    for (token, reply) in [(mine, a), (theirs, b), (mine, c), (theirs, d)] {
        for claim in reply.expect(200).json()["claims"].as_array().unwrap() {
            given += 1;
            operations.insert(claim["operation"]["id"].to_string());
            let body = json!({"fence": claim["fence"]});
            program.post_as(token, &path(claim, "complete"), &body).await.expect(200);
        }
    }
    assert_eq!(operations.len(), given, "no step was given out twice");
    for claim in program.claims(&json!({"limit": 50})).await {
        operations.insert(claim["operation"]["id"].to_string());
        program.say(&claim, "complete", json!({})).await.expect(200);
    }
    assert_eq!(operations.len(), 40, "every step was given out");
}

async fn a_paused_destination_gives_nothing_out(db: TestDatabase) {
    let program = Program::start(db).await;
    program.desk.app.submit("letter", "order-1").await;
    let engine = &program.desk.app.engine;
    let mut tx = engine.db().begin().await.unwrap();
    assert!(engine.gate().pause(&mut tx, "post", "olga", "the post is on strike").await.unwrap());
    tx.commit(dead_letter_office::store::Commit::Action).await.unwrap();
    assert!(program.claims(&json!({})).await.is_empty());
    assert_eq!(program.desk.app.resume_all().await, 1);
    let claim = program.claim().await;
    assert_eq!(claim["attempt"], 1, "the pause used nothing up");
    program.say(&claim, "complete", json!({})).await.expect(200);
}

async fn what_a_program_saved_goes_into_the_next_step(db: TestDatabase) {
    let mut program = Program::start(db).await;
    let id = program.desk.app.submit("order", "order-1").await;
    program.desk.app.run_until_idle().await;
    assert_eq!(program.desk.app.destination.requests_count(), 0, "the first step is the program's");
    let claim = program.claim().await;
    program.say(&claim, "complete", json!({"result": {"id": "LTR-9"}})).await.expect(200);
    program.desk.app.run_until_idle().await;
    let thread = program.desk.app.thread(id).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!(thread.steps[0].reference.as_deref(), Some("LTR-9"));
    let sent = program.desk.app.destination.requests();
    assert_eq!(sent.len(), 1);
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(body, json!({"letter": "LTR-9"}));
    assert!(program.claims(&json!({})).await.is_empty());
}
