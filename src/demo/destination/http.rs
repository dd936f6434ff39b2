//! Just enough HTTP/1.1 to read every request and to answer it wrongly.

use std::io;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

/// The longest head and the longest body that are read.
const MAX_HEAD: usize = 64 << 10;
const MAX_BODY: usize = 64 << 20;

/// A request that was read to its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// As sent.
    pub method: String,
    /// With its query.
    pub path: String,
    /// Names in lower case, in the order in which they came.
    pub headers: Vec<(String, String)>,
    /// Without its chunks' framing.
    pub body: Vec<u8>,
}

impl Received {
    /// A header's first value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The path without its query.
    pub fn bare_path(&self) -> &str {
        self.path.split('?').next().unwrap_or_default()
    }

    fn says(&self, name: &str, word: &str) -> bool {
        self.header(name).is_some_and(|value| value.to_ascii_lowercase().contains(word))
    }

    pub(crate) fn wants_close(&self) -> bool {
        self.says("connection", "close")
    }
}

/// An answer as the destination means it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) code: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    pub(crate) fn json(code: u16, body: &serde_json::Value) -> Self {
        Self {
            code,
            headers: vec![("content-type".into(), "application/json".into())],
            body: body.to_string().into_bytes(),
        }
    }

    pub(super) fn with(mut self, name: &str, value: &str) -> Self {
        self.headers.push((name.into(), value.into()));
        self
    }

    pub(super) fn head(&self) -> Vec<u8> {
        let length = ("content-length".to_owned(), self.body.len().to_string());
        let headers = self.headers.iter().chain((!self.bodiless()).then_some(&length));
        let lines: String = headers.flat_map(|(name, value)| [name, ": ", value, "\r\n"]).collect();
        format!("HTTP/1.1 {} Status\r\n{lines}\r\n", self.code).into_bytes()
    }

    fn bodiless(&self) -> bool {
        matches!(self.code, 100..=199 | 204 | 304)
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

    /// The next request's head with an empty body; nothing when the client has left.
    pub(crate) async fn head(&mut self) -> io::Result<Option<Received>> {
        loop {
            if let Some((head, length)) = parse_head(&self.ahead)? {
                self.ahead.drain(..length);
                return Ok(Some(head));
            }
            if self.ahead.len() > MAX_HEAD {
                return Err(invalid("the head is too long"));
            }
            if !self.more().await? {
                return Ok(None);
            }
        }
    }

    /// Reads the body that a head announces.
    pub(crate) async fn body(&mut self, head: &mut Received) -> io::Result<()> {
        if head.says("expect", "100-continue") {
            self.write(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        }
        if head.says("transfer-encoding", "chunked") {
            head.body = self.chunks().await?;
        } else if let Some(length) = head.header("content-length") {
            let length = length.parse().map_err(|_| invalid("the length is no number"))?;
            head.body = self.exactly(length).await?;
        }
        Ok(())
    }

    async fn chunks(&mut self) -> io::Result<Vec<u8>> {
        let mut body = Vec::new();
        loop {
            let size = loop {
                match httparse::parse_chunk_size(&self.ahead).map_err(|_| invalid("a chunk has no size"))? {
                    httparse::Status::Complete((used, size)) => {
                        self.ahead.drain(..used);
                        break usize::try_from(size).unwrap_or(usize::MAX);
                    }
                    httparse::Status::Partial => self.must_have_more().await?,
                }
            };
            if size == 0 {
                break;
            }
            if size > MAX_BODY.saturating_sub(body.len()) {
                return Err(invalid("the body is too long"));
            }
            body.extend(self.exactly(size).await?);
            self.exactly(2).await?;
        }
        while !self.line().await?.is_empty() {}
        Ok(body)
    }

    async fn line(&mut self) -> io::Result<Vec<u8>> {
        loop {
            if let Some(end) = self.ahead.windows(2).position(|pair| pair == b"\r\n") {
                let line = self.ahead.drain(..end + 2).take(end).collect();
                return Ok(line);
            }
            self.must_have_more().await?;
        }
    }

    async fn exactly(&mut self, length: usize) -> io::Result<Vec<u8>> {
        if length > MAX_BODY {
            return Err(invalid("the body is too long"));
        }
        while self.ahead.len() < length {
            self.must_have_more().await?;
        }
        Ok(self.ahead.drain(..length).collect())
    }

    async fn must_have_more(&mut self) -> io::Result<()> {
        if self.more().await? { Ok(()) } else { Err(io::ErrorKind::UnexpectedEof.into()) }
    }

    async fn more(&mut self) -> io::Result<bool> {
        Ok(self.stream.read_buf(&mut self.ahead).await? > 0)
    }

    pub(crate) async fn reply(&mut self, reply: &Reply) -> io::Result<()> {
        let mut bytes = reply.head();
        if !reply.bodiless() {
            bytes.extend(&reply.body);
        }
        self.write(&bytes).await
    }

    pub(crate) async fn write(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.stream.write_all(bytes).await?;
        self.stream.flush().await
    }

    /// Waits, unread, until the client is gone.
    pub(crate) async fn until_left(&mut self) -> io::Result<()> {
        loop {
            self.ahead.clear();
            if !self.more().await? {
                return Ok(());
            }
        }
    }

    /// Ends with a reset instead of an orderly close.
    pub(super) fn reset(self) -> io::Result<()> {
        self.stream.set_zero_linger()
    }
}

fn parse_head(bytes: &[u8]) -> io::Result<Option<(Received, usize)>> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut request = httparse::Request::new(&mut headers);
    let length = match request.parse(bytes).map_err(|_| invalid("no HTTP request"))? {
        httparse::Status::Complete(length) => length,
        httparse::Status::Partial => return Ok(None),
    };
    let head = Received {
        method: request.method.unwrap_or_default().to_owned(),
        path: request.path.unwrap_or_default().to_owned(),
        headers: request
            .headers
            .iter()
            .map(|header| {
                (header.name.to_ascii_lowercase(), String::from_utf8_lossy(header.value).into_owned())
            })
            .collect(),
        body: Vec::new(),
    };
    Ok(Some((head, length)))
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}
