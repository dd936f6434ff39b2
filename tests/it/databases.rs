//! The databases that tests run on.

use dead_letter_office::store::Db;
use sqlx::{Connection, PgConnection, SqliteConnection};

use crate::support::databases::{TestDatabase, on_both};

on_both!(answers, a_copy_is_as_good_as_what_was_brought_up);

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

async fn a_copy_is_as_good_as_what_was_brought_up(db: TestDatabase) {
    let opened = Db::open(&db.url).await.unwrap();
    let newest = Db::newest_version();
    assert_eq!(opened.migrate().await.unwrap(), (newest, newest));
}

#[tokio::test]
async fn postgres_is_dropped_by_a_panic_with_connections_open() {
    let db = TestDatabase::postgres().await;
    let url = db.url.clone();
    let open = PgConnection::connect(&url).await.unwrap();
    let test = tokio::spawn(async move {
        let _db = db;
        panic!("as a failing test does");
    });
    assert!(test.await.unwrap_err().is_panic());
    let error = PgConnection::connect(&url).await.unwrap_err();
    assert_eq!(error.as_database_error().unwrap().code().unwrap(), "3D000", "the database is still there");
    drop(open);
}

#[tokio::test]
async fn sqlite_leaves_no_file() {
    let db = TestDatabase::empty_sqlite();
    let file = db.file().expect("a file").to_owned();
    SqliteConnection::connect(&db.url).await.unwrap().close().await.unwrap();
    assert!(file.exists());
    drop(db);
    assert!(!file.parent().unwrap().exists());
}
