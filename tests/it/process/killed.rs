//! A process that is killed in the middle of its work loses nothing and does nothing twice.

use std::collections::HashSet;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::{Behaviour, Mix, UnreliableDestination};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, Submission};
use dead_letter_office::store::{Db, operations};
use serde_json::value::RawValue;
use uuid::Uuid;

use super::{House, PATIENCE, Process};
use crate::support::app::env;
use crate::support::databases::{TestDatabase, on_both};

const OPERATIONS: usize = 300;

on_both!(kill_9_loses_nothing_and_repeats_nothing);

async fn kill_9_loses_nothing_and_repeats_nothing(database: TestDatabase) {
    let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
    destination.default_behaviour("/keyed", Mix::new([(1, Behaviour::OkAfter(Duration::from_millis(40)))]));
    let house = House::configured(&database.url, &destination.base_url(), "");
    house.done(&["migrate"]);
    let ids = submit_all(&database.url, &destination.base_url()).await;
    assert_eq!(ids.len(), OPERATIONS);

    // Killed twice, in the middle of what it does; whatever it was sending is in doubt.
    for share in [4, 2] {
        let mut engine = serve(&house);
        super::wait_until("some are done", || destination.effects().len() >= OPERATIONS / share);
        engine.signal("KILL");
        assert_eq!(engine.ended(), None, "a signal ended it");
        assert!(destination.effects().len() < OPERATIONS, "there was something left to lose");
    }

    let mut engine = serve(&house);
    let db = Db::open(&database.url).await.unwrap();
    let start = std::time::Instant::now();
    loop {
        let unfinished = unfinished(&db, &ids).await;
        if unfinished.is_empty() {
            break;
        }
        assert!(start.elapsed() < PATIENCE * 2, "{} are not done: {unfinished:?}", unfinished.len());
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
    engine.signal("TERM");
    assert_eq!(engine.ended(), Some(0));

    let effects = destination.effects();
    let keys: HashSet<&Option<String>> = effects.iter().map(|effect| &effect.key).collect();
    let bodies: HashSet<&[u8]> = effects.iter().map(|effect| effect.body.as_slice()).collect();
    assert_eq!(effects.len(), OPERATIONS, "0 lost, 0 duplicated");
    assert_eq!((keys.len(), bodies.len()), (OPERATIONS, OPERATIONS));
    assert!(destination.requests_count() > OPERATIONS, "some were in doubt and sent again under their key");
    assert!(house.done(&["dead-letters", "--status", "all"]).contains("no dead letters"));
    db.close().await;
}

fn serve(house: &House) -> Process {
    house.run(&["serve", "--only", "engine"], "Engine:")
}

async fn submit_all(database: &str, destination: &str) -> Vec<Uuid> {
    let text = super::config(database, destination, "");
    let config = Config::read(Path::new("dlo.toml"), &text, &env).unwrap();
    let db = Db::open(database).await.unwrap();
    let engine = Engine::new(db.clone(), Arc::new(config), Ambient::system());
    let mut answers = Vec::new();
    for number in 0..OPERATIONS {
        let submission = Submission {
            kind: "charge-card".to_owned(),
            payload: RawValue::from_string(format!(r#"{{"order_id":"ORD-{number}"}}"#)).unwrap(),
            key: None,
            correlation_id: None,
            source: None,
            by: "test".to_owned(),
        };
        answers.push(engine.intake().enqueue(submission).await.unwrap());
    }
    let mut ids = Vec::new();
    for answer in answers {
        match answer.await.unwrap().unwrap() {
            Accepted::Created(new) => ids.push(new.id),
            Accepted::Duplicate(id) => panic!("{id} was there already"),
        }
    }
    db.close().await;
    ids
}

async fn unfinished(db: &Db, ids: &[Uuid]) -> Vec<(Uuid, OperationState)> {
    let mut tx = db.read().await.unwrap();
    let mut left = Vec::new();
    for ids in ids.chunks(100) {
        let rows = operations::by_ids(&mut tx, ids).await.unwrap();
        assert_eq!(rows.len(), ids.len(), "every one is stored");
        left.extend(
            rows.iter()
                .filter(|row| row.state() != OperationState::Completed)
                .map(|row| (row.id, row.state())),
        );
    }
    left
}
