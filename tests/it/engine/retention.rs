//! What is old is erased by type, and forgotten by the file's word, a little at a time.

use std::sync::Arc;
use std::time::Duration;

use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::attempt::Cause;
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::lookup::Task;
use dead_letter_office::domain::operation::OperationState;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::journal::verify::verify;
use dead_letter_office::engine::retention::{OPERATIONS, Round};
use dead_letter_office::store::work::NewWork;
use uuid::Uuid;

use crate::support::app::{TestApp, by_root, person, request, submission};
use crate::support::databases::{TestDatabase, on_both};

on_both!(
    nothing_of_the_data_is_left_anywhere_but_what_is_known_of_it_stays,
    only_types_that_say_so_and_only_when_it_is_time,
    what_is_still_tried_is_erased_when_it_is_over,
    many_are_erased_in_steps_between_which_others_write,
    an_answer_that_comes_after_the_erasing_is_erased_too,
    a_replay_while_it_is_erased_leaves_nothing_behind,
    whole_operations_are_forgotten_unless_something_is_open,
    one_node_at_a_time_tidies_up,
    answers_to_actions_links_and_sessions_lapse,
);

pub(crate) const KEPT: &str = r#"
[operations.kept]
search = { order = "/order_id", email = "/who/email" }
mask = ["/who"]
retain = "90d"
[[operations.kept.steps]]
name = "first"
destination = "keyed"
method = "POST"
path = "/people/{{ payload.who.email }}/tickets?name={{ payload.who.name }}"
headers = { X-Name = "{{ payload.who.name }}" }
body = { who = "{{ payload.who.name }}" }
save = { who = "/who" }
reference = "/id"

[operations.asked]
retain = "90d"
[[operations.asked.steps]]
name = "first"
destination = "lookup"
method = "POST"
path = "/tickets"
body = { order = "{{ payload.order_id }}", external_ref = "{{ key }}" }
reference = "/id"
"#;

const DAY: Duration = Duration::from_hours(24);

async fn kept(app: &TestApp, key: &str) -> Uuid {
    let payload =
        format!(r#"{{"order_id":"{key}","who":{{"name":"zaphod","email":"zaphod.b@example.com"}}}}"#);
    match app.try_submit("kept", key, &payload).await.unwrap() {
        Accepted::Created(new) => new.id,
        Accepted::Duplicate(_) => panic!("{key} was there already"),
    }
}

/// An answer that repeats what is private.
fn telling(code: u16) -> Behaviour {
    Behaviour::Status {
        code,
        headers: vec![("x-who".to_owned(), "zaphod".to_owned())],
        body: r#"{"id":"TCK-7","who":"zaphod","message":"zaphod is who it is about"}"#.to_owned(),
    }
}

/// Makes a whole round; what its steps erased, and what they forgot.
async fn tidy_by(app: &TestApp, config: &Arc<Config>) -> (Vec<usize>, Vec<usize>) {
    let mut round =
        Round::begin(app.engine.db(), config, app.engine.ambient()).await.unwrap().expect("the duty");
    let (mut erased, mut forgotten) = (Vec::new(), Vec::new());
    while let Some(step) = round.step().await.unwrap() {
        assert!(step.erased + step.forgotten <= OPERATIONS && step.seen <= 500, "{step:?}");
        erased.extend((step.erased > 0).then_some(step.erased));
        forgotten.extend((step.forgotten > 0).then_some(step.forgotten));
    }
    app.clock.advance(Duration::from_mins(6));
    (erased, forgotten)
}

/// The same by the app's own configuration, which forgets nothing; how many were erased.
async fn tidy(app: &TestApp) -> usize {
    let (erased, forgotten) = tidy_by(app, app.engine.config()).await;
    assert!(forgotten.is_empty());
    erased.into_iter().sum()
}

/// The tables that hold what is private.
async fn telltales(app: &TestApp) -> Vec<String> {
    let rows = app.raw().await.dump().await;
    let mut tables: Vec<String> =
        rows.into_iter().filter(|(_, row)| row.contains("zaphod")).map(|(table, _)| table).collect();
    tables.sort();
    tables.dedup();
    tables
}

async fn nothing_of_the_data_is_left_anywhere_but_what_is_known_of_it_stays(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    app.destination.script("/keyed", [telling(200)]);
    let done = kept(&app, "order-1").await;
    app.run_to_the_end().await;
    app.destination.script("/keyed", [telling(422)]);
    let failed = kept(&app, "order-2").await;
    app.run_to_the_end().await;
    // A verdict quotes what is known: the action's answer holds it.
    assert_eq!(app.replay(done, "a").await.unwrap().verdict, VerdictKind::AlreadyDone);
    let late = kept(&app, "order-3").await;
    app.destination.script("/keyed", [telling(200)]);
    let permit = app.take(late).await;
    let settlement = app.send(permit).await;
    app.clock.advance(Duration::from_secs(61));
    app.run_until_idle().await;
    assert!(!app.settle(settlement).await);
    app.run_to_the_end().await;
    let told = telltales(&app).await;
    for table in ["actions", "attempts", "dead_letters", "events", "payloads", "requests", "search", "steps"]
    {
        assert!(told.iter().any(|known| known == table), "{table} holds nothing to erase: {told:?}");
    }
    let before = app.thread(failed).await;

    app.clock.advance(DAY * 91);
    assert_eq!(tidy(&app).await, 3);
    assert_eq!(telltales(&app).await, Vec::<String>::new());

    let thread = app.thread(done).await;
    assert_eq!(thread.operation.state(), OperationState::Completed);
    assert_eq!((thread.operation.key.as_str(), &thread.payload), ("order-1", &None));
    assert_eq!(thread.steps[0].reference.as_deref(), Some("TCK-7"));
    let names: Vec<&str> = thread.search.iter().map(|value| value.name.as_str()).collect();
    assert_eq!(names, ["order"], "a business id stays unless it is private");
    let [request] = &thread.requests[..] else { panic!("{:?}", thread.requests) };
    assert_eq!(request.url, format!("{}/\u{2026}", app.destination.base_url()));
    assert_eq!((request.method.as_str(), request.headers.as_str(), &request.body), ("POST", "[]", &None));
    let after = app.thread(failed).await;
    assert_eq!(after.operation.digest, before.operation.digest);
    assert_eq!(after.attempts.len(), before.attempts.len());
    assert_eq!((after.attempts[0].status, &after.attempts[0].error), (Some(422), &None));
    assert_eq!(after.attempts[0].symptom, before.attempts[0].symptom);
    assert_eq!((after.letters[0].certainty, after.letters[0].closed_at), (before.letters[0].certainty, None));
    assert_eq!(after.letters[0].cause, before.letters[0].cause);
    let verdict = app.replay(failed, "b").await.unwrap();
    assert_eq!(verdict.verdict, VerdictKind::Refused);
    assert!(verdict.reason.contains("erased"), "{}", verdict.reason);
    // The same submission is still known as that, and changed data is still refused.
    let again = app.try_submit("kept", "order-1", "{}").await;
    assert!(again.is_err(), "{again:?}");
    assert_eq!(tidy(&app).await, 0, "nothing is looked at twice");
}

async fn only_types_that_say_so_and_only_when_it_is_time(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    app.destination.script("/keyed", [telling(200), telling(200)]);
    let first = kept(&app, "order-1").await;
    let other = app.submit("plain", "order-2").await;
    app.run_to_the_end().await;
    app.clock.advance(DAY * 45);
    app.destination.script("/keyed", [telling(200)]);
    let second = kept(&app, "order-3").await;
    app.run_to_the_end().await;
    app.clock.advance(DAY * 44);
    assert_eq!(tidy(&app).await, 0);
    app.clock.advance(DAY);
    assert_eq!(tidy(&app).await, 1);
    assert_eq!(app.thread(first).await.payload, None);
    assert!(app.thread(second).await.payload.is_some());
    app.clock.advance(DAY * 200);
    assert_eq!(tidy(&app).await, 1);
    assert_eq!(app.thread(second).await.payload, None);
    let thread = app.thread(other).await;
    assert!(thread.payload.is_some() && thread.attempts[0].answer_body.is_some());
}

async fn what_is_still_tried_is_erased_when_it_is_over(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    app.destination.script("/keyed", [Behaviour::status(401), telling(200)]);
    let refused = kept(&app, "order-1").await;
    app.run_until_idle().await;
    let waiting = kept(&app, "order-2").await;
    app.run_until_idle().await;
    app.clock.advance(DAY * 91);
    assert_eq!(tidy(&app).await, 1);
    assert_eq!(app.thread(refused).await.payload, None);
    assert!(app.thread(waiting).await.payload.is_some(), "it is to be sent yet");
    assert_eq!(tidy(&app).await, 0);
    assert_eq!(app.resume_all().await, 1);
    app.run_to_the_end().await;
    assert_eq!(app.state(waiting).await, OperationState::Completed);
    assert_eq!(tidy(&app).await, 1);
    assert_eq!(app.thread(waiting).await.payload, None);
    assert_eq!(telltales(&app).await, Vec::<String>::new());
}

async fn many_are_erased_in_steps_between_which_others_write(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    let count = 2 * OPERATIONS + 50;
    let mut answers = Vec::new();
    for n in 0..count {
        let key = format!("order-{n:04}");
        let payload = r#"{"order_id":"x","who":{"name":"zaphod","email":"z@example.com"}}"#;
        answers.push(app.engine.intake().enqueue(submission("kept", &key, payload)).await.unwrap());
    }
    for answer in answers {
        answer.await.unwrap().unwrap();
    }
    app.run_to_the_end().await;
    app.clock.advance(DAY * 91);
    let mut round =
        Round::begin(app.engine.db(), app.engine.config(), app.engine.ambient()).await.unwrap().unwrap();
    let (mut sizes, mut written) = (Vec::new(), 0);
    while let Some(step) = round.step().await.unwrap() {
        sizes.extend((step.erased > 0).then_some(step.erased));
        // No step leaves anything locked: what is handed in now is durable before the next one.
        app.submit("plain", &format!("between-{written}")).await;
        written += 1;
    }
    assert_eq!(sizes, [OPERATIONS, OPERATIONS, 50]);
    assert!(written > 3);
    assert_eq!(app.raw().await.number("SELECT count(*) FROM payloads").await, i64::from(written));
    app.run_to_the_end().await;
}

async fn an_answer_that_comes_after_the_erasing_is_erased_too(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    let Accepted::Created(new) =
        app.try_submit("asked", "order-1", r#"{"order_id":"zaphod"}"#).await.unwrap()
    else {
        panic!("it is new")
    };
    app.run_to_the_end().await;
    app.clock.advance(DAY * 91);
    assert_eq!(tidy(&app).await, 1);
    let asked = NewWork {
        operation_id: new.id,
        position: 0,
        destination: String::new(),
        lane: String::new(),
        task: Task::Ask,
        cause: Cause::Lookup,
        requested_by: "olga".to_owned(),
        waived: String::new(),
        at: app.now(),
    };
    let mut tx = app.engine.db().begin().await.unwrap();
    let gate = app.engine.gate().clone();
    let facts = gate.examine(&mut tx, &asked, Ok(())).await.unwrap().unwrap().facts;
    assert!(gate.ask(&mut tx, &facts, &asked).await.unwrap());
    tx.commit(dead_letter_office::store::Commit::Tidy).await.unwrap();
    app.run_to_the_end().await;
    let answered = |thread: &dead_letter_office::engine::thread::Thread| {
        thread.attempts.iter().filter(|attempt| attempt.answer_body.is_some()).count()
    };
    assert_eq!(answered(&app.thread(new.id).await), 1);
    assert_eq!(tidy(&app).await, 1);
    assert_eq!(answered(&app.thread(new.id).await), 0);
    assert_eq!(telltales(&app).await, Vec::<String>::new());
    assert_eq!(tidy(&app).await, 0);
}

async fn a_replay_while_it_is_erased_leaves_nothing_behind(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    for n in 0..6 {
        app.destination.clear();
        app.destination.script("/keyed", [telling(422), telling(200)]);
        let id = kept(&app, &format!("order-{n}")).await;
        app.run_to_the_end().await;
        app.clock.advance(DAY * 91);
        let mut round =
            Round::begin(app.engine.db(), app.engine.config(), app.engine.ambient()).await.unwrap().unwrap();
        let steps = async {
            let mut erased = 0;
            while let Some(step) = round.step().await.unwrap() {
                erased += step.erased;
            }
            erased
        };
        let action = format!("a{n}");
        let (erased, verdict) = tokio::join!(steps, app.replay(id, &action));
        match (erased, verdict.unwrap().verdict) {
            (1, VerdictKind::Refused) => {}
            // The one that came first is waited for, or the other way round.
            (0, VerdictKind::Accepted | VerdictKind::Refused) => {}
            other => panic!("{other:?}"),
        }
        app.clock.advance(Duration::from_mins(6));
        app.run_to_the_end().await;
        tidy(&app).await;
        assert_eq!(telltales(&app).await, Vec::<String>::new());
    }
}

async fn whole_operations_are_forgotten_unless_something_is_open(db: TestDatabase) {
    let mut app = TestApp::configured(db, KEPT).await;
    let mut config = (**app.engine.config()).clone();
    config.engine.key_retention = Some(DAY * 400);
    let config = Arc::new(config);
    let done = app.submit("plain", "done").await;
    app.run_to_the_end().await;
    app.destination
        .script("/plain", [Behaviour::status(422), Behaviour::status(422), Behaviour::status(401)]);
    let resolved = app.submit("plain", "resolved").await;
    app.run_until_idle().await;
    let letter = app.letter(resolved).await.id;
    app.resolve(letter, Resolution::NotNeeded, None, "a").await.unwrap();
    let open = app.submit("plain", "open").await;
    app.run_until_idle().await;
    let paused = app.submit("plain", "paused").await;
    app.run_until_idle().await;
    let waiting = app.submit("plain", "waiting").await;
    app.run_until_idle().await;
    app.clock.advance(DAY * 399);
    assert_eq!(tidy_by(&app, &config).await, (vec![], vec![]));
    app.clock.advance(DAY);
    assert_eq!(tidy_by(&app, &config).await, (vec![], vec![2]));
    let mut raw = app.raw().await;
    let left = raw.texts("SELECT key FROM operations ORDER BY key").await;
    assert_eq!(left, ["open", "paused", "waiting"]);
    for table in ["payloads", "requests", "attempts", "steps", "search", "dead_letters", "work"] {
        let orphans = format!(
            "SELECT count(*) FROM {table} t WHERE NOT EXISTS (SELECT 1 FROM operations o WHERE o.id = t.operation_id)"
        );
        assert_eq!(raw.number(orphans).await, 0, "{table} keeps rows of what is forgotten");
    }
    assert_eq!(raw.number("SELECT count(*) FROM audit WHERE action = 'resolve'").await, 1, "the audit stays");
    let words =
        "SELECT count(*) FROM audit_words w JOIN audit a ON a.id = w.audit_id WHERE a.action = 'resolve'";
    assert_eq!(raw.number(words).await, 0, "and what people wrote goes");
    let outcome = verify(app.engine.db(), vec![]).await.unwrap();
    assert_eq!((outcome.faults, outcome.erased), (vec![], 1), "on record, so that the chain is whole");
    for id in [done, resolved] {
        let mut tx = app.engine.db().read().await.unwrap();
        assert!(dead_letter_office::engine::thread::Thread::load(&mut tx, id).await.unwrap().is_none());
    }

    // The key is free for other data; the forgotten ones are looked for no more.
    assert!(matches!(app.try_submit("plain", "done", r#"{"order_id":1}"#).await, Ok(Accepted::Created(_))));
    for (n, id) in [open, paused].into_iter().enumerate() {
        let letter = app.letter(id).await.id;
        app.resolve(letter, Resolution::NotNeeded, None, &format!("b{n}")).await.unwrap();
    }
    assert_eq!(tidy_by(&app, &config).await, (vec![], vec![2]));
    assert_eq!(app.state(waiting).await, OperationState::Pending);
    app.resume_all().await;
    app.run_to_the_end().await;
    assert_eq!(tidy_by(&app, &config).await, (vec![], vec![1]));
}

async fn one_node_at_a_time_tidies_up(db: TestDatabase) {
    let app = TestApp::start(db).await;
    let other = app.another_node(2).await;
    let (config, ambient) = (app.engine.config(), app.engine.ambient());
    let mut ours = Round::begin(app.engine.db(), config, ambient).await.unwrap().expect("it is due");
    assert!(Round::begin(other.db(), config, ambient).await.unwrap().is_none());
    app.clock.advance(Duration::from_secs(100));
    assert!(ours.step().await.unwrap().is_some());
    app.clock.advance(Duration::from_secs(100));
    assert!(Round::begin(other.db(), config, ambient).await.unwrap().is_none(), "each step is a word");
    app.clock.advance(Duration::from_secs(100));
    let mut theirs = Round::begin(other.db(), config, ambient).await.unwrap().expect("nobody is heard of");
    while theirs.step().await.unwrap().is_some() {}
    for engine in [&app.engine, &other] {
        assert!(Round::begin(engine.db(), config, ambient).await.unwrap().is_none(), "it is not due");
    }
    app.clock.advance(Duration::from_mins(5));
    assert!(Round::begin(other.db(), config, ambient).await.unwrap().is_some());
}

async fn answers_to_actions_links_and_sessions_lapse(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    app.destination.script("/plain", [Behaviour::status(422)]);
    let id = app.submit("plain", "order-1").await;
    app.run_to_the_end().await;
    let actor = person("olga", Role::Operator);
    let link = async || {
        dead_letter_office::accounts::first_link(app.engine.db(), app.engine.ambient(), &by_root())
            .await
            .unwrap()
    };
    link().await;
    let old =
        dead_letter_office::engine::actions::replay(app.engine.gate(), id, &request(&actor, "old")).await;
    assert_eq!(old.unwrap().verdict, VerdictKind::Accepted);
    app.clock.advance(DAY * 20);
    app.replay(id, "new").await.unwrap();
    link().await;
    app.clock.advance(DAY * 2);
    tidy(&app).await;
    let mut raw = app.raw().await;
    assert_eq!(raw.texts("SELECT action_id FROM actions ORDER BY action_id").await, ["new", "old"]);
    assert_eq!(raw.number("SELECT count(*) FROM setup_links").await, 1);
    app.clock.advance(DAY * 9);
    tidy(&app).await;
    assert_eq!(raw.texts("SELECT action_id FROM actions").await, ["new"]);
    assert_eq!(raw.number("SELECT count(*) FROM setup_links").await, 0);
    drop(raw);
    app.run_to_the_end().await;
}
