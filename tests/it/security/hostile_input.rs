//! More than a thousand hostile strings in every place of every route: nothing breaks, nothing hangs,
//! no page takes a string for markup, every answer keeps its headers, and the ledger is as it was.
//!
//! Routes are read from the source, and their places from the pages, the links and the refusals
//! themselves: a route that is added is swept, and one at which no place but its headers is found
//! fails the test.
//!
//! On SQLite each place gets every string: several at a time, one behind the other, while the other
//! places of its kind are as hostile, and a sample of them each by itself while everything else is as
//! it should be. On PostgreSQL it gets a sample of both, and in the inner loop a smaller one on either.
//! The samples are the same in every run.

mod judge;
mod markup;
mod places;
mod plan;
mod request;
mod scene;
mod strings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::to_bytes;
use axum::http::Method;
use dead_letter_office::web;
use markup::Ours;
use places::{Door, Route};
use request::{Ask, Place, Session};
use scene::{Ledger, scene};
use strings::strings;
use tower::ServiceExt as _;

use crate::support::databases::TestDatabase;
use crate::support::desk::{Desk, PASSWORD};
use crate::support::in_inner_loop;
use crate::support::routes::routes;

/// An answer that takes longer is a hang.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many of the strings a place gets.
#[derive(Clone, Copy)]
struct Depth {
    /// Blocks of strings, together with the other places of its kind.
    together: usize,
    /// By itself, everything else being as it should.
    alone: usize,
    /// Of so many places, one gets strings by itself.
    one_of: u32,
    /// Where a password is checked.
    slow: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_string_in_every_place_on_sqlite() {
    let all = Depth { together: usize::MAX, alone: 8, one_of: 1, slow: 8 };
    let some = Depth { together: 6, alone: 2, one_of: 3, slow: 1 };
    sweep(TestDatabase::sqlite(), if in_inner_loop() { some } else { all }).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_strings_in_every_place_on_postgresql() {
    let some = Depth { together: 12, alone: 3, one_of: 1, slow: 2 };
    let few = Depth { together: 2, alone: 1, one_of: 5, slow: 1 };
    sweep(TestDatabase::postgres().await, if in_inner_loop() { few } else { some }).await;
}

async fn sweep(db: TestDatabase, depth: Depth) {
    let desk = scene(db).await;
    let ledger = Ledger::of(&desk.app).await;
    let effects = desk.app.destination.effects().len();
    // What is handed in from here on is told apart by its time.
    desk.app.clock.advance(Duration::from_secs(1));

    let mut boss = desk.nobody();
    assert_eq!(boss.sign_in("admin", PASSWORD).await.location(), "/");
    let mut all = places::found(&desk, &mut boss).await;
    // Wrong passwords last: they make everybody wait who signs in from the same address.
    all.sort_by_key(|route| route.slow);
    let wanted: BTreeSet<String> =
        routes().into_iter().map(|(method, path)| format!("{} {path}", method.to_uppercase())).collect();
    let found: BTreeSet<String> = all.iter().map(Route::name).collect();
    assert_eq!(found, wanted, "every route of the source is swept");

    let sweeper = Arc::new(Sweeper::new(&desk, depth));
    for route in &all {
        if !boss.is_in().await {
            boss.sign_in("admin", PASSWORD).await;
        }
        let csrf = boss.csrf().await;
        let session = Session { cookie: boss.cookie.clone().expect("a cookie"), csrf };
        sweeper.route(route, &session).await;
    }
    sweeper.report();

    ledger.is_unchanged(&desk.app, sweeper.created.load(Ordering::Relaxed)).await;
    assert_eq!(desk.app.destination.effects().len(), effects, "nothing was sent");

    // What was stored on the way is shown as text.
    if !boss.is_in().await {
        boss.sign_in("admin", PASSWORD).await;
    }
    for route in all.iter().filter(|route| route.method == Method::GET && route.door == Door::Desk) {
        let reply = boss.get(&route.path).await;
        let strange =
            reply.header("content-type").starts_with("text/html").then(|| sweeper.ours.strange(&reply.text));
        assert_eq!(strange.flatten(), None, "{} afterwards", route.path);
        assert!(!reply.status.is_server_error(), "{} afterwards: {}", route.path, reply.text);
    }
}

struct Sweeper {
    router: Router,
    /// The strings, and behind them the blocks.
    texts: Vec<Vec<u8>>,
    /// How many of them are strings.
    strings: usize,
    ours: Ours,
    depth: Depth,
    asked: AtomicUsize,
    created: AtomicUsize,
    places: Mutex<BTreeSet<String>>,
    wrong: Mutex<Vec<String>>,
}

/// Strings of one block.
const BLOCK: usize = 16;

/// The strings, several behind each other; long ones stand by themselves.
fn blocks(strings: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let (long, short): (Vec<&Vec<u8>>, Vec<&Vec<u8>>) = strings.iter().partition(|one| one.len() > 400);
    let of = |part: &[&Vec<u8>]| part.iter().map(|one| one.as_slice()).collect::<Vec<_>>().join(&b" "[..]);
    short.chunks(BLOCK).map(of).chain(long.into_iter().cloned()).collect()
}

impl Sweeper {
    fn new(desk: &Desk, depth: Depth) -> Self {
        let mut texts = strings();
        let strings = texts.len();
        texts.extend(blocks(&texts));
        Self {
            router: web::router(desk.app.engine.clone()),
            texts,
            strings,
            ours: Ours::read(),
            depth,
            asked: AtomicUsize::new(0),
            created: AtomicUsize::new(0),
            places: Mutex::default(),
            wrong: Mutex::default(),
        }
    }

    async fn route(self: &Arc<Self>, route: &Route, session: &Session) {
        let asks = self.plan(route, session).await;
        let own =
            asks.iter().flat_map(|ask| &ask.strings).any(|(place, _)| !matches!(place, Place::Header(_)));
        assert!(own, "no place was found at {}", route.name());
        let mut tasks = tokio::task::JoinSet::new();
        for part in asks.chunks(asks.len().div_ceil(4).max(1)) {
            let (sweeper, route, session, part) =
                (Arc::clone(self), route.clone(), session.clone(), part.to_vec());
            tasks.spawn(async move {
                for ask in part {
                    sweeper.ask(&route, &session, &ask).await;
                }
            });
        }
        tasks.join_all().await;
    }

    async fn ask(&self, route: &Route, session: &Session, ask: &Ask) {
        // What HTTP cannot carry arrives nowhere.
        let Some(asked) = self.request(route, session, ask) else { return };
        self.asked.fetch_add(1, Ordering::Relaxed);
        let answered = tokio::time::timeout(PATIENCE, async {
            let response = self.router.clone().oneshot(asked).await.expect("a router does not fail");
            let (parts, body) = response.into_parts();
            (parts, to_bytes(body, usize::MAX).await)
        });
        match answered.await {
            Err(_) => self.wrong(route, ask, "no answer in time"),
            Ok((_, Err(error))) => self.wrong(route, ask, &format!("the answer breaks off: {error}")),
            Ok((parts, Ok(body))) => {
                let text = String::from_utf8_lossy(&body);
                if let Some(what) = self.judge(route, parts.status, &parts.headers, &text) {
                    self.wrong(route, ask, &what);
                }
            }
        }
    }

    fn wrong(&self, route: &Route, ask: &Ask, what: &str) {
        let mut text = format!("{} at {}", route.name(), route.path);
        if !ask.signed_in {
            text.push_str(", as nobody");
        }
        for (place, string) in &ask.strings {
            let whole = &self.texts[*string];
            let shown = whole[..whole.len().min(120)].escape_ascii();
            let what = if *string < self.strings { "string" } else { "block" };
            let _ = write!(text, "\n    {place:?} = {what} {string}, {shown}");
        }
        self.wrong.lock().expect("no panic").push(format!("{text}\n    {what}"));
    }

    fn report(&self) {
        let wrong = self.wrong.lock().expect("no panic");
        let counts = format!(
            "{} requests: {} strings in {} places",
            self.asked.load(Ordering::Relaxed),
            self.strings,
            self.places.lock().expect("no panic").len(),
        );
        println!("{counts}");
        // Of each route the first few: one mistake shows at a thousand strings.
        let mut of_route: BTreeMap<&str, usize> = BTreeMap::new();
        let few = wrong.iter().filter(|text| {
            let count = of_route.entry(text.split(" at ").next().unwrap_or_default()).or_default();
            *count += 1;
            *count <= 2
        });
        let shown = few.take(60).cloned().collect::<Vec<_>>().join("\n");
        assert!(wrong.is_empty(), "{counts}; {} answers are wrong, of which these:\n{shown}", wrong.len());
    }
}
