//! Where operations are carried out: what each destination promises, how it stands, and the forms
//! that pause and resume it.

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use super::case;
use crate::config::{Destination, promise, remarks};
use crate::domain::actor::Right;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::actions::Request;
use crate::engine::destinations::{self, Standing};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::list;
use crate::web::view::{Field, When, grouped};

/// `/destinations`
#[derive(Template, Debug)]
#[template(path = "pages/destinations.html")]
pub struct DestinationsPage {
    /// Around it.
    pub layout: Layout,
    /// By name.
    pub rows: Vec<DestinationRow>,
    /// Why the reader sees no buttons; absent when they do.
    pub lacks: Option<String>,
}

/// How a destination stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stands {
    /// It is sent to.
    Open,
    /// It asked us to stay away for a while.
    Held,
    /// It failed too often in a row: it is tried again later.
    Failing,
    /// Nothing is sent until a person says so.
    Paused,
}

/// One destination.
#[derive(Clone, Debug)]
pub struct DestinationRow {
    /// As the file calls it.
    pub name: String,
    /// What it is called in sentences.
    pub title: String,
    /// Where it is; absent where programs call it.
    pub address: Option<String>,
    /// How it stands.
    pub stands: Stands,
    /// Why, in a sentence; absent when there is nothing to say.
    pub why: Option<String>,
    /// Since or until when.
    pub when: Option<When>,
    /// Operations that wait for it or are being sent.
    pub waiting: String,
    /// Those, as a list.
    pub list: String,
    /// What is promised to an operation that is sent now.
    pub promise: String,
    /// Its preset and its limits.
    pub remarks: Vec<String>,
    /// Where its form goes.
    pub action: String,
    /// What the form's button says.
    pub act: &'static str,
    /// One click is one action.
    pub action_id: String,
    /// In their words.
    pub reason: Field,
}

/// The routes of destinations.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/destinations", get(show))
        .route("/destinations/{name}/pause", post(pause))
        .route("/destinations/{name}/resume", post(resume))
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    Ok(render(&page(&web, &who, None).await?))
}

/// The page; with what was typed into one destination's form, where it was not taken.
async fn page(web: &Web, who: &Signed, typed: Option<(&str, Field)>) -> Result<DestinationsPage, Failure> {
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let mut tx = web.engine.db().read().await?;
    let standings = destinations::standings(&mut tx, config).await?;
    let layout = list::rail(&mut tx, who.layout("Destinations", Section::Destinations).await).await?;
    drop(tx);
    let row = |standing: Standing| {
        let known = config.destinations.get(&standing.health.name)?;
        let reason = typed.as_ref().filter(|(name, _)| *name == known.name).map(|(_, field)| field.clone());
        Some(DestinationRow { reason: reason.unwrap_or_default(), ..row(web, known, &standing, now) })
    };
    let may = who.user.role.may(Right::PauseDestination);
    Ok(DestinationsPage {
        layout,
        rows: standings.into_iter().filter_map(row).collect(),
        lacks: (!may).then(|| labels::lacks(Right::PauseDestination, who.user.role)),
    })
}

fn row(web: &Web, known: &Destination, standing: &Standing, now: Timestamp) -> DestinationRow {
    let health = &standing.health;
    let title = words::destination_name(&known.name);
    let held = health.held_until.filter(|until| *until > now);
    let (stands, why, when) = match (health.paused_at, health.open_until, held) {
        (Some(since), _, _) => {
            let by = health.paused_by.as_deref().unwrap_or("somebody");
            let why = words::full_stop(health.pause_reason.as_deref().unwrap_or_default());
            (Stands::Paused, Some(format!("Paused by {by}. {why}")), Some(since))
        }
        (None, Some(until), _) => {
            let why = format!(
                "It failed {} times in a row. One operation is let through to see whether it is back:",
                health.failures.max(known.breaker.failures.into())
            );
            (Stands::Failing, Some(why), Some(until))
        }
        (None, None, Some(until)) => {
            (Stands::Held, Some("It asked us to stay away until".to_owned()), Some(until))
        }
        (None, None, None) => (Stands::Open, None, None),
    };
    let act = if stands == Stands::Paused { "resume" } else { "pause" };
    DestinationRow {
        name: known.name.clone(),
        title: words::capitalised(&title),
        address: known.base_url.as_ref().map(ToString::to_string),
        stands,
        why,
        when: when.map(|at| When::at(at, now)),
        waiting: grouped(usize::try_from(standing.waiting).unwrap_or(0)),
        list: list::address("/operations", &[("destination", known.name.clone())]),
        promise: promise(known, now),
        remarks: remarks(known),
        action: format!("/destinations/{}/{act}", known.name),
        act: if stands == Stands::Paused { "Resume" } else { "Pause" },
        action_id: case::action_id(web, None),
        reason: Field::default(),
    }
}

async fn pause(
    State(web): State<Web>,
    Path(name): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    change(&web, &name, posted, true).await
}

async fn resume(
    State(web): State<Web>,
    Path(name): Path<String>,
    posted: Posted,
) -> Result<Response, Failure> {
    change(&web, &name, posted, false).await
}

async fn change(web: &Web, name: &str, posted: Posted, pause: bool) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    who.require(Right::PauseDestination)?;
    if !web.engine.config().destinations.contains_key(name) {
        return Err(Failure::NotFound);
    }
    let action_id = case::action_id(web, Some(&fields));
    let reason = case::reason(&fields);
    if reason.error.is_some() {
        let page = page(web, &who, Some((name, reason))).await?;
        return Ok(render_as(StatusCode::UNPROCESSABLE_ENTITY, &page));
    }
    let actor = who.actor();
    let asked = Request { actor: &actor, action_id: &action_id, reason: &reason.value, origin: &who.origin };
    let title = words::capitalised(&words::destination_name(name));
    let gate = web.engine.gate();
    let text = if pause {
        destinations::pause(gate, name, &asked).await?;
        format!("{title} is paused. What is for it waits until somebody resumes it.")
    } else {
        destinations::resume(gate, name, &asked).await?;
        web.engine.wake();
        format!("{title} is sent to again. What waited goes out now, within its limits.")
    };
    who.flash(true, text).await?;
    Ok(Redirect::to("/destinations").into_response())
}
