//! The retry budget: how much of a node's sending to one destination may be repeats, so that a
//! destination in trouble is not drowned in them.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use crate::config::Limit;
use crate::domain::time::Timestamp;

/// What the budget is counted over.
const SPAN: Duration = Duration::from_mins(1);

/// Sends of the present minute, by destination.
#[derive(Debug, Default)]
pub(super) struct Budgets(Mutex<HashMap<String, Minute>>);

#[derive(Debug)]
struct Minute {
    since: Timestamp,
    firsts: u32,
    retries: u32,
}

impl Budgets {
    /// Counts a first attempt.
    pub(super) fn first(&self, destination: &str, now: Timestamp) {
        self.with(destination, now, |minute| minute.firsts = minute.firsts.saturating_add(1));
    }

    /// Counts a retry where the budget has room for it; otherwise when it may have again.
    pub(super) fn retry(&self, destination: &str, limit: &Limit, now: Timestamp) -> Result<(), Timestamp> {
        self.with(destination, now, |minute| {
            let share = f64::from(minute.firsts) * limit.retry_share;
            if f64::from(minute.retries) < share.max(f64::from(limit.retries_per_minute)) {
                minute.retries = minute.retries.saturating_add(1);
                Ok(())
            } else {
                Err(minute.since.plus(SPAN))
            }
        })
    }

    fn with<T>(&self, destination: &str, now: Timestamp, act: impl FnOnce(&mut Minute) -> T) -> T {
        let mut minutes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let fresh = Minute { since: now, firsts: 0, retries: 0 };
        let minute = minutes.entry(destination.to_owned()).or_insert(fresh);
        if now >= minute.since.plus(SPAN) {
            *minute = Minute { since: now, firsts: 0, retries: 0 };
        }
        act(minute)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_a_minute_or_a_tenth_of_the_first_attempts() {
        let (budgets, limit) = (Budgets::default(), Limit::default());
        let at = |seconds| Timestamp::from_micros(0).plus(Duration::from_secs(seconds));
        let made = |now| (0..100).filter(|_| budgets.retry("crm", &limit, now).is_ok()).count();
        assert_eq!(made(at(0)), 10);
        assert_eq!(budgets.retry("crm", &limit, at(59)), Err(at(60)));
        assert_eq!(made(at(60)), 10);
        for _ in 0..500 {
            budgets.first("crm", at(60));
        }
        assert_eq!(made(at(61)), 40);
        assert!(budgets.retry("payments", &limit, at(61)).is_ok());
    }
}
