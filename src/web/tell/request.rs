//! What was sent and what came back, as far as it may be shown.

use axum::http::StatusCode;

use super::Tale;
use super::mask::Mask;
use crate::domain::attempt::{Outcome, StoredRequest};
use crate::engine::report::{stored_answer, stored_request};
use crate::store::attempts::AttemptRow;
use crate::store::operations::RequestRow;
use crate::web::timeline::{Answer, Request};
use crate::web::view::{Long, grouped};

/// The most of a body that a page carries, in characters: more makes browsers wait.
const MOST_SHOWN: usize = 20_000;

/// Said in the place of a body whose private values are not known any more.
const BLIND: &str =
    "It is not shown: what is private in it is not known any more, since the payload was erased.";

/// Said in the place of what was erased.
const ERASED: &str = "It was erased when its retention ended.";

/// What an attempt sent. Every attempt of a generation sends the same bytes, so that only the
/// first one shows them.
pub fn sent(tale: &Tale<'_>, row: &AttemptRow) -> Option<Request> {
    if matches!(row.outcome, Outcome::NotSent | Outcome::Skipped) {
        return None;
    }
    let stored = tale.thread.request(row.position, row.generation)?;
    let is_send = |other: &AttemptRow| {
        other.asked.is_none() && !matches!(other.outcome, Outcome::NotSent | Outcome::Skipped)
    };
    let shown_with = tale
        .thread
        .attempts
        .iter()
        .find(|other| (other.position, other.generation) == (row.position, row.generation) && is_send(other))
        .filter(|first| first.id != row.id);
    let mut request = request(tale, stored);
    if let Some(first) = shown_with
        && request.body.is_some()
    {
        request.body = Some(Long::line(format!("The same, to the byte, as in attempt {}.", first.number)));
        request.masked = None;
    }
    Some(request)
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
        let whole = "It was the payload, which was erased when its retention ended.";
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
        Some(_) if mask.is_blind() => (Some(BLIND.to_owned()), false),
        Some(text) if is_payload => {
            let (shown, hidden) = mask.payload(&text);
            (Some(shown), hidden > 0)
        }
        Some(text) => {
            let shown = mask.body(&text);
            let hidden = shown.contains(super::mask::HIDDEN) && !text.contains(super::mask::HIDDEN);
            (Some(shown), hidden)
        }
    };
    Request {
        method: stored.method,
        url: if mask.is_blind() { path_only(&stored.url) } else { mask.text(&stored.url) },
        headers: headers(&stored.headers, mask),
        body: body.map(|text| bounded(&text)),
        masked: hidden.then(|| "Private values are hidden; what was sent holds them.".to_owned()),
    }
}

/// What came back to an attempt; absent when no status line did.
pub fn came_back(tale: &Tale<'_>, row: &AttemptRow) -> Option<Answer> {
    row.status?;
    let stored = stored_answer(row);
    let mask = &tale.mask;
    let body = if tale.thread.payload.is_none() && row.answer_body.is_none() {
        ERASED.to_owned()
    } else if mask.is_blind() && !stored.body.is_empty() {
        BLIND.to_owned()
    } else {
        mask.body(&stored.body)
    };
    let hidden = body.contains(super::mask::HIDDEN) && !stored.body.contains(super::mask::HIDDEN);
    Some(Answer {
        status: stored.status.map(status_line),
        headers: headers(&stored.headers, mask),
        body: bounded(&body),
        cut: stored.cut,
        masked: hidden.then(|| "Private values are hidden; what came back holds them.".to_owned()),
    })
}

/// "503 Service Unavailable".
pub fn status_line(status: u16) -> String {
    let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
    reason.map_or_else(|| status.to_string(), |reason| format!("{status} {reason}"))
}

/// A body of a size that a browser shows at once.
pub fn bounded(text: &str) -> Long {
    let Some((end, _)) = text.char_indices().nth(MOST_SHOWN) else { return Long::block(text) };
    let total = grouped(text.chars().count());
    let shown = grouped(MOST_SHOWN);
    Long {
        size: format!("the first {shown} of {total} characters"),
        all: Some(format!("{}\u{2026}", &text[..end])),
        head: Long::block(&text[..end]).head,
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
        assert!(bounded("short").all.is_none());
    }

    #[test]
    fn statuses_have_their_words() {
        assert_eq!(status_line(503), "503 Service Unavailable");
        assert_eq!(status_line(599), "599");
    }
}
