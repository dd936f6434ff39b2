//! A template, in every place where the file may have one, over a payload that comes from outside.
//! The input is the template, a line `---`, and the payload.
#![no_main]

use std::collections::BTreeMap;

use dead_letter_office_fuzz::config::{Config, OperationFacts, RenderContext};
use dead_letter_office_fuzz::domain::attempt::StoredRequest;
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::{quoted, read};
use libfuzzer_sys::fuzz_target;
use percent_encoding::percent_decode_str;
use serde_json::Value;
use url::Url;
use uuid::Uuid;

const BASE: &str = "https://crm.example.com/api/";

/// A type whose one step is described by these lines.
fn with(lines: &str) -> Option<Config> {
    read(&format!(
        "[destinations.crm]\nbase_url = \"{BASE}\"\nkey = {{ header = \"Idempotency-Key\", window = \"24h\" }}\n\
         [operations.ticket]\n{lines}"
    ))
    .ok()
}

const STEP: &str =
    "[[operations.ticket.steps]]\nname = \"create\"\ndestination = \"crm\"\nmethod = \"POST\"\n";

/// The request, twice the same; absent where the values make none.
fn requested(config: &Config, payload: &Value) -> Option<(Url, StoredRequest)> {
    let step = &config.operations["ticket"].steps[0];
    let steps = BTreeMap::new();
    let context = RenderContext {
        payload,
        key: Uuid::from_u128(7).to_string(),
        operation: OperationFacts {
            id: Uuid::from_u128(8),
            key: "ticket:7".into(),
            kind: "ticket".into(),
            correlation_id: None,
            source: None,
        },
        received_at: Timestamp::from_micros(1_796_000_000_000_000),
        steps: &steps,
    };
    let made = || step.request(&config.destinations["crm"], "{}", &context);
    let request = match made() {
        Ok(request) => request,
        Err(error) => {
            assert!(!error.part.is_empty() && !error.why.is_empty(), "{error:?}");
            return None;
        }
    };
    assert_eq!(made().as_ref(), Ok(&request));
    let url = Url::parse(&request.url).expect("an address");
    assert_eq!(url.origin(), Url::parse(BASE).expect("an address").origin());
    assert!(url.path().starts_with("/api/"), "{url}");
    for (name, value) in &request.headers {
        assert!(value.bytes().all(|byte| matches!(byte, b' '..=b'~')), "{name}: {value:?}");
    }
    Some((url, request))
}

fuzz_target!(|text: &str| {
    let (template, payload) = text.split_once("\n---\n").unwrap_or((text, "{}"));
    let payload: Value = serde_json::from_str(payload).unwrap_or_else(|_| Value::from(payload));
    let template = quoted(template);
    let path = "path = \"/tickets\"\n";

    if let Some(config) = with(&format!("key = {template}\n{STEP}{path}")) {
        match config.operations["ticket"].derive_key(&payload) {
            Ok(key) => assert!(key.is_some_and(|key| !key.as_str().trim().is_empty())),
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
    if let Some(config) = with(&format!("{STEP}path = {template}\n")) {
        requested(&config, &payload);
    }
    if let Some(config) = with(&format!("{STEP}{path}headers = {{ X-Value = {template} }}\n")) {
        requested(&config, &payload);
    }
    if let Some(config) = with(&format!("{STEP}{path}body = {{ value = {template} }}\n"))
        && let Some((_, request)) = requested(&config, &payload)
    {
        let body: Value = serde_json::from_str(&request.body.expect("a body")).expect("JSON");
        assert!(body.as_object().is_some_and(|members| members.keys().eq(["value"])), "{body}");
    }

    // A value adds no segment, no parameter and no fragment, whatever it holds.
    let two = with(&format!("{STEP}path = \"/t/{{{{ payload.a }}}}/x?q={{{{ payload.b }}}}&z=1\"\n"))
        .expect("a type");
    if let Some((url, _)) = requested(&two, &payload) {
        let of = |name: &str| match &payload[name] {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let segments: Vec<&str> = url.path().split('/').collect();
        let ["", "api", "t", middle, "x"] = segments[..] else { panic!("{url}") };
        if payload["a"].is_string() && payload["b"].is_string() {
            assert_eq!(percent_decode_str(middle).decode_utf8().expect("UTF-8"), of("a"), "{url}");
            let pairs: Vec<(String, String)> =
                url.query_pairs().map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
            assert_eq!(pairs, [("q".to_owned(), of("b")), ("z".to_owned(), "1".to_owned())], "{url}");
        }
    }
});
