//! The desk and the API as a browser or a program meets them, without a network between: the router
//! in this process, a clock that stands still, and people who keep their cookies.

use std::sync::Arc;

use axum::Router;
use axum::body::{Body, to_bytes};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use dead_letter_office::accounts;
use dead_letter_office::config::Config;
use dead_letter_office::domain::actor::{Role, Scope};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::Engine;
use dead_letter_office::store::{Commit, Db, accounts as rows};
use dead_letter_office::web;
use rand::SeedableRng;
use rand::rngs::StdRng;
use scraper::{Html, Selector};
use tower::ServiceExt as _;
use uuid::Uuid;

use super::app::{TestApp, by_root, config};
use super::databases::TestDatabase;

/// Everybody's password.
pub(crate) const PASSWORD: &str = "correct horse battery";

/// The same as it is stored. To judge and hash it anew for everybody costs as much as most tests do
/// besides; whoever signs in still pays for that.
const HASHED: &str =
    "$argon2id$v=19$m=19456,t=2,p=1$n0N9P2daVlfqyTDpXGgx+w$engPF3sLXwzIyPn7QYh59UD/YkPeBeoDWaQd20EoFLY";

/// An account with everybody's password.
pub(super) async fn add(engine: &Engine, name: &str, role: impl AsRef<str>) {
    let (db, ambient) = (engine.db(), engine.ambient());
    let user = accounts::add_user(db, ambient, name, role, None, &by_root()).await.unwrap();
    let mut tx = db.begin().await.unwrap();
    rows::set_password(&mut tx, user.id, HASHED).await.unwrap();
    tx.commit(Commit::Account).await.unwrap();
}

pub(crate) struct Desk {
    pub(crate) app: TestApp,
    router: Router,
}

/// What came back.
pub(crate) struct Reply {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
    pub(crate) text: String,
}

impl Reply {
    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().expect("a header in ASCII"))
    }

    /// Where it sends the browser.
    pub(crate) fn location(&self) -> &str {
        assert!(self.status.is_redirection(), "{}: {}", self.status, self.text);
        self.header("location")
    }

    /// The value of a field of a form.
    pub(crate) fn field(&self, name: &str) -> String {
        let page = Html::parse_document(&self.text);
        let selector = Selector::parse(&format!("main form [name=\"{name}\"]")).unwrap();
        let found = page.select(&selector).next().unwrap_or_else(|| panic!("no {name} in\n{}", self.text));
        found.value().attr("value").unwrap_or_default().to_owned()
    }

    /// The elements that a selector finds: text, with runs of white space as one space, and `href`.
    pub(crate) fn all(&self, selector: &str) -> Vec<(String, String)> {
        let page = Html::parse_document(&self.text);
        let selector = Selector::parse(selector).unwrap();
        let found = page.select(&selector).map(|element| {
            let words: Vec<&str> = element.text().flat_map(str::split_whitespace).collect();
            (words.join(" "), element.value().attr("href").unwrap_or_default().to_owned())
        });
        found.collect()
    }

    /// The text of what a selector finds first; empty when it finds nothing.
    pub(crate) fn first(&self, selector: &str) -> String {
        self.all(selector).into_iter().next().map_or_else(String::new, |(text, _)| text)
    }

    /// What a reader sees, runs of white space taken as one space.
    pub(crate) fn words(&self) -> String {
        let page = Html::parse_document(&self.text);
        let main = page.select(&Selector::parse("main").unwrap()).next().expect("a page");
        main.text().flat_map(str::split_whitespace).collect::<Vec<_>>().join(" ")
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.text).unwrap_or_else(|error| panic!("{error}: {}", self.text))
    }

    #[track_caller]
    pub(crate) fn expect(self, status: u16) -> Self {
        assert_eq!(self.status.as_u16(), status, "{}", self.text);
        self
    }
}

impl Desk {
    pub(crate) async fn start(database: TestDatabase) -> Self {
        let app = TestApp::start(database).await;
        let router = web::router(app.engine.clone());
        Self { app, router }
    }

    /// With more lines for the configuration's end.
    pub(crate) async fn configured(database: TestDatabase, more: &str) -> Self {
        let app = TestApp::configured(database, more).await;
        let router = web::router(app.engine.clone());
        Self { app, router }
    }

    /// Reached at another address.
    pub(crate) async fn reached_at(database: TestDatabase, public_url: &str) -> Self {
        Self::adjusted(database, "", |config| config.server.public_url = public_url.parse().unwrap()).await
    }

    /// With more lines for the configuration's end, and then with a change to it.
    pub(crate) async fn adjusted(
        database: TestDatabase,
        more: &str,
        adjust: impl FnOnce(&mut Config),
    ) -> Self {
        let app = TestApp::configured(database, more).await;
        let mut config = config(&app.database.url, &app.destination.base_url(), more);
        adjust(&mut config);
        let db = Db::open(&app.database.url).await.unwrap();
        let ambient = Ambient::new(Arc::clone(&app.clock) as _, StdRng::seed_from_u64(7));
        let router = web::router(Engine::new(db, Arc::new(config), ambient));
        Self { app, router }
    }

    pub(crate) async fn send(&self, request: Request<Body>) -> Reply {
        let response = self.router.clone().oneshot(request).await.expect("a router does not fail");
        let (parts, body) = response.into_parts();
        let bytes = to_bytes(body, usize::MAX).await.expect("a body");
        let text = String::from_utf8(bytes.to_vec()).expect("a body in UTF-8");
        Reply { status: parts.status, headers: parts.headers, text }
    }

    /// The head of an answer whose body goes on.
    pub(crate) async fn open(&self, request: Request<Body>) -> axum::response::Response {
        self.router.clone().oneshot(request).await.expect("a router does not fail")
    }

    /// After a start with a file that holds these lines of its own, and no others.
    pub(crate) async fn restarted(self, more: &str) -> Self {
        let config = Arc::new(self.configuration(more));
        let db = Db::open(&self.app.database.url).await.unwrap();
        let ambient = Ambient::new(Arc::clone(&self.app.clock) as _, StdRng::seed_from_u64(8));
        Self { app: self.app, router: web::router(Engine::new(db, config, ambient)) }
    }

    /// A configuration of this desk with these lines.
    pub(crate) fn configuration(&self, more: &str) -> Config {
        config(&self.app.database.url, &self.app.destination.base_url(), more)
    }

    pub(crate) async fn add(&self, name: &str, role: impl AsRef<str>) {
        add(&self.app.engine, name, role).await;
    }

    /// The header of a new token.
    pub(crate) async fn token(&self, scope: Scope) -> String {
        self.token_named(scope.as_str(), scope).await
    }

    pub(crate) async fn token_named(&self, name: &str, scope: Scope) -> String {
        let (db, ambient) = (self.app.engine.db(), self.app.engine.ambient());
        let secret =
            accounts::create_token(db, ambient, name, scope, None, &by_root()).await.expect("a token");
        format!("Bearer {secret}")
    }

    /// A person of this role who has signed in, named after it.
    pub(crate) async fn signed_in(&self, role: Role) -> Person<'_> {
        self.add(role.as_str(), role).await;
        let mut person = self.nobody();
        let reply = person.sign_in(role.as_str(), PASSWORD).await;
        assert_eq!(reply.location(), "/");
        person
    }

    pub(crate) fn nobody(&self) -> Person<'_> {
        Person { desk: self, cookie: None, known: None }
    }

    /// A call of the API.
    pub(crate) async fn call(&self, method: Method, path: &str, token: &str, body: impl Into<Body>) -> Reply {
        let mut request = Request::builder().method(method).uri(path);
        if !token.is_empty() {
            request = request.header(header::AUTHORIZATION, token);
        }
        self.send(request.body(body.into()).unwrap()).await
    }

    /// An operation that waits for a person: refused for its data, or in doubt at a destination
    /// that can neither recognise a repeat nor be asked. The operation and its dead letter.
    pub(crate) async fn dead_letter(&mut self, kind: &str, key: &str) -> (Uuid, Uuid) {
        use dead_letter_office::demo::destination::Behaviour;
        let behaviour = match kind {
            "plain" => Behaviour::CloseAfterRead { effect: false },
            _ => Behaviour::status(422),
        };
        self.app.destination.script(&format!("/{kind}"), [behaviour]);
        let id = self.app.submit(kind, key).await;
        self.app.run_until_idle().await;
        let thread = self.app.thread(id).await;
        let letter = thread.live_letter().unwrap_or_else(|| panic!("{:?}", thread.attempts));
        (id, letter.id)
    }
}

/// Somebody at a browser.
pub(crate) struct Person<'d> {
    pub(crate) desk: &'d Desk,
    pub(crate) cookie: Option<String>,
    /// A session's cookie and its token, which stays what it is.
    known: Option<(String, String)>,
}

impl Person<'_> {
    pub(crate) async fn get(&mut self, path: &str) -> Reply {
        self.ask(Method::GET, path, &[], String::new()).await
    }

    /// Posts exactly these fields.
    pub(crate) async fn post_bare(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        self.post_with(path, fields, &[]).await
    }

    pub(crate) async fn post_with(
        &mut self,
        path: &str,
        fields: &[(&str, &str)],
        headers: &[(&str, &str)],
    ) -> Reply {
        let body = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        self.ask(Method::POST, path, headers, body).await
    }

    /// Posts fields with the session's token.
    pub(crate) async fn post(&mut self, path: &str, fields: &[(&str, &str)]) -> Reply {
        let csrf = self.csrf().await;
        let mut all = vec![("csrf", csrf.as_str())];
        all.extend_from_slice(fields);
        self.post_bare(path, &all).await
    }

    /// The session's token, as the page of the own account has it.
    pub(crate) async fn csrf(&mut self) -> String {
        if let (Some((cookie, csrf)), Some(now)) = (&self.known, &self.cookie)
            && cookie == now
        {
            return csrf.clone();
        }
        let csrf = self.get("/account").await.expect(200).field("csrf");
        self.known = self.cookie.clone().map(|cookie| (cookie, csrf.clone()));
        csrf
    }

    pub(crate) async fn sign_in(&mut self, name: &str, password: &str) -> Reply {
        self.post_bare("/login", &[("name", name), ("password", password)]).await
    }

    /// Whether the session still is somebody's.
    pub(crate) async fn is_in(&mut self) -> bool {
        self.get("/account").await.status == StatusCode::OK
    }

    async fn ask(&mut self, method: Method, path: &str, headers: &[(&str, &str)], body: String) -> Reply {
        let post = method == Method::POST;
        let mut request = Request::builder().method(method).uri(path);
        if let Some(cookie) = &self.cookie {
            request = request.header(header::COOKIE, cookie);
        }
        if post {
            request = request.header(header::CONTENT_TYPE, "application/x-www-form-urlencoded");
        }
        // What a browser says of its own accord, unless the test says something else.
        let says = |wanted| headers.iter().any(|(name, _)| *name == wanted);
        if post && !says("sec-fetch-site") && !says("origin") {
            request = request.header("sec-fetch-site", "same-origin");
        }
        for (name, value) in headers.iter().filter(|(_, value)| !value.is_empty()) {
            request = request.header(*name, *value);
        }
        let reply = self.desk.send(request.body(body.into()).unwrap()).await;
        // As a browser would: the name and value of what was set, nothing when it was removed.
        if let Some(set) = reply.headers.get(header::SET_COOKIE) {
            let set = set.to_str().expect("a cookie in ASCII");
            let pair = set.split(';').next().unwrap_or_default();
            self.cookie = (!pair.ends_with('=')).then(|| pair.to_owned());
        }
        reply
    }
}
