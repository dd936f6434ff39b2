//! A destination for questions that have one right answer: is a redirect followed, is the time kept
//! that a destination asks for?

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime};

use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::wire::{Connection, Reply, Request};

/// Redirects, each with a destination of its own, since one pauses what it comes from.
pub(crate) const REDIRECTS: [u16; 6] = [300, 301, 302, 303, 307, 308];
/// How the second path segment asks to be tried again later.
pub(crate) const WAITS: [&str; 4] = ["429-seconds", "429-date", "503-seconds", "503-date"];

#[derive(Default)]
struct State {
    /// Requests by path, where redirects lead included.
    requests: HashMap<String, u32>,
    /// By operation: not before this.
    allowed: HashMap<String, SystemTime>,
    /// How much later than allowed each came, in ms; negative is early.
    margins: Vec<i64>,
}

/// The destination.
pub(crate) struct Odd {
    pub(crate) base_url: String,
    state: Arc<Mutex<State>>,
    accepting: JoinHandle<()>,
}

impl Odd {
    pub(crate) async fn start() -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let base_url = format!("http://{}", listener.local_addr()?);
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let accepting = tokio::spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                connections.spawn(serve(stream, Arc::clone(&shared)));
            }
        });
        Ok(Self { base_url, state, accepting })
    }

    /// Requests that came for a path.
    pub(crate) fn requests(&self, path: &str) -> u32 {
        lock(&self.state).requests.get(path).copied().unwrap_or(0)
    }

    /// How much later than allowed each repeated request came, in ms.
    pub(crate) fn margins(&self) -> Vec<i64> {
        lock(&self.state).margins.clone()
    }
}

impl Drop for Odd {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap_or_else(PoisonError::into_inner)
}

async fn serve(stream: TcpStream, state: Arc<Mutex<State>>) -> io::Result<()> {
    let mut connection = Connection::new(stream);
    while let Some(request) = connection.request().await? {
        let reply = answer(&request, &state);
        if !connection.reply(&request, &reply).await? {
            break;
        }
    }
    Ok(())
}

fn answer(request: &Request, state: &Mutex<State>) -> Reply {
    let mut state = lock(state);
    *state.requests.entry(request.path.clone()).or_default() += 1;
    let mut segments = request.path.split('/').skip(1);
    match (segments.next(), segments.next()) {
        (Some("redirect"), Some(status)) => {
            let status = status.parse().unwrap_or(307);
            Reply { status, headers: String::new(), body: String::new() }.with("location", "/led-here")
        }
        (Some("wait"), Some(how)) => put_off(request, how, &mut state),
        _ => Reply::json(201, &json!({"id": "odd"})),
    }
}

/// The first request is told when to come again; the second is measured against it.
fn put_off(request: &Request, how: &str, state: &mut State) -> Reply {
    let (id, now) = (request.text("id"), SystemTime::now());
    if let Some(allowed) = state.allowed.get(&id) {
        let margin = match now.duration_since(*allowed) {
            Ok(late) => i64::try_from(late.as_millis()).unwrap_or(i64::MAX),
            // Rounded away from zero: half a millisecond early is early.
            Err(early) => -i64::try_from(early.duration().as_millis()).unwrap_or(i64::MAX) - 1,
        };
        state.margins.push(margin);
        return Reply::json(201, &json!({"id": "odd"}));
    }
    let status = if how.starts_with("429") { 429 } else { 503 };
    let (allowed, words) = if how.ends_with("date") {
        // A date has whole seconds: this one says what is meant exactly.
        let words = httpdate::fmt_http_date(now + Duration::from_secs(2));
        (httpdate::parse_http_date(&words).unwrap_or(now), words)
    } else {
        (now + Duration::from_secs(1), "1".to_owned())
    };
    state.allowed.insert(id, allowed);
    Reply::json(status, &json!({})).with("retry-after", &words)
}
