//! Databases with the newest schema, to be copied: one for each product and build of the tests.
//!
//! Tests are processes that know nothing of each other, so whoever comes first makes a template, and
//! the next build removes it.

use std::hash::{DefaultHasher, Hash, Hasher as _};
use std::path::{Path, PathBuf};
use std::sync::LazyLock;
use std::{fs, thread};

use dead_letter_office::store::Db;
use sqlx::{AssertSqlSafe, Connection, PgConnection};
use url::Url;

/// How the templates of every build of this program are called.
static PROGRAM: LazyLock<String> = LazyLock::new(|| {
    let program = std::env::current_exe().expect("this program's file");
    format!("dlo_template_{:016x}", hash(&program))
});

/// And that of this build: the migrations are part of it.
static TEMPLATE: LazyLock<String> = LazyLock::new(|| {
    let file = std::env::current_exe().and_then(fs::metadata).expect("this program's file");
    format!("{}_{:016x}", *PROGRAM, hash(&(file.len(), file.modified().expect("when it was built"))))
});

fn hash(what: &impl Hash) -> u64 {
    let mut hasher = DefaultHasher::new();
    what.hash(&mut hasher);
    hasher.finish()
}

pub(super) fn sqlite_url(file: &Path) -> String {
    format!("sqlite://{}?mode=rwc", file.display())
}

pub(super) fn postgres_url(server: &str, name: &str) -> String {
    let mut url = Url::parse(server).expect("DLO_TEST_POSTGRES is a URL");
    url.set_path(name);
    url.into()
}

async fn bring_up(url: &str) {
    let db = Db::open(url).await.expect("a database");
    db.migrate().await.expect("the newest schema");
    db.close().await;
}

pub(super) fn copy_sqlite(file: &Path) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let template = folder.join(&*TEMPLATE);
    if !template.exists() {
        // Two who come first make the same, and either may stay.
        let own = tempfile::tempdir_in(folder).expect("a folder beside the template");
        let half = own.path().join("dlo.db");
        let url = sqlite_url(&half);
        // On a runtime of its own: whoever asks may be on one already.
        thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime").block_on(bring_up(&url));
        })
        .join()
        .expect("a template");
        for earlier in earlier(folder) {
            // Another may have removed it.
            let _ = fs::remove_file(earlier);
        }
        fs::rename(half, &template).expect("a template");
    }
    fs::copy(template, file).expect("a copy of the template");
}

fn earlier(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder).expect("the templates' folder").map(|file| file.expect("a file").path());
    files
        .filter(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with(&**PROGRAM)))
        .collect()
}

/// An empty one. From template0, to which nobody can connect: template1 cannot be copied while somebody
/// is.
pub(super) async fn create_postgres(server: &str, name: &str) -> sqlx::Result<()> {
    run(server, format!("CREATE DATABASE {name} TEMPLATE template0")).await
}

pub(super) async fn copy_postgres(server: &str, name: &str) -> sqlx::Result<()> {
    // To copy the files takes a fraction of what it takes to log every page of them.
    let copy = format!("CREATE DATABASE {name} TEMPLATE {} STRATEGY file_copy", *TEMPLATE);
    match run(server, copy.clone()).await {
        Err(sqlx::Error::Database(error)) if error.code().as_deref() == Some("3D000") => {
            make_postgres(server).await?;
            run(server, copy).await
        }
        done => done,
    }
}

async fn make_postgres(server: &str) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(server).await?;
    // One makes it, for which the others wait; to close the connection lets go of the lock.
    let lock = hash(&*PROGRAM).cast_signed();
    sqlx::query("SELECT pg_advisory_lock($1)").bind(lock).execute(&mut connection).await?;
    let known: Vec<String> =
        sqlx::query_scalar("SELECT datname::text FROM pg_database WHERE starts_with(datname, $1)")
            .bind(&*PROGRAM)
            .fetch_all(&mut connection)
            .await?;
    if !known.contains(&*TEMPLATE) {
        for earlier in known {
            execute(&mut connection, format!("DROP DATABASE {earlier} WITH (FORCE)")).await?;
        }
        let half = format!("{}_half", *TEMPLATE);
        execute(&mut connection, format!("CREATE DATABASE {half} TEMPLATE template0")).await?;
        bring_up(&postgres_url(server, &half)).await;
        // A database that somebody is connected to cannot be copied.
        execute(&mut connection, format!("ALTER DATABASE {half} ALLOW_CONNECTIONS false")).await?;
        execute(&mut connection, format!("ALTER DATABASE {half} RENAME TO {}", *TEMPLATE)).await?;
    }
    connection.close().await
}

/// One statement on a connection of its own.
pub(super) async fn run(server: &str, statement: String) -> sqlx::Result<()> {
    let mut connection = PgConnection::connect(server).await?;
    execute(&mut connection, statement).await?;
    connection.close().await
}

async fn execute(connection: &mut PgConnection, statement: String) -> sqlx::Result<()> {
    sqlx::raw_sql(AssertSqlSafe(statement)).execute(connection).await.map(drop)
}
