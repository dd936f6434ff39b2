//! The way in: who may hold a connection, for how long, and how much may come over it before a
//! handler is asked at all.
//!
//! A client that is slow on purpose costs one connection, for as long as `[server] client_timeout`:
//! by then a head must be whole and an answer be read on; bodies are timed by [`slow`]. And one
//! address cannot take what the others need, see [`room`].

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
use axum::http::header::CONNECTION;
use axum::http::{HeaderValue, Request};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt as _;

use crate::config::Server;
use refusal::Refusals;
use room::{Room, Seat};
use wire::{Heard, Patience, Phase, Told, Wire};

/// The most that the head of a request may have, in bytes: cookies and filters need far less.
const MOST_HEAD: usize = 32 * 1024;
/// The most headers that a request may have. Browsers and proxies send some thirty.
const MOST_HEADERS: usize = 100;
/// What a connection buffers of a body that is not read yet, in bytes.
const MOST_BUFFERED: usize = 128 * 1024;
/// A connection may wait this long for its next request. Clients keep theirs for about a minute, and
/// one that is closed here first makes their next request fail.
const IDLE: Duration = Duration::from_secs(75);
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
    let patience = Patience { busy: server.client_timeout, idle: IDLE };
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
        // An answer is written whole, so that waiting for more of it only delays.
        let _ = stream.set_nodelay(true);
        let phase = Arc::new(Phase::default());
        let wire = Wire::new(stream, Arc::clone(&phase), Arc::clone(&refusals), patience);
        lines.spawn(line(router.clone(), wire, phase, peer, seat, stop.clone()));
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
    wire: Wire,
    phase: Arc<Phase>,
    peer: SocketAddr,
    seat: Seat,
    mut stop: watch::Receiver<bool>,
) {
    let service = service_fn(|request: Request<Incoming>| {
        phase.asked();
        let (router, phase) = (router.clone(), Arc::clone(&phase));
        let mut request = request.map(|body| Body::new(Heard::new(body, Arc::clone(&phase))));
        request.extensions_mut().insert(ConnectInfo(peer));
        async move {
            let mut answer = router.oneshot(request).await?;
            if phase.is_unheard() {
                answer.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
            }
            Ok::<_, Infallible>(answer.map(|body| Told::new(body, phase)))
        }
    });
    let connection = http1::Builder::new()
        .max_header_size(MOST_HEAD)
        .max_headers(MOST_HEADERS)
        .max_buf_size(MOST_BUFFERED)
        // The wire keeps the time: it tells a connection that waits from one that is slow.
        .header_read_timeout(None)
        .serve_connection(TokioIo::new(wire), service);
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

#[cfg(test)]
mod tests {
    use axum::http::StatusCode;
    use axum::routing::{get, post};
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    use tokio::net::TcpStream;
    use tokio::sync::Notify;

    use super::*;

    /// Both ends of a connection whose server answers `GET /` and then waits for `idle`.
    async fn connected(idle: Duration) -> TcpStream {
        let router = Router::new().route("/", get(|| async { "HTTP/1.1 400 in a body" }));
        served(router, Patience { busy: Duration::from_secs(20), idle }).await
    }

    async fn served(router: Router, patience: Patience) -> TcpStream {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let client = TcpStream::connect(listener.local_addr().unwrap()).await.unwrap();
        let (stream, peer) = listener.accept().await.unwrap();
        let phase = Arc::new(Phase::default());
        let wire = Wire::new(stream, Arc::clone(&phase), Arc::new(Refusals::new(false)), patience);
        let seat = Room::new(1).take(peer.ip(), false).unwrap();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(async move {
            line(router, wire, phase, peer, seat, stopped).await;
            drop(stop);
        });
        client
    }

    async fn ask(client: &mut TcpStream) -> String {
        client.write_all(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n").await.unwrap();
        let mut answer = [0; 4096];
        let count = client.read(&mut answer).await.unwrap();
        String::from_utf8(answer[..count].to_vec()).unwrap()
    }

    #[tokio::test]
    async fn a_connection_that_waits_is_closed_without_a_word() {
        let mut client = connected(Duration::from_millis(50)).await;
        assert!(ask(&mut client).await.starts_with("HTTP/1.1 200"));
        let mut rest = Vec::new();
        client.read_to_end(&mut rest).await.unwrap();
        assert_eq!(rest, b"");
    }

    #[tokio::test]
    async fn a_refusal_on_a_used_connection_is_ours_and_answers_are_left_alone() {
        let mut client = connected(Duration::from_secs(20)).await;
        for _ in 0..3 {
            let answer = ask(&mut client).await;
            assert!(answer.starts_with("HTTP/1.1 200") && answer.ends_with("in a body"), "{answer}");
        }
        client.write_all(b"what is this\r\n\r\n").await.unwrap();
        let mut rest = String::new();
        client.read_to_string(&mut rest).await.unwrap();
        assert!(rest.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{rest}");
        assert!(rest.contains("content-security-policy: ") && rest.ends_with("</html>"), "{rest}");
        assert_eq!(rest.matches("HTTP/1.1").count(), 1, "{rest}");
    }

    /// A request whose body comes while it is answered without being read, and all that comes back.
    async fn unheard(body: &str, rest: &str) -> String {
        let (asked, told) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = {
            let (asked, told) = (Arc::clone(&asked), Arc::clone(&told));
            move || async move {
                asked.notify_one();
                told.notified().await;
                StatusCode::UNAUTHORIZED
            }
        };
        let patience = Patience { busy: Duration::from_millis(50), idle: Duration::from_secs(20) };
        let mut client = served(Router::new().route("/", post(handler)), patience).await;
        let length = body.len() + rest.len();
        let head = format!("POST / HTTP/1.1\r\nhost: x\r\ncontent-length: {length}\r\n\r\n");
        client.write_all(head.as_bytes()).await.unwrap();
        asked.notified().await;
        client.write_all(body.as_bytes()).await.unwrap();
        told.notify_one();
        let mut answer = vec![0; 4096];
        let count = client.read(&mut answer).await.unwrap();
        answer.truncate(count);
        client.write_all(rest.as_bytes()).await.unwrap();
        client.read_to_end(&mut answer).await.unwrap();
        String::from_utf8(answer).unwrap()
    }

    #[tokio::test]
    async fn the_rest_of_a_body_that_nobody_read_is_no_next_request() {
        for (body, rest) in [("a body", ""), ("the first half", " and the second"), ("", "too late")] {
            let all = unheard(body, rest).await;
            assert!(all.starts_with("HTTP/1.1 401") && all.contains("connection: close\r\n"), "{all}");
            assert_eq!(all.matches("HTTP/1.1").count(), 1, "{all}");
        }
    }
}
