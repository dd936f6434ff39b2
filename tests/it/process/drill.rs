//! `dlo drill`: what it proves, what it writes, and that it fails when a promise is not kept.

use std::fs;

use dead_letter_office::demo::destination::UnreliableDestination;
use dead_letter_office::drill::Proof;
use scraper::{Html, Selector};
use serde_json::Value;

use super::{Answer, House, sqlite};

const HOSTILE: &str = "<script>alert('drill')</script>";

fn report(house: &House, folder: &str) -> Value {
    let text = fs::read_to_string(house.path(folder).join("report.json")).expect("a report for programs");
    serde_json::from_str(&text).expect("JSON")
}

fn page(house: &House, folder: &str) -> (String, Html) {
    let text = fs::read_to_string(house.path(folder).join("report.html")).expect("a report for people");
    let page = Html::parse_document(&text);
    (text, page)
}

fn proof<'r>(report: &'r Value, name: &str) -> &'r Value {
    let proofs = report["proofs"].as_array().expect("proofs");
    proofs.iter().find(|proved| proved["proof"] == name).unwrap_or_else(|| panic!("no {name}"))
}

async fn outside() -> UnreliableDestination {
    UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap()
}

/// Runs while the destination, which lives in this process, goes on answering.
async fn drill(house: House, arguments: &'static [&'static str]) -> (House, Answer) {
    let run = move || {
        let answer = house.dlo(arguments);
        (house, answer)
    };
    tokio::task::spawn_blocking(run).await.unwrap()
}

#[test]
fn the_built_in_destinations_keep_every_promise() {
    let house = House::empty();
    let out = house.done(&["drill"]);
    assert!(out.contains("The drill passed"), "{out}");
    let folders: Vec<String> = fs::read_dir(house.folder.path())
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    let [folder] = folders.as_slice() else { panic!("one folder and nothing else: {folders:?}") };
    assert!(folder.starts_with("drill-20") && folder.ends_with('Z'), "{folder}");

    let report = report(&house, folder);
    assert_eq!(report["verdict"], "passed");
    assert_eq!(report["config"], Value::Null, "there was none");
    for name in Proof::ALL {
        let proved = proof(&report, name.as_str());
        assert_eq!(proved["verdict"], "passed", "{proved}");
        let cases = proved["cases"].as_array().unwrap();
        let mut classes: Vec<&str> = cases.iter().map(|case| case["class"].as_str().unwrap()).collect();
        classes.sort_unstable();
        assert_eq!(classes, ["idempotent", "keyed", "lookup_only", "neither"], "{name}");
        for case in cases {
            assert!(case["checks"].as_array().unwrap().iter().all(|check| check["passed"] == true));
            assert!(!case["operations"][0]["attempts"].as_array().unwrap().is_empty(), "{name}: {case}");
            let effects =
                if *name == Proof::SecondOperation { 2 } else { u64::from(*name != Proof::Exhaust) };
            assert_eq!(case["effects"]["count"], effects, "{name}: {case}");
        }
    }
    // The killed process's send, and what the next one made of it.
    let recovered = proof(&report, "recover")["cases"].as_array().unwrap();
    let keyed = recovered.iter().find(|case| case["class"] == "keyed").unwrap();
    let attempts = keyed["operations"][0]["attempts"].as_array().unwrap();
    let outcomes: Vec<&Value> = attempts.iter().map(|attempt| &attempt["outcome"]).collect();
    assert_eq!(outcomes, ["uncertain", "done"]);
    assert_eq!(keyed["requests"][0]["fault"], "answer_held");
    assert_eq!(keyed["requests"][0]["key"], keyed["requests"][1]["key"]);

    let (text, page) = page(&house, folder);
    let headings: Vec<String> = page
        .select(&Selector::parse("h1, h2").unwrap())
        .map(|heading| heading.text().collect::<String>().to_lowercase())
        .collect();
    for name in Proof::ALL {
        let wanted = format!("{}: passed", name.title().to_lowercase());
        assert!(headings.contains(&wanted), "{wanted}: {headings:?}");
    }
    // Whole in one file: it fetches nothing and runs nothing.
    for fetched in ["<script", "<link", "<img", "src="] {
        assert!(!text.contains(fetched), "{fetched}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_configured_destination_is_drilled_and_its_texts_are_escaped() {
    let there = outside().await;
    let house = House::empty();
    let database = sqlite(&house.path("dlo.db"));
    house.write("dlo.toml", &super::config(&database, &there.base_url(), ""));
    house.write("payload.json", &format!(r#"{{"order_id": "{{{{ drill }}}}", "note": "{HOSTILE}"}}"#));
    let arguments = &["drill", "--type", "charge-card", "--payload", "payload.json", "--out", "kept/first"];
    let (house, answer) = drill(house, arguments).await;
    assert_eq!(answer.code, Some(0), "{answer:?}");
    assert!(answer.err.contains("really sends") && answer.err.contains(&there.base_url()), "{answer:?}");
    assert!(!house.path("dlo.db").exists(), "the product's own database is not touched");

    let report = report(&house, "kept/first");
    assert_eq!(report["verdict"], "passed");
    assert_eq!(report["config"]["file"], "dlo.toml");
    assert_eq!(report["config"]["sha256"].as_str().unwrap().len(), 64);
    assert_eq!(report["subjects"][0]["base_url"], format!("{}/keyed", there.base_url()));
    // By the destination's own account: one each, none for what was refused, two for two.
    let bodies: Vec<String> =
        there.effects().iter().map(|effect| String::from_utf8(effect.body.clone()).unwrap()).collect();
    assert_eq!(bodies.len(), 6, "{bodies:#?}");
    assert!(bodies.iter().all(|body| body.contains(HOSTILE)));

    let (text, page) = page(&house, "kept/first");
    assert!(text.contains("alert(") && !text.contains("<script"), "shown, and as text");
    let seen: String = page.root_element().text().collect();
    assert!(seen.contains(HOSTILE), "a reader sees it as it is");

    let before = there.requests_count();
    let (_, again) = drill(house, arguments).await;
    assert_eq!(again.code, Some(1), "{again:?}");
    assert!(again.err.contains("not overwritten"), "{again:?}");
    assert_eq!(there.requests_count(), before, "nothing was sent for it");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_destination_that_breaks_its_promise_fails_the_drill() {
    let there = outside().await;
    let house = House::empty();
    // Said to honour a key for a day; it does not look at it.
    let more = format!(
        "[destinations.liar]\nbase_url = \"{}/plain\"\ntimeout = \"500ms\"\nconnect_timeout = \"300ms\"\n\
         key = {{ header = \"Idempotency-Key\", window = \"24h\" }}\n\
         [operations.lie]\n[[operations.lie.steps]]\nname = \"lie\"\ndestination = \"liar\"\n\
         method = \"POST\"\npath = \"/receipts\"\nreference = \"/id\"\n",
        there.base_url()
    );
    house.write("dlo.toml", &super::config("sqlite:dlo.db", &there.base_url(), &more));
    let (house, answer) = drill(house, &["drill", "--type", "lie", "--out", "report"]).await;
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("the drill failed: recover, lost answer"), "{answer:?}");
    let report = report(&house, "report");
    for (name, verdict) in [
        ("replay", "passed"),
        ("race", "passed"),
        ("exhaust", "passed"),
        ("recover", "failed"),
        ("lost_answer", "failed"),
        ("second_operation", "passed"),
    ] {
        let proved = proof(&report, name);
        assert_eq!(proved["verdict"], verdict, "{proved}");
        if verdict == "failed" {
            let why = proved["cases"][0]["why"].as_str().unwrap();
            assert!(why.contains("expected 1, found 2"), "{why}");
        }
    }
}

#[test]
fn what_cannot_be_drilled_is_wrong_usage() {
    let house = House::configured("sqlite:dlo.db", "http://127.0.0.1:1", "");
    for (arguments, says) in [
        (&["drill", "--type", "charge-crad"][..], "charge-card, send-receipt"),
        (&["drill", "--type", "charge-card", "--payload", "dlo.toml"], "is not JSON"),
        (&["--config", "none.toml", "drill"], "none.toml"),
    ] {
        let answer = house.dlo(arguments);
        assert_eq!(answer.code, Some(2), "{arguments:?}: {answer:?}");
        assert!(answer.err.contains(says), "{arguments:?}: {answer:?}");
    }
    house.write("dlo.toml", "[engine]\nlease = \"soon\"\n");
    let answer = house.dlo(&["drill"]);
    assert_eq!(answer.code, Some(2), "{answer:?}");
    assert!(answer.err.contains("dlo.toml:2: engine.lease"), "{answer:?}");
    assert_eq!(fs::read_dir(house.folder.path()).unwrap().count(), 1, "no report of nothing");
}
