//! `dlo erase`, killed at each of its commits: run again it goes on, and in the end nothing of the
//! person stands in the database's files.

use std::fs;

use dead_letter_office::demo::destination::UnreliableDestination;

use super::{House, Process, answer, sqlite};

const PERSONAL: [&str; 4] = ["C-4711", "zaphod@example.com", "Beeblebrox", "order-zb-1"];
const TYPE: &str = r#"
[operations.personal]
search = { customer = "/customer_id" }
mask = ["/email", "/name"]
[[operations.personal.steps]]
name = "take note"
destination = "payments"
method = "POST"
path = "/notes?mail={{ payload.email }}"
reference = "/id"
effect = "A note"
"#;
const ERASE: [&str; 5] = ["erase", "customer=C-4711", "--reason", "asked for by letter", "--yes"];

fn configured(destination: &str) -> House {
    let house = House::empty();
    house.write("dlo.toml", &super::config(&sqlite(&house.path("dlo.db")), destination, TYPE));
    house
}

/// What of the person stands in the files, wherever in them.
fn left(house: &House) -> Vec<&'static str> {
    let mut found = Vec::new();
    for file in ["dlo.db", "dlo.db-wal"] {
        let bytes = fs::read(house.path(file)).unwrap_or_default();
        let holds = |wanted: &str| bytes.windows(wanted.len()).any(|part| part == wanted.as_bytes());
        found.extend(PERSONAL.into_iter().filter(|wanted| holds(wanted)));
    }
    found
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn killed_anywhere_it_goes_on_and_leaves_nothing_in_the_files() {
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let first = configured(&destination.base_url());
    first.done(&["migrate"]);
    let mut engine: Process = first.run(&["serve", "--only", "engine"], "Engine:");
    let long = "x".repeat(20_000);
    let payload = format!(
        r#"{{"customer_id":"C-4711","email":"zaphod@example.com","name":"Zaphod Beeblebrox","long":"{long} Beeblebrox"}}"#
    );
    let submit = ["submit", "personal", "--payload", "-", "--key", "order-zb-1"];
    assert_eq!(first.dlo_with(&submit, &payload).code, Some(0));
    let other = ["submit", "charge-card", "--payload", "-"];
    assert_eq!(first.dlo_with(&other, r#"{"order_id":"ORD-9"}"#).code, Some(0));
    for key in ["order-zb-1", "charge:ORD-9"] {
        super::wait_until("it is completed", || {
            first.json(&["show", key, "--json"])["operation"]["state"] == "completed"
        });
        first.dlo(&["replay", key, "--reason", "zaphod@example.com asked"]);
    }
    engine.signal("TERM");
    assert_eq!(engine.ended(), Some(0));
    assert_eq!(left(&first), PERSONAL, "they are planted, and nothing is left in the log");

    let mut killed = 0;
    for moment in ["before", "after"] {
        for nth in 1.. {
            let house = configured(&destination.base_url());
            fs::copy(first.path("dlo.db"), house.path("dlo.db")).unwrap();
            let mut command = house.command(&ERASE);
            command.env("DLO_KILL_POINT", format!("action.{moment}:{nth}"));
            let ended = answer(command, "");
            if ended.code.is_some() {
                assert_eq!(ended.code, Some(0), "{ended:?}");
                assert!(ended.out.contains("operations erased: 1;"), "{ended:?}");
                assert_eq!(left(&house), Vec::<&str>::new());
                break;
            }
            killed += 1;
            let again = house.dlo(&ERASE);
            let nothing = again.code == Some(1) && again.err.contains("there is nothing to erase");
            assert!(again.code == Some(0) || nothing, "{moment}:{nth}: {again:?}");
            assert_eq!(left(&house), Vec::<&str>::new(), "{moment}:{nth}");
            assert!(house.done(&["audit", "verify"]).contains("whole"));
        }
    }
    assert!(killed >= 6, "it was killed {killed} times only");
}
