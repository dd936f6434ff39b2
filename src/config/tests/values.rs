use std::path::Path;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::json;

use super::{BASE, none, read};
use crate::config::{Config, Template, init_text};
use crate::domain::contract::{KeyCarrier, KeyPromise, RuleOutcome, StatusMatch};
use crate::domain::keyring::{Keyring, SecretKey};
use crate::domain::operation::Severity;

fn in_directory(text: &str, env: &dyn Fn(&str) -> Option<String>) -> Config {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("dlo.toml");
    std::fs::write(&path, text).unwrap();
    std::fs::write(directory.path().join("dlo.key"), format!("{}\n", "k".repeat(64))).unwrap();
    std::fs::write(directory.path().join("dlo.key.old"), "o".repeat(64)).unwrap();
    Config::load(&path, env).unwrap()
}

#[test]
fn the_first_file_starts_as_it_is() {
    let config = in_directory(init_text(), &none);
    assert_eq!(config.server.listen.to_string(), "127.0.0.1:8080");
    assert_eq!(config.keyring, Some(Keyring::new(SecretKey::new("k".repeat(64)).unwrap(), vec![])));
    assert!(config.destinations.is_empty() && config.operations.is_empty());
    let defaults = read("").unwrap();
    assert_eq!((config.engine, config.retry), (defaults.engine, defaults.retry));
    assert_eq!(config.server.public_url, defaults.server.public_url);
}

#[test]
fn its_example_loads_too() {
    let uncommented: Vec<&str> = init_text()
        .lines()
        .map(|line| match line.strip_prefix('#') {
            Some(rest) if !rest.is_empty() && !rest.starts_with(' ') => rest,
            _ => line,
        })
        .collect();
    let config = in_directory(&uncommented.join("\n"), &|name| match name {
        "CRM_TOKEN" => Some("hush".to_owned()),
        "BILLING_SECRET" => Some("a secret of the billing".to_owned()),
        "OIDC_SECRET" => Some("a secret of the provider".to_owned()),
        _ => None,
    });
    let crm = &config.destinations["crm"];
    let headers: Vec<(&str, &str)> =
        crm.headers.iter().map(|header| (header.name.as_str(), header.value.expose_secret())).collect();
    assert_eq!(headers, [("Authorization", "Bearer hush")]);
    // Its own rule stands before those of the preset.
    let first = &crm.contract.rules[0];
    assert_eq!((first.status, first.outcome), (Some(StatusMatch::Code(409)), RuleOutcome::Done));
    assert_eq!(crm.contract.rules.len(), 4);
    let ticket = &config.operations["create-ticket"];
    assert_eq!(ticket.severity, Severity::High);
    assert_eq!(ticket.retry.max_delay, Duration::from_mins(10));
    assert!(ticket.override_approval);
    assert_eq!(ticket.steps.len(), 3);
    assert_eq!(config.sources["billing"].events[0].operation, "create-ticket");
    let payload = json!({"order_id": "A7", "version": 2, "customer_id": 12, "other": 1});
    assert_eq!(ticket.derive_key(&payload).unwrap().unwrap().as_str(), "ticket:A7:v2");
    assert_eq!(
        ticket.search_values(&payload),
        [("customer".to_owned(), "12".to_owned()), ("order".to_owned(), "A7".to_owned())]
    );
}

#[test]
fn a_file_refines_a_preset() {
    let of = |preset: &str, more: &str| {
        let text =
            format!("[destinations.a]\nbase_url = \"https://a.example\"\npreset = \"{preset}\"\n{more}");
        read(&text).unwrap().destinations["a"].clone()
    };
    let key = |preset: &str, more: &str| of(preset, more).contract.key.unwrap();
    let quoted = KeyCarrier::Header { name: "Idempotency-Key".to_owned(), quoted: true };
    let bare = KeyCarrier::header("Idempotency-Key");
    let promise = |carrier: &KeyCarrier, hours| KeyPromise {
        carrier: carrier.clone(),
        window: Duration::from_hours(hours),
    };
    assert_eq!(key("ietf", ""), promise(&quoted, 0));
    assert_eq!(key("ietf", "key = { window = \"24h\" }"), promise(&quoted, 24));
    assert_eq!(key("ietf", "key = { window = \"24h\", quoted = false }"), promise(&bare, 24));
    assert_eq!(key("ietf", "key = { header = \"Idempotency-Key\", window = \"24h\" }"), promise(&bare, 24));
    assert_eq!(key("stripe", "key = { window = \"12h\" }"), promise(&bare, 12));
    assert_eq!(key("stripe", "key = { header = \"Idempotency-Key\" }"), promise(&bare, 24));
    // What is known of one carrier says nothing of another.
    assert_eq!(
        key("stripe", "key = { query = \"id\" }"),
        promise(&KeyCarrier::Query { name: "id".to_owned() }, 0)
    );

    let brevo = of("brevo", "retry = { attempts = 2 }").retry.unwrap();
    assert_eq!((brevo.attempts, brevo.max_age), (Some(2), Some(Duration::from_mins(10))));
    assert_eq!(
        of("brevo", "retry = { max_age = \"1m\" }").retry.unwrap().max_age,
        Some(Duration::from_mins(1))
    );
    assert!(of("salesforce", "").contract.naturally_idempotent);
    assert!(!of("salesforce", "naturally_idempotent = false").contract.naturally_idempotent);
    let rules = of("gocardless", "rules = [{ status = 409, outcome = \"uncertain\" }]").contract.rules;
    assert_eq!(
        rules.iter().map(|rule| rule.outcome).collect::<Vec<_>>(),
        [RuleOutcome::Uncertain, RuleOutcome::Done]
    );
}

#[test]
fn the_environment_overrides_the_file() {
    let env = |name: &str| {
        Some(match name {
            "DLO_LISTEN" => "0.0.0.0:9".to_owned(),
            "DLO_PUBLIC_URL" => "https://desk.example.com".to_owned(),
            "DLO_DATABASE_URL" => "postgres://dlo:hush@db/dlo".to_owned(),
            "DLO_SECRET_KEY" => "hush".repeat(8),
            _ => return None,
        })
    };
    // What is overridden need not be complete.
    let text = "[server]\nlisten = \"127.0.0.1:1\"\ndatabase_url = \"${GONE}\"\nsecret_key_file = \"gone\"\n";
    let config = Config::read(Path::new("dlo.toml"), text, &env).unwrap();
    assert_eq!(config.server.listen.to_string(), "0.0.0.0:9");
    assert_eq!(config.server.public_url.as_str(), "https://desk.example.com/");
    assert_eq!(config.server.database_url, "postgres://dlo:hush@db/dlo");
    assert_eq!(config.keyring, Some(Keyring::new(SecretKey::new("hush".repeat(8)).unwrap(), vec![])));
    assert!(!format!("{config:?}").contains("hush"), "{config:?}");
}

#[test]
fn nothing_prints_a_credential() {
    let text =
        BASE.replace("key = { header", "headers = { Authorization = \"Bearer hush\" }\nkey = { header");
    let config = read(&text).unwrap();
    let shown = format!("{config:?} {config:#?}");
    assert!(shown.contains("Authorization") && !shown.contains("hush"), "{shown}");
}

#[test]
fn a_retry_policy_is_resolved_key_by_key() {
    let text = format!(
        "[retry]\nattempts = 9\nmax_age = \"1h\"\n{}",
        BASE.replace("key = { header", "retry = { max_age = \"2h\", factor = 2 }\nkey = { header")
            .replace("[operations.ticket]", "[operations.ticket]\nretry = { factor = 1.5 }")
    );
    let retry = read(&text).unwrap().operations["ticket"].retry.clone();
    assert_eq!((retry.attempts, retry.max_age), (9, Duration::from_hours(2)));
    assert_eq!((retry.factor.to_string().as_str(), retry.first_delay), ("1.5", Duration::from_secs(10)));
}

#[test]
fn a_key_is_made_of_facts_that_are_there() {
    let of = |template: &str, payload| {
        let config = read(&BASE.replace("ticket:{{ payload.order_id }}", template)).unwrap();
        config.operations["ticket"]
            .derive_key(&payload)
            .map(|key| key.map(|key| key.as_str().to_owned()).unwrap())
            .map_err(|error| error.to_string())
    };
    for (template, payload, wanted) in [
        ("t:{{ payload.a }}:{{ payload.b }}", json!({"a": "x", "b": 2}), Ok("t:x:2")),
        ("t:{{ payload.a.b }}", json!({"a": {"b": true}}), Ok("t:true")),
        ("{{ payload.a }}", json!({"a": "<&\"/"}), Ok("<&\"/")),
        ("t:{{ payload.a }}", json!({}), Err("no key can be made: payload.a is missing")),
        ("t:{{ payload.a.b }}", json!({"a": 1}), Err("no key can be made: payload.a.b is missing")),
        ("t:{{ payload.a }}", json!({"a": null}), Err("no key can be made: payload.a is null")),
        ("t:{{ payload.a }}", json!({"a": ""}), Err("no key can be made: payload.a is empty")),
        ("t:{{ payload.a }}", json!({"a": [1]}), Err("no key can be made: payload.a is a list or a table")),
        ("t:{{ payload.a }}", json!([1]), Err("no key can be made: payload.a is missing")),
        (
            "t:{{ payload.a }}",
            json!({"a": "x\ny"}),
            Err("no key can be made from this payload: the key holds a control character"),
        ),
    ] {
        let wanted = wanted.map(str::to_owned).map_err(str::to_owned);
        assert_eq!(of(template, payload), wanted, "{template}");
    }
    let none = read(&BASE.replace("key = \"ticket:{{ payload.order_id }}\"", "")).unwrap();
    assert_eq!(none.operations["ticket"].derive_key(&json!({})), Ok(None));
}

#[test]
fn searched_values_are_short_and_flat() {
    let text = BASE.replace(
        "[operations.ticket]",
        "[operations.ticket]\nsearch = { a = \"/a\", b = \"/b\", c = \"/c\", d = \"/d\", e = \"/e/0\" }",
    );
    let config = read(&text).unwrap();
    let payload = json!({"a": "é".repeat(300), "b": {"c": 1}, "c": false, "d": null, "e": [1.5]});
    let found = config.operations["ticket"].search_values(&payload);
    assert_eq!(
        found,
        [
            ("a".to_owned(), "é".repeat(200)),
            ("c".to_owned(), "false".to_owned()),
            ("e".to_owned(), "1.5".to_owned())
        ]
    );
}

#[test]
fn a_configuration_is_shared_by_threads() {
    fn shared<T: Send + Sync + 'static>() {}
    shared::<Config>();
    shared::<Template>();
}
