//! What stands in every table, for tests that say that nothing was changed.

use std::collections::BTreeMap;

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

/// Every table's rows as text.
pub(crate) async fn tables(url: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = BTreeMap::new();
    if url.starts_with("sqlite") {
        let mut connection = SqliteConnection::connect(url).await.unwrap();
        let names = "SELECT name FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE '%sqlx%'";
        let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
        for name in names {
            let columns = format!("SELECT 'quote(' || name || ')' FROM pragma_table_info('{name}')");
            let columns: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(columns)).fetch_all(&mut connection).await.unwrap();
            let rows = format!("SELECT {} FROM {name}", columns.join(" || ' ' || "));
            let mut rows: Vec<String> =
                sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut connection).await.unwrap();
            rows.sort();
            all.insert(name, rows);
        }
    } else {
        let mut connection = PgConnection::connect(url).await.unwrap();
        let names = "SELECT tablename::text FROM pg_tables WHERE schemaname = 'public' \
            AND tablename NOT LIKE '%sqlx%'";
        let names: Vec<String> = sqlx::query_scalar(names).fetch_all(&mut connection).await.unwrap();
        for name in names {
            let rows = format!("SELECT t::text FROM {name} t ORDER BY 1");
            let rows = sqlx::query_scalar(AssertSqlSafe(rows)).fetch_all(&mut connection).await.unwrap();
            all.insert(name, rows);
        }
    }
    all
}

/// The same without what a mere look or a refused try may write: the session's last use, a token's
/// last use, and who failed to sign in.
pub(crate) async fn business(url: &str) -> BTreeMap<String, Vec<String>> {
    let mut all = tables(url).await;
    all.remove("sessions");
    all.remove("tokens");
    all
}
