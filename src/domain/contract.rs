//! What a destination promises about repeated requests, and what that promise is worth now.

use std::fmt;
use std::time::Duration;

use super::time::Timestamp;

text_enum! {
    /// A step's contract class at one moment. The clock moves `Keyed` to `LookupOnly` or `Neither`.
    pub enum Class {
        /// The destination honours our key, and its window is open.
        Keyed = "keyed",
        /// Repeating the request converges.
        Idempotent = "idempotent",
        /// It can be asked, but not sent to blindly.
        LookupOnly = "lookup_only",
        /// It can neither recognise a repeat nor be asked.
        Neither = "neither",
    }
}

text_enum! {
    /// What a configured rule says an answer means.
    pub enum RuleOutcome {
        /// It happened.
        Done = "done",
        /// Taken for processing; counts as done.
        Accepted = "accepted",
        /// Nothing happened; try again.
        NotProcessed = "not_processed",
        /// Nothing happened; wait as told.
        Throttled = "throttled",
        /// It said no.
        Rejected = "rejected",
        /// It may have happened.
        Uncertain = "uncertain",
        /// This key is being worked on there.
        InFlight = "in_flight",
        /// This key was used with other data.
        KeyConflict = "key_conflict",
    }
}

/// How far two machines' clocks may differ before a window is misjudged.
const CLOCK_SKEW: Duration = Duration::from_secs(30);

/// What one destination promises.
#[derive(Clone, Debug, Default)]
pub struct Contract {
    /// How it takes our key; absent when it takes none.
    pub key: Option<KeyPromise>,
    /// Repeating the request converges (PUT, upsert).
    pub naturally_idempotent: bool,
    /// How to ask what it knows.
    pub lookup: Option<Lookup>,
    /// Its own meanings of answers; the first match wins, before the general table.
    pub rules: Vec<Rule>,
    /// The longest a single exchange may take.
    pub timeout: Duration,
}

/// Where the key goes and how long it is honoured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyPromise {
    /// What carries it.
    pub carrier: KeyCarrier,
    /// From the first send; zero when nothing was promised.
    pub window: Duration,
}

/// The part of a request that carries the key. Displays as a place: `the header Idempotency-Key`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyCarrier {
    /// A header.
    Header {
        /// Its name.
        name: String,
        /// Written as a structured field's string, in double quotes.
        quoted: bool,
    },
    /// A member of the JSON body.
    Body {
        /// RFC 6901; at least one part.
        pointer: String,
    },
    /// A parameter of the address.
    Query {
        /// Its name.
        name: String,
    },
}

impl KeyCarrier {
    /// A header that takes the key as it is.
    pub fn header(name: impl Into<String>) -> Self {
        Self::Header { name: name.into(), quoted: false }
    }

    /// The header's name, when it is one.
    pub fn header_name(&self) -> Option<&str> {
        match self {
            Self::Header { name, .. } => Some(name),
            Self::Body { .. } | Self::Query { .. } => None,
        }
    }
}

impl fmt::Display for KeyCarrier {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Header { name, .. } => write!(f, "the header {name}"),
            Self::Body { pointer } => write!(f, "the body at {pointer}"),
            Self::Query { name } => write!(f, "the address's parameter {name}"),
        }
    }
}

/// How to ask for a result by our reference.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lookup {
    /// Template of the path and query.
    pub path: String,
    /// Pointer to the found object.
    pub found: String,
    /// Pointer to its id.
    pub reference: Option<String>,
    /// How long an effect may stay invisible.
    pub max_lag: Duration,
}

/// One exception to the general table.
#[derive(Clone, Debug)]
pub struct Rule {
    /// Any status when absent.
    pub status: Option<StatusMatch>,
    /// Any body when absent.
    pub body: Option<BodyMatch>,
    /// What it means.
    pub outcome: RuleOutcome,
    /// For `Done`: pointer to the id in the body, read as a condition's pointer is.
    pub reference: Option<String>,
    /// How long to wait when the answer does not say.
    pub wait: Option<Duration>,
}

/// A status or a class of them.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StatusMatch {
    /// Exactly this.
    Code(u16),
    /// The hundreds: 5 for 5xx.
    Hundred(u16),
}

impl StatusMatch {
    /// Whether `status` is meant.
    pub fn covers(self, status: u16) -> bool {
        match self {
            Self::Code(code) => status == code,
            Self::Hundred(hundred) => status / 100 == hundred,
        }
    }
}

/// A condition on a JSON body.
#[derive(Clone, Debug)]
pub struct BodyMatch {
    /// RFC 6901, and `*` for every item of an array or member of an object: one that fits is enough.
    pub pointer: String,
    /// What stands there.
    pub test: BodyTest,
}

/// What a body's value is compared with.
#[derive(Clone, Debug)]
pub enum BodyTest {
    /// The same JSON value.
    Equals(serde_json::Value),
    /// A text the pattern is found in.
    Matches(regex::Regex),
}

impl Contract {
    /// What the promise is worth at `now`, for a step first sent at `first_sent_at`.
    pub fn class_at(&self, first_sent_at: Option<Timestamp>, now: Timestamp) -> Class {
        if self.naturally_idempotent {
            return Class::Idempotent;
        }
        let open = match (&self.key, first_sent_at) {
            (None, _) => false,
            (Some(key), None) => key.window > self.margin(),
            (Some(_), Some(first)) => self.resend_until(first).is_some_and(|until| now < until),
        };
        match (open, &self.lookup) {
            (true, _) => Class::Keyed,
            (false, Some(_)) => Class::LookupOnly,
            (false, None) => Class::Neither,
        }
    }

    /// The moment after which a resend might arrive outside the window; absent without a key.
    pub fn resend_until(&self, first_sent_at: Timestamp) -> Option<Timestamp> {
        self.key.as_ref().map(|key| first_sent_at.plus(key.window.saturating_sub(self.margin())))
    }

    /// What is kept back from a window: one exchange, and what clocks may differ by.
    pub fn margin(&self) -> Duration {
        self.timeout + CLOCK_SKEW
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn keyed(window: Duration) -> Contract {
        Contract {
            key: Some(KeyPromise { carrier: KeyCarrier::header("Idempotency-Key"), window }),
            timeout: Duration::from_secs(10),
            ..Contract::default()
        }
    }

    #[test]
    fn the_clock_moves_a_keyed_destination_to_neither_or_lookup() {
        let first = Timestamp::from_micros(0);
        let mut contract = keyed(Duration::from_hours(1));
        let last_open = first.plus(Duration::from_secs(3600 - 40)).minus(Duration::from_micros(1));
        assert_eq!(contract.class_at(None, first), Class::Keyed);
        assert_eq!(contract.class_at(Some(first), last_open), Class::Keyed);
        let closed = last_open.plus(Duration::from_micros(1));
        assert_eq!(contract.class_at(Some(first), closed), Class::Neither);
        contract.lookup =
            Some(Lookup { path: "/x".into(), found: "/0".into(), reference: None, max_lag: Duration::ZERO });
        assert_eq!(contract.class_at(Some(first), closed), Class::LookupOnly);
    }

    #[test]
    fn a_window_shorter_than_its_margin_promises_nothing() {
        let contract = keyed(Duration::from_secs(20));
        let start = Timestamp::from_micros(0);
        assert_eq!(contract.class_at(None, start), Class::Neither);
        assert_eq!(contract.class_at(Some(start), start), Class::Neither);
    }
}
