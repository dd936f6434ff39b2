//! What an answer must be, whatever was asked.

use std::sync::atomic::Ordering;

use axum::http::{HeaderMap, StatusCode, header};
use serde_json::Value;

use super::Sweeper;
use super::markup::stays;
use super::places::{Door, Route};

impl Sweeper {
    /// What is wrong with an answer.
    pub(super) fn judge(
        &self,
        route: &Route,
        status: StatusCode,
        headers: &HeaderMap,
        text: &str,
    ) -> Option<String> {
        let one = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
        if status.is_server_error() || status.is_informational() {
            return Some(format!("{status}: {}", text.chars().take(200).collect::<String>()));
        }
        for (name, value) in [
            ("x-content-type-options", "nosniff"),
            ("x-frame-options", "DENY"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            if one(name) != value {
                return Some(format!("{status}: {name} is {:?}", one(name)));
            }
        }
        if !one("content-security-policy").starts_with("default-src 'none'") {
            return Some(format!("{status}: without a content security policy"));
        }
        let number = one("x-request-id");
        if number.len() != 12 || !number.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return Some(format!("the request's number is {number:?}"));
        }
        if headers.contains_key(header::LOCATION) && !stays(one("location")) {
            return Some(format!("it leads to {:?}", one("location")));
        }
        for cookie in headers.get_all(header::SET_COOKIE) {
            let cookie = cookie.to_str().unwrap_or_default();
            if !cookie.starts_with("dlo=") || !cookie.contains("HttpOnly") {
                return Some(format!("a cookie {cookie:?}"));
            }
        }
        let told = text.matches(r#"{"status":201,"#).count() + usize::from(status == StatusCode::CREATED);
        if route.pattern.starts_with("/api/v1/operations") {
            self.created.fetch_add(told, Ordering::Relaxed);
        }
        let kind = one("content-type").split(';').next().unwrap_or_default();
        let error = status.is_client_error();
        match (kind, route.door) {
            ("text/html", Door::Desk | Door::Open) => self.ours.strange(text),
            ("application/problem+json", _) if error => None,
            ("application/json", _) => {
                serde_json::from_str::<Value>(text).err().map(|error| error.to_string())
            }
            // Files, which no browser opens as a page.
            ("text/csv" | "application/octet-stream" | "text/plain", Door::Desk)
                if one("content-disposition").starts_with("attachment") =>
            {
                None
            }
            ("application/x-ndjson", Door::Api) => None,
            ("text/plain" | "text/css" | "text/javascript" | "image/svg+xml", Door::Open) if !error => None,
            ("", _) if text.is_empty() => None,
            _ => Some(format!("{status}: an answer of type {kind:?}")),
        }
    }
}
