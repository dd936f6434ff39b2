//! More than a thousand hostile strings in every place of every route: nothing breaks, nothing hangs,
//! no page takes a string for markup, every answer keeps its headers, and the ledger is as it was.
//!
//! Routes are read from the source, and their places from the pages, the links and the refusals
//! themselves: a route that is added is swept, and one at which no place but its headers is found
//! fails the test.
//!
//! On SQLite each place gets every string: several at a time, one behind the other, while the other
//! places of its kind are as hostile, and a sample of them each by itself while everything else is as
//! it should be. On PostgreSQL it gets a sample of both. The samples are the same in every run.

mod markup;
mod places;
mod strings;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode, Uri, header};
use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::web;
use markup::{Ours, stays};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use places::{Door, Route, usual};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::{Map, Value};
use strings::strings;
use tower::ServiceExt as _;

use crate::support::app::{TestApp, request};
use crate::support::databases::TestDatabase;
use crate::support::desk::{Desk, PASSWORD};
use crate::support::hooks;
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
    /// Where a password is checked.
    slow: usize,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_string_in_every_place_on_sqlite() {
    let depth = Depth { together: usize::MAX, alone: 8, slow: 8 };
    sweep(TestDatabase::sqlite(), depth).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn some_strings_in_every_place_on_postgresql() {
    sweep(TestDatabase::postgres().await, Depth { together: 12, alone: 3, slow: 2 }).await;
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

const NASTY: &str = "\"><x-hostile onclick=alert(1)>'</textarea><script>alert(2)</script>{{ 7*7 }}\u{202e}";

/// A desk with something on each of its pages, most of it hostile, and nothing left to send: what is
/// asked of it can be refused only.
async fn scene(db: TestDatabase) -> Desk {
    let mut desk = Desk::configured(db, &hooks::sources()).await;
    desk.add("admin", Role::Admin).await;
    let (first, _) = desk.dead_letter("keyed", "order-1").await;
    let texts =
        strings().into_iter().filter(|one| one.len() < 300).filter_map(|one| String::from_utf8(one).ok());
    let members: Map<String, Value> = texts.map(|text| (text.clone(), Value::from(text))).collect();
    let mut payload = Value::Object(members);
    payload["order_id"] = NASTY.into();
    payload["customer_id"] = NASTY.into();
    desk.app.destination.script("/keyed", [Behaviour::error(422, NASTY, NASTY)]);
    let key = NASTY.replace('\u{202e}', "");
    desk.app.try_submit("keyed", &key, &payload.to_string()).await.expect("taken");
    desk.app.run_until_idle().await;
    let mut boss = desk.nobody();
    boss.sign_in("admin", PASSWORD).await;
    for letter in boss.get("/dead-letters").await.all("a[href^='/dead-letters/']") {
        let path = letter.1.split(['?', '#']).next().unwrap_or_default().to_owned();
        if path.matches('/').count() != 2 {
            continue;
        }
        let id = path.rsplit('/').next().unwrap_or_default().to_owned();
        boss.post(&format!("{path}/note"), &[("action_id", &id), ("note", NASTY)]).await;
        let bulk = [
            ("action", "assign"),
            ("name", NASTY),
            ("reason", NASTY),
            ("ids", &id),
            ("action_id", &*format!("b{id}")),
        ];
        boss.post("/bulk/new", &bulk).await;
    }
    boss.post("/views", &[("name", NASTY), ("query", "status=any&search=%22%3E%3Cx-hostile%3E")]).await;
    let actor = crate::support::app::person(NASTY, Role::Operator);
    for (nth, operation) in
        [Some(first), operation_of(&desk.app, &key).await].into_iter().flatten().enumerate()
    {
        let gate = desk.app.engine.gate();
        let action = format!("replay {nth}");
        let asked = request(&actor, &action);
        dead_letter_office::engine::actions::replay(gate, operation, &asked).await.expect("a verdict");
    }
    desk.app.run_until_idle().await;
    desk
}

async fn operation_of(app: &TestApp, key: &str) -> Option<uuid::Uuid> {
    let mut tx = app.engine.db().read().await.expect("a database");
    dead_letter_office::engine::thread::find(&mut tx, key).await.expect("a database")
}

/// What a sweep may not change.
struct Ledger(BTreeMap<&'static str, Vec<String>>);

/// What is known of operations, and what is to be done with them.
const LEDGER: [&str; 9] = [
    "operations",
    "payloads",
    "steps",
    "requests",
    "attempts",
    "work",
    "dead_letters",
    "override_requests",
    "search",
];

impl Ledger {
    async fn of(app: &TestApp) -> Self {
        let mut tables = BTreeMap::new();
        for (table, row) in app.raw().await.dump().await {
            if let Some(table) = LEDGER.iter().find(|known| **known == table) {
                tables.entry(*table).or_insert_with(Vec::new).push(row);
            }
        }
        Self(tables)
    }

    /// Besides operations that were handed in, and told to have been.
    async fn is_unchanged(&self, app: &TestApp, created: usize) {
        let now = Self::of(app).await;
        for table in LEDGER {
            let none = Vec::new();
            let (before, after) = (self.0.get(table).unwrap_or(&none), now.0.get(table).unwrap_or(&none));
            for row in before {
                assert!(after.contains(row), "{table}: this row was changed or is gone: {row}");
            }
            let more = after.len() - before.len();
            match table {
                "operations" => assert_eq!(more, created, "new operations and those that were told"),
                "attempts" | "dead_letters" | "override_requests" => {
                    assert_eq!(more, 0, "new rows of {table}")
                }
                _ => assert!(more <= created * 4, "{more} new rows of {table} for {created} operations"),
            }
        }
        assert_eq!(app.raw().await.violations().await, Vec::<String>::new());
    }
}

/// A signed-in admin.
#[derive(Clone)]
struct Session {
    cookie: String,
    csrf: String,
}

/// A place of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Place {
    /// The n-th placeholder of the address.
    Path(usize),
    /// A parameter.
    Query(String),
    /// A form's field.
    Field(String),
    /// A member of a JSON body, as a text.
    Member(String),
    /// The same, put there as it is.
    Raw(String),
    /// The whole body.
    Body,
    /// A header that decides how the request is taken.
    Header(&'static str),
}

/// Headers that may hold anything: each request carries strings in all of them.
const CARRIED: [&str; 10] = [
    "x-request-id",
    "user-agent",
    "referer",
    "accept-language",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
    "x-real-ip",
    "if-none-match",
];

/// Headers that decide whether and how a request is taken.
const DECIDING: [&str; 12] = [
    "cookie",
    "authorization",
    "content-type",
    "origin",
    "host",
    "sec-fetch-site",
    "idempotency-key",
    "accept",
    "accept-encoding",
    "content-encoding",
    "x-http-method-override",
    "range",
];

/// And those that a webhook is proved by.
const PROVING: [&str; 9] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-github-event",
    "ce-id",
    "ce-source",
    "ce-specversion",
];

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

/// One request: who asks, and which string stands where.
#[derive(Clone)]
struct Ask {
    signed_in: bool,
    strings: Vec<(Place, usize)>,
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

    /// Every request that a route gets.
    async fn plan(&self, route: &Route, session: &Session) -> Vec<Ask> {
        let mut kinds: Vec<Vec<Place>> =
            (0..route.placeholders()).map(|nth| vec![Place::Path(nth)]).collect();
        let (mut free, mut strict) = (Vec::new(), Vec::new());
        for name in &route.query {
            let place = Place::Query(name.clone());
            let passes = self.passes(route, session, name).await;
            if passes { free.push(place) } else { strict.push(place) }
        }
        kinds.extend([free, strict]);
        kinds.push(route.form.iter().map(|(name, _)| Place::Field(name.clone())).collect());
        kinds.extend(route.members.iter().map(|name| vec![Place::Member(name.clone())]));
        if route.method == Method::POST && route.form.is_empty() {
            kinds.push(vec![Place::Body]);
        }
        let together = if route.slow { self.depth.slow } else { self.depth.together };
        let alone = if route.slow { self.depth.slow } else { self.depth.alone };
        let mut asks = Vec::new();
        for kind in kinds.iter().filter(|kind| !kind.is_empty()) {
            let blocks = self.texts.len() - self.strings;
            let start = self.draw(route, kind).random_range(0..blocks);
            for nth in start..start + together.min(blocks) {
                // Each place gets each block, and no two the same one at a time.
                let of = |at: usize| self.strings + (nth + at * 37) % blocks;
                let strings = kind.iter().enumerate().map(|(at, place)| (place.clone(), of(at)));
                asks.push(Ask { signed_in: true, strings: strings.collect() });
            }
        }
        let mut single: Vec<Place> = kinds.into_iter().flatten().collect();
        single.extend(route.members.iter().map(|name| Place::Raw(name.clone())));
        if route.method == Method::POST && route.door == Door::Desk {
            single.push(Place::Field("csrf".to_owned()));
        }
        single.extend(DECIDING.map(Place::Header));
        if route.pattern.starts_with("/hooks") {
            single.extend(PROVING.map(Place::Header));
        }
        let every: Vec<usize> = (0..self.strings).collect();
        for place in single {
            let mut draw = self.draw(route, &place);
            let header = matches!(place, Place::Header(_));
            let count = if header { alone.div_ceil(3) } else { alone };
            for string in every.sample(&mut draw, count) {
                asks.push(Ask { signed_in: true, strings: vec![(place.clone(), *string)] });
            }
            for string in every.sample(&mut draw, count.div_ceil(8)) {
                asks.push(Ask { signed_in: false, strings: vec![(place.clone(), *string)] });
            }
            self.places.lock().expect("no panic").insert(format!("{} {place:?}", route.name()));
        }
        asks
    }

    fn draw(&self, route: &Route, place: &impl std::hash::Hash) -> StdRng {
        let mut hash = DefaultHasher::new();
        (route.name(), place).hash(&mut hash);
        StdRng::seed_from_u64(hash.finish())
    }

    /// Whether a parameter takes any text.
    async fn passes(&self, route: &Route, session: &Session, name: &str) -> bool {
        let ask = Ask { signed_in: true, strings: Vec::new() };
        let Some(mut asked) = self.request(route, session, &ask) else { return false };
        *asked.uri_mut() = format!("{}?{name}=zzz", route.path).parse().expect("an address");
        let reply = self.router.clone().oneshot(asked).await.expect("a router does not fail");
        reply.status().is_success()
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

    /// What is wrong with an answer.
    fn judge(&self, route: &Route, status: StatusCode, headers: &HeaderMap, text: &str) -> Option<String> {
        let one = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if status.is_server_error() || status.is_informational() {
            return Some(format!("{status}: {}", text.chars().take(200).collect::<String>()));
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            if one(name) != value {
                return Some(format!("{status}: {name} is {:?}", one(name)));
            }
        }
        if !one("content-security-policy").starts_with("default-src 'none'") {
            return Some(format!("{status}: without a content security policy"));
        }
        let number = one("x-request-id");
        if number.len() != 12 || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(format!("the request's number is {number:?}"));
        }
        if headers.contains_key(header::LOCATION) && !stays(one("location")) {
            return Some(format!("it leads to {:?}", one("location")));
        }
        for cookie in headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap_or_default();
            if !cookie.starts_with("dlo=") || !cookie.contains("HttpOnly") {
                return Some(format!("a cookie {cookie:?}"));
            }
        }
        let told = text.matches(r#"{"status":201,"#).count() + usize::from(status == StatusCode::CREATED);
        if route.pattern.starts_with("/api/v1/operations") {
            self.created.fetch_add(told, Ordering::Relaxed);
        }
        let kind = one("content-type").split(';').next().unwrap_or_default();
        let error = status.is_client_error();
        match (kind, route.door) {
            ("text/html", Door::Desk | Door::Open) => self.ours.strange(text),
            ("application/problem+json", _) if error => None,
            ("application/json", _) => {
                serde_json::from_str::<Value>(text).err().map(|error| error.to_string())
            }
            // Files, which no browser opens as a page.
            ("text/csv" | "application/octet-stream" | "text/plain", Door::Desk)
                if one("content-disposition").starts_with("attachment") =>
            {
                None
            }
            ("application/x-ndjson", Door::Api) => None,
            ("text/plain" | "text/css" | "text/javascript" | "image/svg+xml", Door::Open) if !error => None,
            ("", _) if text.is_empty() => None,
            _ => Some(format!("{status}: an answer of type {kind:?}")),
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

    fn request(&self, route: &Route, session: &Session, ask: &Ask) -> Option<Request<Body>> {
        let string = |wanted: &Place| {
            ask.strings.iter().find(|(place, _)| place == wanted).map(|(_, at)| self.texts[*at].as_slice())
        };
        let encoded = |bytes: &[u8]| percent_encode(bytes, NON_ALPHANUMERIC).to_string();
        let mut path = route.path.clone();
        for nth in 0..route.placeholders() {
            if let Some(bytes) = string(&Place::Path(nth)) {
                path = route.with(nth, &encoded(bytes));
            }
        }
        let query = route.query.iter().filter_map(|name| {
            string(&Place::Query(name.clone())).map(|bytes| format!("{name}={}", encoded(bytes)))
        });
        let query: Vec<String> = query.collect();
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let (body, kind) = body(route, session, &string, &encoded);
        let mut request = Request::builder().method(&route.method).uri(path.parse::<Uri>().ok()?);
        let headers = request.headers_mut()?;
        let first = ask.strings.first().map_or(0, |(_, at)| *at);
        for (nth, name) in CARRIED.into_iter().enumerate() {
            let carried = &self.texts[(first + nth * 53) % self.strings];
            if let Ok(value) = HeaderValue::from_bytes(carried) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if ask.signed_in {
            match route.door {
                Door::Desk => headers.insert(header::COOKIE, session.cookie.parse().ok()?),
                Door::Api => headers.insert(header::AUTHORIZATION, route.token.parse().ok()?),
                Door::Open => None,
            };
        }
        for (place, at) in &ask.strings {
            if let Place::Header(name) = place {
                headers
                    .insert(HeaderName::from_static(name), HeaderValue::from_bytes(&self.texts[*at]).ok()?);
            }
        }
        request.body(Body::from(body)).ok()
    }
}

/// The body and its type: a form or JSON in which all that holds no string is as it should be.
fn body<'s>(
    route: &Route,
    session: &Session,
    string: &impl Fn(&Place) -> Option<&'s [u8]>,
    encoded: &impl Fn(&[u8]) -> String,
) -> (Vec<u8>, Option<&'static str>) {
    if route.method != Method::POST {
        return (Vec::new(), None);
    }
    if let Some(bytes) = string(&Place::Body) {
        return (bytes.to_vec(), Some("application/json"));
    }
    if route.door == Door::Api || route.pattern.starts_with("/hooks") {
        let members = route.members.iter().filter_map(|name| {
            let value = match (string(&Place::Member(name.clone())), string(&Place::Raw(name.clone()))) {
                (Some(bytes), _) => Value::from(String::from_utf8_lossy(bytes)).to_string().into_bytes(),
                (None, Some(bytes)) => bytes.to_vec(),
                // Of two that exclude each other.
                (None, None)
                    if name == "filter" || (name == "resolution" && route.members.contains("ids")) =>
                {
                    return None;
                }
                (None, None) => {
                    let usual = usual(name);
                    match serde_json::from_str::<Value>(usual) {
                        Ok(_) => usual.as_bytes().to_vec(),
                        Err(_) => Value::from(usual).to_string().into_bytes(),
                    }
                }
            };
            Some([b"\"", name.as_bytes(), b"\":", &value].concat())
        });
        let body = [b"{", members.collect::<Vec<_>>().join(&b","[..]).as_slice(), b"}"].concat();
        return (body, Some("application/json"));
    }
    let csrf = ("csrf".to_owned(), session.csrf.clone());
    let fields = route.form.iter().chain([&csrf]).map(|(name, value)| {
        let value = string(&Place::Field(name.clone())).unwrap_or(value.as_bytes());
        format!("{}={}", encoded(name.as_bytes()), encoded(value))
    });
    (fields.collect::<Vec<_>>().join("&").into_bytes(), Some("application/x-www-form-urlencoded"))
}
