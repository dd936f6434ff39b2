//! One operation with two thousand attempts, and a payload of five megabytes: its pages stay pages.

use std::collections::BTreeSet;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::excerpt::Excerpt;
use dead_letter_office::engine::thread;
use uuid::Uuid;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, Reply};
use crate::support::ledger::Raw;

on_both!(pages_of_a_huge_operation_stay_small, every_record_of_a_long_history_can_be_reached);

/// A type that sends its payload as it is, with something private in it.
const TYPE: &str = r#"
[operations.huge]
mask = ["/email", "/rows/0/secret"]
search = { order = "/order_id" }
[[operations.huge.steps]]
name = "import rows"
destination = "plain"
method = "POST"
path = "/rows"
"#;

const PRIVATE: [&str; 2] = ["anna@example.com", "first-secret"];
const ATTEMPTS: usize = 2_000;

/// A payload of five megabytes whose end is private as well as its beginning.
fn payload() -> String {
    let rows: Vec<String> = (0..60_000)
        .map(|n| {
            format!(
                r#"{{"row":{n},"secret":"{}","text":"a line \"of\" goods"}}"#,
                if n == 0 { PRIVATE[1] } else { "no" }
            )
        })
        .collect();
    let mut text = format!(r#"{{"order_id":"huge-1","rows":[{}],"email":"{}"}}"#, rows.join(","), PRIVATE[0]);
    while text.len() < 5 << 20 {
        text = text.replacen("\"rows\":[", &format!("\"rows\":[{},", rows[1..2_000].join(",")), 1);
    }
    // What was put before the first row made another row the first.
    text.replacen(&format!("[{}", rows[1]), &format!("[{}", rows[0]), 1)
}

/// An operation that was tried so often, and its dead letter.
async fn long(desk: &mut Desk, payload: &str) -> (Uuid, Uuid) {
    desk.app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: false }]);
    desk.app.try_submit("huge", "huge-1", payload).await.unwrap();
    desk.app.run_until_idle().await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let id = thread::find(&mut tx, "huge-1").await.unwrap().expect("the operation");
    drop(tx);
    let letter = desk.app.thread(id).await.live_letter().expect("in doubt").id;
    let mut raw = desk.app.raw().await;
    let (own, new, filler) = match &raw {
        Raw::Sqlite(_) => {
            (format!("x'{}'", id.simple()), "randomblob(16)", "replace(hex(zeroblob(2000)), '00', '\"x\"')")
        }
        Raw::Postgres(_) => (format!("'{id}'"), "gen_random_uuid()", "repeat('\"x\"', 2000)"),
    };
    raw.execute(format!(
        "INSERT INTO attempts (id, operation_id, position, generation, number, cause, requested_by, fence, \
         node, started_at, ended_at, outcome, symptom, status, error, answer_headers, answer_body) \
         WITH RECURSIVE n(i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < {}) \
         SELECT {new}, {own}, 0, 1, i, 'automatic', 'engine', i, 'n', a.started_at + i * 1000000, \
         a.started_at + i * 1000000 + 500, 'uncertain', 'server_error', 503, '503 for {}', '[]', \
         'said: {} is unknown ' || {filler} FROM n CROSS JOIN attempts a WHERE a.operation_id = {own}",
        ATTEMPTS + 1,
        PRIVATE[0],
        PRIVATE[0],
    ))
    .await;
    raw.execute(format!("UPDATE steps SET attempts = {} WHERE operation_id = {own}", ATTEMPTS + 1)).await;
    raw.execute(format!("UPDATE dead_letters SET attempts = {} WHERE operation_id = {own}", ATTEMPTS + 1))
        .await;
    (id, letter)
}

async fn pages_of_a_huge_operation_stay_small(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let payload = payload();
    assert!((5 << 20..6 << 20).contains(&payload.len()), "{}", payload.len());
    let (id, letter) = long(&mut desk, &payload).await;
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let excerpt = Excerpt::load(&mut tx, id, None).await.unwrap().expect("the operation");
    drop(tx);
    let thread = &excerpt.thread;
    assert!(thread.attempts.len() <= 27, "{} attempts are read", thread.attempts.len());
    let bodies: usize =
        thread.attempts.iter().filter_map(|row| row.answer_body.as_ref()).map(String::len).sum();
    assert!(bodies <= 27 * 1_200, "{bodies} characters of answers are read");

    let mut olga = desk.signed_in(Role::Operator).await;
    for path in [format!("/operations/{id}"), format!("/dead-letters/{letter}")] {
        let page = olga.get(&path).await.expect(200);
        assert!(page.text.len() < 300_000, "{path} has {} bytes", page.text.len());
        for private in PRIVATE {
            assert!(!page.text.contains(private), "{path} shows {private}");
        }
        let gap = page.first(".thread .gap p");
        assert_eq!(gap, "1,979 records between are not shown. Show those before here", "{path}");
        assert!(page.all(".thread > li").len() <= 26, "{path}");
        assert!(page.first("section[aria-labelledby=payload]").contains("Show all the first 20,000 of 5,"));
        assert!(page.first(".wire").contains("The same") || page.first(".wire").contains("huge-1"));
        assert!(page.text.contains(" of 6,034 characters."), "{path} says how much it shows");
    }
    olga.post(&format!("/operations/{id}/unmasked"), &[("reason", "the address")]).await.expect(303);
    let all = olga.get(&format!("/operations/{id}")).await.expect(200);
    assert!(all.text.contains(PRIVATE[1]) && all.text.len() < 300_000, "{}", all.text.len());
    let file = olga.post(&format!("/operations/{id}/payload"), &[]).await.expect(200);
    assert_eq!(file.text, payload);
    let replay = olga.get(&format!("/dead-letters/{letter}/replay")).await.expect(200);
    assert!(replay.text.len() < 300_000 && !replay.text.contains(PRIVATE[1]), "{}", replay.text.len());
}

/// The numbers of the attempts that a page shows, and what it says of those that it does not, with
/// where they are. To take a page apart costs more than to make it, hence both at once.
fn read(page: &Reply) -> (Vec<usize>, Vec<(String, String)>) {
    let parts = page.all(".thread .attempt h3, .thread .gap, .thread .gap a");
    let (titles, gaps): (Vec<_>, Vec<_>) =
        parts.into_iter().partition(|(text, _)| text.starts_with("Attempt "));
    let number = |(text, _): (String, String)| text.split(' ').nth(1).and_then(|n| n.parse().ok());
    (titles.into_iter().map(|title| number(title).expect("a number")).collect(), gaps)
}

async fn every_record_of_a_long_history_can_be_reached(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let (id, _) = long(&mut desk, r#"{"order_id":"huge-1"}"#).await;
    let mut vera = desk.signed_in(Role::Viewer).await;
    let start = vera.get(&format!("/operations/{id}")).await.expect(200);
    let (numbers, _) = read(&start);
    let mut seen: BTreeSet<usize> = numbers.into_iter().filter(|number| *number > 1_000).collect();
    assert_eq!(seen.len(), 20);
    let mut place = start.all(".thread .gap a")[0].1.clone();
    let mut pages = 0;
    loop {
        let page = vera.get(&place).await.expect(200);
        let (numbers, gaps) = read(&page);
        for number in numbers {
            assert!(seen.insert(number), "attempt {number} is there twice");
        }
        pages += 1;
        assert!(gaps.iter().any(|(text, _)| text.ends_with("later records are not shown. Show the latest")));
        match gaps.into_iter().find(|(_, href)| href.contains("before=")) {
            Some((_, href)) => place = href,
            None => {
                assert_eq!(page.first(".thread li h3"), "Received");
                break;
            }
        }
    }
    assert_eq!(seen, (1..=ATTEMPTS + 1).collect());
    assert_eq!(pages, 50, "forty at a time");
    for wrong in ["before=1", "before=x.y.z", "before="] {
        vera.get(&format!("/operations/{id}?{wrong}")).await.expect(400);
    }
}
