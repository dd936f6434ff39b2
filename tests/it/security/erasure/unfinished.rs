//! An erasure comes to its end, whoever waits for it; one that broke off says so, and goes on when it
//! is asked for again.

use std::time::Duration;

use dead_letter_office::domain::actor::Role;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::actions::ActionError;
use dead_letter_office::engine::erasure::{self, Standing};
use dead_letter_office::engine::journal::verify::verify;
use dead_letter_office::engine::{destinations, views};
use dead_letter_office::gate::Gate;
use dead_letter_office::store::{Commit, actions as taken};

use super::reach::{done, subject};
use super::{PAYLOAD, TYPE, asked, left};
use crate::support::app::person;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};

on_both!(
    what_broke_off_is_told_and_goes_on,
    one_whose_process_is_gone_is_told_as_broken_off,
    a_browser_that_leaves_ends_nothing,
);

async fn what_broke_off_is_told_and_goes_on(db: TestDatabase) {
    let mut desk = Desk::configured(db, TYPE).await;
    let operation = done(&mut desk, "order-zb-1", PAYLOAD).await;
    let gate = desk.app.engine.gate().clone();
    desk.add("admin", Role::Admin).await;
    let admin = person("admin", Role::Admin);
    destinations::pause(&gate, "plain", &asked(&admin, "p1", "zaphod@example.com called")).await.unwrap();
    views::save(&gate, "Zaphod Beeblebrox", "status=any", false, &asked(&admin, "v1", "")).await.unwrap();

    desk.app.raw().await.execute("ALTER TABLE override_requests RENAME TO away").await;
    let broken = erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&admin, "e1", "by letter")).await;
    assert!(matches!(broken, Err(ActionError::Gate(_))), "{broken:?}");
    desk.app.raw().await.execute("ALTER TABLE away RENAME TO override_requests").await;
    assert!(desk.app.thread(operation).await.payload.is_some(), "what to look for is not lost");
    let told = erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&admin, "e1", "by letter")).await;
    assert!(told.unwrap().starts_with("it broke off"));
    let mut browser = desk.nobody();
    browser.sign_in("admin", PASSWORD).await;
    let words = browser.get("/erase").await.expect(200).words();
    assert!(words.contains("It broke off. Look again and erase what is left"), "{words}");
    drop(browser);

    erasure::erase(&gate, &subject(&desk, "C-4711"), &asked(&admin, "e2", "by letter")).await.unwrap();
    assert_eq!(left(&desk).await, []);
    let lately = erasure::lately(&gate, &admin, 5).await.unwrap();
    let kinds: Vec<bool> = lately.iter().map(|(_, how)| matches!(how, Standing::Ended(_))).collect();
    assert_eq!(lately.len(), 2);
    assert!(kinds.contains(&true) && kinds.contains(&false), "{lately:?}");
    assert_eq!(verify(gate.db(), vec![]).await.unwrap().faults, []);
}

/// A process that died told nobody; its silence does.
async fn one_whose_process_is_gone_is_told_as_broken_off(db: TestDatabase) {
    let desk = Desk::configured(db, TYPE).await;
    let gate = desk.app.engine.gate().clone();
    let boss = person("boss", Role::Admin);
    let now = gate.ambient().now();
    let mut tx = gate.db().begin().await.unwrap();
    taken::take(&mut tx, &boss.to_string(), "e1", "erasure:0123", now).await.unwrap();
    taken::answer(&mut tx, &boss.to_string(), "e1", None, "so far: operations erased: 50").await.unwrap();
    tx.commit(Commit::Action).await.unwrap();
    let stands = async |gate: &Gate| erasure::lately(gate, &boss, 1).await.unwrap().remove(0).1;
    let so_far = "operations erased: 50".to_owned();
    assert_eq!(stands(&gate).await, Standing::GoingOn(so_far.clone()));
    desk.app.clock.advance(Duration::from_mins(4));
    assert_eq!(stands(&gate).await, Standing::BrokeOff(so_far));
}

async fn a_browser_that_leaves_ends_nothing(db: TestDatabase) {
    const MANY: usize = 120;
    let mut desk = Desk::configured(db, TYPE).await;
    for number in 0..MANY {
        let taken = desk.app.try_submit("personal", &format!("order-{number}"), PAYLOAD).await.unwrap();
        assert!(matches!(taken, Accepted::Created(_)));
    }
    while desk.app.run_until_idle().await > 0 {}
    let gate = desk.app.engine.gate().clone();
    let admin = person("admin", Role::Admin);
    let mut browser = desk.signed_in(Role::Admin).await;
    let look = [("step", "look"), ("name", "customer"), ("value", "C-4711")];
    let id = browser.post("/erase", &look).await.expect(200).field("action_id");
    let fields = [
        ("step", "erase"),
        ("name", "customer"),
        ("value", "C-4711"),
        ("again", "C-4711"),
        ("reason", "by letter"),
        ("action_id", &id),
    ];
    let begun = async {
        while erasure::lately(&gate, &admin, 1).await.unwrap().is_empty() {
            tokio::task::yield_now().await;
        }
    };
    tokio::select! {
        biased;
        () = begun => {}
        _ = browser.post("/erase", &fields) => {}
    }
    // The request is gone. The erasure is not.
    let answer = loop {
        match erasure::lately(&gate, &admin, 1).await.unwrap().remove(0).1 {
            Standing::Ended(answer) => break answer,
            Standing::GoingOn(_) => tokio::task::yield_now().await,
            broken @ Standing::BrokeOff(_) => panic!("{broken}"),
        }
    };
    assert!(answer.starts_with(&format!("operations erased: {MANY};")), "{answer}");
    assert_eq!(browser.post("/erase", &fields).await.location(), "/erase");
    let words = browser.get("/erase").await.expect(200).words();
    assert!(words.contains(&format!("Done. Operations erased: {MANY};")), "{words}");
    assert!(words.contains("What you erased lately"), "{words}");
    drop(browser);
    assert_eq!(left(&desk).await, []);
}
