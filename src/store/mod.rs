//! The database: connections, transactions, the schema, and every statement but the ledger's
//! writes. No other folder names a database product.
//!
//! One text of SQL serves SQLite and PostgreSQL. Where a statement must differ, it says why where
//! it stands.

use std::fs::OpenOptions;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::str::FromStr;
use std::sync::Arc;
use std::time::Duration;

use sqlx::migrate::{Migration, MigrationType, Migrator};
use sqlx::postgres::{PgConnectOptions, PgPool, PgPoolOptions};
use sqlx::sqlite::{
    SqliteConnectOptions, SqliteJournalMode, SqlitePool, SqlitePoolOptions, SqliteSynchronous,
};
use sqlx::{Connection as _, SqlSafeStr};

use crate::domain::actor::Roles;
use crate::domain::ambient::Ambient;
use crate::domain::keyring::Keyring;

/// Runs one statement on whichever database a transaction belongs to.
macro_rules! on {
    ($tx:expr, $conn:ident => $body:expr) => {
        match &mut $tx.inner {
            $crate::store::Inner::Sqlite(inner) => {
                let $conn = &mut **inner;
                $body
            }
            $crate::store::Inner::Postgres(inner) => {
                let $conn = &mut **inner;
                $body
            }
        }
    };
}

/// Reads a struct from a row, column by column under the fields' names, on both databases.
macro_rules! from_row {
    ($name:ty { $($field:ident),+ $(,)? }) => {
        from_row!(@one $name { $($field),+ }, sqlx::sqlite::SqliteRow);
        from_row!(@one $name { $($field),+ }, sqlx::postgres::PgRow);
    };
    (@one $name:ty { $($field:ident),+ }, $row:ty) => {
        impl sqlx::FromRow<'_, $row> for $name {
            fn from_row(row: &$row) -> Result<Self, sqlx::Error> {
                use sqlx::Row as _;
                Ok(Self { $($field: row.try_get(stringify!($field))?),+ })
            }
        }
    };
}

/// Stores a domain word as text on both databases.
macro_rules! stored_as_text {
    ($($name:ty),+ $(,)?) => {
        $(
            stored_as_text!(@one $name, sqlx::Sqlite);
            stored_as_text!(@one $name, sqlx::Postgres);
        )+
    };
    (@one $name:ty, $db:ty) => {
        impl sqlx::Type<$db> for $name {
            fn type_info() -> <$db as sqlx::Database>::TypeInfo {
                <&str as sqlx::Type<$db>>::type_info()
            }

            fn compatible(ty: &<$db as sqlx::Database>::TypeInfo) -> bool {
                <&str as sqlx::Type<$db>>::compatible(ty)
            }
        }

        impl<'q> sqlx::Encode<'q, $db> for $name {
            fn encode_by_ref(
                &self,
                buffer: &mut <$db as sqlx::Database>::ArgumentBuffer,
            ) -> Result<sqlx::encode::IsNull, sqlx::error::BoxDynError> {
                <&'static str as sqlx::Encode<'_, $db>>::encode(self.as_str(), buffer)
            }
        }

        impl<'r> sqlx::Decode<'r, $db> for $name {
            fn decode(value: <$db as sqlx::Database>::ValueRef<'r>) -> Result<Self, sqlx::error::BoxDynError> {
                Ok(<&str as sqlx::Decode<'r, $db>>::decode(value)?.parse()?)
            }
        }
    };
}

pub(crate) use on;

pub mod accounts;
pub mod actions;
pub mod alerts;
pub mod attempts;
pub mod audit;
pub mod bulk;
pub mod causes;
pub mod chain;
pub mod checks;
mod commit;
pub mod dead_letters;
pub mod destinations;
pub mod envelopes;
pub mod erasure;
pub mod events;
pub mod factors;
mod filters;
pub mod history;
pub mod hooks;
pub mod identities;
pub mod live;
mod log;
pub mod nodes;
pub mod operations;
pub mod overrides;
pub mod results;
pub mod retention;
pub mod secrets;
pub mod sessions;
pub mod settings;
pub mod shown;
pub mod tries;
mod tx;
mod types;
pub mod views;
pub mod work;

pub use commit::{Commit, Moment};
pub(crate) use tx::Inner;
pub use tx::Tx;

/// Rows of one multi-row statement at most: bounds the number of statement texts that the
/// connections keep prepared.
pub const MAX_ROWS: usize = 128;

/// How long to wait for a connection, or for a lock that another one holds.
const TURN: Duration = Duration::from_secs(10);
/// How long PostgreSQL works at one statement, or keeps a transaction whose process says nothing: one
/// that hangs must not hold its locks for ever. SQLite knows no such limit; what waits for it gives up
/// by itself.
const LONGEST: &str = "60s";

/// What can go wrong with the database.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The address is of neither kind.
    #[error("the database address must begin with sqlite: or postgres:, not {0:?}")]
    Address(String),
    /// The database said no, or did not answer.
    #[error("database")]
    Database(#[from] sqlx::Error),
    /// The schema could not be brought to this version.
    #[error("migration")]
    Migrate(#[from] sqlx::migrate::MigrateError),
    /// Something has to be authenticated or encrypted, and no key is here.
    #[error(
        "there is no secret key: set DLO_SECRET_KEY, or secret_key_file under [server]; `dlo init` makes one"
    )]
    NoKey,
    /// The audit has entries and no chain, so that nothing can be put on record behind them.
    #[error(
        "the audit has entries and no chain: either this database is from before there was one, or the chain was \
         removed; nothing is put on record until somebody has looked. `dlo audit adopt` begins a chain with what \
         stands there: compare it with a backup and with the heads in the log first"
    )]
    NoChain,
    /// A row says something that this version cannot mean.
    #[error("stored data: {0}")]
    Corrupt(String),
}

/// An open database, the keys of what is authenticated or encrypted in it, and what the names of
/// roles in it mean.
#[derive(Clone, Debug)]
pub struct Db {
    /// Its connections.
    pub pools: Pools,
    keyring: Option<Arc<Keyring>>,
    ambient: Ambient,
    roles: Roles,
}

/// Connections to a database.
#[derive(Clone, Debug)]
pub enum Pools {
    /// One file. Writers take turns on one connection, since SQLite allows one at a time and a
    /// queue here is fairer than its lock.
    Sqlite {
        /// The one connection that writes.
        write: SqlitePool,
        /// Readers, which see the last commit and block nobody.
        read: SqlitePool,
    },
    /// A server, possibly shared by many nodes.
    Postgres(PgPool),
}

impl From<Pools> for Db {
    fn from(pools: Pools) -> Self {
        Self { pools, keyring: None, ambient: Ambient::system(), roles: Roles::default() }
    }
}

/// Makes a new database's file readable for its owner alone, which SQLite's other files follow: payloads
/// in it are not encrypted. Why it cannot be made is told by whoever opens it next.
fn own(file: &Path) {
    // A database in memory has a name of another kind.
    if !file.to_string_lossy().starts_with("file:") {
        let _ = OpenOptions::new().create_new(true).write(true).mode(0o600).open(file);
    }
}

impl Db {
    /// Opens, and for SQLite creates, the database at an address.
    pub async fn open(address: &str) -> Result<Self, StoreError> {
        if address.starts_with("sqlite:") {
            let options = SqliteConnectOptions::from_str(address)?;
            own(options.get_filename());
            let options = options
                .create_if_missing(true)
                .journal_mode(SqliteJournalMode::Wal)
                .synchronous(SqliteSynchronous::Full)
                .busy_timeout(TURN)
                .statement_cache_capacity(1024)
                .pragma("temp_store", "memory")
                // What is deleted is overwritten: it was erased, or its time was over.
                .pragma("secure_delete", "on")
                .pragma("cache_size", "-16000");
            let write = SqlitePoolOptions::new()
                .max_connections(1)
                .acquire_timeout(TURN)
                .connect_with(options.clone())
                .await?;
            let read = SqlitePoolOptions::new()
                .max_connections(4)
                .min_connections(0)
                .acquire_timeout(TURN)
                .connect_with(options.read_only(true).create_if_missing(false))
                .await?;
            Ok(Pools::Sqlite { write, read }.into())
        } else if address.starts_with("postgres:") || address.starts_with("postgresql:") {
            let options = PgConnectOptions::from_str(address)?.statement_cache_capacity(1024).options([
                ("statement_timeout", LONGEST),
                ("idle_in_transaction_session_timeout", LONGEST),
                ("lock_timeout", &format!("{}s", TURN.as_secs())),
            ]);
            let pool =
                PgPoolOptions::new().max_connections(12).acquire_timeout(TURN).connect_with(options).await?;
            Ok(Pools::Postgres(pool).into())
        } else {
            Err(StoreError::Address(address.to_owned()))
        }
    }

    /// Whether the database at an address was made: a server's always counts as made.
    pub fn is_there(address: &str) -> bool {
        let Ok(options) = SqliteConnectOptions::from_str(address) else { return true };
        !address.starts_with("sqlite:") || options.get_filename().exists()
    }

    /// The same with these keys.
    #[must_use]
    pub fn keyed(self, keyring: Option<Keyring>) -> Self {
        Self { keyring: keyring.map(Arc::new), ..self }
    }

    /// The same with this clock and chance, where the machine's own are not meant.
    #[must_use]
    pub fn within(self, ambient: Ambient) -> Self {
        Self { ambient, ..self }
    }

    /// The same where people can have these roles.
    #[must_use]
    pub fn with_roles(self, roles: Roles) -> Self {
        Self { roles, ..self }
    }

    /// The roles that people can have, and what each holds.
    pub fn roles(&self) -> &Roles {
        &self.roles
    }

    /// The keys; an error that names what to do when nobody gave any.
    pub fn keyring(&self) -> Result<&Keyring, StoreError> {
        self.keyring.as_deref().ok_or(StoreError::NoKey)
    }

    /// Begins a transaction that may write.
    ///
    /// It begins in a task of its own: a cancelled `begin` can leave a pooled connection inside a
    /// transaction.
    pub async fn begin(&self) -> Result<Tx, StoreError> {
        let pools = self.pools.clone();
        let begun = tokio::spawn(async move {
            match pools {
                // A deferred transaction that reads first and writes later fails at once when
                // another process wrote in between; an immediate one waits its turn.
                Pools::Sqlite { write, .. } => write.begin_with("BEGIN IMMEDIATE").await.map(Inner::Sqlite),
                Pools::Postgres(pool) => pool.begin().await.map(Inner::Postgres),
            }
        });
        match begun.await {
            Ok(inner) => Ok(Tx::new(inner?, self.keyring.clone(), self.ambient.clone())),
            Err(_) => Err(StoreError::Database(sqlx::Error::WorkerCrashed)),
        }
    }

    /// Begins a transaction that only reads, and sees one moment however many statements it runs: a
    /// count beside a list counts that list.
    pub async fn read(&self) -> Result<Tx, StoreError> {
        let pools = self.pools.clone();
        let begun = tokio::spawn(async move {
            match pools {
                Pools::Sqlite { read, .. } => read.begin().await.map(Inner::Sqlite),
                Pools::Postgres(pool) => pool
                    .begin_with("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                    .await
                    .map(Inner::Postgres),
            }
        });
        match begun.await {
            Ok(inner) => Ok(Tx::new(inner?, self.keyring.clone(), self.ambient.clone())),
            Err(_) => Err(StoreError::Database(sqlx::Error::WorkerCrashed)),
        }
    }

    /// The product's name, for people.
    pub fn product(&self) -> &'static str {
        match self.pools {
            Pools::Sqlite { .. } => "SQLite",
            Pools::Postgres(_) => "PostgreSQL",
        }
    }

    /// Brings the schema to this version; the versions before and after.
    pub async fn migrate(&self) -> Result<(i64, i64), StoreError> {
        let before = self.version().await?;
        match &self.pools {
            Pools::Sqlite { write, .. } => migrator(false).run(write).await?,
            Pools::Postgres(pool) => {
                // A large table takes its time, and another node's migration is waited for. The
                // connection is not used again.
                let mut connection = pool.acquire().await?.detach();
                let unlimited = "SET statement_timeout = 0; SET lock_timeout = 0";
                sqlx::raw_sql(unlimited).execute(&mut connection).await?;
                migrator(true).run(&mut connection).await?;
                connection.close().await?;
            }
        }
        Ok((before, self.version().await?))
    }

    /// The schema's version; zero when there is none yet.
    pub async fn version(&self) -> Result<i64, StoreError> {
        const SQL: &str =
            "SELECT CAST(coalesce(max(version), 0) AS BIGINT) FROM _sqlx_migrations WHERE success";
        let mut tx = self.read().await?;
        match on!(&mut tx, c => sqlx::query_scalar::<_, i64>(SQL).fetch_one(c).await) {
            Ok(version) => Ok(version),
            // The table is made by the first migration.
            Err(sqlx::Error::Database(_)) => Ok(0),
            Err(error) => Err(error.into()),
        }
    }

    /// The version that this program brings a database to.
    pub fn newest_version() -> i64 {
        migrator(false).iter().map(|migration| migration.version).max().unwrap_or(0)
    }

    /// Waits until every connection is closed.
    pub async fn close(&self) {
        match &self.pools {
            Pools::Sqlite { write, read } => {
                read.close().await;
                write.close().await;
            }
            Pools::Postgres(pool) => pool.close().await,
        }
    }
}

/// One text a version for both databases, and behind it what each writes in its own way.
macro_rules! for_each {
    ($postgres:expr, $name:literal) => {
        if $postgres {
            concat!(
                include_str!(concat!("../../migrations/", $name)),
                include_str!(concat!("../../migrations/postgres/", $name))
            )
        } else {
            concat!(
                include_str!(concat!("../../migrations/", $name)),
                include_str!(concat!("../../migrations/sqlite/", $name))
            )
        }
    };
}

fn migrator(postgres: bool) -> Migrator {
    let scripts = [
        (1, "spine", include_str!("../../migrations/0001_spine.sql")),
        (2, "engine", include_str!("../../migrations/0002_engine.sql")),
        (3, "hooks", include_str!("../../migrations/0003_hooks.sql")),
        (4, "upkeep", include_str!("../../migrations/0004_upkeep.sql")),
        (5, "subjects", include_str!("../../migrations/0005_subjects.sql")),
        (6, "handling", include_str!("../../migrations/0006_handling.sql")),
        (7, "bulk", include_str!("../../migrations/0007_bulk.sql")),
        (8, "causes", include_str!("../../migrations/0008_causes.sql")),
        (9, "desk", include_str!("../../migrations/0009_desk.sql")),
        (10, "audit", for_each!(postgres, "0010_audit.sql")),
        (11, "doors", include_str!("../../migrations/0011_doors.sql")),
        (12, "factors", include_str!("../../migrations/0012_factors.sql")),
        (13, "roles", include_str!("../../migrations/0013_roles.sql")),
        (14, "secrets", include_str!("../../migrations/0014_secrets.sql")),
        (15, "erasure", include_str!("../../migrations/0015_erasure.sql")),
        (16, "verification", include_str!("../../migrations/0016_verification.sql")),
        (17, "keys", include_str!("../../migrations/0017_keys.sql")),
    ];
    let migrations = scripts
        .into_iter()
        .map(|(version, name, sql)| {
            Migration::new(version, name.into(), MigrationType::Simple, sql.into_sql_str(), false)
        })
        .collect();
    Migrator::with_migrations(migrations)
}

/// `($1,$2),($3,$4)`: the placeholders of a statement over several rows.
pub(crate) fn placeholders(rows: usize, columns: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(rows * columns * 5);
    for row in 0..rows {
        text.push_str(if row == 0 { "(" } else { ",(" });
        for column in 1..=columns {
            // Writing to a String cannot fail.
            let _ = write!(text, "{}${}", if column == 1 { "" } else { "," }, row * columns + column);
        }
        text.push(')');
    }
    text
}

/// `, $3, $4`: more placeholders for a list that has one already.
pub(crate) fn more_placeholders(first: usize, count: usize) -> String {
    use std::fmt::Write as _;
    let mut text = String::with_capacity(count * 6);
    for place in first..first + count {
        // Writing to a String cannot fail.
        let _ = write!(text, ", ${place}");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{more_placeholders, placeholders};

    #[test]
    fn placeholders_count_on() {
        assert_eq!(placeholders(2, 3), "($1,$2,$3),($4,$5,$6)");
        assert_eq!(placeholders(1, 1), "($1)");
        assert_eq!((more_placeholders(3, 2).as_str(), more_placeholders(3, 0).as_str()), (", $3, $4", ""));
    }
}
