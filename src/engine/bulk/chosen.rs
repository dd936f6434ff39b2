//! Which dead letters a bulk action is about, as it is kept with it.

use crate::domain::filter::{DeadLetterFilter, FilterError, Parameters};
use crate::domain::time::Timestamp;

/// Parameters that do not say which ones are meant, only in what state.
const ONLY_STATES: [&str; 2] = ["status", "snoozed"];

/// A filter as a query string.
pub fn written(filter: &DeadLetterFilter) -> String {
    url::form_urlencoded::Serializer::new(String::new()).extend_pairs(filter.pairs()).finish()
}

/// The pairs of such a query string.
pub fn pairs(query: &str) -> Vec<(String, String)> {
    url::form_urlencoded::parse(query.as_bytes()).into_owned().collect()
}

/// The filter that was written, as it means at a moment.
pub fn read(query: &str, now: Timestamp) -> Result<DeadLetterFilter, FilterError> {
    Parameters(&pairs(query)).dead_letters(now)
}

/// Whether it says which ones are meant. "All that are open" is nobody's choice.
pub fn narrows(filter: &DeadLetterFilter) -> bool {
    filter.pairs().iter().any(|(name, _)| !ONLY_STATES.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::dead_letter::DeadLetterStatus;

    #[test]
    fn a_filter_is_read_as_it_was_written() {
        let filter = DeadLetterFilter {
            status: Some(DeadLetterStatus::Open),
            search: Some("a b&c=%".into()),
            kind: Some("create-ticket".into()),
            ..DeadLetterFilter::default()
        };
        assert_eq!(read(&written(&filter), Timestamp::from_micros(5)), Ok(filter));
    }

    #[test]
    fn a_state_alone_chooses_nothing() {
        let open = DeadLetterFilter { status: Some(DeadLetterStatus::Open), ..DeadLetterFilter::default() };
        assert!(!narrows(&open) && !narrows(&DeadLetterFilter::default()));
        assert!(narrows(&DeadLetterFilter { cause: Some("0123".into()), ..open }));
    }
}
