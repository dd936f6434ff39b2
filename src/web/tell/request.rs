//! What was sent and what came back, as far as it may be shown.

use axum::http::StatusCode;

use super::Tale;
use super::mask::{HIDDEN, Mask};
use super::pretty::Laid;
use crate::domain::attempt::{Outcome, StoredRequest};
use crate::domain::words;
use crate::engine::report::{stored_answer, stored_request};
use crate::store::attempts::AttemptRow;
use crate::store::operations::RequestRow;
use crate::web::timeline::{Answer, Request};
use crate::web::view::{Button, Long, grouped};

/// The most of a body that a page carries, in characters: more makes browsers wait.
const MOST_SHOWN: usize = 20_000;

/// The most that is laid out of it, in bytes: what a page carries of it is cut from this.
const MOST_LAID: usize = 4 * MOST_SHOWN;

/// Said in the place of a body whose private values are not known any more.
const BLIND: &str =
    "It is not shown: what is private in it is not known any more, since the payload was erased.";

/// Said in the place of what was erased.
const ERASED: &str = "It was erased.";

/// What an attempt sent. Every attempt of a generation sends the same bytes, so that of those on a
/// page only the first one, where this is another, shows them.
pub fn sent(tale: &Tale<'_>, row: &AttemptRow, first: Option<&AttemptRow>) -> Option<Request> {
    if !sends(row) {
        return None;
    }
    let stored = tale.thread.request(row.position, row.generation)?;
    match first.filter(|first| first.id != row.id) {
        Some(first) if has_body(stored) => Some(Request {
            body: Some(Long::line(format!("The same, to the byte, as in attempt {}.", first.number))),
            ..shown(tale, bare(stored), false)
        }),
        Some(_) => Some(shown(tale, bare(stored), false)),
        None => Some(request(tale, stored)),
    }
}

/// Whether an attempt put a request on its way.
pub fn sends(row: &AttemptRow) -> bool {
    row.asked.is_none() && !matches!(row.outcome, Outcome::NotSent | Outcome::Skipped)
}

fn has_body(row: &RequestRow) -> bool {
    row.body_is_payload || row.body.is_some()
}

/// A request without its body, which may be large.
fn bare(row: &RequestRow) -> StoredRequest {
    StoredRequest {
        method: row.method.clone(),
        url: row.url.clone(),
        headers: serde_json::from_str(&row.headers).unwrap_or_default(),
        body: None,
    }
}

/// What was asked.
pub fn question(tale: &Tale<'_>, row: &AttemptRow) -> Option<Request> {
    let url = row.asked.clone().filter(|url| !url.is_empty())?;
    Some(shown(tale, StoredRequest { method: "GET".to_owned(), url, ..StoredRequest::default() }, false))
}

/// A stored request.
pub fn request(tale: &Tale<'_>, row: &RequestRow) -> Request {
    let stored = stored_request(row, tale.thread.payload.as_deref());
    // A method without a body had none to erase.
    let had_body = !matches!(row.method.as_str(), "GET" | "HEAD" | "DELETE");
    if tale.thread.payload.is_none() && stored.body.is_none() && had_body {
        let whole = "It was the payload, which was erased.";
        let erased = if row.body_is_payload { whole } else { ERASED };
        return Request { body: Some(Long::line(erased)), ..shown(tale, stored, false) };
    }
    shown(tale, stored, row.body_is_payload)
}

/// A request that is not sent yet.
pub fn to_send(tale: &Tale<'_>, request: &StoredRequest) -> Request {
    let is_payload = request.body.is_some() && request.body == tale.thread.payload;
    shown(tale, request.clone(), is_payload)
}

fn shown(tale: &Tale<'_>, stored: StoredRequest, is_payload: bool) -> Request {
    let mask = &tale.mask;
    let (body, hidden) = match stored.body {
        None => (None, false),
        Some(_) if mask.is_blind() => (Some(Long::line(BLIND)), false),
        Some(text) if is_payload => {
            let laid = mask.payload(&text, MOST_LAID);
            let hidden = laid.hidden > 0;
            (Some(long(&laid, MOST_SHOWN, text.chars().count())), hidden)
        }
        Some(text) => {
            let laid = mask.body_within(&text, MOST_LAID);
            let hidden = laid.text.contains(HIDDEN) && !text.contains(HIDDEN);
            (Some(long(&laid, MOST_SHOWN, text.chars().count())), hidden)
        }
    };
    Request {
        method: stored.method,
        url: if mask.is_blind() { path_only(&stored.url) } else { mask.text(&stored.url) },
        headers: headers(&stored.headers, mask),
        body,
        masked: hidden.then(|| "Private values are hidden; what was sent holds them.".to_owned()),
    }
}

/// What came back to an attempt, with at most `most` characters of its body; absent when no status
/// line did. `whole` has the body as it came.
pub fn came_back(tale: &Tale<'_>, row: &AttemptRow, most: usize, whole: Option<Button>) -> Option<Answer> {
    row.status?;
    let stored = stored_answer(row);
    let mask = &tale.mask;
    let (body, hidden, is_cut) = if tale.thread.payload.is_none() && row.answer_body.is_none() {
        (Long::line(ERASED), false, false)
    } else if mask.is_blind() && !stored.body.is_empty() {
        (Long::line(BLIND), false, false)
    } else {
        let kept = row.answer_length.and_then(|length| usize::try_from(length).ok()).unwrap_or(0);
        let mut laid = mask.body_within(&stored.body, MOST_LAID);
        laid.whole &= kept <= stored.body.chars().count();
        let hidden = laid.text.contains(HIDDEN) && !stored.body.contains(HIDDEN);
        let is_cut = !laid.whole || laid.text.chars().nth(most).is_some();
        (long(&laid, most, kept), hidden, is_cut)
    };
    // A longer beginning says so where it is opened.
    let preview = (is_cut && body.all.is_none()).then(|| format!("{}.", words::capitalised(&body.size)));
    Some(Answer {
        status: stored.status.map(status_line),
        headers: headers(&stored.headers, mask),
        preview,
        body,
        cut: stored.cut,
        masked: hidden.then(|| "Private values are hidden; what came back holds them.".to_owned()),
        whole: whole.filter(|_| !stored.body.is_empty()),
    })
}

/// "503 Service Unavailable".
pub fn status_line(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"))
}

/// A body of a size that a browser shows at once.
pub fn bounded(text: &str) -> Long {
    let laid = Laid { text: text.to_owned(), hidden: 0, whole: true };
    long(&laid, MOST_SHOWN, text.chars().count())
}

/// The payload, of a size that a browser shows at once; how many values in what was laid out are
/// hidden, and whether that is all of it.
pub fn payload(mask: &Mask, text: &str) -> (Long, usize, bool) {
    let laid = mask.payload(text, MOST_LAID);
    (long(&laid, MOST_SHOWN, text.chars().count()), laid.hidden, laid.whole)
}

/// At most `most` characters of what was laid out; `total` is how many are stored.
fn long(laid: &Laid, most: usize, total: usize) -> Long {
    let end = laid.text.char_indices().nth(most).map(|(end, _)| end);
    if laid.whole && end.is_none() {
        return Long::block(laid.text.as_str());
    }
    let beginning = &laid.text[..end.unwrap_or(laid.text.len())];
    let Long { head, all, .. } = Long::block(beginning);
    Long {
        size: format!("the first {} of {} characters", grouped(beginning.chars().count()), grouped(total)),
        // What is short enough to be seen at once is not there twice.
        head: if all.is_some() { head } else { format!("{head}\u{2026}") },
        all: all.map(|all| format!("{all}\u{2026}")),
    }
}

fn headers(headers: &[(String, String)], mask: &Mask) -> Vec<(String, String)> {
    let value = |text: &str| if mask.is_blind() { String::new() } else { mask.text(text) };
    headers.iter().map(|(name, text)| (name.clone(), value(text))).collect()
}

/// An address without its query, where private values go first.
fn path_only(url: &str) -> String {
    url.split_once('?').map_or_else(|| url.to_owned(), |(path, _)| format!("{path}?\u{2026}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_huge_body_is_bounded_and_says_so() {
        let long = bounded(&"é".repeat(300_000));
        assert_eq!(long.all.unwrap().chars().count(), MOST_SHOWN + 1);
        assert_eq!(long.size, "the first 20,000 of 300,000 characters");
        let laid = Laid { text: "x".repeat(5_000), hidden: 0, whole: true };
        let small = super::long(&laid, 1_000, 5_000);
        assert_eq!((small.head.chars().count(), small.all), (1_001, None), "not there twice");
        assert!(bounded("short").all.is_none());
    }

    #[test]
    fn statuses_have_their_words() {
        assert_eq!(status_line(503), "503 Service Unavailable");
        assert_eq!(status_line(599), "599");
    }
}
