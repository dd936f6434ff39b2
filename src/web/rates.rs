//! How often one token, one source of webhooks or one address without a proof may call, or begin a
//! sign-in at the identity provider. Each process counts its own.
//!
//! Costs one lock and one look into a table for a call.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use serde::{Serialize, Serializer};

use super::inbound::origin;
use crate::config::Server;
use crate::domain::address::network;

/// Calls a second from one address that name no token that works, or a source that they cannot prove
/// to be, or begin a sign-in elsewhere. Who calls with a token that works, or with a proof, is neither
/// counted among them nor kept out by them.
const STRANGERS: u32 = 10;
/// How much may come at once after a pause, in seconds' worth of calls.
const BURST: u32 = 2;
/// Callers remembered at once. Further ones are not counted until some have been quiet.
const MOST: usize = 50_000;

/// Who is counted.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(in crate::web) enum Who {
    /// The holder of a token, by its secret's hash.
    Token([u8; 32]),
    /// A source of webhooks, by name.
    Source(String),
    /// An address that has proved nothing.
    Stranger(IpAddr),
}

/// Nothing is done for this caller now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::web) struct Exceeded {
    /// What it is counted as: `token`, `source` or `address`.
    pub(in crate::web) policy: &'static str,
    /// Calls that may come at once after a pause.
    pub(in crate::web) quota: u32,
    /// Seconds in which that many come back.
    pub(in crate::web) window: u32,
    /// Whole seconds until the next call can be taken; at least 1.
    pub(in crate::web) wait: u64,
}

/// As the draft of the rate limit headers has it: the list of what was exceeded.
impl Serialize for Exceeded {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        [self.policy].serialize(serializer)
    }
}

/// The counts of a process. Cheap to clone.
#[derive(Clone, Debug)]
pub(in crate::web) struct Rates(Arc<Counts>);

#[derive(Debug)]
struct Counts {
    token: u32,
    source: u32,
    /// When each caller's calls so far would have come, had they come evenly.
    even: Mutex<HashMap<Who, Instant>>,
}

impl Rates {
    pub(in crate::web) fn of(server: &Server) -> Self {
        let (token, source) = (server.token_rate, server.source_rate);
        Self(Arc::new(Counts { token, source, even: Mutex::default() }))
    }

    /// Counts a call.
    pub(in crate::web) fn take(&self, who: &Who) -> Result<(), Exceeded> {
        self.take_at(who, Instant::now())
    }

    /// Whether a call would be refused, without counting one.
    pub(in crate::web) fn look(&self, who: &Who) -> Result<(), Exceeded> {
        let (now, even) = (Instant::now(), self.even().get(who).copied());
        self.judge(who, even.unwrap_or(now), now)
    }

    fn take_at(&self, who: &Who, now: Instant) -> Result<(), Exceeded> {
        let mut known = self.even();
        if let Some(even) = known.get_mut(who) {
            self.judge(who, *even, now)?;
            *even = (*even).max(now) + Duration::from_secs(1) / self.rate(who);
            return Ok(());
        }
        if known.len() >= MOST {
            // Who has been quiet for long enough may do what a newcomer may.
            known.retain(|_, even| *even > now);
        }
        if known.len() < MOST {
            known.insert(who.clone(), now + Duration::from_secs(1) / self.rate(who));
        }
        Ok(())
    }

    fn judge(&self, who: &Who, even: Instant, now: Instant) -> Result<(), Exceeded> {
        let ahead = even.saturating_duration_since(now);
        let most =
            Duration::from_secs(u64::from(BURST)).saturating_sub(Duration::from_secs(1) / self.rate(who));
        let Some(wait) = ahead.checked_sub(most).filter(|wait| !wait.is_zero()) else { return Ok(()) };
        let policy = match who {
            Who::Token(_) => "token",
            Who::Source(_) => "source",
            Who::Stranger(_) => "address",
        };
        let quota = self.rate(who).saturating_mul(BURST);
        Err(Exceeded { policy, quota, window: BURST, wait: wait.as_secs() + 1 })
    }

    fn rate(&self, who: &Who) -> u32 {
        match who {
            Who::Token(_) => self.0.token,
            Who::Source(_) => self.0.source,
            Who::Stranger(_) => STRANGERS,
        }
        .max(1)
    }

    fn even(&self) -> MutexGuard<'_, HashMap<Who, Instant>> {
        self.0.even.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Whose calls count together that prove nothing; absent for a request that came over no connection.
pub(in crate::web) fn stranger(parts: &axum::http::request::Parts) -> Option<Who> {
    origin::of(parts).map(|address| Who::Stranger(network(address)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rates(token: u32) -> Rates {
        Rates(Arc::new(Counts { token, source: 1, even: Mutex::default() }))
    }

    fn count(rates: &Rates, who: &Who, now: Instant) -> usize {
        std::iter::from_fn(|| rates.take_at(who, now).ok()).take(100_000).count()
    }

    #[test]
    fn two_seconds_worth_at_once_and_then_evenly() {
        let (rates, start) = (rates(100), Instant::now());
        let (one, other) = (Who::Token([1; 32]), Who::Token([2; 32]));
        assert_eq!(count(&rates, &one, start), 200);
        let exceeded = rates.take_at(&one, start).unwrap_err();
        assert_eq!(exceeded, Exceeded { policy: "token", quota: 200, window: 2, wait: 1 });
        assert_eq!(count(&rates, &one, start + Duration::from_millis(500)), 50);
        assert_eq!(count(&rates, &other, start), 200, "each has its own");
        assert_eq!(count(&rates, &one, start + Duration::from_mins(10)), 200, "no more for a long pause");
    }

    #[test]
    fn what_is_remembered_has_an_end() {
        let (rates, start) = (rates(100), Instant::now());
        for n in 0..u32::try_from(MOST).unwrap() + 10 {
            rates.take_at(&Who::Stranger(IpAddr::from(n.to_be_bytes())), start).unwrap();
        }
        assert_eq!(rates.even().len(), MOST);
        rates.take_at(&Who::Source("a".into()), start + Duration::from_mins(1)).unwrap();
        assert_eq!(rates.even().len(), 1, "the quiet ones are forgotten");
    }
}
