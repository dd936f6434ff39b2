//! The whole product as it runs: engine and desk on loopback, with the machine's clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dead_letter_office::accounts;
use dead_letter_office::config::Config;
use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::{Accepted, Submission};
use dead_letter_office::engine::thread::Thread;
use dead_letter_office::store::Db;
use dead_letter_office::web;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use super::app::{by_root, config, install_crypto, submission};
use super::databases::TestDatabase;
use super::desk::add;

pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) engine: Engine,
    pub(crate) destination: UnreliableDestination,
    stop: watch::Sender<bool>,
    _database: TestDatabase,
}

impl Served {
    pub(crate) async fn start() -> Self {
        Self::configured("").await
    }

    /// Reached by a name, as passkeys need it.
    pub(crate) async fn named() -> Self {
        Self::started("localhost", "", |_| {}).await
    }

    /// With more lines for the configuration's end.
    pub(crate) async fn configured(more: &str) -> Self {
        Self::started("127.0.0.1", more, |_| {}).await
    }

    /// And then with a change to it.
    pub(crate) async fn adjusted(more: &str, adjust: impl FnOnce(&mut Config)) -> Self {
        Self::started("127.0.0.1", more, adjust).await
    }

    async fn started(host: &str, more: &str, adjust: impl FnOnce(&mut Config)) -> Self {
        install_crypto();
        let database = TestDatabase::sqlite();
        let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{host}:{}", listener.local_addr().unwrap().port());
        let mut config = config(&database.url, &destination.base_url(), more);
        config.server.public_url = url.parse().unwrap();
        adjust(&mut config);
        let db = Db::open(&database.url).await.unwrap();
        let engine = Engine::new(db, Arc::new(config), Ambient::system());
        let (stop, stopped) = watch::channel(false);
        engine.start(&stopped).unwrap();
        tokio::spawn(web::serve(engine.clone(), listener, stopped));
        Self { url, engine, destination, stop, _database: database }
    }

    pub(crate) async fn add(&self, name: &str, role: Role) {
        add(&self.engine, name, role).await;
    }

    /// The address of a link for the first account.
    pub(crate) async fn first_link(&self) -> String {
        let secret = accounts::first_link(self.engine.db(), self.engine.ambient(), &by_root()).await.unwrap();
        format!("{}/setup/{}", self.url, secret.expect("nobody is there yet"))
    }

    pub(crate) async fn thread(&self, operation: Uuid) -> Thread {
        let mut tx = self.engine.db().read().await.unwrap();
        Thread::load(&mut tx, operation).await.unwrap().expect("the operation")
    }

    /// An operation that goes wrong in this way and waits for a person; it and its dead letter.
    pub(crate) async fn dead_letter(&self, kind: &str, key: &str, behaviour: Behaviour) -> (Uuid, Uuid) {
        let payload =
            format!(r#"{{"order_id":"{key}","customer_id":"C-7","email":"anna@example.com","amount":1250}}"#);
        self.fail(submission(kind, key, &payload), behaviour).await
    }

    /// The same with a submission of one's own.
    pub(crate) async fn fail(&self, what: Submission, behaviour: Behaviour) -> (Uuid, Uuid) {
        let destination = what.kind.clone();
        self.destination.script(&format!("/{destination}"), [behaviour]);
        let operation = self.submit(what).await;
        let letter = self.wait_for(operation, |thread| thread.live_letter().map(|letter| letter.id)).await;
        (operation, letter)
    }

    /// A new operation, accepted and not awaited.
    pub(crate) async fn submit(&self, what: Submission) -> Uuid {
        match self.engine.intake().submit(what).await.unwrap() {
            Accepted::Created(new) => new.id,
            Accepted::Duplicate(first) => panic!("it repeats {first}"),
        }
    }

    /// What is looked for in an operation, once it is there.
    pub(crate) async fn wait_for<T>(&self, operation: Uuid, look: impl Fn(&Thread) -> Option<T>) -> T {
        let start = Instant::now();
        loop {
            let thread = self.thread(operation).await;
            if let Some(found) = look(&thread) {
                return found;
            }
            assert!(start.elapsed() < Duration::from_secs(15), "it did not come: {:?}", thread.attempts);
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
