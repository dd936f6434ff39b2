//! Who did what.

mod export;

use std::collections::HashMap;
use std::time::Duration;

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::{get, post};
use uuid::Uuid;

use crate::domain::actor::Right;
use crate::domain::filter::{AuditFilter, Parameters};
use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;
use crate::engine::thread;
use crate::store::operations::{self, SearchRow};
use crate::store::{StoreError, Tx, audit, checks};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::mask::Mask;
use crate::web::tell::{act, chain, list};
use crate::web::view::{Field, Long, Reference, Seen, When, grouped};

const PATH: &str = "/audit";
const DAY: Duration = Duration::from_hours(24);

/// The list.
pub fn routes() -> Router<Web> {
    Router::new().route("/audit", get(index)).route("/audit/export", post(export::file))
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::Audit)?;
    let given = list::parameters(query.as_deref());
    let asked = Asked::read(&given, who.zone())?;
    let page = Parameters(&given).page()?;
    let (config, seen) = (web.engine.config(), who.seen(web.engine.ambient().now()));
    let layout = who.layout("Audit", Section::Audit).await;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let filter = asked.meant(&mut tx).await?;
    let listed = audit::list(&mut tx, &filter, page).await?;
    let checked = checks::all(&mut tx).await?;
    let mut ids: Vec<Uuid> = listed.items.iter().filter_map(|entry| entry.row.operation_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = operations::by_ids(&mut tx, &ids).await?;
    let values = operations::search_values(&mut tx, &ids).await?;
    let kinds: Vec<(Uuid, &str)> = rows.iter().map(|row| (row.id, row.kind.as_str())).collect();
    let masks = Mask::of_list(&mut tx, config, &kinds).await?;
    drop(tx);
    let none = Mask::default();
    let names: HashMap<Uuid, String> = rows
        .iter()
        .map(|row| {
            let mask = masks.get(&row.id).unwrap_or(&none);
            let own: Vec<SearchRow> =
                values.iter().filter(|value| value.operation_id == row.id).cloned().collect();
            let ids = list::ids(&own, mask);
            let name = if ids.is_empty() { mask.text(&row.key) } else { ids };
            (row.id, format!("{} \u{b7} {name}", row.kind))
        })
        .collect();
    let row = |entry: &audit::Entry| {
        let mask = entry.row.operation_id.and_then(|id| masks.get(&id)).unwrap_or(&none);
        present(entry, mask, &names, seen)
    };
    let pairs = asked.pairs();
    let (chain, broken) = chain::verified(&checked, seen.now);
    Ok(render(&AuditPage {
        layout,
        chain,
        broken,
        actor: Field::of(asked.filter.actor.clone().unwrap_or_default()),
        operation: Field::of(asked.operation.clone().unwrap_or_default()),
        from: Field::of(asked.from.clone()),
        to: Field::of(asked.to.clone()),
        action: list::select(
            "action",
            "Action",
            "Any",
            act::ACTIONS.iter().map(|(name, words)| ((*name).to_owned(), (*words).to_owned())),
            asked.filter.action.as_deref(),
        ),
        chips: pairs.iter().map(|(name, value)| chip(&pairs, name, value)).collect(),
        rows: listed.items.iter().map(row).collect(),
        pager: list::pager(PATH, &pairs, page.limit, &listed),
        lacks: (!who.role.may(Right::Export)).then(|| labels::lacks(Right::Export, &who.role)),
        filter: pairs,
    }))
}

fn present(entry: &audit::Entry, mask: &Mask, names: &HashMap<Uuid, String>, seen: Seen) -> AuditRow {
    let row = &entry.row;
    let (result, refused) = act::result(row);
    let target = match (row.dead_letter_id, row.operation_id) {
        (Some(id), _) => Some((format!("/dead-letters/{id}"), row.operation_id)),
        (None, Some(id)) => Some((format!("/operations/{id}"), Some(id))),
        (None, None) => None,
    };
    let place = row.subject.as_deref().and_then(subject);
    // What has no place of its own is named by the detail.
    let mut what = act::what(&row.action);
    let mut result = result;
    match act::detail(row, mask) {
        Some(detail) if target.is_none() && place.is_none() => what = format!("{what}: {detail}"),
        Some(detail) => result = format!("{result}: {detail}"),
        None => {}
    }
    AuditRow {
        place: entry.link.as_ref().map(|link| grouped(usize::try_from(link.seq).unwrap_or(0))),
        at: When::at(row.at, seen),
        who: row.actor.clone(),
        what,
        target: target
            .map(|(href, operation)| {
                let name = operation.and_then(|id| names.get(&id)).cloned();
                Reference::here(name.unwrap_or_else(|| "an operation".to_owned()), href)
            })
            .or(place),
        why: row.reason.as_deref().map(|text| Long::line(mask.text(text))),
        from: (!row.origin.is_empty()).then(|| match subject(&row.origin) {
            Some(bulk) => Reference { text: format!("bulk action {}", bulk.text), ..bulk },
            None => Reference::new(row.origin.as_str(), None),
        }),
        result,
        refused,
    }
}

/// The page of what an entry is about, where it is about no operation. Ids are known by their ends.
fn subject(subject: &str) -> Option<Reference> {
    let (kind, name) = subject.split_once(':')?;
    let end = name.char_indices().nth_back(7).map_or(name, |(at, _)| &name[at..]);
    let at = |text: String, section: &str| Some(Reference::here(text, list::below(section, name)));
    match kind {
        "destination" => at(name.to_owned(), "/destinations"),
        "cause" => at(end.to_owned(), "/causes"),
        "bulk" => at(end.to_owned(), "/bulk"),
        _ => None,
    }
}

/// The filter as it was asked for: an operation by its id, its key or a dead letter's id, and days
/// of the reader's zone, of which the last one counts whole.
struct Asked {
    filter: AuditFilter,
    operation: Option<String>,
    from: String,
    to: String,
}

impl Asked {
    fn read(given: &[(String, String)], reader: Zone) -> Result<Self, Failure> {
        let get = |name: &str| {
            let value = given.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value.trim());
            value.replace('\0', "\u{fffd}")
        };
        let rest: Vec<(String, String)> =
            given.iter().filter(|(name, _)| name != "operation").cloned().collect();
        let mut filter = Parameters(&rest).audit()?;
        let (operation, from, to) = (get("operation"), get("from"), get("to"));
        let day = |at: Timestamp| reader.opening(at.utc().date());
        if from.len() == 10 {
            filter.from = filter.from.map(day);
        }
        if to.len() == 10 {
            filter.to = filter.to.map(|to| day(to.plus(DAY)));
        }
        Ok(Self { filter, operation: Some(operation).filter(|text| !text.is_empty()), from, to })
    }

    /// The entries that are meant.
    async fn meant(&self, tx: &mut Tx) -> Result<AuditFilter, StoreError> {
        let operation = match &self.operation {
            // An operation that is not there did nothing, and nothing was done to it.
            Some(text) => Some(thread::find(tx, text).await?.unwrap_or(Uuid::nil())),
            None => None,
        };
        Ok(AuditFilter { operation, ..self.filter.clone() })
    }

    fn pairs(&self) -> Vec<(&'static str, String)> {
        [
            ("operation", self.operation.clone().unwrap_or_default()),
            ("actor", self.filter.actor.clone().unwrap_or_default()),
            ("action", self.filter.action.clone().unwrap_or_default()),
            ("from", self.from.clone()),
            ("to", self.to.clone()),
        ]
        .into_iter()
        .filter(|(_, value)| !value.is_empty())
        .collect()
    }
}

fn chip(pairs: &[(&'static str, String)], name: &str, value: &str) -> Chip {
    let (label, words) = match name {
        "operation" => ("Operation", value.to_owned()),
        "actor" => ("Who", value.to_owned()),
        "action" => ("Action", act::what(value)),
        "from" => ("From", value.to_owned()),
        _ => ("To", value.to_owned()),
    };
    list::chip(PATH, pairs, name, label, words)
}

/// `/audit`
#[derive(Template, Debug)]
#[template(path = "pages/audit.html")]
pub struct AuditPage {
    /// Around it.
    pub layout: Layout,
    /// How the last verification went; absent while there was none, or where it found something.
    pub chain: Option<String>,
    /// What it found.
    pub broken: Option<String>,
    /// Person or token, as typed.
    pub actor: Field,
    /// Operation id or key, as typed.
    pub operation: Field,
    /// From this day on, `2026-11-29`.
    pub from: Field,
    /// Up to and with this day.
    pub to: Field,
    /// The actions.
    pub action: Select,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<AuditRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// The right that the reader lacks to take entries away as a file.
    pub lacks: Option<String>,
    /// What is set, for the form that does.
    pub filter: Vec<(&'static str, String)>,
}

/// One entry.
#[derive(Clone, Debug)]
pub struct AuditRow {
    /// Where it stands in the chain.
    pub place: Option<String>,
    /// When.
    pub at: When,
    /// Who: a name, `token:shop`, `cli:root`.
    pub who: String,
    /// What, in words.
    pub what: String,
    /// To what.
    pub target: Option<Reference>,
    /// In their words.
    pub why: Option<Long>,
    /// The address they came from, or the bulk action that did it in their name.
    pub from: Option<Reference>,
    /// With what result, in words.
    pub result: String,
    /// It was refused or failed.
    pub refused: bool,
}
