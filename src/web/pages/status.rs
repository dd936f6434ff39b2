//! How things stand around the desk: who sends webhooks, and what becomes of them.

use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use crate::config::Source;
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::domain::webhook::{HookOutcome, Scheme};
use crate::domain::words;
use crate::store::hooks::{self, HookCount};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{When, grouped};

/// What the counts cover, in whole hours.
const RECENT: Duration = Duration::from_hours(24);

/// `/status`
#[derive(Template, Debug)]
#[template(path = "pages/status.html")]
pub struct StatusPage {
    /// Around it.
    pub layout: Layout,
    /// By name.
    pub sources: Vec<SourceRow>,
}

/// One source of webhooks.
#[derive(Clone, Debug)]
pub struct SourceRow {
    /// Its name.
    pub name: String,
    /// Where it sends to.
    pub address: String,
    /// How its messages are proved.
    pub scheme: Scheme,
    /// When it last sent something new; absent when that was long ago.
    pub last_accepted: Option<When>,
    /// Deliveries in the last 24 hours that became operations.
    pub accepted: String,
    /// Those that repeated one.
    pub duplicates: String,
    /// Those that no mapping is for.
    pub ignored: String,
    /// Those that were refused, by reason.
    pub refused: Vec<RefusedRow>,
}

/// Deliveries that were refused for one reason.
#[derive(Clone, Debug)]
pub struct RefusedRow {
    /// How many.
    pub count: String,
    /// The reason.
    pub why: String,
    /// The last one.
    pub last: When,
    /// From where that one came.
    pub address: String,
}

/// The status page's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/status", get(status))
}

async fn status(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let now = web.engine.ambient().now();
    let mut tx = web.engine.db().read().await?;
    let counts = hooks::since(&mut tx, now.minus(RECENT)).await?;
    let last = hooks::last(&mut tx, HookOutcome::Accepted).await?;
    let layout = list::rail(&mut tx, who.layout("Status", Section::Status).await).await?;
    drop(tx);
    let row = |source: &Source| {
        let counts: Vec<&HookCount> = counts.iter().filter(|count| count.source == source.name).collect();
        let last = last.iter().find(|(name, _)| *name == source.name).map(|(_, at)| *at);
        source_row(source, &counts, last, now)
    };
    let sources = web.engine.config().sources.values().map(row).collect();
    Ok(render(&StatusPage { layout, sources }))
}

fn source_row(source: &Source, counts: &[&HookCount], last: Option<Timestamp>, now: Timestamp) -> SourceRow {
    let of = |outcome| counts.iter().filter(move |count| count.outcome == outcome);
    let sum = |outcome| {
        let sum: i64 = of(outcome).map(|count| count.count).sum();
        grouped(usize::try_from(sum).unwrap_or(0))
    };
    let refused = |&outcome: &HookOutcome| {
        let last = of(outcome).max_by_key(|count| count.last_at).filter(|_| outcome.is_refusal())?;
        Some(RefusedRow {
            count: sum(outcome),
            why: words::hook_outcome(outcome).to_owned(),
            last: When::at(last.last_at, now),
            address: last.last_address.clone(),
        })
    };
    SourceRow {
        name: source.name.clone(),
        address: format!("/hooks/{}", source.name),
        scheme: source.proof.scheme,
        last_accepted: last.map(|at| When::at(at, now)),
        accepted: sum(HookOutcome::Accepted),
        duplicates: sum(HookOutcome::Duplicate),
        ignored: sum(HookOutcome::Ignored),
        refused: HookOutcome::ALL.iter().filter_map(refused).collect(),
    }
}
