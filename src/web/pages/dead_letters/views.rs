//! Filters that people keep: each is a link.

use axum::Router;
use axum::extract::{Path, State};
use axum::response::{IntoResponse, Redirect, Response};
use axum::routing::post;
use uuid::Uuid;

use super::PATH;
use super::asked::Asked;
use crate::domain::actor::Right;
use crate::engine::actions::{ActionError, Request};
use crate::engine::views;
use crate::store::views::ViewRow;
use crate::store::{StoreError, Tx, views as store};
use crate::web::Web;
use crate::web::failure::{Failure, sentence};
use crate::web::guard::{Posted, Signed};
use crate::web::labels;
use crate::web::pages::case;
use crate::web::tell::list;

/// Kept filters, and the form that keeps the present one.
#[derive(Clone, Debug)]
pub struct Keep {
    /// By name.
    pub views: Vec<View>,
    /// The present filter, as its address has it; empty when none is set.
    pub query: String,
    /// Why the reader cannot share one; absent when they can.
    pub needs: Option<String>,
    /// One click is one action.
    pub action_id: String,
}

/// A kept filter.
#[derive(Clone, Debug)]
pub struct View {
    /// What it is called.
    pub name: String,
    /// The list under it.
    pub href: String,
    /// It is what is shown now.
    pub here: bool,
    /// "shared by anna", "shared": absent for the reader's own that nobody else sees.
    pub shared: Option<String>,
    /// Where its form to drop it goes, with that form's own id; absent for other people's.
    pub drop: Option<(String, String)>,
}

/// Where kept filters are kept and dropped.
pub(super) fn routes() -> Router<Web> {
    Router::new().route("/views", post(save)).route("/views/{id}/delete", post(delete))
}

/// What the reader sees of them, beside this filter.
pub(super) async fn keep(
    tx: &mut Tx,
    web: &Web,
    who: &Signed,
    pairs: &[(&'static str, String)],
) -> Result<Keep, StoreError> {
    let query = query(pairs);
    let view = |row: ViewRow| {
        let mine = row.owner == who.user.name;
        View {
            href: format!("{PATH}?{}", row.query),
            here: row.query == query,
            shared: match (row.shared, mine) {
                (true, true) => Some("shared".to_owned()),
                (true, false) => Some(format!("by {}", row.owner)),
                (false, _) => None,
            },
            drop: mine.then(|| (format!("/views/{}/delete", row.id), case::action_id(web, None))),
            name: row.name,
        }
    };
    let views = store::seen_by(tx, &who.user.name).await?.into_iter().map(view).collect();
    let role = &who.role;
    Ok(Keep {
        views,
        query,
        needs: (!role.may(Right::Resolve)).then(|| labels::lacks(Right::Resolve, role)),
        action_id: case::action_id(web, None),
    })
}

fn query(pairs: &[(&'static str, String)]) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs).finish()
}

async fn save(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let shared = fields.ticked("shared");
    who.require(if shared { Right::Resolve } else { Right::View })?;
    // Read and written anew, so that what is kept is a filter and nothing else.
    let given = list::parameters(Some(fields.raw("query")));
    let asked = Asked::read(&given, &who.user.name, who.now)?;
    let pairs = asked.pairs();
    let back = list::address(PATH, &pairs);
    if pairs.is_empty() {
        who.flash(false, "There is no filter to keep: set one first.").await?;
        return Ok(Redirect::to(&back).into_response());
    }
    let (actor, action_id) = (who.actor(), case::action_id(&web, Some(&fields)));
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    let name = fields.get("name");
    match views::save(web.engine.gate(), name, &query(&pairs), shared, &asked).await {
        Ok(()) => {
            let whom = if shared { "for everybody" } else { "for you" };
            who.flash(true, format!("\u{201c}{name}\u{201d} is kept {whom}.")).await?;
        }
        Err(ActionError::Invalid(why)) => {
            who.flash(false, format!("The filter was not kept. {}", sentence(&why))).await?;
        }
        Err(error) => return Err(error.into()),
    }
    Ok(Redirect::to(&back).into_response())
}

async fn delete(State(web): State<Web>, Path(id): Path<String>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let id: Uuid = id.parse().map_err(|_| Failure::NotFound)?;
    let (actor, action_id) = (who.actor(), case::action_id(&web, Some(&fields)));
    let asked = Request { actor: &actor, action_id: &action_id, reason: "", origin: &who.origin };
    views::delete(web.engine.gate(), id, &asked).await?;
    who.flash(true, "The kept filter is gone; what it showed is still there.").await?;
    Ok(Redirect::to(PATH).into_response())
}
