//! Time in words.

use std::time::Duration;

use time::OffsetDateTime;
use time::macros::format_description;

use crate::domain::time::Timestamp;
use crate::domain::zone::Zone;

/// "250 ms", "10 s", "4 min", "2 h", "3 days": the largest unit that tells enough, rounded down.
pub fn span(span: Duration) -> String {
    const MINUTE: u64 = 60;
    const HOUR: u64 = 60 * MINUTE;
    const DAY: u64 = 24 * HOUR;
    let seconds = span.as_secs();
    // One of a unit hides too much, unless it is exactly one.
    let tells = |unit: u64| seconds >= 2 * unit || seconds == unit;
    if seconds >= 2 * DAY {
        format!("{} days", seconds / DAY)
    } else if tells(HOUR) {
        format!("{} h", seconds / HOUR)
    } else if tells(MINUTE) {
        format!("{} min", seconds / MINUTE)
    } else if seconds > 0 || span.is_zero() {
        format!("{seconds} s")
    } else {
        format!("{} ms", span.as_millis().max(1))
    }
}

/// "just now", "4 min ago", "in 2 h".
pub fn relative(at: Timestamp, now: Timestamp) -> String {
    let (past, future) = (now.since(at), at.since(now));
    if past.max(future) < Duration::from_secs(2) {
        "just now".into()
    } else if future.is_zero() {
        format!("{} ago", span(past))
    } else {
        format!("in {}", span(future))
    }
}

/// A moment in full: "29 Nov 2026, 09:05:12 UTC".
pub fn moment(at: Timestamp) -> String {
    Zone::UTC.moment(at)
}

/// What a calendar and a clock show: "29 Nov 2026, 09:05:12".
pub fn wall(at: OffsetDateTime) -> String {
    let format =
        format_description!("[day padding:none] [month repr:short] [year], [hour]:[minute]:[second]");
    at.format(format).unwrap_or_else(|_| at.to_string())
}

/// The same to the minute and without the year: "29 Nov, 09:00".
pub fn hour(at: OffsetDateTime) -> String {
    let format = format_description!("[day padding:none] [month repr:short], [hour]:[minute]");
    at.format(format).unwrap_or_else(|_| at.to_string())
}
