//! Answers to what is no request yet: heads that are too large, unreadable or too slow, and
//! connections that there is no room for. They carry what every other answer carries.

use std::time::{Duration, SystemTime};

use askama::Template as _;
use axum::http::StatusCode;
use bytes::Bytes;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;

use crate::web::page::{HTML, Layout};
use crate::web::pages::error::ErrorPage;
use crate::web::{protection, request_id};

/// How long a refusal may take to be sent.
const PATIENCE: Duration = Duration::from_secs(2);

/// How this server refuses.
#[derive(Debug)]
pub(super) struct Refusals {
    https: bool,
}

impl Refusals {
    pub(super) fn new(https: bool) -> Self {
        Self { https }
    }

    /// A whole answer, head and page, after which the connection is closed.
    pub(super) fn answer(&self, status: StatusCode) -> Bytes {
        let id = request_id::short();
        tracing::info!(id, status = status.as_u16(), "refused before it was a request");
        let body = page(status, id.clone()).render().unwrap_or_default();
        let reason = status.canonical_reason().unwrap_or_default();
        let mut head = format!("HTTP/1.1 {} {reason}\r\n", status.as_u16());
        let mut line = |name: &str, value: &str| {
            for part in [name, ": ", value, "\r\n"] {
                head.push_str(part);
            }
        };
        line("connection", "close");
        line("content-type", HTML);
        line("content-length", &body.len().to_string());
        line("date", &httpdate::fmt_http_date(SystemTime::now()));
        line("x-request-id", &id);
        if status == StatusCode::SERVICE_UNAVAILABLE {
            line("retry-after", "5");
        }
        for (name, value) in protection(self.https) {
            line(name.as_str(), value);
        }
        Bytes::from(format!("{head}\r\n{body}"))
    }

    /// Tells a client that there is no room for its connection.
    pub(super) async fn turn_away(&self, mut stream: TcpStream) {
        let answer = self.answer(StatusCode::SERVICE_UNAVAILABLE);
        let told = async {
            stream.write_all(&answer).await?;
            stream.shutdown().await?;
            // Closing on bytes that were not read would discard the answer.
            tokio::io::copy(&mut stream, &mut tokio::io::sink()).await
        };
        // One that does not listen is let go.
        let _ = tokio::time::timeout(PATIENCE, told).await;
    }
}

fn page(status: StatusCode, id: String) -> ErrorPage {
    let (title, happened, next_step) = match status {
        StatusCode::REQUEST_TIMEOUT => (
            "This request came too slowly",
            "Its beginning did not arrive in time.",
            "Nothing was changed. Check the connection, then try again.",
        ),
        StatusCode::REQUEST_HEADER_FIELDS_TOO_LARGE | StatusCode::URI_TOO_LONG => (
            "This request is too large",
            "Its address or its headers are longer than the desk reads.",
            "Nothing was changed. Clear the filter, or this site's cookies, then try again.",
        ),
        StatusCode::SERVICE_UNAVAILABLE => (
            "Too many connections",
            "The desk has as many open as it takes, or as many as it takes from your address.",
            "Nothing was changed. Close some tabs, or wait a moment, then try again.",
        ),
        _ => (
            "This request cannot be read",
            "It is not written as a browser or a program would.",
            "Nothing was changed. Open the desk by its own address and act from there.",
        ),
    };
    ErrorPage {
        layout: Layout::outside(title, ""),
        status: status.as_u16(),
        title: title.to_owned(),
        happened: happened.to_owned(),
        next_step: next_step.to_owned(),
        link: None,
        typed: Vec::new(),
        request_id: Some(id),
    }
}
