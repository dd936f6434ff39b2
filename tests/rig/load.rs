//! Clients that submit without a pause, and try again until they are answered.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{RngExt as _, SeedableRng as _};
use tokio::sync::watch;
use tokio::task::JoinSet;

use crate::api::{Api, Reply};
use crate::class::Class;

/// Clients at once.
const CLIENTS: u64 = 6;
/// One in so many submissions is sent again after it was answered.
const AGAIN: u32 = 10;

/// An operation that the API said it accepted.
#[derive(Clone, Debug)]
pub(crate) struct Accepted {
    pub(crate) class: Class,
    /// The key that the client chose.
    pub(crate) key: String,
    /// The operation's id.
    pub(crate) id: String,
}

/// What was accepted so far.
#[derive(Default)]
pub(crate) struct Book {
    accepted: Mutex<Vec<Accepted>>,
    /// Submissions that had to be sent more than once.
    pub(crate) repeated: AtomicU64,
}

impl Book {
    pub(crate) fn add(&self, accepted: Accepted) {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).push(accepted);
    }

    pub(crate) fn all(&self) -> Vec<Accepted> {
        self.accepted.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// One that was accepted of late.
    pub(crate) fn recent(&self, back: usize) -> Option<Accepted> {
        let accepted = self.accepted.lock().unwrap_or_else(PoisonError::into_inner);
        accepted.iter().rev().nth(back).cloned()
    }
}

/// Submits until told to stop; what is under way then is still brought to its end.
pub(crate) fn start(
    api: &Arc<Api>,
    book: &Arc<Book>,
    seed: u64,
    stop: &watch::Receiver<bool>,
) -> JoinSet<()> {
    let mut clients = JoinSet::new();
    for number in 0..CLIENTS {
        let rng = StdRng::seed_from_u64(seed ^ (number + 1));
        clients.spawn(client(Arc::clone(api), Arc::clone(book), number, rng, stop.clone()));
    }
    clients
}

async fn client(api: Arc<Api>, book: Arc<Book>, number: u64, mut rng: StdRng, stop: watch::Receiver<bool>) {
    let mut count = 0_u32;
    while !*stop.borrow() {
        count += 1;
        let class = Class::ALL[rng.random_range(0..Class::ALL.len())];
        let key = format!("{}-{number}-{count}", class.letter());
        let Some(id) = submit(&api, &book, class, &key, &mut rng).await else { return };
        book.add(Accepted { class, key: key.clone(), id: id.clone() });
        if rng.random_range(0..AGAIN) == 0
            && let Reply::Answered(status, body) =
                api.submit(rng.random_range(0..2), class.letter(), &key).await
            && status != 503
            && (status != 200 || body["duplicate"] != true || body["id"] != id.as_str())
        {
            api.complain(format!("{key} was submitted again and answered {status}: {body}"));
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(20..120))).await;
    }
}

/// Submits under one key until it is answered; the operation's id. Nothing when it was refused,
/// which no submission of the rig deserves.
pub(crate) async fn submit(
    api: &Api,
    book: &Book,
    class: Class,
    key: &str,
    rng: &mut StdRng,
) -> Option<String> {
    for try_number in 0.. {
        match api.submit(rng.random_range(0..2), class.letter(), key).await {
            Reply::Answered(200 | 201, body) => {
                if body["key"] != key {
                    api.complain(format!("{key} was accepted as {body}"));
                }
                return body["id"].as_str().map(str::to_owned);
            }
            Reply::Answered(503, _) | Reply::Unanswered => {}
            Reply::Answered(status, body) => {
                api.complain(format!("{key} was refused with {status}: {body}"));
                return None;
            }
        }
        if try_number == 0 {
            book.repeated.fetch_add(1, Ordering::Relaxed);
        }
        tokio::time::sleep(Duration::from_millis(rng.random_range(30..150))).await;
    }
    None
}
