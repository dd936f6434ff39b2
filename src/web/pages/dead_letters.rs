//! The list of dead letters.

use askama::Template;
use axum::Router;
use axum::extract::{RawQuery, State};
use axum::response::Response;
use axum::routing::get;

use crate::domain::actor::Right;
use crate::domain::filter::Parameters;
use crate::store::{accounts, causes, dead_letters};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::listing::{Chip, Pager, Select};
use crate::web::page::{LETTERS, Layout, Section, render};
use crate::web::tell::list;

mod acts;
mod asked;
mod rows;
mod views;

pub use acts::{Act, Acts};
pub(super) use asked::Asked;
pub(super) use asked::{link, words_of};
pub use rows::DeadLetterRow;
pub(super) use rows::present;
pub use views::{Keep, View};

const PATH: &str = "/dead-letters";
/// Causes to choose from; the list of a rarer one is reached by its own page.
pub(super) const MOST_CAUSES: i64 = 30;

/// The list, and what people keep of its filters.
pub fn routes() -> Router<Web> {
    Router::new().route("/dead-letters", get(index)).merge(views::routes())
}

async fn index(State(web): State<Web>, who: Signed, RawQuery(query): RawQuery) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let given = list::parameters(query.as_deref());
    let (config, now, seen) = (web.engine.config(), who.now, who.seen(who.now));
    let asked = Asked::read(&given, &who.user.name, now)?;
    let page = Parameters(&given).page()?;
    let layout = who.layout("Dead letters", Section::DeadLetters).await.listening(LETTERS);
    let mut tx = web.engine.db().read().await?;
    let layout = list::rail(&mut tx, layout).await?;
    let count = list::count(&mut tx, &asked.filter).await?;
    let listed = dead_letters::list(&mut tx, &asked.filter, page).await?;
    let mut causes = causes::waiting(&mut tx, now, MOST_CAUSES).await?;
    if let Some(asked) = &asked.filter.cause
        && !causes.iter().any(|row| row.cause == *asked)
    {
        causes.extend(causes::by_id(&mut tx, asked, now).await?);
    }
    let people = accounts::users(&mut tx).await?;
    let rows = present(&mut tx, config, &listed.items, seen).await?;
    let keep = views::keep(&mut tx, &web, &who, &asked.pairs()).await?;
    let handled = match (count, asked.is_default()) {
        (0, true) => Some(dead_letters::figures(&mut tx, now).await?),
        _ => None,
    };
    drop(tx);
    let rest = asked.rest(config, &causes, &people);
    Ok(render(&DeadLettersPage {
        acts: acts::offered(&asked, config, &listed.items, count, &who.role),
        layout,
        count: asked.counted(count),
        search: asked.filter.search.clone().unwrap_or_default(),
        first: asked.first(),
        rest_set: rest.iter().filter(|select| select.choices.first().is_some_and(|any| !any.chosen)).count(),
        rest,
        chips: asked.chips(&causes, seen),
        keep,
        rows,
        pager: list::pager(PATH, &asked.pairs(), page.limit, &listed),
        handled: handled.map(|figures| quiet(&figures)).filter(|words| !words.is_empty()),
    }))
}

/// What to say where nothing waits.
fn quiet(figures: &dead_letters::Figures) -> String {
    let mut lines = Vec::new();
    match figures.handled {
        0 => {}
        1 => lines.push("One was closed in the last 24 hours.".to_owned()),
        n => lines.push(format!("{} were closed in the last 24 hours.", list::number(n))),
    }
    match figures.snoozed {
        0 => {}
        1 => lines.push("One is snoozed and comes back at its time.".to_owned()),
        n => lines.push(format!("{} are snoozed and come back at their time.", list::number(n))),
    }
    lines.join(" ")
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
    /// Always in view: status, certainty, next action, age.
    pub first: Vec<Select>,
    /// Behind "More filters": type, destination, cause, severity, assignee, put off.
    pub rest: Vec<Select>,
    /// How many of `rest` are set; opens the box when some are.
    pub rest_set: usize,
    /// What is set.
    pub chips: Vec<Chip>,
    /// Kept filters, and the form that keeps this one.
    pub keep: Keep,
    /// What can be done with ticked rows; absent where nothing can.
    pub acts: Option<Acts>,
    /// Newest first.
    pub rows: Vec<DeadLetterRow>,
    /// The neighbouring pages.
    pub pager: Pager,
    /// "41 were closed in the last 24 hours": said when there is nothing at all.
    pub handled: Option<String>,
}

impl DeadLettersPage {
    /// Some filter of the second row is set.
    pub fn more_set(&self) -> bool {
        self.rest_set > 0
    }

    /// Rows can be ticked.
    pub fn ticks(&self) -> bool {
        self.acts.as_ref().is_some_and(|acts| acts.needs.is_none())
    }
}
