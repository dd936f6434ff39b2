//! A connection's bytes, with the time that each kind of silence may last, and with our own words
//! where the HTTP library would refuse in none.

use std::io::{self, IoSlice};
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::task::{Context, Poll, ready};
use std::time::Duration;

use axum::body::{Body, Bytes, HttpBody};
use axum::http::StatusCode;
use bytes::Buf as _;
use hyper::body::Incoming;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio::time::{Instant, Sleep, sleep};

use super::refusal::Refusals;

/// How long a client that was answered early is listened to, so that it can read why: closing on bytes that
/// were not read discards what was written.
const LINGER: Duration = Duration::from_secs(1);

const WAITING: u8 = 0;
const ASKED: u8 = 1;
const TOLD: u8 = 2;

/// Where a connection stands: it waits for a request, one is being answered, or its answer was
/// handed over whole and is not sent to the end yet.
#[derive(Debug, Default)]
pub(super) struct Phase {
    at: AtomicU8,
    unheard: AtomicBool,
}

impl Phase {
    /// A request's head has come.
    pub(super) fn asked(&self) {
        self.unheard.store(false, Ordering::Relaxed);
        self.at.store(ASKED, Ordering::Relaxed);
    }

    /// The last request's body was given up before its end: what comes next is its rest, perhaps. Such
    /// a connection has to end with the answer, since nobody could say where the next request begins.
    pub(super) fn is_unheard(&self) -> bool {
        self.unheard.load(Ordering::Relaxed)
    }

    fn is(&self, phase: u8) -> bool {
        self.at.load(Ordering::Relaxed) == phase
    }
}

/// A request's body, which says when it was given up before its end.
#[derive(Debug)]
pub(super) struct Heard {
    body: Incoming,
    ended: bool,
    phase: Arc<Phase>,
}

impl Heard {
    pub(super) fn new(body: Incoming, phase: Arc<Phase>) -> Self {
        Self { body, ended: false, phase }
    }
}

impl HttpBody for Heard {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, hyper::Error>>> {
        let frame = ready!(Pin::new(&mut self.body).poll_frame(cx));
        self.ended = frame.is_none();
        Poll::Ready(frame)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Heard {
    fn drop(&mut self) {
        if !self.ended && !self.body.is_end_stream() {
            self.phase.unheard.store(true, Ordering::Relaxed);
        }
    }
}

/// An answer's body, which says when it was handed over whole.
#[derive(Debug)]
pub(super) struct Told {
    body: Body,
    phase: Arc<Phase>,
}

impl Told {
    pub(super) fn new(body: Body, phase: Arc<Phase>) -> Self {
        Self { body, phase }
    }
}

impl HttpBody for Told {
    type Data = Bytes;
    type Error = axum::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<hyper::body::Frame<Bytes>, axum::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> hyper::body::SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Told {
    fn drop(&mut self) {
        self.phase.at.store(TOLD, Ordering::Relaxed);
    }
}

/// What the clock runs for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Silence {
    /// The first byte of a first request, or the rest of a head.
    Head,
    /// The next request.
    Idle,
    /// The client does not read.
    Stalled,
    /// The client was answered early, and may finish talking.
    Linger,
}

/// How long each may last.
#[derive(Clone, Copy, Debug)]
pub(super) struct Patience {
    /// For the rest of a head, however many bytes come of it, and for each part of an answer.
    pub(super) busy: Duration,
    /// For the next request.
    pub(super) idle: Duration,
}

impl Patience {
    fn with(self, silence: Silence) -> Duration {
        match silence {
            Silence::Head | Silence::Stalled => self.busy,
            Silence::Idle => self.idle,
            Silence::Linger => LINGER,
        }
    }
}

/// A connection.
pub(super) struct Wire {
    stream: TcpStream,
    phase: Arc<Phase>,
    refusals: Arc<Refusals>,
    patience: Patience,
    clock: Pin<Box<Sleep>>,
    runs_for: Option<Silence>,
    /// No request has come yet.
    first: bool,
    /// Bytes of a head have come, and not all of them.
    begun: bool,
    /// What is left to write of our refusal; empty when it is written.
    refusal: Option<Bytes>,
}

impl Wire {
    pub(super) fn new(
        stream: TcpStream,
        phase: Arc<Phase>,
        refusals: Arc<Refusals>,
        patience: Patience,
    ) -> Self {
        let clock = Box::pin(sleep(patience.busy));
        let (runs_for, refusal) = (None, None);
        Self { stream, phase, refusals, patience, clock, runs_for, first: true, begun: false, refusal }
    }

    /// Whether a silence has lasted too long, counted from when it was first asked about.
    fn is_over(&mut self, silence: Silence, cx: &mut Context<'_>) -> bool {
        if self.runs_for != Some(silence) {
            self.runs_for = Some(silence);
            self.clock.as_mut().reset(Instant::now() + self.patience.with(silence));
        }
        self.clock.as_mut().poll(cx).is_ready()
    }

    /// Passes on what came of a write, unless the client has not read for too long.
    fn moving<T>(&mut self, written: Poll<io::Result<T>>, cx: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_ready() {
            self.runs_for = None;
        } else if self.is_over(Silence::Stalled, cx) {
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }

    /// Writes what is left of our refusal.
    fn poll_refusal(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        while let Some(left) = self.refusal.as_mut().filter(|left| !left.is_empty()) {
            let written = Pin::new(&mut self.stream).poll_write(cx, left);
            if let Poll::Ready(Ok(count)) = written {
                left.advance(count);
            }
            ready!(self.moving(written, cx))?;
        }
        Poll::Ready(Ok(()))
    }

    /// The HTTP library writes although nothing was asked: it refuses. Our words take the place of
    /// its own, which are a bare status line. On a connection that is still busy with an earlier
    /// answer they are left as they are.
    fn refuse(&mut self, theirs: &[u8], cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        if self.refusal.is_none() {
            let status = theirs.get(9..12).and_then(|digits| StatusCode::from_bytes(digits).ok());
            self.refusal = Some(self.refusals.answer(status.unwrap_or(StatusCode::BAD_REQUEST)));
        }
        ready!(self.poll_refusal(cx))?;
        Poll::Ready(Ok(theirs.len()))
    }

    /// Hears a client out that was refused, or not heard to its end.
    fn poll_linger(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut unread = [0; 8 * 1024];
        while !self.is_over(Silence::Linger, cx) {
            let mut buffer = ReadBuf::new(&mut unread);
            match ready!(Pin::new(&mut self.stream).poll_read(cx, &mut buffer)) {
                Ok(()) if !buffer.filled().is_empty() => {}
                _ => break,
            }
        }
        Poll::Ready(())
    }
}

impl AsyncRead for Wire {
    fn poll_read(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let before = buffer.filled().len();
        if this.refusal.is_none() {
            let read = Pin::new(&mut this.stream).poll_read(cx, buffer);
            if !this.phase.is(WAITING) {
                return read;
            }
            if read.is_ready() {
                this.begun |= buffer.filled().len() > before;
                return read;
            }
            let silence = if this.first || this.begun { Silence::Head } else { Silence::Idle };
            if !this.is_over(silence, cx) {
                return Poll::Pending;
            }
            // Who said nothing at all is told nothing.
            if this.begun {
                this.refusal = Some(this.refusals.answer(StatusCode::REQUEST_TIMEOUT));
            }
        }
        ready!(this.poll_refusal(cx))?;
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

impl AsyncWrite for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.phase.is(WAITING) {
            return this.refuse(bytes, cx);
        }
        let written = Pin::new(&mut this.stream).poll_write(cx, bytes);
        this.moving(written, cx)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        if this.phase.is(WAITING) {
            let first = parts.iter().find(|part| !part.is_empty());
            return this.refuse(first.map_or(&[], |part| part), cx);
        }
        let written = Pin::new(&mut this.stream).poll_write_vectored(cx, parts);
        this.moving(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusal(cx))?;
        // All that was handed over is with the system by now.
        if this.phase.is(TOLD) {
            this.phase.at.store(WAITING, Ordering::Relaxed);
            (this.runs_for, this.first, this.begun) = (None, false, false);
            // From here on, although nobody may read before the next byte comes.
            let _ = this.is_over(Silence::Idle, cx);
        }
        Pin::new(&mut this.stream).poll_flush(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        ready!(this.poll_refusal(cx))?;
        ready!(Pin::new(&mut this.stream).poll_shutdown(cx))?;
        if this.refusal.is_some() || this.phase.is_unheard() {
            ready!(this.poll_linger(cx));
        }
        Poll::Ready(Ok(()))
    }
}
