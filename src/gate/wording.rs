//! What is kept of what came back: text that both databases can store, without credentials.

use crate::domain::classify::{Event, text_of};

/// What went wrong, in the destination's own words where it gave some.
pub(super) fn error_text(event: &Event) -> String {
    match event {
        Event::NoAnswer(_, text) => clean(text, 500),
        Event::Reported(report) => clean(&report.error, 500),
        Event::Answered(answer) => {
            let told = answer.json().and_then(|body| {
                [
                    "/error/message",
                    "/message",
                    "/detail",
                    "/error_description",
                    "/title",
                    "/error",
                    "/errors/0/message",
                    "/errors/0",
                ]
                .iter()
                .find_map(|pointer| body.pointer(pointer).and_then(text_of))
            });
            let told = told.unwrap_or_else(|| String::from_utf8_lossy(&answer.body).into_owned());
            let told = told.split_whitespace().collect::<Vec<_>>().join(" ");
            clean(format!("{} {told}", answer.status).trim(), 500)
        }
    }
}

/// Text that both databases can store, of `most` bytes at most, cut between letters.
pub(super) fn clean(text: &str, most: usize) -> String {
    cleaned(text, most).0
}

/// The same, and whether it was cut: what replaces a NUL is longer than it.
pub(super) fn cleaned(text: &str, most: usize) -> (String, bool) {
    let mut text = text.replace('\0', "\u{fffd}");
    let whole = text.len();
    let end = (0..=most.min(whole)).rev().find(|at| text.is_char_boundary(*at)).unwrap_or(0);
    text.truncate(end);
    (text, end < whole)
}

/// Header pairs as JSON text, without those that carry credentials.
pub(super) fn pairs_text(pairs: &[(String, String)]) -> String {
    const SECRET: &[&str] =
        &["authorization", "proxy-authorization", "cookie", "set-cookie", "x-api-key", "api-key"];
    let kept: Vec<(&str, String)> = pairs
        .iter()
        .filter(|(name, _)| !SECRET.contains(&name.to_ascii_lowercase().as_str()))
        .map(|(name, value)| (name.as_str(), clean(value, 2_000)))
        .collect();
    serde_json::to_string(&kept).unwrap_or_else(|_| "[]".to_owned())
}
