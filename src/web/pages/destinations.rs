//! Where operations are carried out: what each destination promises and how it stands.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;

use super::triage::causes::why_paused;
use crate::config::{Config, Destination, promise};
use crate::domain::actor::Right;
use crate::domain::words;
use crate::engine::destinations::{self, Standing};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::view::{Reference, Seen, When, grouped};

/// `/destinations`
#[derive(Template, Debug)]
#[template(path = "pages/destinations.html")]
pub struct DestinationsPage {
    /// Around it.
    pub layout: Layout,
    /// By name.
    pub rows: Vec<DestinationRow>,
    /// The types of operation that are sent to them.
    pub types: Vec<Reference>,
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
    /// Its page.
    pub href: String,
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
}

/// The list's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/destinations", get(show))
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let (config, seen) = (web.engine.config(), who.seen(web.engine.ambient().now()));
    let mut tx = web.engine.db().read().await?;
    let standings = destinations::standings(&mut tx, config).await?;
    let layout = list::rail(&mut tx, who.layout("Destinations", Section::Destinations).await).await?;
    drop(tx);
    let row = |standing: &Standing| {
        Some(row(config, config.destinations.get(&standing.health.name)?, standing, seen))
    };
    Ok(render(&DestinationsPage {
        layout,
        rows: standings.iter().filter_map(row).collect(),
        types: types(config, None),
    }))
}

/// The pages of the types that are sent to a destination, or to any.
pub(super) fn types(config: &Config, destination: Option<&str>) -> Vec<Reference> {
    config
        .operations
        .values()
        .filter(|kind| destination.is_none_or(|name| kind.steps.iter().any(|step| step.destination == name)))
        .map(|kind| Reference::here(kind.name.clone(), format!("/types/{}", kind.name)))
        .collect()
}

/// One destination as it stands.
pub(super) fn row(config: &Config, known: &Destination, standing: &Standing, seen: Seen) -> DestinationRow {
    let health = &standing.health;
    let held = health.held_until.filter(|until| *until > seen.now);
    let (stands, why, when) = match (health.paused_at, health.open_until, held) {
        (Some(since), _, _) => {
            let by = health.paused_by.as_deref().unwrap_or("somebody");
            let said = health.pause_reason.as_deref().unwrap_or_default();
            // A person's words are their own; the engine quotes what it was answered.
            let said = if by == "engine" { why_paused(config, &known.name, said) } else { said };
            let why = words::full_stop(said);
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
    DestinationRow {
        name: known.name.clone(),
        href: format!("/destinations/{}", known.name),
        title: words::capitalised(&words::destination_name(&known.name)),
        address: known.base_url.as_ref().map(ToString::to_string),
        stands,
        why,
        when: when.map(|at| When::at(at, seen)),
        waiting: grouped(usize::try_from(standing.waiting).unwrap_or(0)),
        list: list::address("/operations", &[("destination", known.name.clone())]),
        promise: promise(known, seen.now),
    }
}
