//! `dlo serve`: how it begins and how it ends.

use std::net::TcpListener;
use std::time::{Duration, Instant};

use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};

use super::{House, sqlite};

fn with_timeout(house: &House, destination: &UnreliableDestination, timeout: &str) {
    let text = super::config(&sqlite(&house.path("dlo.db")), &destination.base_url(), "")
        .replace("timeout = \"500ms\"", &format!("timeout = \"{timeout}\""))
        .replace("lease = \"2s\"", "lease = \"60s\"");
    house.write("dlo.toml", &text);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_signal_lets_an_attempt_under_way_end() {
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let house = House::empty();
    with_timeout(&house, &destination, "10s");
    let mut serving = house.run(&["serve", "--only", "engine"], "Engine:");
    destination.script("/keyed/charges", [Behaviour::OkAfter(Duration::from_secs(2))]);
    house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-1"}"#);
    super::wait_until("it is under way", || destination.requests_count() == 1);
    serving.signal("TERM");
    house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-2"}"#);
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());

    let json = house.json(&["show", "charge:ORD-1", "--json"]);
    assert_eq!(json["operation"]["state"], "completed", "{json}");
    assert_eq!(json["attempts"].as_array().map(Vec::len), Some(1));
    let json = house.json(&["show", "charge:ORD-2", "--json"]);
    assert_eq!(json["operation"]["state"], "pending", "nothing more was claimed: {json}");
    assert_eq!(destination.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_second_signal_ends_at_once() {
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let house = House::empty();
    with_timeout(&house, &destination, "40s");
    let mut serving = house.run(&["serve", "--only", "engine"], "Engine:");
    destination.script("/keyed/charges", [Behaviour::Hang { effect: false }]);
    house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-1"}"#);
    super::wait_until("it is under way", || destination.requests_count() == 1);
    serving.signal("INT");
    std::thread::sleep(Duration::from_millis(500));
    assert!(serving.is_running(), "the attempt is under way");
    let start = Instant::now();
    serving.signal("INT");
    assert_eq!(serving.ended(), Some(1));
    assert!(start.elapsed() < Duration::from_secs(10));
}

#[test]
fn an_empty_database_invites_the_first_person() {
    let house = House::empty();
    house.write(
        "dlo.toml",
        &format!(
            "[server]\nlisten = \"127.0.0.1:0\"\npublic_url = \"https://desk.example.com\"\ndatabase_url = \"{}\"\n",
            sqlite(&house.path("dlo.db"))
        ),
    );
    let mut serving = house.run(&["serve"], "https://desk.example.com/setup/");
    assert!(serving.out().contains("30 minutes"), "{}", serving.out());
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());

    house.dlo_with(&["user", "add", "ada", "--role", "admin", "--password-stdin"], "a good password\n");
    let mut serving = house.run(&["serve", "--only", "web"], "Desk:");
    assert!(!serving.out().contains("/setup/") && !serving.out().contains("Engine:"), "{}", serving.out());
    serving.signal("INT");
    assert_eq!(serving.ended(), Some(0), "{}", serving.err());
}

#[test]
fn a_taken_address_or_a_missing_database_is_one_line() {
    let house = House::empty();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap();
    house.write("dlo.toml", &format!("[server]\nlisten = \"{address}\"\n"));
    let answer = house.dlo(&["serve"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains(&address.to_string()) && answer.err.lines().count() == 1, "{answer:?}");

    house.write("dlo.toml", "[server]\ndatabase_url = \"sqlite:///nowhere/at/all/dlo.db\"\n");
    let answer = house.dlo(&["migrate"]);
    assert_eq!(answer.code, Some(1));
    assert!(answer.err.contains("database") && answer.err.lines().count() == 1, "{answer:?}");
}

#[test]
fn lines_are_json_when_asked() {
    let house = House::empty();
    house.write("dlo.toml", &format!("[server]\ndatabase_url = \"{}\"\n", sqlite(&house.path("dlo.db"))));
    let mut command = house.command(&["serve", "--only", "engine"]);
    command.env("DLO_LOG_FORMAT", "json");
    let mut serving = super::Process::start(command, house.path("stderr"), "Engine:");
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0));
    let lines = serving.err();
    assert!(!lines.is_empty());
    for line in lines.lines() {
        let value: serde_json::Value =
            serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
        assert!(value["level"].is_string() && value["message"].is_string(), "{line}");
    }
}
