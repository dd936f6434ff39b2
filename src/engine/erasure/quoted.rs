//! Whether a text quotes somebody: all that tells of them is looked for in one pass.

use std::borrow::Cow;
use std::collections::{BTreeSet, HashSet};

use aho_corasick::AhoCorasick;

use super::super::actions::ActionError;

/// A shorter value may stand in any text by chance: it counts only where it is all that a field says.
const TELLING: usize = 4;
/// The parameters of a kept filter that hold what somebody looked for.
const LOOKED_FOR: [&str; 2] = ["search", "key"];

/// What is looked for.
pub(super) struct Quoted {
    words: AhoCorasick,
    whole: HashSet<String>,
}

impl Quoted {
    /// Looks for these values, however they are capitalised.
    pub(super) fn new(values: &BTreeSet<String>) -> Result<Self, ActionError> {
        let values = values.iter().map(|value| value.to_lowercase());
        let (long, whole): (Vec<String>, HashSet<String>) = {
            let (long, short): (Vec<_>, Vec<_>) = values.partition(|value| value.chars().count() >= TELLING);
            (long, short.into_iter().collect())
        };
        let in_json = long.iter().filter_map(|value| {
            let json = serde_json::to_string(value).ok()?;
            let inner = json.strip_prefix('"')?.strip_suffix('"')?;
            (inner != value).then(|| inner.to_owned())
        });
        let patterns: Vec<String> = in_json.chain(long.iter().cloned()).collect();
        let words = AhoCorasick::new(patterns).map_err(|error| {
            ActionError::Invalid(format!("there is more than can be looked for at once: {error}"))
        })?;
        Ok(Self { words, whole })
    }

    /// Whether a field, or the query string that it is, holds one of the values as a word of its own.
    pub(super) fn stands_in(&self, text: &str) -> bool {
        let plain = text.to_lowercase();
        if self.whole.contains(plain.trim()) || self.is_looked_for(&plain) {
            return true;
        }
        self.holds(&plain) || matches!(decoded(&plain), Cow::Owned(decoded) if self.holds(&decoded))
    }

    fn holds(&self, text: &str) -> bool {
        let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
        self.words.find_overlapping_iter(text).any(|found| {
            !inside(text[..found.start()].chars().next_back()) && !inside(text[found.end()..].chars().next())
        })
    }

    fn is_looked_for(&self, query: &str) -> bool {
        query.split('&').filter_map(|pair| pair.split_once('=')).any(|(name, value)| {
            // A filter's name may stand before it.
            let name = name.rsplit(' ').next().unwrap_or_default();
            LOOKED_FOR.contains(&name) && self.whole.contains(decoded(value).to_lowercase().trim())
        })
    }
}

fn decoded(text: &str) -> Cow<'_, str> {
    if !text.contains(['%', '+']) {
        return Cow::Borrowed(text);
    }
    let spaced = text.replace('+', " ");
    let plain = percent_encoding::percent_decode_str(&spaced).decode_utf8_lossy();
    Cow::Owned(plain.to_lowercase())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn quoted(values: &[&str]) -> Quoted {
        Quoted::new(&values.iter().map(|value| (*value).to_owned()).collect()).unwrap()
    }

    #[test]
    fn a_value_is_found_as_a_word_however_it_is_written() {
        let wanted = quoted(&["4711", "anna@example.com", "Zoë \"Z\" Ångström", "example.com"]);
        for text in [
            "customer 4711 called",
            "4711",
            "search=4711&status=open",
            "ANNA@example.com",
            "anna%40example.com",
            "ask zoë \"z\" ångström",
            r#"{"why":"Zoë \"Z\" Ångström"}"#,
            "search=Zo%C3%8B+%22Z%22+%C3%85ngstr%C3%B6m",
        ] {
            assert!(wanted.stands_in(text), "{text}");
        }
        for text in ["47112", "order 14711x", "hanna@example.comma", ""] {
            assert!(!wanted.stands_in(text), "{text}");
        }
    }

    #[test]
    fn a_short_value_is_found_only_where_it_is_the_whole() {
        let wanted = quoted(&["7", "Bob"]);
        for text in ["7", " bob ", "status=open&search=7", "mine: search=BOB&status=any", "key=%37"] {
            assert!(wanted.stands_in(text), "{text}");
        }
        for text in ["7 calls", "bob: viewer to admin", "user_disable bob", "age=7", "limit=7&search=77", ""]
        {
            assert!(!wanted.stands_in(text), "{text}");
        }
    }
}
