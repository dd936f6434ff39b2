//! The whole product as it runs: engine and desk on loopback, with the machine's clock.

use std::sync::Arc;
use std::time::{Duration, Instant};

use dead_letter_office::accounts::{self, By};
use dead_letter_office::demo::destination::{Behaviour, UnreliableDestination};
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::ambient::Ambient;
use dead_letter_office::engine::Engine;
use dead_letter_office::engine::accept::Accepted;
use dead_letter_office::engine::thread::Thread;
use dead_letter_office::store::Db;
use dead_letter_office::web;
use tokio::net::TcpListener;
use tokio::sync::watch;
use uuid::Uuid;

use super::app::{config, install_crypto, submission};
use super::databases::TestDatabase;
use super::desk::PASSWORD;

pub(crate) struct Served {
    pub(crate) url: String,
    pub(crate) engine: Engine,
    pub(crate) destination: UnreliableDestination,
    stop: watch::Sender<bool>,
    _database: TestDatabase,
}

impl Served {
    pub(crate) async fn start() -> Self {
        install_crypto();
        let database = TestDatabase::sqlite();
        let destination = UnreliableDestination::start(([127, 0, 0, 1], 0).into(), 1).await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let mut config = config(&database.url, &destination.base_url(), "");
        config.server.public_url = url.parse().unwrap();
        let db = Db::open(&database.url).await.unwrap();
        db.migrate().await.unwrap();
        let engine = Engine::new(db, Arc::new(config), Ambient::system());
        let (stop, stopped) = watch::channel(false);
        engine.start(&stopped).unwrap();
        tokio::spawn(web::serve(engine.clone(), listener, stopped));
        Self { url, engine, destination, stop, _database: database }
    }

    pub(crate) async fn add(&self, name: &str, role: Role) {
        let actor = Actor::Cli { user: "root".into() };
        let by = By { actor: &actor, origin: "cli" };
        let (db, ambient) = (self.engine.db(), self.engine.ambient());
        accounts::add_user(db, ambient, name, role, Some(PASSWORD.into()), &by).await.unwrap();
    }

    /// The address of a link for the first account.
    pub(crate) async fn first_link(&self) -> String {
        let actor = Actor::Cli { user: "root".into() };
        let by = By { actor: &actor, origin: "cli" };
        let secret = accounts::first_link(self.engine.db(), self.engine.ambient(), &by).await.unwrap();
        format!("{}/setup/{}", self.url, secret.expect("nobody is there yet"))
    }

    pub(crate) async fn thread(&self, operation: Uuid) -> Thread {
        let mut tx = self.engine.db().read().await.unwrap();
        Thread::load(&mut tx, operation).await.unwrap().expect("the operation")
    }

    /// An operation that goes wrong in this way and waits for a person; it and its dead letter.
    pub(crate) async fn dead_letter(&self, kind: &str, key: &str, behaviour: Behaviour) -> (Uuid, Uuid) {
        self.destination.script(&format!("/{kind}"), [behaviour]);
        let payload =
            format!(r#"{{"order_id":"{key}","customer_id":"C-7","email":"anna@example.com","amount":1250}}"#);
        let accepted = self.engine.intake().submit(submission(kind, key, &payload)).await.unwrap();
        let Accepted::Created(new) = accepted else { panic!("{key} was there already") };
        let start = Instant::now();
        loop {
            if let Some(letter) = self.thread(new.id).await.live_letter() {
                return (new.id, letter.id);
            }
            assert!(start.elapsed() < Duration::from_secs(15), "no dead letter came");
            tokio::time::sleep(Duration::from_millis(30)).await;
        }
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.stop.send(true);
    }
}
