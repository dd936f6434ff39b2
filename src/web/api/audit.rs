//! `/api/v1/audit`

use axum::Json;
use axum::extract::{Query, State};
use axum::response::{IntoResponse, Response};

use super::operations::Items;
use super::problem::Problem;
use super::tokens::Caller;
use crate::domain::actor::Right;
use crate::domain::filter::Parameters;
use crate::engine::journal::AuditReport;
use crate::store::audit;
use crate::web::Web;

/// What the list takes.
const PARAMETERS: [&str; 7] = ["actor", "action", "operation", "from", "to", "limit", "cursor"];

/// `GET /api/v1/audit`
pub async fn list(
    State(web): State<Web>,
    caller: Caller,
    Query(pairs): Query<Vec<(String, String)>>,
) -> Result<Response, Problem> {
    caller.require(Right::Audit)?;
    let parameters = Parameters(&pairs);
    parameters.only(&PARAMETERS)?;
    let (filter, page) = (parameters.audit()?, parameters.page()?);
    let mut tx = web.engine.db().read().await?;
    let listed = audit::list(&mut tx, &filter, page).await?;
    let next = listed.older.map(|cursor| cursor.encode());
    let items: Vec<AuditReport> = listed.items.into_iter().map(AuditReport::from).collect();
    Ok(Json(Items { items, next }).into_response())
}
