//! The list of dead letters.

use std::collections::HashMap;

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use crate::config::Config;
use crate::domain::actor::Right;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus, NextAction};
use crate::domain::filter::Parameters;
use crate::domain::operation::Severity;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::store::dead_letters;
use crate::store::operations::{self, SearchRow};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{Layout, Section, render};
use crate::web::tell::mask::Mask;
use crate::web::tell::{list, sentence};
use crate::web::view::When;

mod asked;

pub(super) use asked::Asked;
pub(super) use asked::words_of;

const PATH: &str = "/dead-letters";
/// Causes to choose from; the list of a rarer one is reached by its dead letters.
pub(super) const MOST_CAUSES: i64 = 30;
/// A row's sentence, in characters.
const MOST_SENTENCE: usize = 200;

/// The list.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters", get(index))
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    let given = list::parameters(query.as_deref());
    let asked = Asked::read(&given)?;
    let page = Parameters(&given).page()?;
    let (config, now) = (web.engine.config(), web.engine.ambient().now());
    let layout = who.layout("Dead letters", Section::DeadLetters).await;
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let count = list::count(&mut tx, &asked.filter).await?;
    let listed = dead_letters::list(&mut tx, &asked.filter, page).await?;
    let causes = dead_letters::causes(&mut tx, now, MOST_CAUSES).await?;
    let ids: Vec<Uuid> = listed.items.iter().map(|row| row.operation_id).collect();
    let mut values: HashMap<Uuid, Vec<SearchRow>> = HashMap::new();
    for value in operations::search_values(&mut tx, &ids).await? {
        values.entry(value.operation_id).or_default().push(value);
    }
    let kinds: Vec<(Uuid, &str)> =
        listed.items.iter().map(|row| (row.operation_id, row.kind.as_str())).collect();
    let masks = Mask::of_list(&mut tx, config, &kinds).await?;
    let handled = match (count, asked.is_default()) {
        (0, true) => Some(dead_letters::figures(&mut tx, now).await?.handled),
        _ => None,
    };
    drop(tx);
    let none = Mask::default();
    let rows = listed.items.iter().map(|row| {
        let mask = masks.get(&row.operation_id).unwrap_or(&none);
        let own = values.get(&row.operation_id).map_or(&[][..], Vec::as_slice);
        present(row, config, mask, own, now)
    });
    let rest = asked.rest(config, &causes);
    Ok(render(&DeadLettersPage {
        layout,
        count: asked.counted(count),
        search: asked.filter.search.clone().unwrap_or_default(),
        first: asked.first(),
        rest_set: rest.iter().filter(|select| select.choices.first().is_some_and(|any| !any.chosen)).count(),
        rest,
        chips: asked.chips(&causes, now),
        rows: rows.collect(),
        pager: list::pager(PATH, &asked.pairs(), page.limit, &listed),
        handled: handled.filter(|n| *n > 0).map(|n| match n {
            1 => "One was closed in the last 24 hours.".to_owned(),
            n => format!("{} were closed in the last 24 hours.", list::number(n)),
        }),
    }))
}

fn present(
    row: &dead_letters::DeadLetterRow,
    config: &Config,
    mask: &Mask,
    values: &[SearchRow],
    now: Timestamp,
) -> DeadLetterRow {
    let [sentence, _] = sentence::dead_letter(config, row, mask, None);
    let owner = || config.operations.get(&row.kind).and_then(|kind| kind.owner.clone());
    DeadLetterRow {
        href: format!("{PATH}/{}", row.id),
        certainty: row.certainty,
        sentence: shortened(&sentence),
        kind: row.kind.clone(),
        ids: list::ids(values, mask),
        destination: words::destination_name(&row.destination),
        attempts: match row.attempts {
            1 => "1 try".to_owned(),
            n => format!("{n} tries"),
        },
        opened: When::at(row.opened_at, now),
        owner: row.assignee.clone().or_else(owner),
        next: row.next_action,
        severity: row.severity,
        status: row.status,
    }
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(MOST_SENTENCE - 1) {
        Some((end, _)) if text.len() > end => format!("{}\u{2026}", text[..end].trim_end()),
        _ => text.to_owned(),
    }
}

/// `/dead-letters`
#[derive(Template, Debug)]
#[template(path = "pages/dead_letters.html")]
pub struct DeadLettersPage {
    /// Around it.
    pub layout: Layout,
    /// "12 open", "500+ match this filter".
    pub count: String,
    /// The text, as typed.
    pub search: String,
    /// Always in view: status, certainty, next action.
    pub first: Vec<Select>,
    /// Behind "More filters": type, destination, cause, severity, assignee.
    pub rest: Vec<Select>,
    /// How many of `rest` are set; opens the box when some are.
    pub rest_set: usize,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Newest first.
    pub rows: Vec<DeadLetterRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// "41 were closed in the last 7 days": said when there is nothing at all.
    pub handled: Option<String>,
}

impl DeadLettersPage {
    /// Some filter of the second row is set.
    pub fn more_set(&self) -> bool {
        self.rest_set > 0
    }
}

/// One row.
#[derive(Clone, Debug)]
pub struct DeadLetterRow {
    /// Its page.
    pub href: String,
    /// What is known of the effect.
    pub certainty: Certainty,
    /// What happened, in at most 200 characters.
    pub sentence: String,
    /// The operation's type.
    pub kind: String,
    /// Business ids: "order 10443 · customer 77".
    pub ids: String,
    /// The destination's name.
    pub destination: String,
    /// "5 tries".
    pub attempts: String,
    /// When it was opened.
    pub opened: When,
    /// Whose it is.
    pub owner: Option<String>,
    /// What to do first.
    pub next: NextAction,
    /// Shown from `High` on.
    pub severity: Severity,
    /// Shown unless open.
    pub status: DeadLetterStatus,
}

impl DeadLetterRow {
    /// Severe enough to be said in a list.
    pub fn loud(&self) -> bool {
        self.severity >= Severity::High
    }

    /// No longer open.
    pub fn past(&self) -> bool {
        self.status != DeadLetterStatus::Open
    }
}
