use reqwest::{Client, Response, StatusCode};
use serde_json::{Value, json};

use super::*;

const TICKETS: &str = "/plain/tickets";
const CHARGES: &str = "/keyed/charges";

async fn start() -> UnreliableDestination {
    UnreliableDestination::start(SocketAddr::from(([127, 0, 0, 1], 0)), 1).await.unwrap()
}

fn client() -> Client {
    // Without TLS nothing here needs a provider; the client's builder asks for one all the same.
    let _ = rustls::crypto::ring::default_provider().install_default();
    Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(Duration::from_millis(250))
        .build()
        .unwrap()
}

async fn post(
    there: &UnreliableDestination,
    path: &str,
    key: &str,
    body: Value,
) -> reqwest::Result<Response> {
    client().post(there.base_url() + path).header("idempotency-key", key).body(body.to_string()).send().await
}

async fn json(answer: Response) -> Value {
    serde_json::from_slice(&answer.bytes().await.unwrap()).unwrap()
}

/// What one request under a behaviour comes to.
async fn under(behaviour: Behaviour) -> (UnreliableDestination, reqwest::Result<Response>) {
    let there = start().await;
    there.script("/plain", [behaviour]);
    let answer = post(&there, TICKETS, "k", json!({"a": 1})).await;
    (there, answer)
}

/// Full requests and effects seen.
fn seen(there: &UnreliableDestination) -> (usize, usize) {
    (there.requests_count(), there.effects().len())
}

#[tokio::test]
async fn an_answer_names_what_was_made() {
    let (there, answer) = under(Behaviour::Ok).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::CREATED);
    assert_eq!(json(answer).await["id"], "TCK-1042");
    let effect = there.effects().remove(0);
    assert_eq!((effect.path.as_str(), effect.key.as_deref()), (TICKETS, Some("k")));
    assert_eq!(effect.reference, "TCK-1042");
    assert_eq!(there.requests()[0].header("idempotency-key"), Some("k"));
    assert_eq!(there.requests()[0].body, effect.body);
}

#[tokio::test]
async fn a_key_is_honoured_once() {
    let there = start().await;
    let first = json(post(&there, CHARGES, "k1", json!({"amount": 5})).await.unwrap()).await;
    let again = post(&there, CHARGES, "k1", json!({"amount": 5})).await.unwrap();
    assert_eq!(again.headers()["idempotent-replayed"], "true");
    assert_eq!(json(again).await, first);
    let other = post(&there, CHARGES, "k1", json!({"amount": 6})).await.unwrap();
    assert_eq!(other.status(), StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(json(other).await["code"], "key_reused");
    assert_eq!(seen(&there), (3, 1));
    post(&there, CHARGES, "k2", json!({"amount": 5})).await.unwrap();
    assert_eq!(seen(&there), (4, 2));
}

#[tokio::test]
async fn a_thing_that_is_set_twice_is_set_once() {
    let there = start().await;
    let put = |amount: u32| post(&there, "/upsert/contacts/7", "k", json!({ "amount": amount }));
    let first = json(put(5).await.unwrap()).await;
    let again = json(put(5).await.unwrap()).await;
    assert_eq!((&again["id"], again["status"].as_str()), (&first["id"], Some("unchanged")));
    assert_eq!(seen(&there), (2, 1));
    put(6).await.unwrap();
    assert_eq!(seen(&there), (3, 2));
}

#[tokio::test]
async fn a_key_in_flight_is_said_and_a_late_effect_happens_all_the_same() {
    let there = start().await;
    there.script(CHARGES, [Behaviour::OkAfter(Duration::from_millis(150))]);
    let slow = post(&there, CHARGES, "k", json!({}));
    let meanwhile = async {
        while there.requests_count() == 0 {
            tokio::task::yield_now().await;
        }
        post(&there, CHARGES, "k", json!({})).await.unwrap()
    };
    let (slow, meanwhile) = tokio::join!(slow, meanwhile);
    assert_eq!(meanwhile.status(), StatusCode::CONFLICT);
    assert_eq!(slow.unwrap().status(), StatusCode::CREATED);
    assert_eq!(there.effects().len(), 1);
}

#[tokio::test]
async fn a_lookup_finds_what_was_made_and_nothing_else() {
    let there = start().await;
    post(&there, "/lookup/tickets", "k", json!({"external_ref": "a b/1"})).await.unwrap();
    let ask = async |value: &str| {
        let url = format!("{}/lookup/tickets?external_ref={value}", there.base_url());
        json(client().get(url).send().await.unwrap()).await
    };
    assert_eq!(ask("a%20b%2F1").await, json!({"tickets": [{"id": "TCK-1042", "external_ref": "a b/1"}]}));
    assert_eq!(ask("other").await, json!({"tickets": []}));
    let nothing = client().get(there.base_url() + TICKETS).send().await.unwrap();
    assert_eq!(nothing.status(), StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn neither_means_that_every_request_is_an_effect() {
    let there = start().await;
    for _ in 0..2 {
        post(&there, TICKETS, "same", json!({})).await.unwrap();
    }
    assert_eq!(seen(&there), (2, 2));
}

#[tokio::test]
async fn statuses_come_with_or_without_an_effect() {
    let (there, answer) = under(Behaviour::retry_after(429, 7)).await;
    let answer = answer.unwrap();
    assert_eq!((answer.status().as_u16(), &answer.headers()["retry-after"]), (429, &"7".parse().unwrap()));
    assert_eq!(seen(&there), (1, 0));
    let (there, answer) = under(Behaviour::StatusAfterEffect(500)).await;
    assert_eq!(answer.unwrap().status().as_u16(), 500);
    assert_eq!(seen(&there), (1, 1));
    let (there, answer) = under(Behaviour::Redirect307).await;
    assert_eq!(answer.unwrap().status().as_u16(), 307);
    assert_eq!(seen(&there), (1, 0));
}

#[tokio::test]
async fn a_connection_ends_without_an_answer() {
    let ways = [
        (Behaviour::CloseOnAccept, (0, 0)),
        (Behaviour::CloseAfterRead { effect: false }, (1, 0)),
        (Behaviour::CloseAfterRead { effect: true }, (1, 1)),
        (Behaviour::ResetAfterRead { effect: false }, (1, 0)),
        (Behaviour::ResetAfterRead { effect: true }, (1, 1)),
        (Behaviour::Garbage { effect: false }, (1, 0)),
        (Behaviour::Garbage { effect: true }, (1, 1)),
        (Behaviour::PartialHead, (1, 0)),
    ];
    for (behaviour, wanted) in ways {
        let (there, answer) = under(behaviour.clone()).await;
        let error = answer.unwrap_err();
        assert!(!error.is_connect() && !error.is_timeout(), "{behaviour:?}: {error:?}");
        assert_eq!(seen(&there), wanted, "{behaviour:?}");
    }
}

#[tokio::test]
async fn a_hang_lasts_until_the_client_leaves() {
    for effect in [false, true] {
        let (there, answer) = under(Behaviour::Hang { effect }).await;
        let error = answer.unwrap_err();
        assert!(error.is_timeout() && !error.is_connect(), "{error:?}");
        assert_eq!(seen(&there), (1, usize::from(effect)));
    }
}

#[tokio::test]
async fn a_body_is_cut_slow_huge_hostile_or_wrong() {
    for effect in [false, true] {
        let (there, answer) = under(Behaviour::CutBody { effect }).await;
        let answer = answer.unwrap();
        assert_eq!(answer.status(), StatusCode::CREATED);
        assert!(answer.bytes().await.is_err());
        assert_eq!(seen(&there), (1, usize::from(effect)));
    }
    let (_there, answer) = under(Behaviour::SlowBody).await;
    assert_eq!(json(answer.unwrap()).await["id"], "TCK-1042");
    let (_there, answer) = under(Behaviour::HugeBody(1 << 20)).await;
    let body = answer.unwrap().bytes().await.unwrap();
    assert!(body.len() > 1 << 20 && serde_json::from_slice::<Value>(&body).is_ok());
    let (there, answer) = under(Behaviour::HostileText).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status().as_u16(), 422);
    let body = answer.bytes().await.unwrap();
    assert!(body.len() > 100_000 && body.starts_with(b"<script>") && body.contains(&0));
    assert_eq!(seen(&there), (1, 0));
    let (there, answer) = under(Behaviour::WrongJson).await;
    let answer = answer.unwrap();
    assert_eq!(answer.status(), StatusCode::OK);
    assert!(json(answer).await["id"].is_null());
    assert_eq!(seen(&there), (1, 1));
}

#[tokio::test]
async fn one_connection_carries_many_requests_and_chunks() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    let there = start().await;
    let mut stream = tokio::net::TcpStream::connect(there.address()).await.unwrap();
    let head = format!("POST {TICKETS} HTTP/1.1\r\nHost: x\r\n");
    let first =
        format!("{head}Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\nTrailer: x\r\n\r\n");
    let second = format!("{head}Content-Length: 2\r\nConnection: close\r\n\r\nfg");
    stream.write_all((first + &second).as_bytes()).await.unwrap();
    let mut answers = String::new();
    stream.read_to_string(&mut answers).await.unwrap();
    assert_eq!(answers.matches("HTTP/1.1 201").count(), 2, "{answers}");
    let bodies: Vec<Vec<u8>> = there.requests().into_iter().map(|request| request.body).collect();
    assert_eq!(bodies, [b"abcde".to_vec(), b"fg".to_vec()]);
}

#[tokio::test]
async fn scripts_are_consumed_in_order_before_the_default_and_clear_ends_them() {
    let there = start().await;
    there.default_behaviour("/plain", Mix::new([(1, Behaviour::status(503)), (0, Behaviour::Ok)]));
    there.script("/", [Behaviour::status(500)]);
    there.script(TICKETS, [Behaviour::status(501), Behaviour::status(502)]);
    let mut codes = Vec::new();
    for _ in 0..4 {
        codes.push(post(&there, TICKETS, "k", json!({})).await.unwrap().status().as_u16());
    }
    assert_eq!(codes, [501, 502, 500, 503]);
    there.clear();
    assert_eq!(seen(&there), (0, 0));
    assert_eq!(post(&there, TICKETS, "k", json!({})).await.unwrap().status().as_u16(), 201);
}

#[tokio::test]
async fn it_serves_loopback_only_and_ends_when_dropped() {
    assert!(UnreliableDestination::start(SocketAddr::from(([0, 0, 0, 0], 0)), 1).await.is_err());
    let there = start().await;
    let url = there.base_url();
    drop(there);
    while tokio::net::TcpStream::connect(url.trim_start_matches("http://")).await.is_ok() {
        tokio::task::yield_now().await;
    }
}

#[test]
fn the_same_seed_draws_the_same() {
    let draw = |seed| {
        let mut rng = StdRng::seed_from_u64(seed);
        let [(_, mix), ..] = demo_behaviours();
        (0..50).map(|_| mix.draw(&mut rng)).collect::<Vec<_>>()
    };
    assert_eq!(draw(1), draw(1));
    assert_ne!(draw(1), draw(2));
    assert!(draw(1).contains(&Behaviour::Ok));
    assert_eq!(Mix::new([]).draw(&mut StdRng::seed_from_u64(1)), Behaviour::Ok);
}
