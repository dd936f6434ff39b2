//! A database of its own for each test, gone when the test ends, however it ends.

use std::thread;

use sqlx::{AssertSqlSafe, Connection, PgConnection};
use tempfile::TempDir;
use url::Url;

/// Lists each named `async fn(TestDatabase)` as two tests, `name::sqlite` and `name::postgres`.
macro_rules! on_both {
    ($($name:ident),+ $(,)?) => {$(
        mod $name {
            use crate::support::databases::TestDatabase;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name(TestDatabase::sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name(TestDatabase::postgres().await).await;
            }
        }
    )+};
}
pub(crate) use on_both;

/// An empty database. Keep it until the test is done with the URL.
pub(crate) struct TestDatabase {
    pub(crate) url: String,
    _guard: Guard,
}

enum Guard {
    Sqlite { _folder: TempDir },
    Postgres { _database: PostgresGuard },
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        let (url, folder) = fresh_sqlite();
        Self { url, _guard: Guard::Sqlite { _folder: folder } }
    }

    pub(crate) async fn postgres() -> Self {
        let (url, database) = fresh_postgres().await;
        Self { url, _guard: Guard::Postgres { _database: database } }
    }
}

/// The URL of a database file that is created when first opened for writing.
pub(crate) fn fresh_sqlite() -> (String, TempDir) {
    let folder = tempfile::tempdir().expect("a temporary folder");
    let url = format!("sqlite://{}?mode=rwc", folder.path().join("dlo.db").display());
    (url, folder)
}

pub(crate) async fn fresh_postgres() -> (String, PostgresGuard) {
    let admin = super::provided("DLO_TEST_POSTGRES");
    let name = format!("dlo_test_{:016x}", rand::random::<u64>());
    // From template0, to which nobody can connect: template1 cannot be copied while somebody is.
    run(&admin, format!("CREATE DATABASE {name} TEMPLATE template0")).await.expect("a fresh database");
    let mut url = Url::parse(&admin).expect("DLO_TEST_POSTGRES is a URL");
    url.set_path(&name);
    (url.into(), PostgresGuard { admin, name })
}

/// Drops its database, whoever is still connected to it.
pub(crate) struct PostgresGuard {
    admin: String,
    name: String,
}

impl Drop for PostgresGuard {
    fn drop(&mut self) {
        let admin = std::mem::take(&mut self.admin);
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // On a thread and runtime of its own: the test's runtime may be unwinding, and blocking on
        // one runtime from inside another panics.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(run(&admin, drop))
        })
        .join();
        // A second panic while a test unwinds would abort and hide the first.
        let dropped = matches!(dropped, Ok(Ok(())));
        assert!(dropped || thread::panicking(), "{} could not be dropped", self.name);
    }
}

async fn run(url: &str, statement: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(url).await?;
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(&mut connection).await?;
    connection.close().await
}
