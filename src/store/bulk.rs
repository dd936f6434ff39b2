//! Acting on many dead letters at once. A bulk action is a row that outlives every process; what
//! became of its members stands in [`members`].

use sqlx::AssertSqlSafe;
use uuid::Uuid;

use super::filters::{Conditions, bind_all};
use super::{StoreError, Tx};
use crate::domain::bulk::{BulkAction, BulkState};
use crate::domain::dead_letter::Resolution;
use crate::domain::filter::{Listed, Page};
use crate::domain::time::Timestamp;

pub mod members;

/// A bulk action as stored.
#[derive(Clone, Debug)]
pub struct BulkRow {
    /// UUIDv7.
    pub id: Uuid,
    /// What people call it.
    pub name: String,
    /// What is done to each member.
    pub action: BulkAction,
    /// How they are closed.
    pub resolution: Option<Resolution>,
    /// To whom they are handed; absent for nobody.
    pub assignee: Option<String>,
    /// Why, in their words.
    pub reason: String,
    /// The filter as a query string; absent where members were chosen one by one.
    pub filter: Option<String>,
    /// The bulk action whose refused and failed members these are.
    pub follows: Option<Uuid>,
    /// How many.
    pub members: i64,
    /// So many go first; 0 when nobody waits for their outcome.
    pub canary: i64,
    /// The most members that are taken up in a minute.
    pub per_minute: Option<i64>,
    /// Where it stands.
    pub state: BulkState,
    /// When its members were frozen.
    pub created_at: Timestamp,
    /// By whom.
    pub created_by: String,
    /// When it was set going.
    pub started_at: Option<Timestamp>,
    /// In whose name members are acted on.
    pub acts_as: Option<String>,
    /// When it ended or was cancelled.
    pub ended_at: Option<Timestamp>,
    /// Since when it is paused.
    pub paused_at: Option<Timestamp>,
    /// By whom.
    pub paused_by: Option<String>,
    /// Why.
    pub pause_reason: Option<String>,
    /// When its speed allows the next member.
    pub next_at: Timestamp,
    /// Until when a node acts on its members.
    pub leased_until: Option<Timestamp>,
    /// Counts the leases.
    pub fence: i64,
    /// The place up to which members under way were looked after in this round.
    pub followed: i64,
}

from_row!(BulkRow {
    id,
    name,
    action,
    resolution,
    assignee,
    reason,
    filter,
    follows,
    members,
    canary,
    per_minute,
    state,
    created_at,
    created_by,
    started_at,
    acts_as,
    ended_at,
    paused_at,
    paused_by,
    pause_reason,
    next_at,
    leased_until,
    fence,
    followed,
});

const COLUMNS: &str = "SELECT id, name, action, resolution, assignee, reason, filter, follows, members, canary, \
    per_minute, state, created_at, created_by, started_at, acts_as, ended_at, paused_at, paused_by, \
    pause_reason, next_at, leased_until, fence, followed FROM bulks";

/// Adds one whose members are frozen already.
pub async fn insert(tx: &mut Tx, row: &BulkRow) -> Result<(), StoreError> {
    const SQL: &str = "INSERT INTO bulks (id, name, action, resolution, assignee, reason, filter, follows, \
        members, canary, per_minute, state, created_at, created_by) \
        VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14)";
    on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(&row.name)
        .bind(row.action)
        .bind(row.resolution)
        .bind(&row.assignee)
        .bind(&row.reason)
        .bind(&row.filter)
        .bind(row.follows)
        .bind(row.members)
        .bind(row.canary)
        .bind(row.per_minute)
        .bind(row.state)
        .bind(row.created_at)
        .bind(&row.created_by)
        .execute(c)
        .await?
        .rows_affected());
    Ok(())
}

/// One by id.
pub async fn by_id(tx: &mut Tx, id: Uuid) -> Result<Option<BulkRow>, StoreError> {
    let sql = AssertSqlSafe(format!("{COLUMNS} WHERE id = $1"));
    Ok(on!(tx, c => sqlx::query_as(sql).bind(id).fetch_optional(c).await)?)
}

/// A stretch of all of them.
pub async fn list(tx: &mut Tx, page: Page) -> Result<Listed<BulkRow>, StoreError> {
    let mut conditions = Conditions::default();
    let sql = format!("{COLUMNS}{}", conditions.page("created_at", "id", page));
    let rows: Vec<BulkRow> = on!(tx, c => {
        bind_all(sqlx::query_as(AssertSqlSafe(sql)), conditions.values()).fetch_all(c).await?
    });
    Ok(Listed::new(rows, page, |row| (row.created_at, row.id)))
}

/// Every node asks this twice a second. In the order of its own index: SQLite would read all bulk
/// actions that ever were for the sake of another one.
fn watched_sql() -> String {
    format!("{COLUMNS} WHERE watched ORDER BY created_at")
}

/// Those for which there is something to do or to hear, oldest first.
pub async fn watched(tx: &mut Tx) -> Result<Vec<BulkRow>, StoreError> {
    Ok(on!(tx, c => sqlx::query_as(AssertSqlSafe(watched_sql())).fetch_all(c).await)?)
}

/// Moves one from one state to another, unless it is paused or somebody moved it before: then false.
/// It acts in this person's name from now on, at its speed, and is looked after.
pub async fn set_going(
    tx: &mut Tx,
    id: Uuid,
    from: BulkState,
    to: BulkState,
    by: &str,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET state = $3, acts_as = $4, started_at = coalesce(started_at, $5), \
        next_at = CASE WHEN next_at > $5 THEN next_at ELSE $5 END, watched = TRUE WHERE id = $1 AND state = $2 AND paused_at IS NULL";
    let moved = on!(tx, c => sqlx::query(SQL)
        .bind(id)
        .bind(from)
        .bind(to)
        .bind(by)
        .bind(at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(moved == 1)
}

/// Moves one on by itself; false when it is in another state.
pub async fn move_on(tx: &mut Tx, id: Uuid, from: BulkState, to: BulkState) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET state = $3 WHERE id = $1 AND state = $2";
    let moved = on!(tx, c => sqlx::query(SQL).bind(id).bind(from).bind(to).execute(c).await?.rows_affected());
    Ok(moved == 1)
}

/// What became of each member is known; false when it was over before.
pub async fn end(tx: &mut Tx, id: Uuid, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET state = 'ended', ended_at = $2, paused_at = NULL, paused_by = NULL, \
        pause_reason = NULL, watched = FALSE WHERE id = $1 AND state = 'running'";
    let ended = on!(tx, c => sqlx::query(SQL).bind(id).bind(at).execute(c).await?.rows_affected());
    Ok(ended == 1)
}

/// Nothing more is to be heard of one that is over and that no node acts on any more.
pub async fn unwatch(tx: &mut Tx, id: Uuid) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulks SET watched = FALSE WHERE id = $1 AND state IN ('ended', 'cancelled') \
        AND leased_until IS NULL";
    on!(tx, c => sqlx::query(SQL).bind(id).execute(c).await?.rows_affected());
    Ok(())
}

/// Stops taking members up; false when it is paused, was never started or is over.
pub async fn pause(
    tx: &mut Tx,
    id: Uuid,
    by: &str,
    why: Option<&str>,
    at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET paused_at = $4, paused_by = $2, pause_reason = $3 WHERE id = $1 \
        AND paused_at IS NULL AND state IN ('canary', 'confirm', 'running')";
    let paused = on!(tx, c => sqlx::query(SQL)
        .bind(id)
        .bind(by)
        .bind(why)
        .bind(at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(paused == 1)
}

/// Goes on where it was paused, in this person's name; false when it is not paused, or when a node
/// acted on it since it was read.
pub async fn resume(tx: &mut Tx, row: &BulkRow, by: &str, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET paused_at = NULL, paused_by = NULL, pause_reason = NULL, acts_as = $2, \
        next_at = CASE WHEN next_at > $3 THEN next_at ELSE $3 END \
        WHERE id = $1 AND paused_at IS NOT NULL AND fence = $4";
    let resumed = on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(by)
        .bind(at)
        .bind(row.fence)
        .execute(c)
        .await?
        .rows_affected());
    Ok(resumed == 1)
}

/// Ends one at a person's word; false when it is over. What is under way is looked after to its end.
pub async fn cancel(tx: &mut Tx, id: Uuid, at: Timestamp) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET state = 'cancelled', ended_at = $2, paused_at = NULL, paused_by = NULL, \
        pause_reason = NULL WHERE id = $1 AND state NOT IN ('ended', 'cancelled')";
    Ok(on!(tx, c => sqlx::query(SQL).bind(id).bind(at).execute(c).await?.rows_affected()) == 1)
}

/// Takes the right to act on some of its members for a while, and says when its speed allows the
/// ones behind them. False when another node has it, or when it may not act now.
pub async fn lease(
    tx: &mut Tx,
    row: &BulkRow,
    now: Timestamp,
    until: Timestamp,
    next_at: Timestamp,
) -> Result<bool, StoreError> {
    const SQL: &str = "UPDATE bulks SET leased_until = $4, next_at = $5, fence = fence + 1 WHERE id = $1 \
        AND fence = $2 AND state IN ('canary', 'running') AND paused_at IS NULL AND next_at <= $3 \
        AND (leased_until IS NULL OR leased_until <= $3)";
    let leased = on!(tx, c => sqlx::query(SQL)
        .bind(row.id)
        .bind(row.fence)
        .bind(now)
        .bind(until)
        .bind(next_at)
        .execute(c)
        .await?
        .rows_affected());
    Ok(leased == 1)
}

/// Gives that right back, unless another node has it by now.
pub async fn release(tx: &mut Tx, id: Uuid, fence: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulks SET leased_until = NULL WHERE id = $1 AND fence = $2";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(fence).execute(c).await?.rows_affected());
    Ok(())
}

/// Whether the holder of a lease may go on to the next member.
pub async fn goes_on(tx: &mut Tx, id: Uuid, fence: i64) -> Result<bool, StoreError> {
    const SQL: &str = "SELECT count(*) FROM bulks WHERE id = $1 AND fence = $2 AND paused_at IS NULL \
        AND leased_until IS NOT NULL AND state IN ('canary', 'running')";
    let may: i64 = on!(tx, c => sqlx::query_scalar(SQL).bind(id).bind(fence).fetch_one(c).await)?;
    Ok(may == 1)
}

/// Notes how far the members under way were looked after.
pub async fn set_followed(tx: &mut Tx, id: Uuid, position: i64) -> Result<(), StoreError> {
    const SQL: &str = "UPDATE bulks SET followed = $2 WHERE id = $1";
    on!(tx, c => sqlx::query(SQL).bind(id).bind(position).execute(c).await?.rows_affected());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::store::Db;

    #[tokio::test]
    async fn what_is_over_costs_nothing() {
        let folder = tempfile::tempdir().unwrap();
        let db = Db::open(&format!("sqlite:{}", folder.path().join("desk.db").display())).await.unwrap();
        db.migrate().await.unwrap();
        let mut tx = db.read().await.unwrap();
        let explained = AssertSqlSafe(format!("EXPLAIN QUERY PLAN {}", watched_sql()));
        let plan: Vec<(i64, i64, i64, String)> =
            on!(&mut tx, c => sqlx::query_as(explained).fetch_all(c).await.unwrap());
        assert!(plan.iter().all(|(_, _, _, line)| line.contains("bulks_watched")), "{plan:#?}");
        drop(tx);
        db.close().await;
    }
}
