//! One destination: its promise and where that comes from, its health, what waits for it, and the
//! forms that pause and resume it.

mod health;

use askama::Template;
use axum::Router;
use axum::extract::{Path, State};
use axum::http::StatusCode;
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::{get, post};

use super::case;
use super::destinations::{DestinationRow, Stands, row, types};
use crate::config::{Destination, remarks};
use crate::domain::actor::Right;
use crate::domain::dead_letter::Certainty;
use crate::domain::filter::DeadLetterFilter;
use crate::domain::words;
use crate::engine::actions::Request;
use crate::engine::destinations::{self, Standing};
use crate::store::audit::{self, AuditRow};
use crate::store::nodes::{self, LaneRow};
use crate::store::{StoreError, Tx};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::{Posted, Signed};
use crate::web::labels::{self, Mark as _};
use crate::web::page::{Layout, Section, render, render_as};
use crate::web::tell::{act, list};
use crate::web::view::{Fact, FactValue, Field, Long, Reference, Seen, When, coarse};
pub use health::{Health, HourRow};

/// Pauses and resumptions that are shown.
const MOST_PAUSES: i64 = 20;

/// `/destinations/{name}`
#[derive(Template, Debug)]
#[template(path = "pages/destination.html")]
pub struct DestinationPage {
    /// Around it.
    pub layout: Layout,
    /// It, as it stands.
    pub it: DestinationRow,
    /// Where the promise comes from, and what else is to be known.
    pub remarks: Vec<String>,
    /// Its limits, its circuit and its patience.
    pub limits: Vec<Fact>,
    /// How it answered lately.
    pub health: Health,
    /// What waits for it.
    pub queue: Vec<Fact>,
    /// Open dead letters by what is known of them.
    pub letters: Vec<Tally>,
    /// The types of operation that are sent there.
    pub types: Vec<Reference>,
    /// Who paused and resumed it, newest first.
    pub pauses: Vec<PauseRow>,
    /// The right that the reader lacks to pause or resume it.
    pub lacks: Option<String>,
    /// Where its form goes.
    pub action: String,
    /// What the form's button says.
    pub act: &'static str,
    /// One click is one action.
    pub action_id: String,
    /// In their words.
    pub reason: Field,
}

impl DestinationPage {
    /// Nothing is sent there before somebody resumes it, which is then the first thing to do.
    pub fn is_paused(&self) -> bool {
        self.it.stands == Stands::Paused
    }
}

/// So many dead letters, as a list.
#[derive(Clone, Debug)]
pub struct Tally {
    /// What is known of them.
    pub certainty: Certainty,
    /// How many.
    pub count: String,
    /// The list.
    pub href: String,
}

impl Tally {
    /// Of what a filter means, by what is known of the effect.
    pub(super) async fn each(tx: &mut Tx, filter: &DeadLetterFilter) -> Result<Vec<Self>, StoreError> {
        let mut tallies = Vec::new();
        for certainty in Certainty::ALL {
            let filter = DeadLetterFilter { certainty: Some(*certainty), ..filter.clone() };
            tallies.push(Self {
                certainty: *certainty,
                count: list::number(list::count(tx, &filter).await?),
                href: list::address("/dead-letters", &filter.pairs()),
            });
        }
        Ok(tallies)
    }
}

/// One pause or resumption.
#[derive(Clone, Debug)]
pub struct PauseRow {
    /// When.
    pub at: When,
    /// Who.
    pub who: String,
    /// "paused a destination"
    pub what: String,
    /// Why, in their words.
    pub why: Option<Long>,
}

/// The routes of one destination.
pub fn routes() -> Router<Web> {
    Router::new()
        .route("/destinations/{name}", get(show))
        .route("/destinations/{name}/pause", post(pause))
        .route("/destinations/{name}/resume", post(resume))
}

async fn show(State(web): State<Web>, who: Signed, Path(name): Path<String>) -> Result<Response, Failure> {
    who.require(Right::View)?;
    Ok(render(&page(&web, &who, &name, Field::default()).await?))
}

/// The page; with what was typed into its form, where it was not taken.
async fn page(web: &Web, who: &Signed, name: &str, reason: Field) -> Result<DestinationPage, Failure> {
    let (config, seen) = (web.engine.config(), who.seen(web.engine.ambient().now()));
    let known = config.destinations.get(name).ok_or(Failure::NotFound)?;
    let mut tx = web.engine.db().read().await?;
    let standing = destinations::standing(&mut tx, config, name).await?.ok_or(Failure::NotFound)?;
    let it = row(config, known, &standing, seen);
    let layout = list::rail(&mut tx, who.layout(it.title.clone(), Section::Destinations).await).await?;
    let health = Health::load(&mut tx, name, seen).await?;
    let lane = nodes::lane(&mut tx, name, seen.now, list::MOST_COUNTED + 1).await?;
    let waiting = DeadLetterFilter { destination: Some(name.to_owned()), ..list::waiting(seen.now) };
    let letters = Tally::each(&mut tx, &waiting).await?;
    let history = audit::of_subject(&mut tx, &format!("destination:{name}"), MOST_PAUSES).await?;
    drop(tx);
    let paused = it.stands == Stands::Paused;
    let may = who.role.may(Right::PauseDestination);
    Ok(DestinationPage {
        layout,
        remarks: remarks(known),
        limits: limits(known, &standing, seen),
        health,
        queue: queue(&lane, seen),
        letters,
        types: types(config, Some(name)),
        pauses: history.iter().map(|entry| pause_row(entry, seen)).collect(),
        lacks: (!may).then(|| labels::lacks(Right::PauseDestination, &who.role)),
        action: format!("/destinations/{name}/{}", if paused { "resume" } else { "pause" }),
        act: if paused { "Resume" } else { "Pause" },
        action_id: case::action_id(web, None),
        reason,
        it,
    })
}

fn pause_row(entry: &AuditRow, seen: Seen) -> PauseRow {
    PauseRow {
        at: When::at(entry.at, seen),
        who: entry.actor.clone(),
        what: act::what(&entry.action),
        why: entry.reason.as_deref().map(Long::line),
    }
}

fn limits(known: &Destination, standing: &Standing, seen: Seen) -> Vec<Fact> {
    let limit = &known.limit;
    let or_none = |value: Option<String>| value.unwrap_or_else(|| "no limit of ours".to_owned());
    let (health, breaker) = (&standing.health, known.breaker);
    let mut facts = vec![
        Fact::text("Requests a second", or_none(limit.per_second.map(|rate| rate.to_string()))),
        Fact::text("Requests at a time", or_none(limit.in_flight.map(|most| most.to_string()))),
        Fact::text("Waits for an answer", format!("up to {}", words::span(known.timeout))),
        Fact::text(
            "Circuit",
            format!(
                "Opens after {} failures in a row, for {} at first. {}",
                breaker.failures,
                words::span(breaker.wait),
                match health.open_until {
                    Some(_) => format!("It is open, for the {} time in a row.", ordinal(health.opened)),
                    None => format!("It is closed; failures in a row now: {}.", health.failures),
                }
            ),
        ),
    ];
    if let Some(until) = health.open_until {
        facts.push(Fact::time("Next try there", When::at(until, seen)));
    }
    facts
}

fn ordinal(number: i64) -> String {
    match number {
        1 => "first".to_owned(),
        2 => "second".to_owned(),
        3 => "third".to_owned(),
        n => format!("{n}th"),
    }
}

/// What waits in a lane, and for how long.
pub(super) fn queue(lane: &LaneRow, seen: Seen) -> Vec<Fact> {
    let mut facts = vec![
        Fact::text("Waiting", list::number(lane.waiting)),
        Fact::text("Under way", list::number(lane.leased)),
    ];
    match lane.due_since {
        Some(since) => {
            facts.push(Fact::text("Longest due", format!("for {}", coarse(seen.now.since(since)))));
        }
        None if lane.waiting > 0 => facts.push(Fact::text("Longest due", "none is due yet")),
        None => {}
    }
    facts
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
        let page = page(web, &who, name, reason).await?;
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
    Ok(Redirect::to(&format!("/destinations/{name}")).into_response())
}
