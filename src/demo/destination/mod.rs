//! A destination on loopback that fails in every way the table of outcomes knows over plain HTTP,
//! and keeps what really happened: each second effect is a second entry.
//!
//! `/keyed/…` honours `Idempotency-Key`, `/upsert/…` sets the thing that its path names, `/lookup/…`
//! can be asked by `external_ref`, `/plain/…` offers none of it.

mod behaviour;
mod faults;
pub(crate) mod http;
mod personality;

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::SeedableRng;
use rand::rngs::StdRng;
use tokio::net::TcpListener;
use tokio::task::{JoinHandle, JoinSet};

pub use behaviour::{Behaviour, Mix, demo_behaviours};
pub use http::Received;
pub use personality::Effect;

use self::http::{Connection, Reply};
use crate::domain::time::{Clock, SystemClock};
use personality::{Claim, Ledger};

/// A running destination; it ends, and its connections with it, when this is dropped.
#[derive(Debug)]
pub struct UnreliableDestination {
    address: SocketAddr,
    shared: Arc<Shared>,
    accepting: JoinHandle<()>,
}

impl UnreliableDestination {
    /// Listens on a loopback address; port 0 picks a free one. `seed` decides what mixes draw.
    pub async fn start(bind: SocketAddr, seed: u64) -> io::Result<Self> {
        if !bind.ip().is_loopback() {
            return Err(io::Error::new(io::ErrorKind::InvalidInput, "only loopback addresses are served"));
        }
        let listener = TcpListener::bind(bind).await?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared(Mutex::new(State {
            ledger: Ledger::default(),
            requests: Vec::new(),
            scripts: Vec::new(),
            mixes: Vec::new(),
            rng: StdRng::seed_from_u64(seed),
        })));
        let accepting = tokio::spawn(accept(listener, Arc::clone(&shared)));
        Ok(Self { address, shared, accepting })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// `http://127.0.0.1:1234`, without a slash at its end.
    pub fn base_url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Everything that really happened, in order.
    pub fn effects(&self) -> Vec<Effect> {
        self.shared.lock().ledger.effects.clone()
    }

    /// Every request that was read to its end, in order, lookups included.
    pub fn requests(&self) -> Vec<Received> {
        self.shared.lock().requests.clone()
    }

    /// How many requests were read to their end.
    pub fn requests_count(&self) -> usize {
        self.shared.lock().requests.len()
    }

    /// The next requests whose path and query begin with `path_prefix` get these behaviours, in
    /// order and after those already scripted. The longest prefix with a script wins.
    pub fn script(&self, path_prefix: &str, behaviours: impl IntoIterator<Item = Behaviour>) {
        let mut state = self.shared.lock();
        let at = state.scripts.iter().position(|(prefix, _)| prefix == path_prefix);
        if let Some(at) = at {
            state.scripts[at].1.extend(behaviours);
        } else {
            state.scripts.push((path_prefix.to_owned(), behaviours.into_iter().collect()));
        }
    }

    /// What requests under this prefix get when nothing is scripted for them. Without it, `Ok`.
    pub fn default_behaviour(&self, path_prefix: &str, mix: Mix) {
        let mut state = self.shared.lock();
        state.mixes.retain(|(prefix, _)| prefix != path_prefix);
        state.mixes.push((path_prefix.to_owned(), mix));
    }

    /// Forgets effects, keys, requests, scripts and defaults.
    pub fn clear(&self) {
        let mut state = self.shared.lock();
        state.ledger.clear();
        state.requests.clear();
        state.scripts.clear();
        state.mixes.clear();
    }
}

impl Drop for UnreliableDestination {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

struct Shared(Mutex<State>);

struct State {
    ledger: Ledger,
    requests: Vec<Received>,
    scripts: Vec<(String, VecDeque<Behaviour>)>,
    mixes: Vec<(String, Mix)>,
    rng: StdRng,
}

impl std::fmt::Debug for Shared {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Shared").finish_non_exhaustive()
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes a scripted close from the front of any script: of a connection that was not read, no
    /// path is known.
    fn closes_unread(&self) -> bool {
        let mut state = self.lock();
        let script =
            state.scripts.iter_mut().find(|(_, script)| script.front() == Some(&Behaviour::CloseOnAccept));
        script.and_then(|(_, script)| script.pop_front()).is_some()
    }

    fn next_behaviour(&self, path: &str) -> Behaviour {
        let State { scripts, mixes, rng, .. } = &mut *self.lock();
        let scripted = scripts
            .iter_mut()
            .filter(|(prefix, script)| path.starts_with(prefix.as_str()) && !script.is_empty())
            .max_by_key(|(prefix, _)| prefix.len())
            .and_then(|(_, script)| script.pop_front());
        scripted.unwrap_or_else(|| {
            mixes
                .iter()
                .filter(|(prefix, _)| path.starts_with(prefix.as_str()))
                .max_by_key(|(prefix, _)| prefix.len())
                .map_or(Behaviour::Ok, |(_, mix)| mix.draw(rng))
        })
    }

    /// Carries a request out at once.
    fn effect(&self, request: &Received) -> Reply {
        let mut state = self.lock();
        match state.ledger.claim(request) {
            Claim::Settled(reply) => reply,
            Claim::Free(key) => state.ledger.carry_out(request, key.as_deref(), SystemClock.now()),
        }
    }

    /// Carries it out after a while; its key is in flight until then.
    async fn effect_after(&self, request: &Received, wait: Duration) -> Reply {
        let claim = self.lock().ledger.claim(request);
        tokio::time::sleep(wait).await;
        match claim {
            Claim::Settled(reply) => reply,
            Claim::Free(key) => self.lock().ledger.carry_out(request, key.as_deref(), SystemClock.now()),
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
        if shared.closes_unread() {
            continue;
        }
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

/// One request and its answer; gives the connection back when another may follow.
async fn exchange(mut connection: Connection, shared: &Shared) -> io::Result<Option<Connection>> {
    let Some(mut request) = connection.head().await? else { return Ok(None) };
    let behaviour = shared.next_behaviour(&request.path);
    if behaviour == Behaviour::CloseOnAccept {
        return Ok(None);
    }
    connection.body(&mut request).await?;
    shared.lock().requests.push(request.clone());
    let effect_if = |wanted: bool| wanted.then(|| shared.effect(&request));
    let reply = match behaviour {
        Behaviour::Ok => shared.effect(&request),
        Behaviour::OkAfter(wait) => shared.effect_after(&request, wait).await,
        Behaviour::Status { code, headers, body } => Reply { code, headers, body: body.into_bytes() },
        Behaviour::StatusAfterEffect(code) => {
            shared.effect(&request);
            personality::refusal(code, "error", "Something went wrong here")
        }
        Behaviour::CloseOnAccept => return Ok(None),
        Behaviour::CloseAfterRead { effect } => {
            effect_if(effect);
            return Ok(None);
        }
        Behaviour::ResetAfterRead { effect } => {
            effect_if(effect);
            connection.reset()?;
            return Ok(None);
        }
        Behaviour::Hang { effect } => {
            effect_if(effect);
            connection.until_left().await?;
            return Ok(None);
        }
        Behaviour::Garbage { effect } => {
            effect_if(effect);
            connection.write(b"\x16\x03\x01 this is no HTTP\r\n\r\n").await?;
            return Ok(None);
        }
        Behaviour::PartialHead => {
            connection.write(b"HTTP/1.1 201 Sta").await?;
            return Ok(None);
        }
        Behaviour::CutBody { effect } => {
            let reply = effect_if(effect).unwrap_or_else(faults::success_without_effect);
            connection.write(&reply.head()).await?;
            connection.write(&reply.body[..reply.body.len() / 2]).await?;
            return Ok(None);
        }
        Behaviour::SlowBody => {
            let reply = shared.effect(&request);
            connection.write(&reply.head()).await?;
            for part in reply.body.chunks(reply.body.len().div_ceil(5).max(1)) {
                tokio::time::sleep(Duration::from_millis(20)).await;
                connection.write(part).await?;
            }
            return Ok((!request.wants_close()).then_some(connection));
        }
        Behaviour::HugeBody(length) => faults::huge(shared.effect(&request), length),
        Behaviour::Redirect307 => faults::redirect(&request),
        Behaviour::HostileText => faults::hostile(),
        Behaviour::WrongJson => {
            shared.effect(&request);
            faults::wrong_json()
        }
    };
    connection.reply(&reply).await?;
    Ok((!request.wants_close()).then_some(connection))
}

#[cfg(test)]
mod tests;
