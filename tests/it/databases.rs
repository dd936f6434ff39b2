//! The databases that tests run on.

use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::support::databases::{TestDatabase, fresh_postgres, fresh_sqlite, on_both};

on_both!(answers);

async fn answers(db: TestDatabase) {
    let one: i64 = if db.url.starts_with("postgres:") {
        let mut connection = PgConnection::connect(&db.url).await.unwrap();
        sqlx::query_scalar("SELECT 1::bigint").fetch_one(&mut connection).await.unwrap()
    } else {
        let mut connection = SqliteConnection::connect(&db.url).await.unwrap();
        sqlx::query_scalar("SELECT 1").fetch_one(&mut connection).await.unwrap()
    };
    assert_eq!(one, 1);
}

#[tokio::test]
async fn postgres_is_dropped_by_a_panic_with_connections_open() {
    let (url, guard) = fresh_postgres().await;
    let open = PgConnection::connect(&url).await.unwrap();
    let test = tokio::spawn(async move {
        let _guard = guard;
        panic!("as a failing test does");
    });
    assert!(test.await.unwrap_err().is_panic());
    let error = PgConnection::connect(&url).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "3D000", "the database is still there");
    drop(open);
}

#[tokio::test]
async fn sqlite_leaves_no_file() {
    let (url, folder) = fresh_sqlite();
    let path = folder.path().to_owned();
    SqliteConnection::connect(&url).await.unwrap().close().await.unwrap();
    assert!(path.join("dlo.db").exists());
    drop(folder);
    assert!(!path.exists());
}
