//! What befalls a node: it is killed at an await, or it stands still.
//!
//! A future that is dropped at an await is a node that was killed there: what it held in memory is
//! gone and its transaction is undone. What is left of it is what it had committed, so a blow says
//! how many commits it comes after; how many awaits later it falls then changes nothing that lasts.
//! That keeps a seed's life the same each time it is led, although the threads of the embedded
//! database answer sooner or later.

use std::pin::Pin;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::task::{Context, Poll};

use futures_util::task::AtomicWaker;
use tokio::sync::Notify;

/// When a node is killed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Blow {
    /// So many of its commits still stand.
    pub(super) commits: u32,
    /// So many awaits after the last of them.
    pub(super) awaits: u32,
}

/// What a node's future came to.
pub(super) enum Ended<T> {
    Done(T),
    Killed,
    /// It stands still and may go on later.
    Frozen,
}

/// What befalls one node, from its birth to its end.
#[derive(Default)]
pub(super) struct Fate {
    blow: Mutex<Option<Blow>>,
    /// Nothing that it does lasts any more.
    struck: AtomicBool,
    /// A request of its own killed it.
    killed: AtomicBool,
    frozen: AtomicBool,
    awaits: AtomicU32,
    thaw: Notify,
    waker: AtomicWaker,
}

impl Fate {
    /// Has it killed in what it does next, or lets it live.
    pub(super) fn decree(&self, blow: Option<Blow>) {
        *self.blow.lock().unwrap() = blow;
        self.awaits.store(blow.map_or(0, |blow| blow.awaits), Ordering::SeqCst);
        self.struck.store(blow.is_some_and(|blow| blow.commits == 0), Ordering::SeqCst);
    }

    /// Whether a commit stands. The embedded database asks before each one.
    pub(super) fn commits(&self) -> bool {
        let mut blow = self.blow.lock().unwrap();
        let Some(blow) = blow.as_mut() else { return true };
        if blow.commits == 0 {
            return false;
        }
        blow.commits -= 1;
        if blow.commits == 0 {
            self.struck.store(true, Ordering::SeqCst);
        }
        true
    }

    /// Kills it at once.
    pub(super) fn kill(&self) {
        self.killed.store(true, Ordering::SeqCst);
        self.waker.wake();
    }

    /// Stands still until it is thawed.
    pub(super) async fn freeze(&self) {
        self.frozen.store(true, Ordering::SeqCst);
        self.waker.wake();
        self.thaw.notified().await;
    }

    /// Lets it go on.
    pub(super) fn thaw(&self) {
        self.frozen.store(false, Ordering::SeqCst);
        self.thaw.notify_waiters();
    }

    /// Whether a decreed blow fell, or was about to.
    fn was_struck(&self) -> bool {
        self.struck.load(Ordering::SeqCst) || self.killed.load(Ordering::SeqCst)
    }
}

/// Lives a future until it ends, or its node does. A node stands still between transactions: one that
/// stood still within would hold up the embedded database for as long.
pub(super) async fn live<T>(
    fate: &Fate,
    future: &mut Pin<Box<dyn Future<Output = T>>>,
    at_rest: impl Fn() -> bool,
) -> Ended<T> {
    loop {
        match std::future::poll_fn(|context| step(fate, future, context)).await {
            Ended::Frozen => {
                // A transaction that is being begun or given back is so in a task of its own.
                for _ in 0..8 {
                    tokio::task::yield_now().await;
                }
                if at_rest() {
                    return Ended::Frozen;
                }
            }
            ended => return ended,
        }
    }
}

fn step<T>(
    fate: &Fate,
    future: &mut Pin<Box<dyn Future<Output = T>>>,
    context: &mut Context<'_>,
) -> Poll<Ended<T>> {
    fate.waker.register(context.waker());
    if fate.killed.load(Ordering::SeqCst) {
        return Poll::Ready(Ended::Killed);
    }
    if let Poll::Ready(value) = future.as_mut().poll(context) {
        return Poll::Ready(if fate.was_struck() { Ended::Killed } else { Ended::Done(value) });
    }
    let left = |left: u32| left.checked_sub(1);
    if fate.struck.load(Ordering::SeqCst)
        && fate.awaits.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left).is_err()
    {
        return Poll::Ready(Ended::Killed);
    }
    if fate.frozen.load(Ordering::SeqCst) { Poll::Ready(Ended::Frozen) } else { Poll::Pending }
}
