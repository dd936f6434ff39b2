//! Moments as whole microseconds, and where "now" comes from.

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use time::format_description::well_known::Rfc3339;
use time::macros::format_description;
use time::{OffsetDateTime, UtcOffset};

/// A moment in microseconds since 1970-01-01T00:00:00Z: what the database stores and compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(i64);

impl Timestamp {
    /// From microseconds since the epoch.
    pub const fn from_micros(micros: i64) -> Self {
        Self(micros)
    }

    /// Microseconds since the epoch.
    pub const fn as_micros(self) -> i64 {
        self.0
    }

    /// This moment and a while later; the end of time when that is out of range.
    #[must_use]
    pub fn plus(self, span: Duration) -> Self {
        Self(self.0.saturating_add(micros(span)))
    }

    /// This moment, a while earlier.
    #[must_use]
    pub fn minus(self, span: Duration) -> Self {
        Self(self.0.saturating_sub(micros(span)))
    }

    /// How long after `earlier` this is; zero when it is not after it.
    pub fn since(self, earlier: Self) -> Duration {
        Duration::from_micros(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }

    /// RFC 3339 in UTC with six digits of a second.
    pub fn rfc3339(self) -> String {
        self.utc()
            .format(format_description!(
                "[year]-[month]-[day]T[hour]:[minute]:[second].[subsecond digits:6]Z"
            ))
            .unwrap_or_else(|_| self.0.to_string())
    }

    /// From RFC 3339, with any offset; also a bare date, which is its first moment in UTC. An offset
    /// may lead out of the years that RFC 3339 can write: such a moment could not be told to anybody.
    pub fn parse(text: &str) -> Option<Self> {
        let full = if text.len() == 10 { format!("{text}T00:00:00Z") } else { text.to_owned() };
        let parsed = OffsetDateTime::parse(&full, &Rfc3339).ok()?.checked_to_offset(UtcOffset::UTC)?;
        if !(0..=9999).contains(&parsed.year()) {
            return None;
        }
        i64::try_from(parsed.unix_timestamp_nanos() / 1_000).ok().map(Self)
    }

    /// For formatting; a moment no calendar holds becomes the epoch.
    pub fn utc(self) -> OffsetDateTime {
        OffsetDateTime::from_unix_timestamp_nanos(i128::from(self.0) * 1_000)
            .unwrap_or(OffsetDateTime::UNIX_EPOCH)
    }
}

fn micros(span: Duration) -> i64 {
    i64::try_from(span.as_micros()).unwrap_or(i64::MAX)
}

impl std::fmt::Display for Timestamp {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.rfc3339())
    }
}

impl Serialize for Timestamp {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.rfc3339())
    }
}

impl<'de> Deserialize<'de> for Timestamp {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        Self::parse(&text).ok_or_else(|| serde::de::Error::custom("not an RFC 3339 time"))
    }
}

/// Where "now" comes from.
pub trait Clock: Send + Sync + 'static {
    /// The present moment.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let nanos = OffsetDateTime::now_utc().unix_timestamp_nanos();
        Timestamp(i64::try_from(nanos / 1_000).unwrap_or(i64::MAX))
    }
}

/// A clock that stands still until it is told otherwise.
#[derive(Debug)]
pub struct TestClock(AtomicI64);

impl TestClock {
    /// Stands at `start`.
    pub fn at(start: Timestamp) -> Self {
        Self(AtomicI64::new(start.0))
    }

    /// Moves on by `span`.
    pub fn advance(&self, span: Duration) {
        self.0.fetch_add(micros(span), Ordering::SeqCst);
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.0.load(Ordering::SeqCst))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_and_back() {
        let moment = Timestamp::from_micros(1_796_000_000_123_456);
        assert_eq!(moment.rfc3339(), "2026-11-30T00:53:20.123456Z");
        assert_eq!(Timestamp::parse(&moment.rfc3339()), Some(moment));
        assert_eq!(Timestamp::parse("2026-11-30T01:53:20.123456+01:00"), Some(moment));
        assert_eq!(Timestamp::parse("1970-01-02"), Some(Timestamp::from_micros(86_400_000_000)));
        assert_eq!(Timestamp::parse("yesterday"), None);
    }

    #[test]
    fn what_is_understood_can_be_told_again() {
        for edge in ["0000-01-01T00:00:00Z", "9999-12-31T23:59:59.999999Z"] {
            let at = Timestamp::parse(edge).expect("a moment");
            assert_eq!(Timestamp::parse(&at.rfc3339()), Some(at), "{edge}");
        }
        // In UTC these are in the years -1 and 10000.
        for beyond in ["0000-01-01T00:00:00.5+02:00", "9999-12-31T23:59:59-02:00"] {
            assert_eq!(Timestamp::parse(beyond), None, "{beyond}");
        }
    }

    #[test]
    fn never_overflows() {
        let last = Timestamp::from_micros(i64::MAX);
        assert_eq!(last.plus(Duration::MAX), last);
        assert_eq!(Timestamp::from_micros(0).since(last), Duration::ZERO);
    }
}
