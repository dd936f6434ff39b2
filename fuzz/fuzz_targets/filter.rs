//! A query string as the filter of a list, and any text as a cursor: what is understood survives
//! being written again, and what is not names its parameter.
#![no_main]

use dead_letter_office_fuzz::domain::filter::{Cursor, FilterError, MAX_LIMIT, Page, Parameters};
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::domain::zone::Zone;
use libfuzzer_sys::fuzz_target;
use url::form_urlencoded::{Serializer, parse};

type Pairs = Vec<(String, String)>;

/// What was understood is read again from its own query string; a refusal names a parameter.
fn survives<F: PartialEq + std::fmt::Debug>(
    given: &Pairs,
    read: impl Fn(Parameters<'_>) -> Result<F, FilterError>,
    written: impl Fn(&F) -> Vec<(&'static str, String)>,
) {
    match read(Parameters(given)) {
        Ok(filter) => {
            let query = Serializer::new(String::new()).extend_pairs(written(&filter)).finish();
            let again: Pairs = parse(query.as_bytes()).into_owned().collect();
            assert_eq!(read(Parameters(&again)).as_ref(), Ok(&filter), "{query}");
        }
        Err(error) => names(&error, given),
    }
}

fn names(error: &FilterError, given: &Pairs) {
    let said = error.to_string();
    assert!(given.iter().any(|(name, _)| said.starts_with(&format!("{name}: "))), "{said}");
}

fuzz_target!(|query: &str| {
    let now = Timestamp::from_micros(1_796_000_000_000_000);
    let given: Pairs = parse(query.as_bytes()).into_owned().collect();
    survives(&given, |all| all.dead_letters(now), |filter| filter.pairs());
    survives(&given, |all| all.operations(), |filter| filter.pairs());
    survives(&given, |all| all.audit(), |filter| filter.pairs());
    match Parameters(&given).page() {
        Ok(Page { limit, .. }) => assert!((1..=MAX_LIMIT).contains(&limit)),
        Err(error) => names(&error, &given),
    }
    if let Err(error) = Parameters(&given).only(&["status", "type"]) {
        names(&error, &given);
    }
    for text in given.iter().flat_map(|(name, value)| [name, value]).map(String::as_str).chain([query]) {
        if let Ok(cursor) = Cursor::decode(text) {
            assert_eq!(Cursor::decode(&cursor.encode()), Ok(cursor));
            assert!(!cursor.at.rfc3339().is_empty());
        }
        if let Some(at) = Timestamp::parse(text) {
            assert_eq!(Timestamp::parse(&at.rfc3339()), Some(at), "{text}");
        }
        if let Some(zone) = Zone::named(text) {
            assert_eq!(zone.name(), text);
        }
    }
});
