//! A database of its own for each test, gone when the test ends, however it ends.
//!
//! To bring a schema up takes longer than most tests, hence it is done once for each build: every
//! test gets a copy.

use std::path::{Path, PathBuf};
use std::thread;

use tempfile::TempDir;

use super::templates;

/// Lists each named `async fn(TestDatabase)` as two tests, `name::sqlite` and `name::postgres`; behind
/// `empty:`, on databases without a schema.
macro_rules! on_both {
    (empty: $($name:ident),+ $(,)?) => { on_both!(@ empty_sqlite empty_postgres $($name)+); };
    ($($name:ident),+ $(,)?) => { on_both!(@ sqlite postgres $($name)+); };
    (@ $sqlite:ident $postgres:ident $($name:ident)+) => {
        $(on_both!(@@ $sqlite $postgres $name);)+
    };
    (@@ $sqlite:ident $postgres:ident $name:ident) => {
        mod $name {
            use crate::support::databases::TestDatabase;

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn sqlite() {
                super::$name(TestDatabase::$sqlite()).await;
            }

            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn postgres() {
                super::$name(TestDatabase::$postgres().await).await;
            }
        }
    };
}
pub(crate) use on_both;

/// A database with the newest schema and nothing in it. Keep it until the test is done with the URL.
pub(crate) struct TestDatabase {
    pub(crate) url: String,
    guard: Guard,
}

enum Guard {
    Sqlite { file: PathBuf, _folder: TempDir },
    Postgres { _database: PostgresGuard },
}

impl TestDatabase {
    pub(crate) fn sqlite() -> Self {
        let database = Self::empty_sqlite();
        templates::copy_sqlite(database.file().expect("a file"));
        database
    }

    pub(crate) async fn postgres() -> Self {
        let database = PostgresGuard::named();
        templates::copy_postgres(&database.server, &database.name).await.expect("a copy of the template");
        Self::on_server(database)
    }

    /// Without a schema: the file is made when it is first opened for writing.
    pub(crate) fn empty_sqlite() -> Self {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let file = folder.path().join("dlo.db");
        Self { url: templates::sqlite_url(&file), guard: Guard::Sqlite { file, _folder: folder } }
    }

    /// Without a schema.
    pub(crate) async fn empty_postgres() -> Self {
        let database = PostgresGuard::named();
        templates::create_postgres(&database.server, &database.name).await.expect("a fresh database");
        Self::on_server(database)
    }

    fn on_server(database: PostgresGuard) -> Self {
        let url = templates::postgres_url(&database.server, &database.name);
        Self { url, guard: Guard::Postgres { _database: database } }
    }

    /// Where it is when it is a file.
    pub(crate) fn file(&self) -> Option<&Path> {
        match &self.guard {
            Guard::Sqlite { file, .. } => Some(file),
            Guard::Postgres { .. } => None,
        }
    }
}

/// A database on the server that tests are given, for as long as this lives.
struct PostgresGuard {
    server: String,
    name: String,
}

impl PostgresGuard {
    /// One that is about to be made.
    fn named() -> Self {
        let server = super::provided("DLO_TEST_POSTGRES");
        Self { server, name: format!("dlo_test_{:016x}", rand::random::<u64>()) }
    }
}

/// Drops the database, whoever is still connected to it.
impl Drop for PostgresGuard {
    fn drop(&mut self) {
        let server = std::mem::take(&mut self.server);
        let drop = format!("DROP DATABASE {} WITH (FORCE)", self.name);
        // On a thread and runtime of its own: the test's runtime may be unwinding, and blocking on
        // one runtime from inside another panics.
        let dropped = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(templates::run(&server, drop))
        })
        .join();
        // A second panic while a test unwinds would abort and hide the first.
        let dropped = matches!(dropped, Ok(Ok(())));
        assert!(dropped || thread::panicking(), "{} could not be dropped", self.name);
    }
}
