//! The example of a worker in Python, as people run it: killed in the middle of its work, it loses
//! nothing and does nothing twice.

use std::collections::HashSet;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::{Duration, Instant};

use dead_letter_office::accounts;
use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::UnreliableDestination;
use dead_letter_office::domain::actor::Scope;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::filter::{OperationFilter, Page};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, Submission};
use dead_letter_office::store::{Db, operations};
use serde_json::value::RawValue;

use super::{House, PATIENCE, Process, sqlite, wait_until};

use crate::support::app::{by_root, env};

const OPERATIONS: usize = 1_000;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_python_example_drives_1000_steps_through_kill_9_without_loss_or_duplicate() {
    // Recognises a repeat by its key and keeps account of every effect.
    let sink = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    let house = House::empty();
    let database = sqlite(&house.path("dlo.db"));
    let text = super::config(&database, "http://127.0.0.1:1", &example());
    house.write("dlo.toml", &text);
    house.done(&["migrate"]);
    let db = Db::open(&database).await.unwrap().keyed(super::keyring());
    let token = token(&db).await;
    submit_all(&text, &db).await;

    let desk = house.run(&["serve"], "Engine:");
    let url = listening(&desk.out());
    // Killed three times, in the middle of what it does: what it had taken is in doubt.
    for share in [8, 4, 2] {
        let mut worker = start(&house, &url, &token, &sink);
        wait_until("some are done", || sink.effects().len() >= OPERATIONS / share);
        worker.signal("KILL");
        assert_eq!(worker.ended(), None, "a signal ended it");
        assert!(sink.effects().len() < OPERATIONS, "there was something left to lose");
    }
    let mut worker = start(&house, &url, &token, &sink);
    let start = Instant::now();
    loop {
        let left = OPERATIONS - completed(&db).await;
        if left == 0 {
            break;
        }
        assert!(start.elapsed() < PATIENCE, "{left} are not done: {}", worker.err());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    worker.signal("TERM");
    assert_eq!(worker.ended(), Some(0), "it stops when it is told to: {}", worker.err());

    let effects = sink.effects();
    let keys: HashSet<&Option<String>> = effects.iter().map(|effect| &effect.key).collect();
    let bodies: HashSet<&[u8]> = effects.iter().map(|effect| effect.body.as_slice()).collect();
    assert_eq!(effects.len(), OPERATIONS, "0 lost, 0 duplicated");
    assert_eq!((keys.len(), bodies.len()), (OPERATIONS, OPERATIONS));
    assert!(house.done(&["dead-letters", "--status", "all"]).contains("no dead letters"));
    let shown = house.json(&["show", "letter:ORD-7", "--json"]);
    assert!(shown["operation"]["result"]["reference"].as_str().is_some_and(|id| id.starts_with("REF-")));
    db.close().await;
}

/// The snippet of the example's own README: what people copy is what is tested.
fn example() -> String {
    let readme = include_str!("../../../examples/README.md");
    let (_, rest) = readme.split_once("```toml\n").expect("a snippet");
    let snippet = rest.split_once("```").expect("its end").0;
    // A whole batch is in doubt after each kill, and the test cannot wait for the next minute; its
    // lease is short, too.
    let own = "[destinations.mailroom]\nlimit = { retries_per_minute = 1000 }\ntimeout = \"1s\"";
    snippet.replace("[destinations.mailroom]", own)
}

async fn token(db: &Db) -> String {
    accounts::create_token(db, &Ambient::system(), "mailroom", Scope::Work, None, &by_root()).await.unwrap()
}

fn start(house: &House, url: &str, token: &str, sink: &UnreliableDestination) -> Process {
    let mut command = Command::new("python3");
    command
        .arg(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/worker.py"))
        .current_dir(house.folder.path())
        .env("DLO_URL", url)
        .env("DLO_TOKEN", token)
        .env("DLO_TYPE", "send-letter")
        .env("SINK_URL", format!("{}/keyed/letters", sink.base_url()));
    Process::start(command, house.path("worker"), "working")
}

/// The address in "Desk: … (listening on …)".
fn listening(out: &str) -> String {
    let (_, rest) = out.split_once("(listening on ").expect("its address");
    format!("http://{}", rest.split_once(')').expect("its end").0)
}

async fn submit_all(text: &str, db: &Db) {
    let config = Config::read(Path::new("dlo.toml"), text, &env).unwrap();
    let engine = Engine::new(db.clone(), Arc::new(config), Ambient::system());
    let mut answers = Vec::new();
    for number in 0..OPERATIONS {
        let payload = format!(r#"{{"order_id":"ORD-{number}","text":"Your order is on its way."}}"#);
        let submission = Submission {
            kind: "send-letter".to_owned(),
            payload: RawValue::from_string(payload).unwrap(),
            key: None,
            correlation_id: None,
            source: None,
            by: "test".to_owned(),
        };
        answers.push(engine.intake().enqueue(submission).await.unwrap());
    }
    for answer in answers {
        assert!(matches!(answer.await.unwrap().unwrap(), Accepted::Created(_)));
    }
}

async fn completed(db: &Db) -> usize {
    let filter = OperationFilter { state: Some(OperationState::Completed), ..OperationFilter::default() };
    let mut count = 0;
    let mut cursor = None;
    let mut tx = db.read().await.unwrap();
    loop {
        let page = operations::list(&mut tx, &filter, Page { limit: 200, cursor }).await.unwrap();
        count += page.items.len();
        cursor = page.older;
        if cursor.is_none() {
            return count;
        }
    }
}
