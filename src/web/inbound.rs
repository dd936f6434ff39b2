//! The way in: who may hold a connection, for how long, and how much may come over it before a
//! handler is asked at all.
//!
//! A client that is slow on purpose costs one connection and nothing else. It has to finish the head
//! of a request in [`wire::HEAD`], its body in what [`slow`] allows, and to read answers without
//! pausing for [`wire::STALLED`]; and one address cannot take what the others need, see [`room`].

pub(super) mod origin;
mod refusal;
mod room;
pub(super) mod slow;
mod wire;

use std::convert::Infallible;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::http::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::config::Server;
use refusal::Refusals;
use room::{Room, Seat};
use wire::{Phase, Told, Wire};

/// The most that the head of a request may have, in bytes: cookies and filters need far less.
const MOST_HEAD: usize = 32 * 1024;
/// The most headers that a request may have. Browsers and proxies send some thirty.
const MOST_HEADERS: usize = 100;
/// What a connection buffers of a body that is not read yet, in bytes.
const MOST_BUFFERED: usize = 128 * 1024;
/// How long no connection is taken when the process has no file handle left for one.
const BREATH: Duration = Duration::from_secs(1);
/// Refusals that are being written; more connections than that are closed without a word.
const MOST_REFUSED: usize = 64;

/// Answers requests until told to stop, then lets those under way end. `closing` is called in
/// between, for requests that would never end by themselves.
pub(super) async fn serve(
    router: Router,
    listener: TcpListener,
    server: &Server,
    mut stop: watch::Receiver<bool>,
    closing: impl FnOnce(),
) -> io::Result<()> {
    let refusals = Arc::new(Refusals::new(server.public_url.scheme() == "https"));
    let room = Room::new(server.max_connections);
    // Dropped with this future, and every connection with it.
    let (mut lines, mut refused) = (JoinSet::new(), JoinSet::new());
    loop {
        let (stream, peer) = tokio::select! {
            biased;
            () = told(&mut stop) => break,
            accepted = listener.accept() => match accepted {
                Ok(accepted) => accepted,
                Err(error) if is_the_peers(&error) => continue,
                Err(error) => {
                    tracing::error!(%error, "no connection can be taken");
                    tokio::time::sleep(BREATH).await;
                    continue;
                }
            },
        };
        while lines.try_join_next().is_some() {}
        while refused.try_join_next().is_some() {}
        let shared = origin::is_in(peer.ip(), &server.trusted_proxies);
        let Some(seat) = room.take(peer.ip(), shared) else {
            if refused.len() < MOST_REFUSED {
                let refusals = Arc::clone(&refusals);
                refused.spawn(async move { refusals.turn_away(stream).await });
            }
            continue;
        };
        lines.spawn(line(router.clone(), stream, peer, seat, Arc::clone(&refusals), stop.clone()));
    }
    drop(listener);
    closing();
    while lines.join_next().await.is_some() {}
    Ok(())
}

async fn told(stop: &mut watch::Receiver<bool>) {
    // Whoever could tell us to stop may be gone; then we stop too.
    let _ = stop.wait_for(|stop| *stop).await;
}

/// Whether only this one connection failed.
fn is_the_peers(error: &io::Error) -> bool {
    use io::ErrorKind::{ConnectionAborted, ConnectionRefused, ConnectionReset};
    matches!(error.kind(), ConnectionAborted | ConnectionRefused | ConnectionReset)
}

/// One connection, from its first request to its last.
async fn line(
    router: Router,
    stream: TcpStream,
    peer: SocketAddr,
    seat: Seat,
    refusals: Arc<Refusals>,
    mut stop: watch::Receiver<bool>,
) {
    // An answer is written whole, so that waiting for more of it only delays.
    let _ = stream.set_nodelay(true);
    let phase = Arc::new(Phase::default());
    let service = service_fn(|request: Request<Incoming>| {
        phase.asked();
        let (router, phase) = (router.clone(), Arc::clone(&phase));
        let mut request = request.map(Body::new);
        request.extensions_mut().insert(ConnectInfo(peer));
        async move {
            let answer = router.oneshot(request).await?;
            Ok::<_, Infallible>(answer.map(|body| Told::new(body, phase)))
        }
    });
    let io = TokioIo::new(Wire::new(stream, Arc::clone(&phase), refusals));
    let connection = http1::Builder::new()
        .max_header_size(MOST_HEAD)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_BUFFERED)
        // The wire keeps the time: it tells a connection that waits from one that is slow.
        .header_read_timeout(None)
        .serve_connection(io, service);
    let mut connection = std::pin::pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => ended,
        () = told(&mut stop) => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = ended {
        tracing::debug!(%error, %peer, "a connection broke off");
    }
    drop(seat);
}
