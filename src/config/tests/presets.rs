//! Every built-in contract as a file that uses it sees it, and what answers in the shapes that its
//! destination documents come to mean under it.

use std::collections::BTreeMap;
use std::path::Path;

use serde::Deserialize;
use serde_json::Value;

use super::{read, says};
use crate::config::{Config, Preset, preset_names};
use crate::domain::classify::{Answer, Classified, Event, classify};
use crate::domain::contract::{Class, Contract};
use crate::domain::time::Timestamp;

/// A step that each preset's promise is about.
fn step(preset: &str) -> &'static str {
    match preset {
        "resend" => "method = \"POST\"\npath = \"/emails\"\n",
        "hubspot" => "method = \"POST\"\npath = \"/crm/v3/objects/contacts/batch/upsert\"\n",
        "salesforce" => "method = \"PATCH\"\npath = \"/sobjects/Order__c/Id__c/{{ payload.id }}\"\n",
        _ => "method = \"POST\"\npath = \"/things\"\n",
    }
}

fn text(preset: &str, destination: &str, step: &str) -> String {
    format!(
        "[destinations.there]\nbase_url = \"https://there.example/v1\"\npreset = \"{preset}\"\n{destination}\
         [operations.thing]\n[[operations.thing.steps]]\nname = \"do\"\ndestination = \"there\"\n{step}"
    )
}

fn config(preset: &str) -> Config {
    read(&text(preset, "", step(preset))).unwrap_or_else(|error| panic!("{preset}: {error}"))
}

fn now() -> Timestamp {
    Timestamp::parse("2026-11-29T00:00:00Z").unwrap()
}

fn all() -> Vec<(Preset, Contract)> {
    let of = |name| {
        let destination = config(name).destinations["there"].clone();
        (destination.preset.unwrap(), destination.contract)
    };
    preset_names().map(of).collect()
}

#[test]
fn each_can_be_used_as_it_is_and_says_what_it_is() {
    let names: Vec<&str> = preset_names().collect();
    assert!(names.is_sorted(), "{names:?}");
    for (preset, _) in all() {
        let name = preset.name;
        assert!(
            preset.date.len() == 10 && Timestamp::parse(&preset.date).is_some(),
            "{name}: {}",
            preset.date
        );
        assert!(
            [&preset.title, &preset.endpoints, &preset.source].iter().all(|text| text.len() > 3),
            "{name}"
        );
        for sentence in
            preset.quirks.iter().chain(&preset.unverified).chain(&preset.lookup).chain(&preset.throttle)
        {
            assert!(sentence.ends_with('.'), "{name}: {sentence}");
        }
        if let Some(example) = &preset.lookup_example {
            read(&text(name, &format!("lookup = {example}\n"), step(name))).unwrap();
        }
    }
}

#[test]
fn what_is_not_verified_promises_nothing() {
    for (preset, contract) in all() {
        let name = preset.name;
        let class = contract.class_at(None, now());
        let wanted = match &contract.key {
            _ if preset.naturally_idempotent => Class::Idempotent,
            Some(key) if !key.window.is_zero() => Class::Keyed,
            _ => Class::Neither,
        };
        assert_eq!(class, wanted, "{name}");
        if class == Class::Neither {
            let lookup = "lookup = { path = \"/a/{{ key }}\", found = \"\" }\n";
            let asked = read(&text(name, lookup, step(name))).unwrap().destinations["there"].contract.clone();
            assert_eq!(asked.class_at(None, now()), Class::LookupOnly, "{name}");
        }
        let without = contract.key.as_ref().is_some_and(|key| key.window.is_zero());
        assert_eq!(preset.unverified.is_some(), without, "{name} says why it has no window, and only then");
    }
}

/// The published windows, in hours and minutes; a preset without one is not here.
#[test]
fn windows_are_those_that_were_published() {
    let found: Vec<(&str, u64)> = all()
        .iter()
        .filter_map(|(preset, contract)| Some((preset.name, contract.key.as_ref()?.window.as_secs() / 60)))
        .filter(|(_, minutes)| *minutes > 0)
        .collect();
    assert_eq!(
        found,
        [
            ("brevo", 15),
            ("checkout", 24 * 60),
            ("paypal-orders", 6 * 60),
            ("paypal-payments", 45 * 24 * 60),
            ("paypal-payouts", 30 * 24 * 60),
            ("paypal-subscriptions", 72 * 60),
            ("paypal-vault", 3 * 60),
            ("resend", 24 * 60),
            ("stripe", 24 * 60),
            ("stripe-v2", 30 * 24 * 60),
            ("telnyx", 24 * 60),
        ]
    );
}

#[test]
fn a_promise_is_for_the_requests_that_it_is_about() {
    let there = "dlo.toml:9: operations.thing.steps[0].path: the preset \"resend\" promises nothing for this request: it is \
                 about POST /emails and POST /emails/batch; use a destination of its own, or write under \"there\" which \
                 key.window the documentation states";
    let domains = "method = \"POST\"\npath = \"/domains?x=/emails\"\n";
    says(&[(&text("resend", "", domains), &[there])]);
    let deletes = read(&text("stripe", "", "method = \"DELETE\"\npath = \"/v1/customers/1\"\n")).unwrap_err();
    assert!(
        deletes.to_string().contains("steps[0].method: the preset \"stripe\" promises nothing"),
        "{deletes}"
    );
    let create =
        read(&text("hubspot", "", "method = \"POST\"\npath = \"/crm/v3/objects/contacts\"\n")).unwrap_err();
    assert!(create.to_string().contains("which naturally_idempotent the documentation states"), "{create}");
    let no_more = text("resend", "naturally_idempotent = false\n", domains);
    assert!(read(&no_more).is_err(), "to promise less than the preset widens nothing");
    for (preset, destination, step) in [
        ("resend", "", "method = \"GET\"\npath = \"/domains\"\n"),
        ("resend", "", "method = \"POST\"\npath = \"/emails/batch?a=1\"\n"),
        ("resend", "key = { window = \"24h\" }\n", domains),
        ("hubspot", "naturally_idempotent = false\n", domains),
    ] {
        read(&text(preset, destination, step)).unwrap_or_else(|error| panic!("{preset}: {error}"));
    }
}

#[test]
fn retries_do_not_outlive_a_preset_s_window() {
    let long = text("brevo", "retry = { max_age = \"1h\" }\n", step("brevo"));
    let error = read(&long).unwrap_err().to_string();
    assert!(error.contains("its window of 15m less 40s"), "{error}");
    // Where nothing is promised, nothing can be outlived: what may have happened is not sent again.
    read(&text("adyen", "retry = { max_age = \"90d\" }\n", step("adyen"))).unwrap();
}

#[test]
fn an_unknown_preset_is_told_the_names() {
    let said = |name: &str| {
        let text = format!("[destinations.a]\nbase_url = \"https://a.example\"\npreset = \"{name}\"\n");
        read(&text).unwrap_err().to_string()
    };
    let near = said("strype");
    assert!(
        near.starts_with("dlo.toml:3: destinations.a.preset: unknown preset; did you mean \"stripe\"? this"),
        "{near}"
    );
    let far = said("quickbooks");
    assert!(
        far.contains("unknown preset; this version has adyen, brevo, ") && far.contains(" and zendesk"),
        "{far}"
    );
    assert!(!far.contains("quickbooks"), "{far}");
}

#[test]
fn the_readme_names_them_all() {
    let readme = std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("README.md")).unwrap();
    let section = readme.split("\n## Presets\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let list = section
        .split("\n\n")
        .find(|text| text.trim().starts_with('`') && text.trim().ends_with('`'))
        .unwrap();
    let named: Vec<&str> = list.split('`').skip(1).step_by(2).collect();
    assert_eq!(named, preset_names().collect::<Vec<_>>());
}

/// One answer in the shape that a destination documents, and what it means there.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Recorded {
    status: u16,
    #[serde(default)]
    headers: BTreeMap<String, String>,
    /// JSON, or a text that is none.
    body: Value,
    outcome: String,
    action: String,
    reference: Option<String>,
    wait_seconds: Option<u64>,
}

impl Recorded {
    fn event(&self) -> Event {
        let body = match &self.body {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let headers = self.headers.clone().into_iter().collect();
        Event::Answered(Answer { status: self.status, headers, body: body.into(), complete: true })
    }

    fn fits(&self, found: &Classified) -> bool {
        (found.outcome.as_str(), format!("{:?}", found.action)) == (&*self.outcome, self.action.clone())
            && found.reference == self.reference
            && found.wait.map(|wait| wait.as_secs()) == self.wait_seconds
    }
}

#[test]
fn answers_mean_what_the_destination_documents() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/config/tests/answers");
    let mut unread = std::fs::read_dir(&folder).unwrap().count();
    for (preset, contract) in all() {
        let name = preset.name;
        let Ok(text) = std::fs::read_to_string(folder.join(format!("{name}.json"))) else {
            assert!(contract.rules.is_empty(), "{name} has rules and no recorded answers");
            continue;
        };
        unread -= 1;
        let answers: Vec<Recorded> =
            serde_json::from_str(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
        for answer in &answers {
            let found = classify(&contract, &answer.event(), now());
            assert!(answer.fits(&found), "{name}: {} {}: {found:?}", answer.status, answer.body);
        }
        for rule in 0..contract.rules.len() {
            let mut without = contract.clone();
            without.rules.remove(rule);
            let kept = answers.iter().all(|answer| answer.fits(&classify(&without, &answer.event(), now())));
            assert!(!kept, "{name}: no recorded answer needs rule {rule}");
        }
    }
    assert_eq!(unread, 0, "answers of a preset that does not exist");
}
