//! Stands between the engine and the destination, passes on what it is sent and breaks what it is
//! told to break: so that one destination, real or built in, meets every failure at a known moment.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use reqwest::Method;
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use serde::Serialize;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};
use url::Url;

use crate::demo::destination::http::{Connection, Received, Reply};
use crate::domain::classify::text_of;
use crate::domain::contract::KeyCarrier;
use crate::domain::time::{Clock, SystemClock, Timestamp};
use crate::engine::guard::{self, Client, Terms};

/// The longest answer that is passed on, in bytes.
const MOST_READ: usize = 4 << 20;

/// As much of a body as a report shows, in characters.
const SHOWN: usize = 2_000;

/// Headers about one connection, which a second one must make for itself.
const OF_THE_CONNECTION: [&str; 9] = [
    "host",
    "connection",
    "content-length",
    "transfer-encoding",
    "keep-alive",
    "te",
    "trailer",
    "upgrade",
    "proxy-connection",
];

text_enum! {
    /// What is done to one send.
    pub enum Fault {
        /// Passed on, and the answer passed back.
        None = "passed_on",
        /// Passed on; the connection is closed before the answer.
        LoseAnswer = "answer_lost",
        /// Passed on; the answer is kept back until the sender is gone.
        HoldAnswer = "answer_held",
        /// Answered here with a refusal, and not passed on.
        Refuse = "refused",
    }
}

/// One request that came by.
#[derive(Clone, Debug, Serialize)]
pub struct Passage {
    /// When it came.
    pub at: Timestamp,
    /// `POST` and the like.
    pub method: String,
    /// With its query.
    pub path: String,
    /// The destination key that it carried.
    pub key: Option<String>,
    /// Its body, as far as a report shows it.
    pub body: String,
    /// It asks, and sends nothing.
    pub asks: bool,
    /// What was done to it.
    pub fault: Fault,
    /// The destination's status, where it was passed on and answered; else the drill's own.
    pub status: Option<u16>,
    /// The id in the destination's answer.
    pub reference: Option<String>,
    /// Why the destination could not be reached.
    pub error: Option<String>,
}

impl Passage {
    /// It is a send and reached the destination.
    pub fn reached(&self) -> bool {
        !self.asks && self.fault != Fault::Refuse && self.error.is_none()
    }

    /// The destination said that it did it.
    pub fn succeeded(&self) -> bool {
        self.reached() && self.status.is_some_and(|status| (200..300).contains(&status))
    }
}

/// Where requests are passed on to, and how to read what comes by.
#[derive(Clone, Debug)]
pub(super) struct Upstream {
    /// Scheme, host and port; the paths of requests are put behind it.
    pub(super) origin: Url,
    /// Whether it may be on a private network.
    pub(super) allow_private: bool,
    /// The longest that an exchange may take.
    pub(super) timeout: Duration,
    pub(super) carrier: Option<KeyCarrier>,
    /// Where the id stands in its answers.
    pub(super) reference: Option<String>,
}

/// A running proxy on loopback; it ends, and its connections with it, when this is dropped.
#[derive(Debug)]
pub(super) struct FaultProxy {
    pub(super) address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

#[derive(Debug)]
struct Shared {
    client: Client,
    upstream: Upstream,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    next: VecDeque<(Fault, u16)>,
    always: Option<(Fault, u16)>,
    passages: Vec<Passage>,
}

impl FaultProxy {
    pub(super) async fn start(upstream: Upstream) -> anyhow::Result<Self> {
        let client = guard::client(Terms {
            allow_private: upstream.allow_private,
            connect_timeout: upstream.timeout,
            timeout: upstream.timeout,
            // An idle connection that is closed over there would look like a lost answer.
            reuse: false,
        })?;
        // Before the engine sends anything: what is refused here would look like a failure.
        drop(client.request(Method::GET, upstream.origin.clone())?);
        let listener = TcpListener::bind(("127.0.0.1", 0)).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared { client, upstream, state: Mutex::default() });
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// What happens to the next send.
    pub(super) fn next(&self, fault: Fault, status: u16) {
        self.shared.lock().next.push_back((fault, status));
    }

    /// What happens to every send from now on for which nothing else is planned.
    pub(super) fn always(&self, fault: Option<(Fault, u16)>) {
        self.shared.lock().always = fault;
    }

    /// How many requests came by so far.
    pub(super) fn count(&self) -> usize {
        self.shared.lock().passages.len()
    }

    /// The requests after the first so many.
    pub(super) fn since(&self, mark: usize) -> Vec<Passage> {
        self.shared.lock().passages.get(mark..).unwrap_or_default().to_vec()
    }
}

impl Drop for FaultProxy {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes a request and decides what is done to it.
    fn note(&self, request: &Received) -> (usize, Fault, u16) {
        let asks = matches!(request.method.as_str(), "GET" | "HEAD");
        let mut state = self.lock();
        let planned = if asks { None } else { state.next.pop_front().or(state.always) };
        let (fault, status) = planned.unwrap_or((Fault::None, 0));
        state.passages.push(Passage {
            at: SystemClock.now(),
            method: request.method.clone(),
            path: request.path.clone(),
            key: self.upstream.carrier.as_ref().and_then(|carrier| key_in(request, carrier)),
            body: String::from_utf8_lossy(&request.body).chars().take(SHOWN).collect(),
            asks,
            fault,
            status: (fault == Fault::Refuse).then_some(status),
            reference: None,
            error: None,
        });
        (state.passages.len() - 1, fault, status)
    }

    fn amend(&self, index: usize, amend: impl FnOnce(&mut Passage)) {
        if let Some(passage) = self.lock().passages.get_mut(index) {
            amend(passage);
        }
    }

    async fn pass_on(&self, request: &Received) -> anyhow::Result<Reply> {
        let method = Method::from_bytes(request.method.as_bytes())?;
        let origin = self.upstream.origin.origin().ascii_serialization();
        let url = Url::parse(&format!("{origin}{}", request.path))?;
        let mut headers = HeaderMap::new();
        for (name, value) in request.headers.iter().filter(|(name, _)| !of_the_connection(name)) {
            headers.append(HeaderName::from_bytes(name.as_bytes())?, HeaderValue::from_str(value)?);
        }
        let mut response =
            self.client.request(method, url)?.headers(headers).body(request.body.clone()).send().await?;
        let code = response.status().as_u16();
        let headers = response
            .headers()
            .iter()
            .filter(|(name, _)| !of_the_connection(name.as_str()))
            .map(|(name, value)| {
                (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
            })
            .collect();
        let mut body = Vec::new();
        while let Some(chunk) = response.chunk().await? {
            anyhow::ensure!(
                body.len() + chunk.len() <= MOST_READ,
                "the answer is longer than the drill passes on"
            );
            body.extend_from_slice(&chunk);
        }
        Ok(Reply { code, headers, body })
    }
}

fn of_the_connection(name: &str) -> bool {
    OF_THE_CONNECTION.contains(&name)
}

/// The key as the destination would read it.
fn key_in(request: &Received, carrier: &KeyCarrier) -> Option<String> {
    match carrier {
        KeyCarrier::Header { name, .. } => {
            request.header(&name.to_ascii_lowercase()).map(|value| value.trim_matches('"').to_owned())
        }
        KeyCarrier::Body { pointer } => {
            let body: Value = serde_json::from_slice(&request.body).ok()?;
            body.pointer(pointer).and_then(text_of)
        }
        KeyCarrier::Query { name } => {
            let (_, query) = request.path.split_once('?')?;
            let mut pairs = url::form_urlencoded::parse(query.as_bytes());
            pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
        }
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    loop {
        // An accept fails when the process has too many files open: a moment later it may not.
        let Ok((stream, _)) = listener.accept().await else {
            tokio::time::sleep(Duration::from_millis(10)).await;
            continue;
        };
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(Connection::new(stream), Arc::clone(&shared)));
    }
}

/// Serves one connection. Whatever breaks it is the client's to notice.
async fn serve(connection: Connection, shared: Arc<Shared>) {
    let mut open = Some(connection);
    while let Some(connection) = open.take() {
        open = exchange(connection, &shared).await.unwrap_or(None);
    }
}

async fn exchange(mut connection: Connection, shared: &Shared) -> io::Result<Option<Connection>> {
    let Some(mut request) = connection.head().await? else { return Ok(None) };
    connection.body(&mut request).await?;
    let (index, fault, status) = shared.note(&request);
    if fault == Fault::Refuse {
        let body = serde_json::json!({ "message": "refused by the drill" });
        connection.reply(&Reply::json(status, &body)).await?;
        return Ok((!request.wants_close()).then_some(connection));
    }
    let reply = match shared.pass_on(&request).await {
        Ok(reply) => reply,
        Err(error) => {
            shared.amend(index, |passage| passage.error = Some(format!("{error:#}")));
            return Ok(None);
        }
    };
    let reference = shared.upstream.reference.as_deref().and_then(|pointer| {
        let body: Value = serde_json::from_slice(&reply.body).ok()?;
        body.pointer(pointer).and_then(text_of)
    });
    shared.amend(index, |passage| {
        passage.status = Some(reply.code);
        passage.reference = reference;
    });
    match fault {
        Fault::LoseAnswer => Ok(None),
        Fault::HoldAnswer => {
            connection.until_left().await?;
            Ok(None)
        }
        Fault::None | Fault::Refuse => {
            connection.reply(&reply).await?;
            Ok((!request.wants_close()).then_some(connection))
        }
    }
}
