//! "Did we send that?"

use std::collections::BTreeSet;

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use super::dead_letters::words_of;
use crate::config::Config;
use crate::domain::actor::Right;
use crate::domain::filter::{OperationFilter, Parameters};
use crate::domain::operation::OperationState;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::operations::{self, SearchRow, StepRow};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::tell::mask::Mask;
use crate::web::view::{Reference, Seen, When};

const PATH: &str = "/operations";

/// The search.
pub fn routes() -> Router<Web> {
    Router::new().route("/operations", get(index))
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let given = list::parameters(query.as_deref());
    let filter = Parameters(&given).operations()?;
    let page = Parameters(&given).page()?;
    let (config, seen) = (web.engine.config(), who.seen(web.engine.ambient().now()));
    let layout = who.layout("Operations", Section::Operations).await;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let listed = operations::list(&mut tx, &filter, page).await?;
    let ids: Vec<Uuid> = listed.items.iter().map(|row| row.id).collect();
    let steps = operations::steps(&mut tx, &ids).await?;
    let values = operations::search_values(&mut tx, &ids).await?;
    let kinds: Vec<(Uuid, &str)> = listed.items.iter().map(|row| (row.id, row.kind.as_str())).collect();
    let masks = Mask::of_list(&mut tx, config, &kinds).await?;
    let looked = if listed.items.is_empty() {
        looked(config, &filter, operations::first_received(&mut tx).await?, seen)
    } else {
        Vec::new()
    };
    drop(tx);
    let none = Mask::default();
    let row = |row: &operations::OperationRow| {
        let own: Vec<&StepRow> = steps.iter().filter(|step| step.operation_id == row.id).collect();
        let ids: Vec<SearchRow> =
            values.iter().filter(|value| value.operation_id == row.id).cloned().collect();
        present(row, &own, &ids, masks.get(&row.id).unwrap_or(&none), seen)
    };
    let pairs = filter.pairs();
    Ok(render(&OperationsPage {
        layout,
        search: filter.search.clone().unwrap_or_default(),
        filters: selects(&filter, config),
        chips: pairs.iter().map(|pair| chip(&pairs, pair, &filter, seen)).collect(),
        rows: listed.items.iter().map(row).collect(),
        pager: list::pager(PATH, &pairs, page.limit, &listed),
        looked,
    }))
}

fn present(
    row: &operations::OperationRow,
    steps: &[&StepRow],
    values: &[SearchRow],
    mask: &Mask,
    seen: Seen,
) -> OperationRow {
    let done = steps.iter().filter(|step| step.state.is_over()).count();
    let noun = if steps.len() == 1 { "step" } else { "steps" };
    let reference = |step: &&StepRow| Some(Reference::new(mask.text(step.reference.as_deref()?), None));
    OperationRow {
        href: format!("{PATH}/{}", row.id),
        state: row.state(),
        kind: row.kind.clone(),
        ids: list::ids(values, mask),
        key: mask.text(&row.key),
        progress: format!("{done} of {} {noun} done", steps.len()),
        references: steps.iter().filter_map(reference).collect(),
        received: When::at(row.received_at, seen),
        confirmed: row.completed_at.map(|at| When::at(at, seen)),
    }
}

fn selects(filter: &OperationFilter, config: &Config) -> Vec<Select> {
    let kinds = config.operations.keys().map(|name| (name.clone(), name.clone()));
    let destinations = config.destinations.keys().map(|name| (name.clone(), list::place(name)));
    let state = filter.state.map(OperationState::as_str);
    let mut selects = vec![
        list::select("state", "State", "Any", words_of(OperationState::ALL), state),
        list::select("type", "Type", "Any", kinds, filter.kind.as_deref()),
        list::select("destination", "Destination", "Any", destinations, filter.destination.as_deref()),
    ];
    // These are set by links only; the form must not drop them.
    for (name, label, value) in [
        ("key", "Key", filter.key.clone()),
        ("from", "Received from", filter.from.map(Timestamp::rfc3339)),
        ("to", "Received before", filter.to.map(Timestamp::rfc3339)),
    ] {
        if let Some(value) = value {
            selects.push(list::select(name, label, "Any", [], Some(&value)));
        }
    }
    selects
}

fn chip(
    pairs: &[(&'static str, String)],
    (name, value): &(&'static str, String),
    filter: &OperationFilter,
    seen: Seen,
) -> Chip {
    let full = |at: Option<Timestamp>| at.map_or_else(String::new, |at| When::at(at, seen).full);
    let (label, words) = match *name {
        "state" => ("State", filter.state.map_or_else(|| value.clone(), Mark::word)),
        "type" => ("Type", value.clone()),
        "destination" => ("Destination", list::place(value)),
        "key" => ("Key", value.clone()),
        "from" => ("Received from", full(filter.from)),
        "to" => ("Received before", full(filter.to)),
        _ => ("Text", value.clone()),
    };
    list::chip(PATH, pairs, name, label, words)
}

/// Where a search that found nothing has looked, and how far back.
fn looked(config: &Config, filter: &OperationFilter, first: Option<Timestamp>, seen: Seen) -> Vec<String> {
    let Some(first) = first else { return vec!["No operation was handed in so far.".to_owned()] };
    let mut lines = Vec::new();
    if filter.search.is_some() {
        let names: BTreeSet<String> = config
            .operations
            .values()
            .flat_map(|kind| kind.search.iter().map(|(name, _)| words::step_name(name)))
            .collect();
        let names: Vec<String> = names.into_iter().collect();
        let business = if names.is_empty() { String::new() } else { format!(" ({})", names.join(", ")) };
        lines.push(format!(
            "Operation keys, correlation ids, ids of operations and dead letters, business ids{business} and the \
             references that destinations gave."
        ));
        lines.push(
            "It looks for the whole text as it is written: a part of a number finds nothing.".to_owned(),
        );
    }
    let others = filter.pairs().iter().any(|(name, _)| *name != "search");
    lines.push(format!(
        "All operations{} since the first one on {}.",
        if others { " that the filters above leave" } else { "" },
        When::at(first, seen).full
    ));
    lines
}

/// `/operations`
#[derive(Template, Debug)]
#[template(path = "pages/operations.html")]
pub struct OperationsPage {
    /// Around it.
    pub layout: Layout,
    /// The text, as typed.
    pub search: String,
    /// State, type, destination.
    pub filters: Vec<Select>,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<OperationRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// Where it looked and how far back: said when nothing was found.
    pub looked: Vec<String>,
}

/// One row.
#[derive(Clone, Debug)]
pub struct OperationRow {
    /// Its page.
    pub href: String,
    /// What is known of it.
    pub state: OperationState,
    /// The type's name.
    pub kind: String,
    /// Business ids: "order 10443 · customer 77".
    pub ids: String,
    /// The operation's key.
    pub key: String,
    /// "2 of 3 steps done".
    pub progress: String,
    /// Ids over there.
    pub references: Vec<Reference>,
    /// When it was accepted.
    pub received: When,
    /// When the last step was confirmed; absent while it is not completed.
    pub confirmed: Option<When>,
}
