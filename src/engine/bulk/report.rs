//! The published shape of bulk actions.

use std::collections::BTreeMap;

use serde::Serialize;
use uuid::Uuid;

use super::chosen;
use crate::domain::bulk::{BulkAction, BulkState, MemberState, Progress};
use crate::domain::dead_letter::Resolution;
use crate::domain::time::Timestamp;
use crate::store::bulk::{self, BulkRow, members};
use crate::store::{StoreError, Tx};

/// A bulk action, as the API answers it.
#[derive(Debug, Serialize)]
pub struct BulkReport {
    id: Uuid,
    name: String,
    action: BulkAction,
    resolution: Option<Resolution>,
    assignee: Option<String>,
    reason: String,
    state: BulkState,
    paused: Option<Paused>,
    /// As the list takes it; absent where members were chosen one by one.
    filter: Option<BTreeMap<String, String>>,
    follows: Option<Uuid>,
    members: i64,
    canary: i64,
    per_minute: Option<i64>,
    created_at: Timestamp,
    created_by: String,
    started_at: Option<Timestamp>,
    acts_as: Option<String>,
    ended_at: Option<Timestamp>,
    /// Members in each state.
    progress: BTreeMap<&'static str, usize>,
    /// The same in words.
    summary: String,
    url: String,
}

#[derive(Debug, Serialize)]
struct Paused {
    at: Timestamp,
    by: String,
    reason: Option<String>,
}

impl BulkReport {
    /// One by id.
    pub async fn one(tx: &mut Tx, id: Uuid, public_url: &str) -> Result<Option<Self>, StoreError> {
        let Some(row) = bulk::by_id(tx, id).await? else { return Ok(None) };
        let progress = members::progress(tx, &[id]).await?;
        let progress = progress.first().map(|(_, progress)| *progress).unwrap_or_default();
        Ok(Some(Self::new(row, &progress, public_url)))
    }

    fn new(row: BulkRow, progress: &Progress, public_url: &str) -> Self {
        let paused =
            row.paused_at.zip(row.paused_by).map(|(at, by)| Paused { at, by, reason: row.pause_reason });
        Self {
            url: format!("{}/bulk/{}", public_url.trim_end_matches('/'), row.id),
            summary: progress.words(row.action),
            progress: MemberState::ALL.iter().map(|state| (state.as_str(), progress.of(*state))).collect(),
            filter: row.filter.as_deref().map(|query| chosen::pairs(query).into_iter().collect()),
            id: row.id,
            name: row.name,
            action: row.action,
            resolution: row.resolution,
            assignee: row.assignee,
            reason: row.reason,
            state: row.state,
            paused,
            follows: row.follows,
            members: row.members,
            canary: row.canary,
            per_minute: row.per_minute,
            created_at: row.created_at,
            created_by: row.created_by,
            started_at: row.started_at,
            acts_as: row.acts_as,
            ended_at: row.ended_at,
        }
    }
}
