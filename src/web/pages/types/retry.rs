//! A retry policy as a time line: when each try comes at the latest, and on average.

use std::time::Duration;

use crate::config::{Config, OperationType};
use crate::domain::retry::RetryPolicy;
use crate::domain::words;
use crate::web::chart::Chart;
use crate::web::view::exact;

/// Tries that are drawn one by one.
const MOST_DRAWN: u32 = 12;

/// How a type is tried again.
#[derive(Clone, Debug)]
pub struct Retries {
    /// The policy in a few sentences.
    pub sentence: String,
    /// A line each.
    pub chart: Chart,
    /// The same as a table.
    pub rows: Vec<TryRow>,
    /// Tries that are not drawn.
    pub more: Option<String>,
}

/// One try.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TryRow {
    /// From 1.
    pub number: u32,
    /// The most that the wait before it can be.
    pub wait: String,
    /// When it comes if waits are as drawn on average.
    pub usual: String,
    /// When it comes at the latest.
    pub latest: String,
}

impl Retries {
    /// Of a type; each try may take as long as its first destination is waited for.
    pub(super) fn of(kind: &OperationType, config: &Config) -> Self {
        let first = kind.steps.first().and_then(|step| config.destinations.get(&step.destination));
        Self::new(&kind.retry, first.map_or(Duration::ZERO, |destination| destination.timeout))
    }

    fn new(policy: &RetryPolicy, timeout: Duration) -> Self {
        let drawn = policy.attempts.min(MOST_DRAWN);
        let (mut usual, mut latest) = (Duration::ZERO, Duration::ZERO);
        let mut moments = vec![(Duration::ZERO, Duration::ZERO, Duration::ZERO)];
        for tries in 1..drawn {
            let wait = policy.ceiling(tries);
            usual = usual.saturating_add(wait / 2);
            latest = latest.saturating_add(wait).saturating_add(timeout);
            moments.push((wait, usual, latest));
        }
        // No round lasts longer; where it ends long before that, the picture does too.
        let end =
            if latest.saturating_mul(4) < policy.max_age { latest.mul_f64(1.25) } else { policy.max_age };
        let part = |span: Duration| span.as_secs_f64() / end.as_secs_f64().max(1e-3);
        let lines: Vec<Vec<(f64, f64, &'static str)>> = moments
            .iter()
            .map(|(_, usual, latest)| {
                vec![(0.0, part(*latest), "mute"), (part(*usual), part(*usual), "info")]
            })
            .collect();
        let row = |(number, (wait, usual, latest)): (u32, &(Duration, Duration, Duration))| TryRow {
            number,
            wait: if number == 1 { "at once".to_owned() } else { format!("up to {}", exact(*wait)) },
            usual: if *usual > policy.max_age { "not any more".to_owned() } else { exact(*usual) },
            latest: if *latest > policy.max_age { "not any more".to_owned() } else { exact(*latest) },
        };
        let noun = if policy.attempts == 1 { "try" } else { "tries" };
        Self {
            sentence: format!(
                "At most {} {noun} in {}. Each wait is drawn at random from nothing up to a limit, which begins at {} and \
                 grows {} times with every try, up to {}. A destination that asks for a longer wait gets it.",
                policy.attempts,
                exact(policy.max_age),
                exact(policy.first_delay),
                policy.factor,
                exact(policy.max_delay),
            ),
            chart: Chart::spans(
                format!(
                    "When each of {drawn} {noun} comes: the last one within {} of the first.",
                    exact(latest.min(policy.max_age))
                ),
                &lines,
                vec!["first try".to_owned(), exact(end / 2), exact(end)],
            ),
            rows: (1..).zip(&moments).map(row).collect(),
            more: (policy.attempts > drawn).then(|| {
                format!(
                    "{} more tries follow, each up to {} after the one before, while the round lasts.",
                    policy.attempts - drawn,
                    words::span(policy.max_delay)
                )
            }),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tries_come_when_the_policy_says() {
        let retries = Retries::new(&RetryPolicy::default(), Duration::from_secs(10));
        let rows: Vec<(&str, &str, &str)> = retries
            .rows
            .iter()
            .map(|row| (row.wait.as_str(), row.usual.as_str(), row.latest.as_str()))
            .collect();
        assert_eq!(
            rows,
            [
                ("at once", "0 ms", "0 ms"),
                ("up to 10 s", "5 s", "20 s"),
                ("up to 30 s", "20 s", "1 min"),
                ("up to 1 min 30 s", "1 min 5 s", "2 min 40 s"),
                ("up to 4 min 30 s", "3 min 20 s", "7 min 20 s"),
            ]
        );
        assert_eq!((retries.chart.blocks.len(), retries.more), (10, None));
    }

    #[test]
    fn odd_policies_are_drawn_too() {
        let once = RetryPolicy { attempts: 1, ..RetryPolicy::default() };
        assert_eq!(Retries::new(&once, Duration::ZERO).rows.len(), 1);
        let many = RetryPolicy { attempts: 5_000, factor: 1e9, ..RetryPolicy::default() };
        let drawn = Retries::new(&many, Duration::from_secs(10));
        assert_eq!(drawn.rows.len(), 12);
        assert!(drawn.more.unwrap().starts_with("4988 more tries"));
        assert_eq!(drawn.rows[11].latest, "not any more");
    }
}
