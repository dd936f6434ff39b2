//! What an answer, or the lack of one, means: one total function over everything that can happen
//! to a request.
//!
//! The rows are numbered as in the table of outcomes that users are shown; the tests walk them all.

mod rules;
mod waits;

use std::time::Duration;

use bytes::Bytes;
use serde_json::Value;

use super::attempt::Outcome;
use super::contract::{Contract, RuleOutcome};
use super::lookup::Finding;
use super::time::Timestamp;
pub use rules::text_of;
use rules::{by_rule, covers, holds, of_rule};
use waits::{limit_told, spent, wait_told};

text_enum! {
    /// What was noticed, in the words that the catalogue explains to people.
    pub enum Symptom {
        /// Row 1: the request could not be built.
        NotBuilt = "not_built",
        /// Row 2: our guard refused the address.
        AddressRefused = "address_refused",
        /// Row 3: held back by a limit of ours.
        HeldBack = "held_back",
        /// Row 4: the worker was lost before it sent.
        LostBeforeSending = "lost_before_sending",
        /// Row 5: the name could not be resolved.
        Dns = "dns",
        /// Row 6: refused, unreachable or no connection in time.
        Connect = "connect",
        /// Row 7: the TLS handshake was cut, stalled or timed out.
        TlsCut = "tls_cut",
        /// Row 8: we refused their certificate or protocol.
        TlsRefused = "tls_refused",
        /// Row 9: our proxy refused the tunnel.
        ProxyRefused = "proxy_refused",
        /// Row 9: our proxy wants credentials.
        ProxyCredential = "proxy_credential",
        /// Row 10: nothing was written.
        NeverWritten = "never_written",
        /// Row 11: HTTP/2 refused the stream unread.
        StreamRefused = "stream_refused",
        /// Row 12: closed or reset without a status line.
        Closed = "closed",
        /// Row 13: no answer in time.
        TimedOut = "timed_out",
        /// Row 14: an answer that is no HTTP.
        Unparseable = "unparseable",
        /// Row 15: the HTTP/2 stream was reset.
        StreamReset = "stream_reset",
        /// Row 16: a TLS alert after the handshake.
        TlsAlert = "tls_alert",
        /// Row 17: the worker was lost after it began to send.
        LostAfterSending = "lost_after_sending",
        /// Row 18: the answer came and could not be stored.
        AnswerNotSaved = "answer_not_saved",
        /// Rows 21 and 23: done.
        Done = "done",
        /// Row 22: taken for processing.
        Accepted = "accepted",
        /// Row 19: done, its result lost on the way.
        ResultLost = "result_lost",
        /// Row 20: a refusal or a fault whose body, which decides, was lost.
        VerdictLost = "verdict_lost",
        /// Row 24: a redirect.
        Redirect = "redirect",
        /// Rows 25, 38 and by rule: refused as it stands.
        Rejected = "rejected",
        /// Row 26: our credential is not accepted.
        Credential = "credential",
        /// Row 27: a business refusal.
        Business = "business",
        /// Row 28: not permitted.
        Forbidden = "forbidden",
        /// Row 29: not found.
        NotFound = "not_found",
        /// Rows 30, 40, 43, 46, 48 and other 5xx: an error over there.
        ServerError = "server_error",
        /// Row 31: this key is being worked on.
        InFlight = "in_flight",
        /// Row 33: this key was used with other data.
        KeyConflict = "key_conflict",
        /// Row 34: a conflict that may be our own earlier effect.
        Conflict = "conflict",
        /// Row 35: gone for good.
        Gone = "gone",
        /// Row 36: too large.
        TooLarge = "too_large",
        /// Rows 37, 41 and by rule: declined before processing.
        NotProcessed = "not_processed",
        /// Row 39: locked.
        Locked = "locked",
        /// Rows 28, 36 and 42: too much at once.
        Throttled = "throttled",
        /// Row 44: not supported there.
        Unsupported = "unsupported",
        /// Rows 45 and 47: a gateway between us had no good answer.
        Gateway = "gateway",
        /// A question was answered: the destination has it.
        Found = "found",
        /// It has something else under our reference.
        FoundOther = "found_other",
        /// It does not have it.
        Absent = "absent",
        /// It does not show it yet.
        TooEarly = "too_early",
        /// The question came to nothing.
        LookupFailed = "lookup_failed",
    }
}

/// What happened to one request.
#[derive(Clone, Debug)]
pub enum Event {
    /// No status line was read; the symptom is one of rows 1 to 18, the text is for people.
    NoAnswer(Symptom, String),
    /// A status line was read.
    Answered(Answer),
    /// The program that carries the step out says what became of it.
    Reported(Report),
}

/// A program's own word on a step that it carried out.
#[derive(Clone, Debug)]
pub struct Report {
    /// What it means.
    pub outcome: RuleOutcome,
    /// JSON, for what it has to show.
    pub result: Bytes,
    /// The id of what it brought about.
    pub reference: Option<String>,
    /// What went wrong, for people.
    pub error: String,
}

/// An HTTP answer as read.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    /// 100 to 999.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// As far as it was read.
    pub body: Bytes,
    /// Its end was read within the cap.
    pub complete: bool,
}

impl Answer {
    /// A header's first value.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The body as JSON, when it arrived whole and is.
    pub fn json(&self) -> Option<Value> {
        if self.complete { serde_json::from_slice(&self.body).ok() } else { None }
    }
}

/// What follows from an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// The step is done.
    Complete,
    /// Again, with backoff; uses up an attempt.
    Retry,
    /// Again, as late as the policy allows; uses up an attempt.
    RetrySlow,
    /// Again, when told; uses up age only.
    Wait,
    /// It may have happened: what the contract class allows.
    FindOut,
    /// No repeat can help: a person.
    DeadLetter,
}

/// An event's meaning.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Classified {
    /// What is known now.
    pub outcome: Outcome,
    /// What was noticed.
    pub symptom: Symptom,
    /// What follows.
    pub action: Action,
    /// Nothing else should be sent there until a person has looked.
    pub pause: bool,
    /// The destination's own word on how long to wait.
    pub wait: Option<Duration>,
    /// The id over there, where a rule says where it stands.
    pub reference: Option<String>,
}

/// The table. Total: every event has exactly one meaning.
pub fn classify(contract: &Contract, event: &Event, now: Timestamp) -> Classified {
    match event {
        Event::NoAnswer(symptom, _) => unanswered(*symptom),
        Event::Answered(answer) => answered(contract, answer, now),
        Event::Reported(report) => {
            Classified { reference: report.reference.clone(), ..of_rule(report.outcome, true) }
        }
    }
}

impl Event {
    /// A body that came with it, as JSON.
    pub fn json(&self) -> Option<Value> {
        match self {
            Self::NoAnswer(..) => None,
            Self::Answered(answer) => answer.json(),
            Self::Reported(report) => serde_json::from_slice(&report.result).ok(),
        }
    }
}

impl Symptom {
    /// What was found, where it speaks of an answered question.
    pub fn finding(self) -> Option<Finding> {
        match self {
            Self::Found => Some(Finding::Found),
            Self::FoundOther => Some(Finding::OtherPayload),
            Self::Absent => Some(Finding::Absent),
            Self::TooEarly => Some(Finding::TooEarly),
            Self::LookupFailed => Some(Finding::Failed),
            _ => None,
        }
    }

    /// Whether it speaks of the destination's health: false when it could not be reached or failed,
    /// true when it answered in order, absent when it says nothing of that.
    pub fn healthy(self) -> Option<bool> {
        use Symptom as S;
        match self {
            S::Dns
            | S::Connect
            | S::TlsCut
            | S::TlsRefused
            | S::ProxyRefused
            | S::StreamRefused
            | S::Closed
            | S::TimedOut
            | S::Unparseable
            | S::StreamReset
            | S::TlsAlert
            | S::ServerError
            | S::Gateway => Some(false),
            S::NotBuilt
            | S::AddressRefused
            | S::HeldBack
            | S::LostBeforeSending
            | S::ProxyCredential
            | S::NeverWritten
            | S::LostAfterSending
            | S::AnswerNotSaved
            | S::Throttled
            | S::LookupFailed => None,
            _ => Some(true),
        }
    }
}

impl Classified {
    const fn new(outcome: Outcome, symptom: Symptom, action: Action) -> Self {
        Self { outcome, symptom, action, pause: false, wait: None, reference: None }
    }

    fn pausing(mut self) -> Self {
        self.pause = true;
        self
    }

    fn after(mut self, wait: Option<Duration>) -> Self {
        self.wait = wait;
        self
    }
}

fn unanswered(symptom: Symptom) -> Classified {
    use Symptom as S;
    let not_sent = |action| Classified::new(Outcome::NotSent, symptom, action);
    match symptom {
        S::NotBuilt => not_sent(Action::DeadLetter),
        S::AddressRefused | S::ProxyCredential => not_sent(Action::DeadLetter).pausing(),
        S::HeldBack => not_sent(Action::Wait),
        S::LostBeforeSending
        | S::Dns
        | S::Connect
        | S::TlsCut
        | S::ProxyRefused
        | S::NeverWritten
        | S::StreamRefused => not_sent(Action::Retry),
        S::TlsRefused => not_sent(Action::RetrySlow).pausing(),
        S::TlsAlert => Classified::new(Outcome::Uncertain, symptom, Action::FindOut).pausing(),
        // Rows 12 to 18, and whatever else ended without a status line: it may have happened.
        _ => Classified::new(Outcome::Uncertain, symptom, Action::FindOut),
    }
}

fn answered(contract: &Contract, answer: &Answer, now: Timestamp) -> Classified {
    let wait = wait_told(answer, now);
    let body = answer.json();
    let mut unread = Vec::new();
    let mut meaning = None;
    for rule in contract.rules.iter().filter(|rule| covers(rule, answer.status)) {
        let applies = match &rule.body {
            None => true,
            Some(_) if !answer.complete => {
                unread.push(by_rule(rule, answer, None, now));
                false
            }
            Some(condition) => body.as_ref().is_some_and(|body| holds(condition, body)),
        };
        if applies {
            meaning = Some(by_rule(rule, answer, body.as_ref(), now));
            break;
        }
    }
    let meaning = meaning.unwrap_or_else(|| by_status(answer, wait, now));
    // A lost body leaves open only what it could have changed.
    if unread.iter().all(|other| (other.outcome, other.action) == (meaning.outcome, meaning.action)) {
        meaning
    } else {
        Classified::new(Outcome::Uncertain, Symptom::VerdictLost, Action::FindOut).after(wait)
    }
}

fn by_status(answer: &Answer, wait: Option<Duration>, now: Timestamp) -> Classified {
    use Action as A;
    use Outcome as O;
    use Symptom as S;
    let of = Classified::new;
    match answer.status {
        200..=299 if !answer.complete => of(O::Done, S::ResultLost, A::Complete),
        202 => of(O::Done, S::Accepted, A::Complete),
        200..=299 => of(O::Done, S::Done, A::Complete),
        300..=399 => of(O::Rejected, S::Redirect, A::DeadLetter).pausing(),
        401 => of(O::Rejected, S::Credential, A::DeadLetter).pausing(),
        402 => of(O::Rejected, S::Business, A::DeadLetter),
        403 if wait.is_some() || spent(answer).is_some() => {
            of(O::Throttled, S::Throttled, A::Wait).after(limit_told(answer, now))
        }
        403 => of(O::Rejected, S::Forbidden, A::DeadLetter),
        404 => of(O::Rejected, S::NotFound, A::DeadLetter),
        409 => of(O::Uncertain, S::Conflict, A::FindOut).after(wait),
        410 => of(O::Rejected, S::Gone, A::DeadLetter).pausing(),
        413 if wait.is_some() => of(O::Throttled, S::Throttled, A::Wait).after(wait),
        413 => of(O::Rejected, S::TooLarge, A::DeadLetter),
        421 | 425 => of(O::NotSent, S::NotProcessed, A::Retry).after(wait),
        423 => of(O::Rejected, S::Locked, A::Retry).after(wait),
        429 => of(O::Throttled, S::Throttled, A::Wait).after(limit_told(answer, now)),
        408 | 424 => of(O::Uncertain, S::ServerError, A::FindOut).after(wait),
        400..=499 => of(O::Rejected, S::Rejected, A::DeadLetter),
        501 | 505 | 511 => of(O::Rejected, S::Unsupported, A::DeadLetter).pausing(),
        502 | 504 => of(O::Uncertain, S::Gateway, A::FindOut).after(wait),
        500..=599 => of(O::Uncertain, S::ServerError, A::FindOut).after(wait),
        // No status that HTTP defines.
        _ => of(O::Uncertain, S::Unparseable, A::FindOut),
    }
}

#[cfg(test)]
mod tests;
