use std::collections::BTreeMap;

use serde_json::{Value, json};
use uuid::Uuid;

use super::{BASE, read, with_step};
use crate::config::{Config, OperationFacts, RenderContext};
use crate::domain::attempt::StoredRequest;
use crate::domain::time::Timestamp;

pub(super) const PAYLOAD_TEXT: &str = "{\"b\": 1.0,  \"a\":2}";

pub(super) fn request(config: &Config, payload: &Value) -> Result<StoredRequest, String> {
    let step = config.operations["ticket"].steps.last().unwrap();
    let steps = BTreeMap::from([("before".to_owned(), json!({"id": 7}))]);
    let context = RenderContext {
        payload,
        key: "6f1c2f5e-0000-4000-8000-000000000001".to_owned(),
        operation: OperationFacts {
            id: Uuid::from_u128(1),
            key: "ticket:1".to_owned(),
            kind: "ticket".to_owned(),
            correlation_id: None,
            source: Some("shop".to_owned()),
        },
        received_at: Timestamp::from_micros(0),
        steps: &steps,
    };
    step.request(&config.destinations["crm"], PAYLOAD_TEXT, &context).map_err(|error| error.to_string())
}

fn body(template: &str, payload: &Value) -> Result<String, String> {
    let config = with_step(&format!("method = \"POST\"\npath = \"/t\"\nbody = {template}\n"));
    request(&config, payload).map(|request| request.body.unwrap())
}

#[test]
fn an_absent_body_is_the_payload_to_the_byte() {
    let config = with_step("method = \"POST\"\npath = \"/tickets\"\n");
    let headers =
        [("Idempotency-Key", "6f1c2f5e-0000-4000-8000-000000000001"), ("content-type", "application/json")];
    assert_eq!(
        request(&config, &json!({})).unwrap(),
        StoredRequest {
            method: "POST".to_owned(),
            url: "https://crm.example.com/api/tickets".to_owned(),
            headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
            body: Some(PAYLOAD_TEXT.to_owned()),
        }
    );
    for method in ["get", "DELETE", "HEAD"] {
        let sent =
            request(&with_step(&format!("method = \"{method}\"\npath = \"/t\"\n")), &json!({})).unwrap();
        assert_eq!((sent.method, sent.body, sent.headers.len()), (method.to_uppercase(), None, 1));
    }
}

#[test]
fn a_single_expression_keeps_its_type_and_a_text_stays_one() {
    let payload = json!({"n": 1, "f": 1.5, "big": u64::MAX, "yes": true, "no": null, "list": [1, "a"],
        "deep": {"z": 1, "a": {"y": 2, "b": 3}}, "text": "a \"b\"\n{{ key }}"});
    for (template, wanted) in [
        ("{ z = 1, a = 2 }", r#"{"z":1,"a":2}"#),
        ("{ z = \"{{ payload.n }}\", a = \"{{payload.f}}\" }", r#"{"z":1,"a":1.5}"#),
        (
            "[\"{{ payload.big }}\", \"{{ payload.yes }}\", \"{{ payload.no }}\"]",
            "[18446744073709551615,true,null]",
        ),
        ("\"{{ payload.deep }}\"", r#"{"z":1,"a":{"y":2,"b":3}}"#),
        ("\"{{ payload.list }}\"", r#"[1,"a"]"#),
        ("\"{{ payload['text'] }}\"", r#""a \"b\"\n{{ key }}""#),
        ("\"n {{ payload.n }}\"", "\"n 1\""),
        ("\"n {{ payload.yes }} {{ payload.list }}\"", r#""n true [1,\"a\"]""#),
        ("\"{{ payload.n }}{{ payload.n }}\"", "\"11\""),
        ("\"{{ {'a': {'b': payload.n}} }}\"", r#"{"a":{"b":1}}"#),
        ("\"{{- payload.n -}}\"", "1"),
        ("\"{% if payload.yes %}y{% endif %}\\n\"", r#""y\n""#),
        (
            "\"{{ operation.type }} {{ operation.source }} {{ received_at }}\"",
            r#""ticket shop 1970-01-01T00:00:00.000000Z""#,
        ),
        ("\"{{ payload.gone|default('x') }}\"", "\"x\""),
        (
            "{ at = 1979-05-27T07:32:00Z, f = 1.5, t = true }",
            r#"{"at":"1979-05-27T07:32:00Z","f":1.5,"t":true}"#,
        ),
        ("{ dollar = \"$${X}\" }", r#"{"dollar":"${X}"}"#),
    ] {
        assert_eq!(body(template, &payload).as_deref(), Ok(wanted), "{template}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let payload = json!({"no": null, "a": {"b": 1}});
    for (template, wanted) in [
        ("{ x = \"{{ payload.gone }}\" }", "body: payload.gone is missing"),
        ("{ x = \"{{ payload.gone.further }}\" }", "body: payload.gone is missing"),
        ("{ x = \"a {{ payload.a.c }}\" }", "body: payload.a.c is missing"),
        ("{ x = \"a {{ payload.p }} {{ payload.q }}\" }", "body: payload.p and payload.q are missing"),
        ("{ x = \"a {{ payload.no }}\" }", "body: payload.no is null"),
        ("{ x = \"a {{ operation.correlation_id }}\" }", "body: operation.correlation_id is null"),
    ] {
        let wanted = format!("the request cannot be built: {wanted}");
        assert_eq!(body(template, &payload), Err(wanted), "{template}");
    }
}

#[test]
fn no_value_changes_a_path() {
    let config =
        with_step("method = \"PUT\"\npath = \"/t/{{ payload.id }}/x{{ payload.more }}?q={{ payload.q }}\"\n");
    let at = |id: &str, more: &str, q: &str| {
        request(&config, &json!({"id": id, "more": more, "q": q}))
            .map(|request| request.url.trim_start_matches("https://crm.example.com/api").to_owned())
    };
    for (id, more, q, wanted) in [
        ("7", "", "", "/t/7/x?q="),
        ("a/b", "?x", "1&r=2", "/t/a%2Fb/x%3Fx?q=1%26r%3D2"),
        ("../../admin", "", "#", "/t/..%2F..%2Fadmin/x?q=%23"),
        ("a\r\nHost: b", "\\", "a b+c", "/t/a%0D%0AHost%3A%20b/x%5C?q=a%20b%2Bc"),
        ("%2e%2e", "%", "é", "/t/%252e%252e/x%25?q=%C3%A9"),
        ("//evil.example", "", "\0", "/t/%2F%2Fevil.example/x?q=%00"),
        ("...", "..", "..", "/t/.../x..?q=.."),
    ] {
        assert_eq!(at(id, more, q).as_deref(), Ok(wanted), "{id} {more} {q}");
    }
    for (id, wanted) in [
        ("..", "a part of it is \".\" or \"..\", which would lead elsewhere"),
        (".", "a part of it is \".\" or \"..\", which would lead elsewhere"),
        ("", "a value that makes up a whole part of it is empty"),
    ] {
        assert_eq!(at(id, "", ""), Err(format!("the request cannot be built: path: {wanted}")), "{id:?}");
    }
}

#[test]
fn no_template_turns_the_encoding_of_a_path_off() {
    let payload = json!({"id": "../a?b", "dot": "."});
    for (path, wanted) in [
        ("{{ payload.id|safe }}", Ok("..%2Fa%3Fb")),
        ("{% autoescape false %}{{ payload.id }}{% endautoescape %}", Ok("..%2Fa%3Fb")),
        ("{{ payload.id|urlencode }}", Ok("..%2Fa%3Fb")),
        (
            "{{ payload.dot }}{{ payload.dot }}",
            Err("a part of it is \".\" or \"..\", which would lead elsewhere"),
        ),
        ("%2E{{ payload.dot }}", Err("a part of it is \".\" or \"..\", which would lead elsewhere")),
        ("{{ payload }}", Err("payload is a list or a table")),
    ] {
        let config = with_step(&format!("method = \"PUT\"\npath = \"/{path}\"\n"));
        let url = request(&config, &payload).map(|request| request.url);
        let wanted = wanted.map(|path| format!("https://crm.example.com/api/{path}"));
        assert_eq!(url, wanted.map_err(|why| format!("the request cannot be built: path: {why}")), "{path}");
    }
}

#[test]
fn no_value_adds_a_header() {
    let config = with_step(
        "method = \"PUT\"\npath = \"/\"\nheaders = { X-Order = \"o {{ payload.id }}\", Content-Type = \"text/x\" }\n",
    );
    let sent = |id: &str| request(&config, &json!({"id": id})).map(|request| request.headers[0].1.clone());
    assert_eq!(sent("7").as_deref(), Ok("o 7"));
    let control = "the request cannot be built: X-Order: its value holds a control character";
    for id in ["a\nb", "a\r\nX: y", "\0", "\t", "\u{7f}", "\u{85}"] {
        assert_eq!(sent(id), Err(control.to_owned()), "{id:?}");
    }
    assert!(
        sent("é")
            .unwrap_err()
            .ends_with("its value holds a letter that no header can carry; use the filter urlencode")
    );
    let headers = request(&config, &json!({"id": 1})).unwrap().headers;
    assert_eq!(headers.iter().filter(|(name, _)| name.eq_ignore_ascii_case("content-type")).count(), 1);
    assert!(!headers.iter().any(|(name, _)| name == "Authorization"));
}

#[test]
fn a_step_uses_what_earlier_steps_saved() {
    let text = format!(
        "{}save = {{ id = \"/id\", gone = \"/gone\" }}\n[[operations.ticket.steps]]\nname = \"after\"\ndestination = \"crm\"\n\
         method = \"POST\"\npath = \"/t/{{{{ steps['before'].id }}}}\"\nbody = {{ id = \"{{{{ steps.before.id }}}}\" }}\n",
        BASE.replace("\"create\"", "\"before\"")
    );
    let sent = request(&read(&text).unwrap(), &json!({})).unwrap();
    assert_eq!(sent.url, "https://crm.example.com/api/t/7");
    assert_eq!(sent.body.as_deref(), Some(r#"{"id":7}"#));
    let gone = read(&text.replace("steps.before.id", "steps.before.gone")).unwrap();
    let wanted = "the request cannot be built: body: steps.before.gone is missing";
    assert_eq!(request(&gone, &json!({})), Err(wanted.to_owned()));
}
