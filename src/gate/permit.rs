//! The right to send once, and what must be given back for it.

use std::time::{Duration, Instant};

use uuid::Uuid;

use super::lanes::Slot;
use super::render::Rendered;
use crate::domain::attempt::StoredRequest;
use crate::domain::classify::Event;
use crate::domain::time::Timestamp;
use crate::store::work::WorkRow;

/// The right to send one step's request once. Only the gate makes one, after its checks passed and
/// the attempt stands in the ledger; sending takes it by value.
///
/// It cannot be made by hand:
///
/// ```compile_fail
/// use dead_letter_office::gate::Permit;
/// let forged = Permit { held: todo!() };
/// ```
///
/// ```compile_fail
/// use dead_letter_office::gate::Permit;
/// let forged = Permit::default();
/// ```
///
/// ```compile_fail
/// use dead_letter_office::gate::Permit;
/// let forged: Permit = serde_json::from_str("{}").unwrap();
/// ```
///
/// It cannot be used twice, copied or cloned:
///
/// ```compile_fail
/// use dead_letter_office::domain::{classify::Event, time::Timestamp};
/// use dead_letter_office::gate::Permit;
/// fn twice(permit: Permit, first: Event, second: Event, at: Timestamp) {
///     let _ = permit.ended(first, at);
///     let _ = permit.ended(second, at);
/// }
/// ```
///
/// ```compile_fail
/// use dead_letter_office::gate::Permit;
/// fn copied(permit: &Permit) -> Permit {
///     permit.clone()
/// }
/// ```
///
/// The same code with one use compiles, so the refusals above are about the second:
///
/// ```
/// use dead_letter_office::domain::{classify::Event, time::Timestamp};
/// use dead_letter_office::gate::{Permit, Settlement};
/// fn once(permit: Permit, event: Event, at: Timestamp) -> Settlement {
///     permit.ended(event, at)
/// }
/// ```
#[must_use = "an attempt that is marked as sending has to be sent and settled"]
#[derive(Debug)]
pub struct Permit {
    held: Box<Held>,
}

/// A step that was handed to a program: what it is given, and by what it is known when it reports.
#[derive(Debug)]
pub struct Claim {
    /// The attempt.
    pub attempt: Uuid,
    /// Counts the claims of the operation's work: whoever settles it must know this.
    pub fence: i64,
    /// When it began.
    pub started_at: Timestamp,
    /// What is to be done.
    pub request: StoredRequest,
    /// What is known of the step.
    pub facts: WorkRow,
}

/// What the gate remembers of an attempt while it is out of the database.
#[derive(Debug)]
pub(super) struct Held {
    /// The facts it was admitted on.
    pub(super) work: WorkRow,
    /// The attempt.
    pub(super) attempt: Uuid,
    /// Counts this claim of the work.
    pub(super) fence: i64,
    /// When the round began.
    pub(super) since: Timestamp,
    /// When the attempt began.
    pub(super) started_at: Timestamp,
    /// When this generation was first sent.
    pub(super) first_sent_at: Timestamp,
    /// What is to be sent, or asked.
    pub(super) request: StoredRequest,
    /// Of a question: where our data would stand in the answer, and what it would be.
    pub(super) expected: Vec<(String, String)>,
    /// The last instant at which sending may begin, so that it ends before the lease does.
    pub(super) send_by: Instant,
    /// The place it takes in its lane until it is settled.
    pub(super) _slot: Slot,
}

impl Held {
    /// Of an attempt whose holder is not here: its worker was lost, or is a program of the user's.
    pub(super) fn out_of_hand(work: WorkRow, now: Timestamp) -> Self {
        Self {
            attempt: work.attempt_id.unwrap_or_default(),
            fence: work.fence,
            since: work.since,
            started_at: work.live_since.unwrap_or(now),
            first_sent_at: work.first_sent_at.unwrap_or(now),
            request: StoredRequest::default(),
            expected: Vec::new(),
            send_by: Instant::now(),
            _slot: Slot::default(),
            work,
        }
    }

    /// Takes the request out of what was rendered for it.
    pub(super) fn take(&mut self, rendered: &mut Rendered) {
        match rendered {
            Rendered::First(request) | Rendered::Again(request) => self.request = std::mem::take(request),
            Rendered::Question(asking) => {
                self.request = std::mem::take(&mut asking.request);
                self.expected = std::mem::take(&mut asking.expected);
            }
            Rendered::Passed(_) | Rendered::Impossible(_) => {}
        }
    }
}

impl Permit {
    pub(super) fn new(held: Held) -> Self {
        Self { held: Box::new(held) }
    }

    /// What is to be sent, without credentials.
    pub fn request(&self) -> &StoredRequest {
        &self.held.request
    }

    /// The configured destination's name.
    pub fn destination(&self) -> &str {
        &self.held.work.destination
    }

    /// The attempt that this permits.
    pub fn attempt(&self) -> Uuid {
        self.held.attempt
    }

    /// Its operation.
    pub fn operation(&self) -> Uuid {
        self.held.work.operation_id
    }

    /// Hands it to a program that is not here: its word settles the attempt.
    pub(super) fn hand_out(self) -> Claim {
        let Held { attempt, fence, started_at, request, work, .. } = *self.held;
        Claim { attempt, fence, started_at, request, facts: work }
    }

    /// How long the sender may still wait before it begins; absent when it must not begin any more.
    pub fn time_left(&self) -> Option<Duration> {
        self.held.send_by.checked_duration_since(Instant::now())
    }

    /// Gives the permit back with what happened.
    pub fn ended(self, event: Event, at: Timestamp) -> Settlement {
        Settlement { held: self.held, event, at }
    }
}

/// What happened to a permitted send; [`super::Gate::turn`] takes it.
#[must_use = "an attempt that ended has to be settled"]
#[derive(Debug)]
pub struct Settlement {
    pub(super) held: Box<Held>,
    pub(super) event: Event,
    pub(super) at: Timestamp,
}
