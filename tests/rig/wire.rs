//! Just enough HTTP/1.1 to read a request whole, and to answer or to break off at any byte.

use std::io;

use serde_json::Value;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// A request that was read to its end.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    pub(crate) method: String,
    /// With its query.
    pub(crate) path: String,
    /// The header `Idempotency-Key`.
    pub(crate) key: Option<String>,
    pub(crate) body: Vec<u8>,
    closes: bool,
}

impl Request {
    /// A text at the top of its JSON body; empty where there is none.
    pub(crate) fn text(&self, name: &str) -> String {
        let body: Value = serde_json::from_slice(&self.body).unwrap_or_default();
        body[name].as_str().unwrap_or_default().to_owned()
    }
}

/// An answer as it is meant.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    /// Whole lines, each with its end.
    pub(crate) headers: String,
    pub(crate) body: String,
}

impl Reply {
    pub(crate) fn json(status: u16, body: &Value) -> Self {
        Self { status, headers: "content-type: application/json\r\n".to_owned(), body: body.to_string() }
    }

    pub(crate) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.extend([name, ": ", value, "\r\n"]);
        self
    }

    fn bytes(&self) -> Vec<u8> {
        let length = self.body.len();
        format!(
            "HTTP/1.1 {} Status\r\n{}content-length: {length}\r\n\r\n{}",
            self.status, self.headers, self.body
        )
        .into_bytes()
    }
}

/// One client's connection, and what was read ahead of it.
pub(crate) struct Connection {
    stream: TcpStream,
    ahead: Vec<u8>,
}

impl Connection {
    pub(crate) fn new(stream: TcpStream) -> Self {
        Self { stream, ahead: Vec::new() }
    }

    /// The next request; nothing when the client has left.
    pub(crate) async fn request(&mut self) -> io::Result<Option<Request>> {
        loop {
            if let Some((request, length)) = parse(&self.ahead)? {
                self.ahead.drain(..length);
                return Ok(Some(request));
            }
            if self.stream.read_buf(&mut self.ahead).await? == 0 {
                return Ok(None);
            }
        }
    }

    /// Whether another request may follow.
    pub(crate) async fn reply(&mut self, request: &Request, reply: &Reply) -> io::Result<bool> {
        self.stream.write_all(&reply.bytes()).await?;
        Ok(!request.closes)
    }

    /// The first half of an answer, and then the end.
    pub(crate) async fn half(&mut self, reply: &Reply) -> io::Result<()> {
        let bytes = reply.bytes();
        self.stream.write_all(&bytes[..bytes.len() - reply.body.len() / 2]).await
    }

    pub(crate) async fn garbage(&mut self) -> io::Result<()> {
        self.stream.write_all(b"\x16\x03\x01 no HTTP at all\r\n\r\n").await
    }

    /// Ends with a reset instead of an orderly close.
    pub(crate) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }

    /// Waits, silent, until the client is gone.
    pub(crate) async fn until_left(&mut self) -> io::Result<()> {
        while self.stream.read_buf(&mut self.ahead).await? > 0 {
            self.ahead.clear();
        }
        Ok(())
    }
}

fn parse(bytes: &[u8]) -> io::Result<Option<(Request, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 32];
    let mut head = httparse::Request::new(&mut headers);
    let broken = |_| io::Error::from(io::ErrorKind::InvalidData);
    let httparse::Status::Complete(start) = head.parse(bytes).map_err(broken)? else { return Ok(None) };
    let header = |wanted: &str| {
        let found = head.headers.iter().find(|header| header.name.eq_ignore_ascii_case(wanted))?;
        std::str::from_utf8(found.value).ok()
    };
    let length = header("content-length").and_then(|text| text.parse().ok()).unwrap_or(0);
    let Some(body) = bytes.get(start..start + length) else { return Ok(None) };
    let request = Request {
        method: head.method.unwrap_or_default().to_owned(),
        path: head.path.unwrap_or_default().to_owned(),
        key: header("idempotency-key").map(|key| key.trim_matches('"').to_owned()),
        body: body.to_vec(),
        closes: header("connection").is_some_and(|word| word.eq_ignore_ascii_case("close")),
    };
    Ok(Some((request, start + length)))
}
