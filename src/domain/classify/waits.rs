//! How long a destination asks to be left alone.

use std::time::Duration;

use super::Answer;
use crate::domain::retry::retry_after;
use crate::domain::time::Timestamp;

/// How long the destination asked us to stay away.
pub(super) fn wait_told(answer: &Answer, now: Timestamp) -> Option<Duration> {
    answer.header("retry-after").and_then(|value| retry_after(value, now))
}

/// The same of a throttling answer, whose rate-limit words count too. The longest counts.
pub(super) fn limit_told(answer: &Answer, now: Timestamp) -> Option<Duration> {
    let reset = spent(answer).map(|seconds| {
        // Some count from now, some from 1970: no limit lasts decades.
        if seconds >= 1_000_000_000 {
            Timestamp::from_micros(0).plus(Duration::from_secs(seconds)).since(now)
        } else {
            Duration::from_secs(seconds)
        }
    });
    wait_told(answer, now).max(reset)
}

/// When its rate-limit words say that nothing is left: when there will be again, zero if they do
/// not say.
pub(super) fn spent(answer: &Answer) -> Option<u64> {
    let number = |name: &str| answer.header(name).and_then(|value| value.trim().parse::<u64>().ok());
    for prefix in ["x-ratelimit-", "ratelimit-", "x-rate-limit-"] {
        if number(&format!("{prefix}remaining")) == Some(0) {
            return Some(number(&format!("{prefix}reset")).unwrap_or(0));
        }
    }
    let policies = answer.header("ratelimit")?.split(',').filter(|policy| parameter(policy, "r") == Some(0));
    policies.map(|policy| parameter(policy, "t").unwrap_or(0)).max()
}

/// `t` of `"default";r=0;t=30`.
fn parameter(policy: &str, name: &str) -> Option<u64> {
    policy.split(';').find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('=')?.parse().ok())
}
