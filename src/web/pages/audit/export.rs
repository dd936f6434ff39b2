//! The audit as a file. It is written while it is read, so that its length costs no memory.

use axum::body::Body;
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use futures_util::stream;
use uuid::Uuid;

use super::Asked;
use crate::domain::filter::{AuditFilter, Cursor, MAX_LIMIT, Page};
use crate::engine::evidence::Reader;
use crate::engine::journal::exported;
use crate::engine::journal::file::{File, Format};
use crate::store::audit::{self, Entry};
use crate::store::{StoreError, operations};
use crate::web::Web;
use crate::web::failure::Failure;
use crate::web::guard::Posted;
use crate::web::tell::mask::Mask;

/// `POST /audit/export`
pub(super) async fn file(State(web): State<Web>, posted: Posted) -> Result<Response, Failure> {
    let Posted { who, fields } = posted;
    let given: Vec<(String, String)> = ["operation", "actor", "action", "from", "to"]
        .iter()
        .map(|name| ((*name).to_owned(), fields.get(name).to_owned()))
        .collect();
    let asked = Asked::read(&given, who.zone())?;
    let format: Format = match fields.get("format") {
        "" => Format::Csv,
        word => word.parse().map_err(|_| Failure::BadAddress("format: csv or json.".to_owned()))?,
    };
    let mut tx = web.engine.db().read().await?;
    let filter = asked.meant(&mut tx).await?;
    drop(tx);
    let actor = who.actor();
    let reader = Reader { actor: &actor, origin: &who.origin };
    exported(web.engine.gate(), &filter, format, reader).await?;
    let disposition = format!("attachment; filename=\"audit.{format}\"");
    let file = File::of(format, &filter, web.engine.db().keyring()?);
    let headers =
        [(header::CONTENT_TYPE, format.media_type().to_owned()), (header::CONTENT_DISPOSITION, disposition)];
    Ok((headers, Body::from_stream(parts(web, filter, file))).into_response())
}

/// What is to be written next.
enum Next {
    Head,
    Rows(Option<Cursor>),
    Foot,
}

/// The file in parts, newest entries first. What is added meanwhile is newer than the first part
/// and so is in none.
fn parts(
    web: Web,
    filter: AuditFilter,
    file: File,
) -> impl futures_util::Stream<Item = Result<String, StoreError>> {
    stream::try_unfold(Some((file, Next::Head)), move |state| {
        let (web, filter) = (web.clone(), filter.clone());
        async move {
            Ok(match state {
                None => None,
                Some((file, Next::Head)) => Some((file.head(), Some((file, Next::Rows(None))))),
                Some((mut file, Next::Rows(cursor))) => {
                    let (entries, older) = entries(&web, &filter, cursor).await?;
                    let next = older.map_or(Next::Foot, |older| Next::Rows(Some(older)));
                    Some((file.rows(entries), Some((file, next))))
                }
                Some((file, Next::Foot)) => Some((file.foot(), None)),
            })
        }
    })
}

/// A stretch of entries, with what is private hidden as on the page.
async fn entries(
    web: &Web,
    filter: &AuditFilter,
    cursor: Option<Cursor>,
) -> Result<(Vec<Entry>, Option<Cursor>), StoreError> {
    let mut tx = web.engine.db().read().await?;
    let mut listed = audit::list(&mut tx, filter, Page { limit: MAX_LIMIT, cursor }).await?;
    let mut ids: Vec<Uuid> = listed.items.iter().filter_map(|entry| entry.row.operation_id).collect();
    ids.sort_unstable();
    ids.dedup();
    let found = operations::by_ids(&mut tx, &ids).await?;
    let kinds: Vec<(Uuid, &str)> = found.iter().map(|row| (row.id, row.kind.as_str())).collect();
    let masks = Mask::of_list(&mut tx, web.engine.config(), &kinds).await?;
    for entry in &mut listed.items {
        if let Some(mask) = entry.row.operation_id.and_then(|id| masks.get(&id)) {
            let (reason, detail) = (entry.row.reason.as_deref(), &entry.row.detail);
            let masked = (reason.map(|text| mask.text(text)), mask.text(detail));
            if (masked.0.as_deref(), &masked.1) != (reason, detail) {
                // The digest is not of what the file says.
                if let Some(link) = &mut entry.link {
                    link.salt = None;
                }
                (entry.row.reason, entry.row.detail) = masked;
            }
        }
    }
    Ok((listed.items, listed.older))
}
