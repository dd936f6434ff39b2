//! The destinations: one listener for each class, and every way to fail that a network has.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use serde_json::json;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

use crate::class::Class;
use crate::effects::{Claim, Memory};
use crate::wire::{Connection, Reply, Request};

/// What may go wrong with one request.
#[derive(Clone, Copy, Debug)]
enum Fault {
    None,
    /// Closed before a byte is read.
    Unread,
    /// Read, not carried out, and closed or reset.
    CutBefore {
        reset: bool,
    },
    /// Carried out, and closed or reset.
    CutAfter {
        reset: bool,
    },
    /// Carried out, and never answered.
    Silent,
    /// Carried out after the client gave up waiting.
    Late,
    /// Carried out a moment later than usual, but in time.
    Slow,
    /// Carried out, and answered with half an answer or none.
    HalfAnswer,
    Garbage,
    /// An error, before or after the effect.
    Error {
        status: u16,
        effect: bool,
        retry_after: bool,
    },
}

/// Weights of the faults; what is left of 100 goes well.
const FAULTS: [(u32, Fault); 15] = [
    (2, Fault::Unread),
    (2, Fault::CutBefore { reset: false }),
    (2, Fault::CutBefore { reset: true }),
    (5, Fault::CutAfter { reset: false }),
    (2, Fault::CutAfter { reset: true }),
    (3, Fault::Silent),
    (3, Fault::Late),
    (4, Fault::Slow),
    (2, Fault::HalfAnswer),
    (1, Fault::Garbage),
    (2, Fault::Error { status: 500, effect: false, retry_after: false }),
    (3, Fault::Error { status: 500, effect: true, retry_after: false }),
    (3, Fault::Error { status: 503, effect: false, retry_after: true }),
    (3, Fault::Error { status: 422, effect: false, retry_after: false }),
    (3, Fault::Error { status: 429, effect: false, retry_after: true }),
];

struct Shared {
    class: Class,
    failing: AtomicBool,
    rng: Mutex<StdRng>,
    memory: Mutex<Memory>,
}

impl Shared {
    fn memory(&self) -> MutexGuard<'_, Memory> {
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn draw(&self) -> Fault {
        if !self.failing.load(Ordering::Relaxed) {
            return Fault::None;
        }
        let mut left = self.rng.lock().unwrap_or_else(PoisonError::into_inner).random_range(0..100);
        for (weight, fault) in FAULTS {
            if left < weight {
                return fault;
            }
            left -= weight;
        }
        Fault::None
    }
}

/// Carries a request out in a task of its own: what was begun ends, whoever hangs up meanwhile.
async fn effect(shared: &Arc<Shared>, request: &Request, after: Duration) -> io::Result<Reply> {
    let (shared, request) = (Arc::clone(shared), request.clone());
    let work = async move {
        // Taken before the wait: meanwhile a keyed destination has the key in flight.
        let claim = shared.memory().claim(&request);
        tokio::time::sleep(after).await;
        match claim {
            Claim::Settled(reply) => Ok(reply),
            Claim::Free => shared.memory().carry_out(&request),
        }
    };
    tokio::spawn(work).await.map_err(io::Error::other)?
}

/// One destination.
pub(crate) struct Destination {
    shared: Arc<Shared>,
    pub(crate) address: SocketAddr,
    pub(crate) file: PathBuf,
    accepting: Mutex<JoinHandle<()>>,
}

impl Destination {
    pub(crate) async fn start(class: Class, folder: &Path, seed: u64) -> io::Result<Self> {
        let file = folder.join(format!("effects-{}.ndjson", class.letter()));
        let shared = Arc::new(Shared {
            class,
            failing: AtomicBool::new(false),
            rng: Mutex::new(StdRng::seed_from_u64(seed)),
            memory: Mutex::new(Memory::new(class, &file)?),
        });
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let accepting = Mutex::new(tokio::spawn(accept(listener, Arc::clone(&shared))));
        Ok(Self { shared, address, file, accepting })
    }

    pub(crate) fn class(&self) -> Class {
        self.shared.class
    }

    /// From now on requests fail by the table of faults, or none does.
    pub(crate) fn fail(&self, failing: bool) {
        self.shared.failing.store(failing, Ordering::Relaxed);
    }

    /// Refuses connections for a while; those that stand are cut.
    pub(crate) async fn refuse_for(&self, span: Duration) -> io::Result<()> {
        self.accepting().abort();
        tokio::time::sleep(span).await;
        let listener = TcpListener::bind(self.address).await?;
        *self.accepting() = tokio::spawn(accept(listener, Arc::clone(&self.shared)));
        Ok(())
    }

    fn accepting(&self) -> MutexGuard<'_, JoinHandle<()>> {
        self.accepting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The reference of an operation's effect, when there is one.
    pub(crate) fn reference(&self, id: &str) -> Option<String> {
        self.shared.memory().reference(id)
    }

    /// Operations whose requests were not the same to the byte.
    pub(crate) fn differed(&self) -> Vec<String> {
        self.shared.memory().differed.clone()
    }

    pub(crate) fn requests(&self) -> u64 {
        self.shared.memory().requests
    }
}

impl Drop for Destination {
    fn drop(&mut self) {
        self.accepting().abort();
    }
}

async fn accept(listener: TcpListener, shared: Arc<Shared>) {
    let mut connections = JoinSet::new();
    while let Ok((stream, _)) = listener.accept().await {
        while connections.try_join_next().is_some() {}
        connections.spawn(serve(stream, Arc::clone(&shared)));
    }
}

/// Whatever breaks a connection is the client's to notice.
async fn serve(stream: TcpStream, shared: Arc<Shared>) -> io::Result<()> {
    let mut open = Some(Connection::new(stream));
    while let Some(connection) = open.take() {
        open = exchange(connection, &shared).await?;
    }
    Ok(())
}

async fn exchange(mut connection: Connection, shared: &Arc<Shared>) -> io::Result<Option<Connection>> {
    let fault = shared.draw();
    if matches!(fault, Fault::Unread) {
        return Ok(None);
    }
    let Some(request) = connection.request().await? else { return Ok(None) };
    if request.method == "GET" {
        let reply = match fault {
            Fault::Error { status, .. } => Reply::json(status, &json!({})),
            Fault::CutBefore { .. } => return Ok(None),
            _ => shared.memory().look_up(&request.path),
        };
        return Ok(connection.reply(&request, &reply).await?.then_some(connection));
    }
    shared.memory().arrived(&request);
    let at_once = Duration::ZERO;
    let reply = match fault {
        Fault::None | Fault::Unread => effect(shared, &request, at_once).await?,
        Fault::Slow => effect(shared, &request, Duration::from_millis(100)).await?,
        Fault::Late => effect(shared, &request, Duration::from_millis(450)).await?,
        Fault::CutBefore { reset } => return cut(connection, reset),
        Fault::CutAfter { reset } => {
            effect(shared, &request, at_once).await?;
            return cut(connection, reset);
        }
        Fault::Silent => {
            effect(shared, &request, at_once).await?;
            connection.until_left().await?;
            return Ok(None);
        }
        Fault::HalfAnswer => {
            let reply = effect(shared, &request, at_once).await?;
            connection.half(&reply).await?;
            return Ok(None);
        }
        Fault::Garbage => {
            effect(shared, &request, at_once).await?;
            connection.garbage().await?;
            return Ok(None);
        }
        Fault::Error { status, effect: happens, retry_after } => {
            if happens {
                effect(shared, &request, at_once).await?;
            }
            let reply = Reply::json(status, &json!({"message": "not now"}));
            if retry_after { reply.with("retry-after", "1") } else { reply }
        }
    };
    Ok(connection.reply(&request, &reply).await?.then_some(connection))
}

fn cut(connection: Connection, reset: bool) -> io::Result<Option<Connection>> {
    if reset {
        connection.reset()?;
    }
    Ok(None)
}
