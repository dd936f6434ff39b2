//! The small languages of the file: durations, names, and what was probably meant.

use std::time::Duration;

pub(super) use crate::domain::name::{NAME_RULE, is_name};

/// Reads `"500ms"`, `"30s"`, `"5m"`, `"24h"`, `"90d"`.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let digits = text.bytes().take_while(u8::is_ascii_digit).count();
    let (number, unit) = text.split_at(digits);
    let number: u64 = number.parse().ok()?;
    let scaled = |seconds: u64| number.checked_mul(seconds).map(Duration::from_secs);
    match unit {
        "ms" => Some(Duration::from_millis(number)),
        "s" => scaled(1),
        "m" => scaled(60),
        "h" => scaled(3_600),
        "d" => scaled(86_400),
        _ => None,
    }
}

/// A duration as the file would have it: exact, in the largest unit that is. A day is `24h`,
/// as in every promise that destinations publish.
pub fn duration_text(span: Duration) -> String {
    let millis = span.as_millis();
    let units = [(86_400_000, "d"), (3_600_000, "h"), (60_000, "m"), (1_000, "s")];
    let fits = |&(size, unit): &(u128, &str)| {
        millis > 0 && millis.is_multiple_of(size) && (unit != "d" || millis > size)
    };
    match units.iter().find(|unit| fits(unit)) {
        Some((size, unit)) => format!("{}{unit}", millis / size),
        None if millis == 0 => "0s".to_owned(),
        None => format!("{millis}ms"),
    }
}

/// The known word that was probably meant.
pub(super) fn closest<'a>(word: &str, known: &[&'a str]) -> Option<&'a str> {
    known
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(&word.to_lowercase(), candidate), *candidate))
        .filter(|(distance, candidate)| *distance <= (candidate.len() / 3).max(1))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `did you mean "x"?`, or the words that are known.
pub(super) fn suggest(word: &str, known: &[&str]) -> String {
    match closest(word, known) {
        Some(candidate) => format!("did you mean \"{candidate}\"?"),
        None if known.is_empty() => "none is known here".to_owned(),
        None => format!("known here are {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_and_written() {
        for (text, millis) in [
            ("500ms", 500),
            ("0s", 0),
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("90d", 7_776_000_000),
        ] {
            let span = Duration::from_millis(millis);
            assert_eq!(parse_duration(text), Some(span), "{text}");
            assert_eq!(duration_text(span), text);
        }
        assert_eq!(duration_text(Duration::from_secs(86_360)), "86360s");
        for text in
            ["", "30", "s", "1.5s", "-1s", "30 s", "1w", "99999999999999999999s", "18446744073709551615d"]
        {
            assert_eq!(parse_duration(text), None, "{text}");
        }
    }

    #[test]
    fn only_near_words_are_suggested() {
        let known = ["timeout", "connect_timeout", "key"];
        assert_eq!(closest("timout", &known), Some("timeout"));
        assert_eq!(closest("TimeOut", &known), Some("timeout"));
        assert_eq!(closest("kay", &known), Some("key"));
        assert_eq!(closest("colour", &known), None);
        assert_eq!(suggest("colour", &known), "known here are timeout, connect_timeout, key");
    }
}
