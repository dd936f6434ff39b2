//! What the destination may do with a request.

use std::time::Duration;

use rand::RngExt;
use rand::rngs::StdRng;

/// One way to treat one request. "Effect" means that the request is carried out, as its
/// personality would.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Behaviour {
    /// Carried out and answered.
    Ok,
    /// Carried out and answered after a while, whether the client still waits or not. Meanwhile
    /// its key is in flight.
    OkAfter(Duration),
    /// Not carried out; this answer.
    Status {
        /// The status line's number.
        code: u16,
        /// Besides the length.
        headers: Vec<(String, String)>,
        /// As it goes out.
        body: String,
    },
    /// Carried out, and answered with this status all the same.
    StatusAfterEffect(u16),
    /// Closed before anything is read; the request is not recorded. Scripted, it takes the next
    /// new connection, whatever that was to ask for: of what was not read, no path is known. On a
    /// kept-alive connection or out of a mix it closes after the head.
    CloseOnAccept,
    /// Read to the end, then closed without a word.
    CloseAfterRead {
        /// Carried out.
        effect: bool,
    },
    /// Read to the end, then reset.
    ResetAfterRead {
        /// Carried out.
        effect: bool,
    },
    /// Never answered; ends when the client leaves.
    Hang {
        /// Carried out.
        effect: bool,
    },
    /// Answered with something that is no HTTP.
    Garbage {
        /// Carried out.
        effect: bool,
    },
    /// The beginning of a status line, then closed.
    PartialHead,
    /// A success whose body ends too early.
    CutBody {
        /// Carried out.
        effect: bool,
    },
    /// Carried out; the answer's body trickles, for some 100 ms.
    SlowBody,
    /// Carried out; the answer's body has at least this many bytes.
    HugeBody(usize),
    /// Pointed to another address.
    Redirect307,
    /// Refused with a text full of mark-up, control characters and endless lines.
    HostileText,
    /// Carried out; the answer is JSON of another shape than promised.
    WrongJson,
}

impl Behaviour {
    /// A bare status with a JSON error.
    pub fn status(code: u16) -> Self {
        Self::error(code, "error", "Something is not as it should be")
    }

    /// A status with a code and a message as JSON.
    pub fn error(code: u16, error: &str, message: &str) -> Self {
        let body = serde_json::json!({"code": error, "message": message}).to_string();
        Self::Status { code, headers: vec![("content-type".into(), "application/json".into())], body }
    }

    /// A status that asks for a wait.
    pub fn retry_after(code: u16, seconds: u64) -> Self {
        let headers = vec![("retry-after".into(), seconds.to_string())];
        Self::Status { code, headers, body: String::new() }
    }
}

/// Behaviours and how often each is drawn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mix(Vec<(u32, Behaviour)>);

impl Mix {
    /// Weights are relative to their sum.
    pub fn new(weighted: impl Into<Vec<(u32, Behaviour)>>) -> Self {
        Self(weighted.into())
    }

    /// One behaviour by weight; the plain one when nothing has a weight.
    pub(super) fn draw(&self, rng: &mut StdRng) -> Behaviour {
        let total: u32 = self.0.iter().map(|(weight, _)| weight).sum();
        if total == 0 {
            return Behaviour::Ok;
        }
        let mut left = rng.random_range(0..total);
        for (weight, behaviour) in &self.0 {
            if left < *weight {
                return behaviour.clone();
            }
            left -= weight;
        }
        Behaviour::Ok
    }
}

/// What the demo's four paths do, so that every state a person can meet appears within seconds.
pub fn demo_behaviours() -> [(&'static str, Mix); 4] {
    let down = || Behaviour::retry_after(503, 1);
    let lost = || Behaviour::CloseAfterRead { effect: true };
    [
        (
            "/lookup/tickets",
            Mix::new([
                (12, Behaviour::Ok),
                (3, down()),
                (2, Behaviour::Hang { effect: true }),
                (2, Behaviour::Hang { effect: false }),
                (2, lost()),
                (2, Behaviour::error(422, "unknown_customer", "There is no such customer")),
                (1, Behaviour::HostileText),
            ]),
        ),
        (
            "/keyed/charges",
            Mix::new([
                (14, Behaviour::Ok),
                (3, down()),
                (2, Behaviour::retry_after(429, 2)),
                (2, Behaviour::StatusAfterEffect(500)),
                (2, Behaviour::CutBody { effect: true }),
                (2, Behaviour::error(402, "card_declined", "The card was declined")),
                (1, Behaviour::OkAfter(Duration::from_secs(3))),
            ]),
        ),
        (
            "/plain/receipts",
            Mix::new([
                (14, Behaviour::Ok),
                (2, lost()),
                (2, Behaviour::Hang { effect: true }),
                (1, Behaviour::ResetAfterRead { effect: false }),
                (2, Behaviour::error(422, "invalid_address", "The e-mail address is not valid")),
                (1, Behaviour::Garbage { effect: true }),
            ]),
        ),
        (
            "/keyed/contacts",
            Mix::new([
                (18, Behaviour::Ok),
                (2, Behaviour::retry_after(429, 1)),
                (1, Behaviour::error(401, "token_expired", "The access token has expired")),
                (1, Behaviour::error(403, "no_permission", "This account may not change contacts")),
                (1, Behaviour::SlowBody),
            ]),
        ),
    ]
}
