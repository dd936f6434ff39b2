//! The log beside SQLite's file, which holds what was written before it was erased.

use std::time::Duration;

use sqlx::{ConnectOptions as _, Connection as _};

use super::{Db, Pools, StoreError};

/// How long readers of an older state are waited for at a time. Who writes waits as long.
const WAIT: Duration = Duration::from_millis(200);
/// How often it is tried.
const TRIES: u32 = 5;
/// Between two tries, others write.
const PAUSE: Duration = Duration::from_millis(300);

impl Db {
    /// Carries everything from the log into the file, and empties the log: what was erased stands in
    /// neither from then on. False when somebody kept reading an older state all the while; the log is
    /// then overwritten as others write, and gone once every process has closed the database.
    ///
    /// A server keeps its log by its own settings.
    pub async fn empty_log(&self) -> Result<bool, StoreError> {
        let Pools::Sqlite { write, .. } = &self.pools else { return Ok(true) };
        // A connection of its own: the one that writes is not kept from others while it waits.
        let options = write.connect_options();
        let mut connection = options.as_ref().clone().busy_timeout(WAIT).connect().await?;
        let mut emptied = false;
        for _ in 0..TRIES {
            let busy: i64 =
                sqlx::query_scalar("PRAGMA wal_checkpoint(TRUNCATE)").fetch_one(&mut connection).await?;
            emptied = busy == 0;
            if emptied {
                break;
            }
            tokio::time::sleep(PAUSE).await;
        }
        connection.close().await?;
        Ok(emptied)
    }
}
