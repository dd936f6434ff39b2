//! Where a key is put, and what stands in its way.

use serde_json::{Value, json};

use super::requests::{PAYLOAD_TEXT, request};
use super::{BASE, read, says};
use crate::config::key::into_body;

const KEY: &str = "6f1c2f5e-0000-4000-8000-000000000001";

/// The configuration of a destination that takes its key so, and of a step with these lines.
fn with_key(key: &str, step: &str) -> String {
    BASE.replace("{ header = \"Idempotency-Key\", window = \"24h\" }", key)
        .replace("path = \"/tickets\"\n", step)
}

fn sent(key: &str, step: &str, payload: &Value) -> Result<(String, String), String> {
    let config = read(&with_key(key, step)).unwrap();
    let sent = request(&config, payload)?;
    assert!(sent.headers.iter().all(|(_, value)| !value.contains(KEY)), "{:?}", sent.headers);
    Ok((sent.url.trim_start_matches("https://crm.example.com/api").to_owned(), sent.body.unwrap_or_default()))
}

#[test]
fn a_header_takes_it_bare_or_quoted() {
    for (quoted, wanted) in [
        ("", KEY.to_owned()),
        (", quoted = false", KEY.to_owned()),
        (", quoted = true", format!("\"{KEY}\"")),
    ] {
        let key = format!("{{ header = \"Idempotency-Key\"{quoted} }}");
        let sent = request(&read(&with_key(&key, "path = \"/t\"\n")).unwrap(), &json!({})).unwrap();
        assert_eq!(sent.headers[0], ("Idempotency-Key".to_owned(), wanted), "{key}");
    }
}

#[test]
fn an_address_takes_it_once() {
    let sent =
        |path: &str, payload| sent("{ query = \"requestid\" }", &format!("path = \"{path}\"\n"), &payload);
    for (path, payload, wanted) in [
        ("/t", json!({}), format!("/t?requestid={KEY}")),
        (
            "/t?q={{ payload.q }}",
            json!({"q": "a b&requestid=1"}),
            format!("/t?q=a%20b%26requestid%3D1&requestid={KEY}"),
        ),
        ("/t?{{ payload.name }}={{ key }}", json!({"name": "requestid"}), format!("/t?requestid={KEY}")),
    ] {
        assert_eq!(sent(path, payload).unwrap(), (wanted, PAYLOAD_TEXT.to_owned()), "{path}");
    }
    let taken = "the request cannot be built: path: its parameter requestid takes the step's key and holds another value";
    assert_eq!(sent("/t?{{ payload.name }}=1", json!({"name": "requestid"})), Err(taken.to_owned()));
    says(&[(
        &with_key("{ query = \"requestid\" }", "path = \"/t?a=1&requestid={{ key }}\"\n"),
        &[
            "dlo.toml:13: operations.ticket.steps[0].path: the parameter requestid takes the step's key; remove it",
        ],
    )]);
}

#[test]
fn a_described_body_takes_it_among_its_members() {
    let body = |template: &str, payload: &Value| {
        let step = format!("path = \"/t\"\nbody = {template}\n");
        sent("{ body = \"/headers/idempotencyKey\" }", &step, payload).map(|(_, body)| body)
    };
    let with = format!("{{\"to\":\"a\",\"headers\":{{\"idempotencyKey\":\"{KEY}\"}}}}");
    assert_eq!(body("{ to = \"a\" }", &json!({})).unwrap(), with);
    assert_eq!(
        body("{ to = \"a\", headers = { idempotencyKey = \"{{ key }}\" } }", &json!({})).unwrap(),
        with
    );
    assert_eq!(
        body("{ headers = \"{{ payload.headers }}\" }", &json!({"headers": {"x": 1}})).unwrap(),
        format!("{{\"headers\":{{\"x\":1,\"idempotencyKey\":\"{KEY}\"}}}}")
    );
    let taken = "the request cannot be built: body: /headers/idempotencyKey takes the step's key and holds another value";
    let own = json!({"headers": {"idempotencyKey": "mine"}});
    assert_eq!(body("{ headers = \"{{ payload.headers }}\" }", &own), Err(taken.to_owned()));
    for occupied in ["{ headers = { idempotencyKey = \"mine\" } }", "{ headers = \"none\" }", "[1]"] {
        let text = with_key(
            "{ body = \"/headers/idempotencyKey\" }",
            &format!("path = \"/t\"\nbody = {occupied}\n"),
        );
        says(&[(
            &text,
            &[
                "dlo.toml:14: operations.ticket.steps[0].body: /headers/idempotencyKey takes the step's key; remove what \
               stands there",
            ],
        )]);
    }
}

#[test]
fn a_payload_takes_it_and_is_otherwise_left_to_the_byte() {
    let (_, body) = sent("{ body = \"/idempotency_key\" }", "path = \"/t\"\n", &json!({})).unwrap();
    assert_eq!(body, format!("{{\"b\":1.0,\"a\":2,\"idempotency_key\":\"{KEY}\"}}"));
    for (text, pointer, wanted) in [
        ("{}", "/k", Ok(r#"{"k":"K"}"#)),
        (
            r#"{"n": 12345678901234567890.10, "e" :1E+2}"#,
            "/k",
            Ok(r#"{"n":12345678901234567890.10,"e":1E+2,"k":"K"}"#),
        ),
        (r#"{"a":{"b": [ 1 ]}}"#, "/a/c/d", Ok(r#"{"a":{"b":[ 1 ],"c":{"d":"K"}}}"#)),
        (r#"{"a~b":{"é\"":1}}"#, "/a~0b/x~1y", Ok(r#"{"a~b":{"é\"":1,"x/y":"K"}}"#)),
        (r#"{"k": "K"}"#, "/k", Ok(r#"{"k":"K"}"#)),
        (r#"{"\u006b": "K"}"#, "/k", Ok(r#"{"k":"K"}"#)),
        (r#"{"k":"L"}"#, "/k", Err("/k takes the step's key and holds another value")),
        (r#"{"k":"K","k":"L"}"#, "/k", Err("/k takes the step's key and holds another value")),
        (r#"{"k":null}"#, "/k", Err("/k takes the step's key and holds another value")),
        ("[1]", "/k", Err("the step's key goes to /k, and what should hold it is no object")),
        (r#"{"a":[]}"#, "/a/0", Err("the step's key goes to /a/0, and what should hold it is no object")),
        (r#"{"a":1}"#, "/a/k", Err("the step's key goes to /a/k, and what should hold it is no object")),
    ] {
        assert_eq!(
            into_body(text, pointer, "K").as_deref(),
            wanted.map_err(str::to_owned).as_deref(),
            "{text}"
        );
    }
}

#[test]
fn a_request_without_a_body_carries_no_key_in_it() {
    let key = "{ body = \"/k\" }";
    let with = |method: &str, more: &str| {
        with_key(key, &format!("path = \"/t\"\n{more}")).replace("\"POST\"", &format!("\"{method}\""))
    };
    assert_eq!(request(&read(&with("GET", "")).unwrap(), &json!({})).unwrap().body, None);
    let described = request(&read(&with("DELETE", "body = {}\n")).unwrap(), &json!({})).unwrap();
    assert_eq!(described.body.unwrap(), format!("{{\"k\":\"{KEY}\"}}"));
    says(&[(
        &with("DELETE", ""),
        &[
            "dlo.toml:12: operations.ticket.steps[0].method: the destination takes the key in the body, and this has none; \
           write body = {}",
        ],
    )]);
}
