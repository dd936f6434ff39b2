use std::time::Duration;

use serde_json::json;

use super::{BASE, read, says};
use crate::config::{Config, EventPlace};
use crate::domain::webhook::{EventId, Scheme, Unmatched};

const SECRET: &str = "a secret of the shop";
const WHSEC: &str = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";

/// [`BASE`] and a source called `shop`.
fn with_source(source: &str) -> String {
    format!("{BASE}[sources.shop]\n{source}\n")
}

fn shop(source: &str) -> Config {
    read(&with_source(source)).unwrap_or_else(|error| panic!("{error}"))
}

/// What is said about a source that begins with these lines and has a mapping.
fn said(lines: &str) -> Vec<String> {
    let text = with_source(&format!("{lines}\n[[sources.shop.events]]\noperation = \"ticket\""));
    let said = read(&text).map_or_else(|error| error.to_string(), |_| String::new());
    said.lines()
        .map(|line| line.split_once(": sources.shop.").map_or(line, |(_, rest)| rest).to_owned())
        .collect()
}

#[test]
fn a_source_is_read_whole() {
    let config = shop(&format!(
        r#"
scheme = "standard-webhooks"
secrets = ["{WHSEC}", "whpk_1SiA4o9hyqTCpIqC5V9HUakiiaeACeqfZTInDBbOir4="]
tolerance = "2m"
unmatched = "refuse"
[[sources.shop.events]]
type = {{ pointer = "/type", equals = "invoice.paid" }}
operation = "ticket"
payload = "/data/object"
correlation_id = "/data/object/order"
[[sources.shop.events]]
type = {{ header = "X-Kind", equals = ["a", 1] }}
operation = "ticket"
[[sources.shop.events]]
operation = "ticket"
"#
    ));
    let source = &config.sources["shop"];
    assert_eq!((source.name.as_str(), source.proof.scheme), ("shop", Scheme::StandardWebhooks));
    assert_eq!((source.proof.secrets.len(), source.proof.tolerance), (2, Duration::from_mins(2)));
    assert_eq!((source.unmatched, source.events.len()), (Unmatched::Refuse, 3));
    let first = &source.events[0];
    let only = first.only.as_ref().unwrap();
    assert_eq!(only.place, EventPlace::Pointer("/type".into()));
    assert_eq!(only.equals, [json!("invoice.paid")]);
    assert_eq!(
        (first.payload.as_str(), first.correlation_id.as_deref()),
        ("/data/object", Some("/data/object/order"))
    );
    let second = source.events[1].only.as_ref().unwrap();
    assert_eq!(second.place, EventPlace::Header("x-kind".into()));
    assert_eq!(second.equals, [json!("a"), json!(1)]);
    assert!(source.events[2].only.is_none() && source.events[2].payload.is_empty());
    assert!(!format!("{config:?}").contains("MfKQ9r8G"), "no secret is shown");
}

#[test]
fn each_scheme_knows_its_header_and_its_id() {
    for (lines, header, id) in [
        ("scheme = \"stripe\"", "stripe-signature", EventId::Pointer("/id".into())),
        ("scheme = \"github\"", "x-hub-signature-256", EventId::Header("x-github-delivery")),
        ("scheme = \"github\"\nid = \"/n\"", "x-hub-signature-256", EventId::Pointer("/n".into())),
        ("scheme = \"stripe\"\nsignature_header = \"X-Sig\"", "x-sig", EventId::Pointer("/id".into())),
        ("scheme = \"bearer\"\nid = \"/id\"", "authorization", EventId::Pointer("/id".into())),
        ("scheme = \"bearer\"\nformat = \"cloudevents\"", "authorization", EventId::CloudEvent),
        ("scheme = \"github\"\nformat = \"cloudevents\"", "x-hub-signature-256", EventId::CloudEvent),
    ] {
        let config = shop(&format!(
            "{lines}\nsecrets = [\"{SECRET}\"]\n[[sources.shop.events]]\noperation = \"ticket\""
        ));
        let source = &config.sources["shop"];
        assert_eq!((source.proof.header.as_str(), &source.id), (header, &id), "{lines}");
        assert_eq!((source.proof.tolerance, source.unmatched), (Duration::from_mins(5), Unmatched::Ignore));
    }
}

#[test]
fn no_source_is_open() {
    let missing =
        "secrets: is missing; write secrets = [\"${NAME}\"]: without one anybody could send anything";
    for lines in ["scheme = \"github\"", "scheme = \"github\"\nsecrets = []"] {
        assert_eq!(said(lines), [missing], "{lines}");
    }
    assert_eq!(said("scheme = \"github\"\nsecrets = \"x\""), ["secrets: must be an array, not a string"]);
    assert_eq!(
        said("scheme = \"github\"\nsecrets = [\"\"]"),
        ["secrets[0]: has fewer than 16 characters; it could be guessed"]
    );
    assert_eq!(
        said("scheme = \"none\"\nsecrets = [\"\"]"),
        ["scheme: unknown word; known here are standard-webhooks, stripe, github, bearer"]
    );
    assert_eq!(
        said(&format!("secrets = [\"{SECRET}\"]")),
        ["scheme: is missing; write one of standard-webhooks, stripe, github, bearer"]
    );
}

#[test]
fn secrets_are_refused_by_what_they_lack_and_never_shown() {
    for (secret, wanted) in [
        (SECRET, "must begin with \"whsec_\" (shared, v1) or \"whpk_\" (public key, v1a)"),
        ("whsec_%%%%", "is not base64 behind its prefix"),
        ("whsec_c2hvcnQ=", "has fewer than 16 bytes; it could be guessed"),
        ("whpk_c2hvcnQ=", "a public key has 32 bytes behind \"whpk_\""),
    ] {
        let said = said(&format!("scheme = \"standard-webhooks\"\nsecrets = [\"{WHSEC}\", \"{secret}\"]"));
        assert_eq!(said, [format!("secrets[1]: {wanted}")], "{secret}");
    }
    let said = said("scheme = \"standard-webhooks\"\nsecrets = [\"whsk_c2hvcnQ=\", \"${NONE}\"]");
    assert!(said[0].contains("private key") && !said[0].contains("c2hvcnQ"), "{said:?}");
    assert_eq!(said[1], "secrets[1]: the environment has no variable NONE");
}

#[test]
fn keys_that_do_not_fit_are_named() {
    let github = format!("scheme = \"github\"\nsecrets = [\"{SECRET}\"]");
    for (line, wanted) in [
        ("tolerance = \"5m\"", "tolerance: github does not date its messages; remove it"),
        ("sheme = \"x\"", "sheme: unknown key; did you mean \"scheme\"?"),
        ("unmatched = \"ignor\"", "unmatched: unknown word; did you mean \"ignore\"?"),
        ("format = \"cloudevent\"", "format: unknown word; did you mean \"cloudevents\"?"),
        ("id = \"id\"", "id: must be a JSON pointer such as \"/order/id\""),
        (
            "format = \"cloudevents\"\nid = \"/id\"",
            "id: a CloudEvent is named by its source and id; remove it",
        ),
    ] {
        assert_eq!(said(&format!("{github}\n{line}")), [wanted], "{line}");
    }
    let standard = format!("scheme = \"standard-webhooks\"\nsecrets = [\"{WHSEC}\"]");
    for (line, wanted) in [
        (
            "tolerance = \"0s\"",
            "tolerance: must be longer than 0s: no message arrives at the moment of its signing",
        ),
        (
            "signature_header = \"X-Sig\"",
            "signature_header: standard-webhooks has a header of its own; remove it",
        ),
    ] {
        assert_eq!(said(&format!("{standard}\n{line}")), [wanted], "{line}");
    }
    assert_eq!(
        said(&format!("scheme = \"bearer\"\nsecrets = [\"{SECRET}\"]")),
        ["id: is missing; write a JSON pointer to each event's own id, such as \"/id\""]
    );
}

#[test]
fn mappings_name_what_is_there() {
    let line = BASE.lines().count() + 1;
    let head = format!("scheme = \"github\"\nsecrets = [\"{SECRET}\"]");
    let none = with_source(&head);
    says(&[(
        &none,
        &[&format!(
            "dlo.toml:{line}: sources.shop.events: is missing; write at least one [[sources.shop.events]]"
        )],
    )]);
    let line = line + 4;
    for (mapping, wanted) in [
        (
            "operation = \"tickt\"",
            "operation: no operation type is called \"tickt\"; did you mean \"ticket\"?",
        ),
        (
            "operation = \"ticket\"\npayload = \"data\"",
            "payload: must be a JSON pointer such as \"/order/id\"",
        ),
        (
            "operation = \"ticket\"\ntype = { equals = \"x\" }",
            "type.pointer: is missing; write a JSON pointer such as \"/type\", or a header",
        ),
        (
            "operation = \"ticket\"\ntype = { pointer = \"/type\" }",
            "type.equals: is missing; write a value such as \"invoice.paid\", or several in an array",
        ),
        (
            "operation = \"ticket\"\ntype = { pointer = \"/a\", header = \"b\", equals = 1 }",
            "type.header: stands beside pointer; write one of the two",
        ),
        (
            "operation = \"ticket\"\ntype = { pointer = \"/a\", equals = [] }",
            "type.equals: names no value; write at least one",
        ),
        (
            "operation = \"ticket\"\nwhen = 1",
            "when: unknown key; known here are correlation_id, operation, payload, type",
        ),
    ] {
        let text = with_source(&format!("{head}\n[[sources.shop.events]]\n{mapping}"));
        let line = if mapping.contains('\n') { line + 1 } else { line };
        says(&[(&text, &[&format!("dlo.toml:{line}: sources.shop.events[0].{wanted}")])]);
    }
    let twice = with_source(&format!(
        "{head}\n[[sources.shop.events]]\noperation = \"ticket\"\n[[sources.shop.events]]\noperation = \"ticket\""
    ));
    let at = line + 2;
    says(&[(
        &twice,
        &[&format!(
            "dlo.toml:{at}: sources.shop.events[1].operation: is never reached: the one before it takes every event"
        )],
    )]);
}

/// The examples that the README points to, as somebody would paste them.
#[test]
fn the_examples_of_the_readme_load() {
    let example = include_str!("../../../examples/webhooks.toml");
    let text = format!("{}{example}", BASE.replace("operations.ticket", "operations.create-ticket"));
    let secret = |name: &str| match name {
        "BILLING_SECRET" | "BILLING_SECRET_OLD" => Some(WHSEC.to_owned()),
        "PAYMENTS_SECRET" | "CODE_SECRET" | "PLANT_TOKEN" => Some(SECRET.to_owned()),
        _ => None,
    };
    let config = Config::read(std::path::Path::new("dlo.toml"), &text, &secret).unwrap();
    let schemes: Vec<Scheme> = config.sources.values().map(|source| source.proof.scheme).collect();
    assert_eq!(schemes, [Scheme::StandardWebhooks, Scheme::Github, Scheme::Stripe, Scheme::Bearer]);
}
