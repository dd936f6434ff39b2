//! An operator's day at the command line, with an engine that serves in a process of its own.

use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};

use super::{House, Process, sqlite};

/// A configured folder and the destination; the database is there.
async fn house() -> (House, UnreliableDestination) {
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let folder = House::empty();
    let text = super::config(&sqlite(&folder.path("dlo.db")), &destination.base_url(), "");
    folder.write("dlo.toml", &text);
    folder.done(&["migrate"]);
    (folder, destination)
}

fn engine(house: &House) -> Process {
    house.run(&["serve", "--only", "engine"], "Engine:")
}

fn state(house: &House, key: &str) -> String {
    house.json(&["show", key, "--json"])["operation"]["state"].as_str().unwrap_or_default().to_owned()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operation_is_submitted_and_shown() {
    let (house, destination) = house().await;
    let _engine = engine(&house);
    house.write("payload.json", r#"{"order_id":"ORD-1","amount":12.50}"#);
    let submit = ["submit", "charge-card", "--payload", "payload.json", "--correlation", "web-1"];
    let created = house.json(&submit);
    assert_eq!(created["key"], "charge:ORD-1");
    assert_eq!((&created["created"], &created["duplicate"]), (&true.into(), &false.into()));
    super::wait_until("it is completed", || state(&house, "charge:ORD-1") == "completed");

    let again = house.json(&submit);
    assert_eq!((&again["id"], &again["duplicate"]), (&created["id"], &true.into()));
    assert_eq!(again["result"]["reference"], "CH-1042");
    let other =
        house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-1","amount":99}"#);
    assert_eq!(other.code, Some(1), "{other:?}");
    assert!(other.err.contains("charge:ORD-1") && other.err.lines().count() == 1, "{other:?}");
    assert_eq!(destination.effects().len(), 1);

    for (wrong, why) in [
        (&["submit", "charge-cart"][..], "did you mean \"charge-card\""),
        (&["submit", "send-receipt"], "derives no key"),
        (&["submit", "charge-card", "--payload", "absent.json"], "absent.json"),
        (&["show", "nothing"], "no operation"),
    ] {
        let answer = house.dlo(wrong);
        assert_eq!(answer.code, Some(1), "{answer:?}");
        assert!(answer.err.contains(why) && answer.err.lines().count() == 1, "{answer:?}");
    }

    let text = house.done(&["show", "charge:ORD-1"]);
    for said in
        ["charge-card  charge:ORD-1", "completed", "CH-1042", "web-1", "ORD-1", "Money taken", "it is done"]
    {
        assert!(text.contains(said), "{said}: {text}");
    }
    let json = house.json(&["show", created["id"].as_str().unwrap(), "--json"]);
    assert_eq!(json["attempts"][0]["outcome"], "done");
    assert!(json["events"].as_array().is_some_and(|events| events.len() >= 3), "{json}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_replayed() {
    let (house, destination) = house().await;
    let engine = engine(&house);
    let declined = || Behaviour::error(402, "card_declined", "The card was \u{1b}[31mdeclined");
    destination.script("/keyed/charges", [declined(), declined()]);
    house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-2"}"#);
    super::wait_until("it is a dead letter", || house.done(&["dead-letters"]).contains("charge:ORD-2"));
    let table = house.done(&["dead-letters"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100) && !table.contains('\u{1b}'), "{table:?}");
    let text = house.done(&["show", "charge:ORD-2"]);
    assert!(
        text.contains("Safest next step") && text.contains("dlo replay") && !text.contains('\u{1b}'),
        "{text}"
    );
    let letters = house.json(&["dead-letters", "--status", "open", "--json"]);
    let letter = &letters["items"][0];
    assert_eq!((&letter["certainty"], &letter["status"]), (&"definitely_failed".into(), &"open".into()));

    // Refused again, by its dead letter's id; then done, by its operation's.
    let replay = ["replay", letter["id"].as_str().unwrap(), "--reason", "the bank says it is fine"];
    let refused = house.dlo(&replay);
    assert_eq!(refused.code, Some(1), "{refused:?}");
    assert!(refused.out.contains("Accepted") && refused.err.contains("dead letter again"), "{refused:?}");
    let done = house.dlo(&["replay", letter["operation"]["id"].as_str().unwrap(), "--reason", "once more"]);
    assert_eq!(done.code, Some(0), "{done:?}");
    assert!(done.out.contains("it is done"), "{done:?}");
    let already = house.dlo(&["replay", "charge:ORD-2", "--reason", "to be sure"]);
    assert_eq!(already.code, Some(0), "{already:?}");
    assert!(already.out.contains("Already done"), "{already:?}");
    assert_eq!(destination.effects().len(), 1);
    assert!(house.done(&["show", "charge:ORD-2"]).contains("by cli:"));
    assert!(house.done(&["dead-letters", "--status", "replayed"]).contains("charge:ORD-2"));

    let blank = house.dlo(&["replay", "charge:ORD-2", "--reason", " "]);
    assert_eq!(blank.code, Some(1));
    assert!(blank.err.contains("a reason is required"), "{blank:?}");
    drop(engine);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_may_have_completed_is_not_replayed_but_resolved() {
    let (house, destination) = house().await;
    let _engine = engine(&house);
    destination.script("/plain/receipts", [Behaviour::CloseAfterRead { effect: true }]);
    house.done(&["submit", "send-receipt", "--key", "receipt-3"]);
    super::wait_until("it is a dead letter", || house.done(&["dead-letters"]).contains("May have completed"));

    let answer = house.dlo(&["replay", "receipt-3", "--reason", "nothing came"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("not replayed") && answer.out.contains("not passed"), "{answer:?}");
    let mut resolve = vec!["resolve", "receipt-3", "--resolution", "completed_at_destination"];
    resolve.extend(["--reason", "the customer has it", "--reference", "RCP-1042"]);
    house.done(&resolve);
    assert_eq!(destination.effects().len(), 1);
    assert_eq!(state(&house, "receipt-3"), "completed");
    assert!(house.done(&["show", "receipt-3"]).contains("the customer has it"));
    assert!(house.done(&["dead-letters"]).contains("No dead letter is open"));
    let again = house.dlo(&resolve);
    assert_eq!(again.code, Some(1));
    assert!(again.err.contains("resolved"), "{again:?}");
    let wrong = house.dlo(&["resolve", "receipt-3", "--resolution", "gone", "--reason", "x"]);
    assert_eq!(wrong.code, Some(2));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_replay_without_an_engine_says_what_to_do() {
    let (house, destination) = house().await;
    let mut serving = engine(&house);
    destination.script("/keyed/charges", [Behaviour::error(402, "card_declined", "No")]);
    house.dlo_with(&["submit", "charge-card", "--payload", "-"], r#"{"order_id":"ORD-4"}"#);
    super::wait_until("it is a dead letter", || house.done(&["dead-letters"]).contains("charge:ORD-4"));
    serving.signal("TERM");
    assert_eq!(serving.ended(), Some(0));

    let answer = house.dlo(&["replay", "charge:ORD-4", "--reason", "it is fine now", "--wait", "1s"]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert!(answer.err.contains("dlo serve"), "{answer:?}");
    assert_eq!(destination.effects().len(), 0);
    let _serving = engine(&house);
    super::wait_until("the stored replay is done", || state(&house, "charge:ORD-4") == "completed");
    assert_eq!(destination.effects().len(), 1);
}
