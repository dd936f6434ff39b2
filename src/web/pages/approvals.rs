//! Overrides that wait for a second person: everybody's for those who may be it, one's own for others.

use askama::Template;
use axum::Router;
use axum::extract::State;
use axum::response::Response;
use axum::routing::get;
use uuid::Uuid;

use crate::domain::actor::Right;
use crate::domain::attempt::RequestState;
use crate::domain::words;
use crate::store::operations::{self, OperationRow, SearchRow};
use crate::store::overrides::{self, OverrideRow};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Signed;
use crate::web::labels::Mark as _;
use crate::web::page::{Layout, Section, render};
use crate::web::tell::list;
use crate::web::tell::mask::Mask;
use crate::web::view::{Long, When};

/// Of each list at most.
const MOST: i64 = 50;

/// `/approvals`
#[derive(Template, Debug)]
#[template(path = "pages/approvals.html")]
pub struct ApprovalsPage {
    /// Around it.
    pub layout: Layout,
    /// Everybody's are shown, and not only the reader's own.
    pub everybody: bool,
    /// The oldest first.
    pub waiting: Vec<Line>,
    /// Decided, the newest first.
    pub decided: Vec<Line>,
}

/// A request in a list.
#[derive(Clone, Debug)]
pub struct Line {
    /// Its page.
    pub href: String,
    /// "order 10443 · customer C-7", or its key.
    pub what: String,
    /// The operation's type.
    pub kind: String,
    /// Under which key it would be sent.
    pub mode: &'static str,
    /// Who asked.
    pub by: String,
    /// When.
    pub at: When,
    /// Why, in their words.
    pub reason: Long,
    /// Where it stands.
    pub state: RequestState,
    /// Who decided, and when.
    pub decided: Option<(String, When)>,
    /// What they said to it.
    pub word: Option<Long>,
}

/// The list's route.
pub fn routes() -> Router<Web> {
    Router::new().route("/approvals", get(show))
}

async fn show(State(web): State<Web>, who: Signed) -> Result<Response, Failure> {
    who.require(Right::View)?;
    let everybody = who.role.may(Right::Approve);
    let of = (!everybody).then_some(who.user.name.as_str());
    let mut tx = web.engine.db().read().await?;
    let waiting = overrides::waiting(&mut tx, of, MOST).await?;
    let decided = overrides::decided(&mut tx, of, MOST).await?;
    let mut ids: Vec<Uuid> = waiting.iter().chain(&decided).map(|row| row.operation_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let rows = operations::by_ids(&mut tx, &ids).await?;
    let values = operations::search_values(&mut tx, &ids).await?;
    let kinds: Vec<(Uuid, &str)> = rows.iter().map(|row| (row.id, row.kind.as_str())).collect();
    let masks = Mask::of_list(&mut tx, web.engine.config(), &kinds).await?;
    let layout = list::rail(&mut tx, who.layout("Approvals", Section::Approvals).await).await?;
    drop(tx);
    let seen = who.seen(web.engine.ambient().now());
    let line = |row: &OverrideRow| {
        let operation = rows.iter().find(|operation| operation.id == row.operation_id)?;
        let mask = masks.get(&operation.id)?;
        Some(Line {
            href: format!("/approvals/{}", row.id),
            what: name(operation, &values, mask),
            kind: operation.kind.clone(),
            mode: words::override_mode(row.mode),
            by: row.requested_by.clone(),
            at: When::at(row.requested_at, seen),
            reason: Long::line(mask.text(&row.reason)),
            state: row.state,
            word: row.word.as_deref().map(|word| Long::line(mask.text(word))),
            decided: row.decided_by.clone().zip(row.decided_at.map(|at| When::at(at, seen))),
        })
    };
    Ok(render(&ApprovalsPage {
        layout,
        everybody,
        waiting: waiting.iter().filter_map(line).collect(),
        decided: decided.iter().filter_map(line).collect(),
    }))
}

fn name(operation: &OperationRow, values: &[SearchRow], mask: &Mask) -> String {
    let own: Vec<SearchRow> =
        values.iter().filter(|value| value.operation_id == operation.id).cloned().collect();
    let ids = list::ids(&own, mask);
    if ids.is_empty() { mask.text(&operation.key) } else { ids }
}
