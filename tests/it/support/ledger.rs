//! Looks into a database past the product: what is stored, and what may never be.

use std::collections::BTreeMap;
use std::thread;

use sqlx::{AssertSqlSafe, Connection, PgConnection, SqliteConnection};

/// A connection of the test's own.
pub(crate) enum Raw {
    Sqlite(SqliteConnection),
    Postgres(PgConnection),
}

macro_rules! on_raw {
    ($raw:expr, $c:ident => $body:expr) => {
        match $raw {
            Raw::Sqlite($c) => $body,
            Raw::Postgres($c) => $body,
        }
    };
}

impl Raw {
    pub(crate) async fn open(url: &str) -> sqlx::Result<Self> {
        if url.starts_with("postgres") {
            PgConnection::connect(url).await.map(Self::Postgres)
        } else {
            SqliteConnection::connect(url).await.map(Self::Sqlite)
        }
    }

    /// The first column of every row, as text.
    pub(crate) async fn texts(&mut self, sql: impl Into<String>) -> Vec<String> {
        let sql = AssertSqlSafe(sql.into());
        on_raw!(self, c => sqlx::query_scalar(sql).fetch_all(c).await).unwrap()
    }

    pub(crate) async fn number(&mut self, sql: impl Into<String>) -> i64 {
        let sql = AssertSqlSafe(sql.into());
        on_raw!(self, c => sqlx::query_scalar(sql).fetch_one(c).await).unwrap()
    }

    pub(crate) async fn execute(&mut self, sql: impl Into<String>) -> u64 {
        let sql = AssertSqlSafe(sql.into());
        on_raw!(self, c => sqlx::query(sql).execute(c).await.unwrap().rows_affected())
    }

    /// Several statements.
    pub(crate) async fn script(&mut self, sql: &str) {
        on_raw!(self, c => { sqlx::raw_sql(sqlx::AssertSqlSafe(sql)).execute(c).await.unwrap(); });
    }

    async fn tables(&mut self) -> Vec<String> {
        let sql = match self {
            Self::Sqlite(_) => {
                "SELECT name FROM sqlite_master WHERE type = 'table' AND name NOT LIKE 'sqlite%'"
            }
            Self::Postgres(_) => {
                "SELECT table_name::text FROM information_schema.tables WHERE table_schema = 'public'"
            }
        };
        let mut tables = self.texts(sql).await;
        tables.retain(|name| !name.starts_with("_sqlx"));
        tables.sort();
        tables
    }

    /// How many rows each table has.
    pub(crate) async fn counts(&mut self) -> BTreeMap<String, i64> {
        let mut counts = BTreeMap::new();
        for table in self.tables().await {
            let count = self.number(format!("SELECT count(*) FROM {table}")).await;
            counts.insert(table, count);
        }
        counts
    }

    /// Every row of every table as text, under its table's name.
    pub(crate) async fn dump(&mut self) -> Vec<(String, String)> {
        let mut dump = Vec::new();
        for table in self.tables().await {
            let sql = match self {
                Self::Sqlite(_) => {
                    let columns = self.texts(format!("SELECT name FROM pragma_table_info('{table}')")).await;
                    let quoted: Vec<String> = columns.iter().map(|name| format!("quote({name})")).collect();
                    format!("SELECT {} FROM {table}", quoted.join(" || ',' || "))
                }
                Self::Postgres(_) => format!("SELECT row_to_json(t)::text FROM {table} t"),
            };
            dump.extend(self.texts(sql).await.into_iter().map(|row| (table.clone(), row)));
        }
        dump
    }

    /// What holds of every ledger at every moment, and does not of this one.
    pub(crate) async fn violations(&mut self) -> Vec<String> {
        let mut found = Vec::new();
        for (rule, sql) in RULES {
            let sql = format!("SELECT CAST(broken.id AS TEXT) FROM ({sql}) broken");
            found.extend(self.texts(sql).await.into_iter().map(|id| format!("{rule}: {id}")));
        }
        found
    }
}

const RULES: [(&str, &str); 9] = [
    (
        "an operation that is not completed has work or a dead letter",
        "SELECT o.key AS id FROM operations o WHERE o.state <> 'completed' \
         AND NOT EXISTS (SELECT 1 FROM work w WHERE w.operation_id = o.id) \
         AND NOT EXISTS (SELECT 1 FROM dead_letters d WHERE d.operation_id = o.id)",
    ),
    (
        "a completed operation has no work and no live dead letter",
        "SELECT o.key AS id FROM operations o WHERE o.state = 'completed' \
         AND (EXISTS (SELECT 1 FROM work w WHERE w.operation_id = o.id AND w.task <> 'ask') \
         OR EXISTS (SELECT 1 FROM dead_letters d WHERE d.operation_id = o.id AND d.closed_at IS NULL))",
    ),
    (
        "an operation is completed when all of its steps are",
        "SELECT o.key AS id FROM operations o WHERE (o.state = 'completed') \
         = EXISTS (SELECT 1 FROM steps s WHERE s.operation_id = o.id AND s.state NOT IN ('completed', 'skipped')) \
         AND NOT EXISTS (SELECT 1 FROM work w WHERE w.operation_id = o.id AND w.task = 'fetch_result')",
    ),
    (
        "a dead letter is being replayed exactly while there is work",
        "SELECT o.key AS id FROM dead_letters d JOIN operations o ON o.id = d.operation_id \
         WHERE d.closed_at IS NULL AND (d.status = 'replaying') \
         <> EXISTS (SELECT 1 FROM work w WHERE w.operation_id = d.operation_id \
         AND (w.task <> 'ask' OR w.resume_at IS NOT NULL))",
    ),
    (
        "a step has one live attempt at most",
        "SELECT o.key AS id FROM attempts a JOIN operations o ON o.id = a.operation_id \
         WHERE a.outcome = 'running' GROUP BY o.key, a.position HAVING count(*) > 1",
    ),
    (
        "a live attempt holds its row of work",
        "SELECT o.key AS id FROM attempts a JOIN operations o ON o.id = a.operation_id \
         WHERE a.outcome = 'running' AND NOT EXISTS (SELECT 1 FROM work w WHERE w.attempt_id = a.id)",
    ),
    (
        "an attempt's number is its own",
        "SELECT o.key AS id FROM attempts a JOIN operations o ON o.id = a.operation_id \
         WHERE a.outcome <> 'skipped' AND a.cause <> 'lookup' GROUP BY o.key, a.position, a.number HAVING count(*) > 1",
    ),
    (
        "a step counts its attempts",
        "SELECT o.key AS id FROM steps s JOIN operations o ON o.id = s.operation_id \
         WHERE s.attempts <> (SELECT count(*) FROM attempts a WHERE a.operation_id = s.operation_id \
         AND a.position = s.position AND a.cause <> 'lookup' AND a.outcome NOT IN ('skipped', 'running'))",
    ),
    (
        "a dead letter counts its step's attempts",
        "SELECT o.key AS id FROM dead_letters d JOIN operations o ON o.id = d.operation_id \
         WHERE d.status = 'open' AND d.attempts <> (SELECT count(*) FROM attempts a \
         WHERE a.operation_id = d.operation_id AND a.position = d.position \
         AND a.cause <> 'lookup' AND a.outcome NOT IN ('skipped', 'running'))",
    ),
];

const UNDER_WAY: &str = "SELECT o.key FROM operations o WHERE EXISTS (SELECT 1 FROM attempts a \
    WHERE a.operation_id = o.id AND a.outcome = 'running') OR EXISTS (SELECT 1 FROM work w \
    WHERE w.operation_id = o.id AND w.leased_until IS NOT NULL)";

/// Looks at the ledger when a test ends.
pub(crate) struct Leftovers {
    url: String,
}

impl Leftovers {
    pub(crate) fn of(url: &str) -> Self {
        Self { url: url.to_owned() }
    }
}

impl Drop for Leftovers {
    fn drop(&mut self) {
        if thread::panicking() {
            return;
        }
        let url = self.url.clone();
        // On a runtime of its own: this one may have a single thread, which waits here.
        let found = thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async {
                let mut raw = Raw::open(&url).await.unwrap();
                let mut found = raw.violations().await;
                let under_way = raw.texts(UNDER_WAY).await;
                found.extend(under_way.into_iter().map(|key| format!("still under way: {key}")));
                found
            })
        })
        .join()
        .expect("the ledger can be read");
        assert!(found.is_empty(), "left behind: {found:#?}");
    }
}
