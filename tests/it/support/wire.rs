//! HTTP by hand: what no proper client would send.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// How long a test waits for what should come.
pub(crate) const PATIENCE: Duration = Duration::from_secs(20);

/// An answer, taken apart.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: u16,
    headers: Vec<(String, String)>,
    pub(crate) body: String,
}

impl Answer {
    /// Of the bytes up to the connection's end; `None` when there were none.
    fn parse(text: &str) -> Option<Self> {
        let (head, body) = text.split_once("\r\n\r\n")?;
        let mut lines = head.split("\r\n");
        let status = lines.next()?.split(' ').nth(1)?.parse().ok()?;
        let pair =
            |line: &str| line.split_once(": ").map(|(name, value)| (name.to_owned(), value.to_owned()));
        Some(Self { status, headers: lines.filter_map(pair).collect(), body: body.to_owned() })
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        let mut found = self.headers.iter().filter(|(known, _)| known.eq_ignore_ascii_case(name));
        let value = found.next().map_or("", |(_, value)| value);
        assert!(found.next().is_none(), "{name} twice: {self:?}");
        value
    }
}

/// One connection.
pub(crate) struct Wire(TcpStream);

impl Wire {
    pub(crate) async fn to(address: SocketAddr) -> Self {
        Self(TcpStream::connect(address).await.unwrap())
    }

    /// From another address of this machine than usual.
    pub(crate) async fn from(here: &str, address: SocketAddr) -> Self {
        let socket = TcpSocket::new_v4().unwrap();
        socket.bind(format!("{here}:0").parse().unwrap()).unwrap();
        Self(socket.connect(address).await.unwrap())
    }

    /// Whether it could still be sent.
    pub(crate) async fn send(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).await.is_ok()
    }

    /// Everything until the other side closes; `None` when it says nothing.
    pub(crate) async fn rest(mut self) -> Option<Answer> {
        let mut bytes = Vec::new();
        let read = timeout(PATIENCE, self.0.read_to_end(&mut bytes)).await.expect("the end in time");
        // A reset after the answer is an end as well.
        let _ = read;
        let text = String::from_utf8(bytes).expect("text");
        assert!(text.is_empty() || text.contains("\r\n\r\n"), "{text}");
        Answer::parse(&text)
    }

    /// Sends a request that asks for the connection's end, and its answer.
    pub(crate) async fn ask(mut self, head: &str, body: &str) -> Answer {
        let length = body.len();
        let text =
            format!("{head}\r\nhost: x\r\nconnection: close\r\ncontent-length: {length}\r\n\r\n{body}");
        assert!(self.send(text).await);
        self.rest().await.expect("an answer")
    }
}
