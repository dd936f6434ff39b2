//! `/api/v1/bulk`

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use uuid::Uuid;

use super::call::{Act as Asked, Sent};
use super::dead_letters::PARAMETERS;
use super::operations::id;
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::domain::bulk::{BulkAction, BulkState, Step};
use crate::domain::dead_letter::Resolution;
use crate::domain::filter::{DeadLetterFilter, Parameters};
use crate::domain::time::Timestamp;
use crate::engine::bulk::report::BulkReport;
use crate::engine::bulk::{self, Act, Members, New};
use crate::store::bulk::{self as stored, BulkRow};
use crate::web::Web;

/// The body of a new one.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Create {
    action: BulkAction,
    name: String,
    reason: String,
    filter: Option<BTreeMap<String, String>>,
    ids: Option<Vec<Uuid>>,
    #[serde(default)]
    canary: i64,
    per_minute: Option<i64>,
    resolution: Option<Resolution>,
    assignee: Option<String>,
}

impl Create {
    fn act(&self) -> Result<Act, Problem> {
        let stray = |given: bool, name: &str| {
            let problem = || Problem::malformed(format!("{name} means nothing for {}.", self.action));
            if given { Err(problem()) } else { Ok(()) }
        };
        stray(self.resolution.is_some() && self.action != BulkAction::Resolve, "resolution")?;
        stray(self.assignee.is_some() && self.action != BulkAction::Assign, "assignee")?;
        Ok(match self.action {
            BulkAction::Replay => Act::Replay,
            BulkAction::Resolve => Act::Resolve(
                self.resolution.ok_or_else(|| Problem::malformed("To resolve takes a resolution."))?,
            ),
            BulkAction::Assign => Act::Assign(self.assignee.clone()),
            BulkAction::Lookup => Act::Lookup,
        })
    }

    fn members(&self, now: Timestamp) -> Result<Members, Problem> {
        match (&self.filter, &self.ids) {
            (Some(filter), None) => Ok(Members::All(filter_of(filter, now)?)),
            (None, Some(ids)) => Ok(Members::Chosen(ids.clone())),
            _ => Err(Problem::malformed("Send either a filter or ids.")),
        }
    }
}

/// The filter that a list with these parameters has.
fn filter_of(given: &BTreeMap<String, String>, now: Timestamp) -> Result<DeadLetterFilter, Problem> {
    let pairs: Vec<(String, String)> =
        given.iter().map(|(name, value)| (name.clone(), value.clone())).collect();
    // A limit that is not kept to would be as bad as one that nobody sees.
    let known: Vec<&str> =
        PARAMETERS.into_iter().filter(|name| !["limit", "cursor"].contains(name)).collect();
    Parameters(&pairs).only(&known)?;
    Ok(Parameters(&pairs).dead_letters(now)?)
}

impl Sent for Create {
    const RIGHT: Right = Right::Bulk;
}

/// `POST /api/v1/bulk`
pub async fn create(State(web): State<Web>, asked: Asked<Create>) -> Result<Response, Problem> {
    let sent = &asked.sent;
    let new = New {
        name: sent.name.clone(),
        act: sent.act()?,
        members: sent.members(web.engine.ambient().now())?,
        canary: sent.canary,
        per_minute: sent.per_minute,
    };
    let id = bulk::create(web.engine.gate(), &new, &asked.request(&sent.reason)).await?;
    Ok((StatusCode::CREATED, report(&web, id).await?).into_response())
}

/// `GET /api/v1/bulk/{id}`
pub async fn one(
    State(web): State<Web>,
    caller: Caller,
    Path(text): Path<String>,
) -> Result<Response, Problem> {
    caller.require(Right::View)?;
    report(&web, id(&text)?).await
}

/// Whether the others may follow the first members.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Start {
    /// What became of the first members was looked at, and the others may follow.
    #[serde(default)]
    confirm: bool,
}

impl Sent for Start {
    const RIGHT: Right = Right::Bulk;
    const OPTIONAL: bool = true;
}

/// `POST /api/v1/bulk/{id}/start`: starts it, lets it go on where it is paused, and, with
/// `"confirm": true`, lets the others follow the first members.
pub async fn start(
    State(web): State<Web>,
    Path(text): Path<String>,
    asked: Asked<Start>,
) -> Result<Response, Problem> {
    let row = known(&web, &text).await?;
    let step = match row.state {
        _ if asked.sent.confirm => Step::Confirm,
        _ if row.paused_at.is_some() => Step::Resume,
        BulkState::Confirm => {
            let detail =
                "Its first members are out. Look at what became of them, then send \"confirm\": true.";
            return Err(Problem::new(StatusCode::CONFLICT, "not-confirmed", "Not confirmed", detail));
        }
        _ => Step::Start,
    };
    bulk::set_going(web.engine.gate(), row.id, step, &asked.request("")).await?;
    report(&web, row.id).await
}

/// Why it is held up or ended.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Why {
    #[serde(default)]
    reason: String,
}

impl Sent for Why {
    const RIGHT: Right = Right::Bulk;
    const OPTIONAL: bool = true;
}

/// `POST /api/v1/bulk/{id}/pause`
pub async fn pause(
    State(web): State<Web>,
    Path(text): Path<String>,
    asked: Asked<Why>,
) -> Result<Response, Problem> {
    let row = known(&web, &text).await?;
    bulk::pause(web.engine.gate(), row.id, &asked.request(&asked.sent.reason)).await?;
    report(&web, row.id).await
}

/// `POST /api/v1/bulk/{id}/cancel`
pub async fn cancel(
    State(web): State<Web>,
    Path(text): Path<String>,
    asked: Asked<Why>,
) -> Result<Response, Problem> {
    let row = known(&web, &text).await?;
    bulk::cancel(web.engine.gate(), row.id, &asked.request(&asked.sent.reason)).await?;
    report(&web, row.id).await
}

fn none() -> Problem {
    Problem::not_found("There is no bulk action with this id.")
}

async fn known(web: &Web, text: &str) -> Result<BulkRow, Problem> {
    let mut tx = web.engine.db().read().await?;
    stored::by_id(&mut tx, id(text)?).await?.ok_or_else(none)
}

async fn report(web: &Web, id: Uuid) -> Result<Response, Problem> {
    let mut tx = web.engine.db().read().await?;
    let report = BulkReport::one(&mut tx, id, web.engine.config().server.public_url.as_str()).await?;
    Ok(Json(report.ok_or_else(none)?).into_response())
}
