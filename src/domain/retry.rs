//! When to try again.

use std::time::Duration;

use super::time::Timestamp;

/// How often, how long and how far apart an operation is tried by itself.
#[derive(Clone, Debug, PartialEq)]
pub struct RetryPolicy {
    /// Sends in one round, the first included; at least 1.
    pub attempts: u32,
    /// From the beginning of the round.
    pub max_age: Duration,
    /// The most that the first wait can be.
    pub first_delay: Duration,
    /// How much longer each wait can be than the one before.
    pub factor: f64,
    /// No drawn wait is longer.
    pub max_delay: Duration,
}

impl Default for RetryPolicy {
    fn default() -> Self {
        Self {
            attempts: 5,
            max_age: Duration::from_mins(30),
            first_delay: Duration::from_secs(10),
            factor: 3.0,
            max_delay: Duration::from_mins(15),
        }
    }
}

impl RetryPolicy {
    /// The most that the wait after `tries` tries can be: full jitter draws from zero to this.
    pub fn ceiling(&self, tries: u32) -> Duration {
        let exponent = i32::try_from(tries.saturating_sub(1)).unwrap_or(i32::MAX);
        let grown = self.first_delay.as_secs_f64() * self.factor.powi(exponent);
        Duration::try_from_secs_f64(grown).unwrap_or(Duration::MAX).min(self.max_delay)
    }

    /// When a round that began at `since` has lasted too long.
    pub fn ends(&self, since: Timestamp) -> Timestamp {
        since.plus(self.max_age)
    }
}

/// Reads `Retry-After`, which is seconds or an HTTP date; absent when it is neither.
pub fn retry_after(value: &str, now: Timestamp) -> Option<Duration> {
    let value = value.trim();
    if let Ok(seconds) = value.parse::<u64>() {
        return Some(Duration::from_secs(seconds));
    }
    let date = httpdate::parse_http_date(value).ok()?;
    let since_epoch = date.duration_since(std::time::UNIX_EPOCH).ok()?;
    Some(Timestamp::from_micros(0).plus(since_epoch).since(now))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_to_a_ceiling() {
        let policy = RetryPolicy::default();
        let seconds: Vec<u64> = (1..=6).map(|tries| policy.ceiling(tries).as_secs()).collect();
        assert_eq!(seconds, [10, 30, 90, 270, 810, 900]);
        assert_eq!(policy.ceiling(u32::MAX), policy.max_delay);
    }

    #[test]
    fn retry_after_is_read_in_both_forms() {
        let now = Timestamp::parse("2015-10-21T07:27:00Z").unwrap();
        assert_eq!(retry_after(" 120 ", now), Some(Duration::from_mins(2)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:28:00 GMT", now), Some(Duration::from_mins(1)));
        assert_eq!(retry_after("Wed, 21 Oct 2015 07:26:00 GMT", now), Some(Duration::ZERO));
        assert_eq!(retry_after("soon", now), None);
        assert_eq!(retry_after("-3", now), None);
    }
}
