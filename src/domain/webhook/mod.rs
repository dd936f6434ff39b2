//! Webhooks as their senders prove and shape them: signatures, event ids, envelopes. Pure: the
//! clock's reading and the bytes are given.

mod event;
mod proof;
mod secret;

pub use event::{BadEvent, Event, EventId, operation_key, raw_at};
pub use proof::{Proof, Unproven};
pub use secret::{MIN_SECRET, Secret};

text_enum! {
    /// How a source proves that a message is its own.
    pub enum Scheme {
        /// `webhook-id`, `webhook-timestamp`, `webhook-signature` with `v1` and `v1a`.
        StandardWebhooks = "standard-webhooks",
        /// One header `t=...,v1=...`.
        Stripe = "stripe",
        /// One header `sha256=...` over the body; says nothing of when, and covers no other header.
        Github = "github",
        /// `Authorization: Bearer`, as the web hook rules of CloudEvents have it: proves the caller
        /// and not the message, so it needs TLS all the way.
        Bearer = "bearer",
    }
}

impl Scheme {
    /// Whether messages carry the moment of their signing.
    pub fn is_dated(self) -> bool {
        matches!(self, Self::StandardWebhooks | Self::Stripe)
    }

    /// The header that proves, where the source names no other.
    pub fn header(self) -> &'static str {
        match self {
            Self::StandardWebhooks => "webhook-signature",
            Self::Stripe => "stripe-signature",
            Self::Github => "x-hub-signature-256",
            Self::Bearer => "authorization",
        }
    }
}

text_enum! {
    /// What is done with an event that no mapping is for.
    pub enum Unmatched {
        /// It is counted and answered with 200, so that its sender does not try for ever.
        Ignore = "ignore",
        /// It is counted and refused.
        Refuse = "refuse",
    }
}

text_enum! {
    /// How a source's messages are shaped.
    pub enum Format {
        /// Any JSON object.
        Json = "json",
        /// CloudEvents 1.0, in the structured mode, and under a bearer token in the binary mode too.
        CloudEvents = "cloudevents",
    }
}

text_enum! {
    /// What became of a delivery, as it is counted.
    pub enum HookOutcome {
        /// It became an operation.
        Accepted = "accepted",
        /// It repeated one; nothing was done.
        Duplicate = "duplicate",
        /// No mapping is for it, and the source says to pass over such events.
        Ignored = "ignored",
        /// No mapping is for it, and the source says to refuse such events.
        Unmatched = "unmatched",
        /// What should prove it is not there or not of its form.
        Unsigned = "unsigned",
        /// No secret matches.
        BadSignature = "bad_signature",
        /// Properly signed, too long ago or in the future.
        Stale = "stale",
        /// Proven, and not an event that can be read or mapped.
        Malformed = "malformed",
        /// The key was used before with other data.
        KeyReused = "key_reused",
        /// More bytes than are read.
        TooLarge = "too_large",
    }
}

impl HookOutcome {
    /// Whether the sender was told no.
    pub fn is_refusal(self) -> bool {
        !matches!(self, Self::Accepted | Self::Duplicate | Self::Ignored)
    }
}

/// A request's headers, for looking up by name in lower case.
#[derive(Clone, Debug, Default)]
pub struct Headers(Vec<(String, Vec<u8>)>);

impl Headers {
    /// From names in any case, in the order of the request.
    pub fn new<N: AsRef<str>, V: Into<Vec<u8>>>(pairs: impl IntoIterator<Item = (N, V)>) -> Self {
        Self(pairs.into_iter().map(|(name, value)| (name.as_ref().to_lowercase(), value.into())).collect())
    }

    /// A header that is there once and is visible ASCII. One that is there twice is as good as none:
    /// readers disagree on which counts.
    pub fn one(&self, name: &str) -> Option<&str> {
        let mut found = self.0.iter().filter(|(known, _)| known == name);
        let (_, value) = found.next().filter(|_| found.next().is_none())?;
        std::str::from_utf8(value).ok().filter(|text| text.bytes().all(|byte| matches!(byte, b' '..=b'~')))
    }

    /// The names that begin with `start`, with the rest of each.
    fn beginning<'h>(&'h self, start: &'h str) -> impl Iterator<Item = (&'h str, &'h str)> {
        self.0.iter().filter_map(move |(name, _)| Some((name.as_str(), name.strip_prefix(start)?)))
    }
}

#[cfg(test)]
mod tests;
