//! `dlo demo`: one command, and within seconds everything that a person can meet.

use std::collections::BTreeSet;
use std::net::TcpListener;
use std::time::{Duration, Instant};

use dead_letter_office::accounts;
use dead_letter_office::domain::filter::{DeadLetterFilter, OperationFilter, Page};
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::store::{Db, Tx, dead_letters, operations};

use super::{House, sqlite};

/// Each state, each kind of dead letter, and what a colleague did.
const EVERYTHING: [&str; 26] = [
    "state pending",
    "state running",
    "state uncertain",
    "state completed",
    "state failed",
    "waits for its next attempt, not processed",
    "waits for its next attempt, in doubt",
    "status open",
    "status replayed",
    "status resolved",
    "certainty definitely_failed",
    "certainty may_have_completed",
    "certainty completed_at_destination",
    "why refused",
    "why no_way_to_know",
    "why lookup_needed",
    "why still_uncertain",
    "why attempts_used",
    "symptom credential",
    "symptom forbidden",
    "symptom business",
    "symptom timed_out",
    "symptom closed",
    "next fix_data",
    "next fix_permission",
    "a hostile answer",
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everything_is_there_within_seconds() {
    let house = House::empty();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let mut command = house.command(&["demo", "--listen", &address, "--data", "data"]);
    // What is set for the real thing must not lead the demo there.
    command.env("DLO_DATABASE_URL", "postgres://nobody@127.0.0.1:1/none").env("DLO_CONFIG", "real.toml");
    let mut demo = super::Process::start(command, house.path("stderr"), "Ctrl-C stops");
    let page = demo.out();
    for said in ["is taken", "vera", "oscar", "ada", "nora", "admin", "Password", "Data", "Try first"] {
        assert!(page.contains(said), "{said}: {page}");
    }
    assert!(page.lines().all(|line| line.chars().count() <= 110), "{page}");

    let db = Db::open(&sqlite(&house.path("data/dlo.db"))).await.unwrap();
    let (start, mut seen) = (Instant::now(), BTreeSet::new());
    let missing = loop {
        let mut tx = db.read().await.unwrap();
        look(&mut tx, &mut seen).await;
        drop(tx);
        let missing: Vec<&str> = EVERYTHING.into_iter().filter(|what| !seen.contains(*what)).collect();
        if missing.is_empty() || start.elapsed() > Duration::from_secs(120) {
            break missing;
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
    };
    assert!(missing.is_empty(), "missing: {missing:?}\nseen: {seen:?}\n{}", demo.err());
    eprintln!("everything was there after {:?}", start.elapsed());

    let table = house.done(&["--config", "data/dlo.toml", "dead-letters"]);
    assert!(table.lines().all(|line| line.chars().count() <= 100), "{table}");
    assert!(signs_in(&db, "vera", &password(&page)).await);
    demo.signal("INT");
    assert_eq!(demo.ended(), Some(0), "{}", demo.err());

    // The same data again: the same people, the password that is printed now.
    let again = house.run(&["demo", "--listen", "127.0.0.1:0", "--data", "data"], "Ctrl-C stops");
    assert_ne!(password(&again.out()), password(&page));
    assert!(!signs_in(&db, "oscar", &password(&page)).await);
    assert!(signs_in(&db, "oscar", &password(&again.out())).await);
}

#[test]
fn somebody_elses_configuration_is_not_overwritten() {
    let house = House::empty();
    house.write("dlo.toml", "# mine\n");
    let answer = house.dlo(&["demo", "--listen", "127.0.0.1:0", "--data", "."]);
    assert_eq!(answer.code, Some(1), "{answer:?}");
    assert_eq!(std::fs::read_to_string(house.path("dlo.toml")).unwrap(), "# mine\n");
}

async fn look(tx: &mut Tx, seen: &mut BTreeSet<String>) {
    let page = Page { limit: 200, cursor: None };
    let rows = operations::list(tx, &OperationFilter::default(), page).await.unwrap().items;
    let steps = operations::steps(tx, &rows.iter().map(|row| row.id).collect::<Vec<_>>()).await.unwrap();
    for row in &rows {
        seen.insert(format!("state {}", row.state()));
        let tried = steps.iter().any(|step| step.operation_id == row.id && step.attempts > 0);
        if tried && row.due_at.is_some() {
            match row.state() {
                OperationState::Pending => {
                    seen.insert("waits for its next attempt, not processed".to_owned())
                }
                OperationState::Uncertain => seen.insert("waits for its next attempt, in doubt".to_owned()),
                _ => false,
            };
        }
    }
    for letter in dead_letters::list(tx, &DeadLetterFilter::default(), page).await.unwrap().items {
        seen.insert(format!("status {}", letter.status));
        seen.insert(format!("certainty {}", letter.certainty));
        seen.insert(format!("why {}", letter.why));
        seen.insert(format!("symptom {}", letter.symptom));
        seen.insert(format!("next {}", letter.next_action));
        if letter.error.contains("<script>") {
            seen.insert("a hostile answer".to_owned());
        }
    }
}

/// As the page prints it.
fn password(page: &str) -> String {
    let line = page.lines().find_map(|line| line.trim().strip_prefix("Password"));
    line.and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().to_owned()
}

async fn signs_in(db: &Db, name: &str, password: &str) -> bool {
    accounts::sign_in(db, name, password.to_owned()).await.unwrap().is_some()
}
