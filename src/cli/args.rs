//! How words and spans of time are read from arguments.

use std::str::FromStr;
use std::time::Duration;

use clap::builder::{PossibleValuesParser, TypedValueParser};

use crate::config::parse_duration;
use crate::domain::UnknownWord;

/// Takes the words of one of the domain's enums, and lists them in the help.
pub(super) fn words<T>(all: &[T], word: fn(T) -> &'static str) -> impl TypedValueParser<Value = T> + use<T>
where
    T: Copy + FromStr<Err = UnknownWord> + Send + Sync + 'static,
{
    let known: Vec<&'static str> = all.iter().map(|value| word(*value)).collect();
    PossibleValuesParser::new(known).try_map(|word| word.parse())
}

/// `90d`, `24h` and the like.
pub(super) fn duration(text: &str) -> Result<Duration, String> {
    parse_duration(text)
        .filter(|span| !span.is_zero())
        .ok_or_else(|| "must be a span such as \"30m\", \"24h\" or \"90d\"".to_owned())
}
