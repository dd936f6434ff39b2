//! What two failures of one cause have in common.

use std::net::Ipv6Addr;
use std::sync::LazyLock;

use regex::{Captures, Regex};
use sha2::{Digest, Sha256};

use crate::domain::attempt::Outcome;
use crate::domain::key::hex;

/// What groups dead letters that have one cause: a stored, exact fingerprint and the text it was
/// made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CauseFingerprint {
    /// 16 hexadecimal digits.
    pub id: String,
    /// The error without what differs from one operation to the next.
    pub text: String,
}

impl CauseFingerprint {
    /// From the four facts that make two failures one cause.
    pub fn of(destination: &str, step: &str, outcome: Outcome, error: &str) -> Self {
        let text = normalise(error);
        let mut hash = Sha256::new();
        for part in [destination, step, outcome.as_str(), &text] {
            hash.update(part.as_bytes());
            hash.update([0]);
        }
        Self { id: hex(&hash.finalize()[..8]), text }
    }
}

/// The longest text that a fingerprint is made from, in characters.
const LONGEST: usize = 200;
/// How much of an error is looked at, in characters: what follows could not be within the longest
/// text, whatever is dropped before it.
const LOOKED_AT: usize = 4_000;

/// What stands in a found part's place.
#[derive(Clone, Copy)]
enum Instead {
    /// Always this.
    This(&'static str),
    /// What is made of it; `None` leaves it as it is.
    Made(fn(&Captures<'_>, &str) -> Option<String>),
}

/// What differs between operations, in the order in which it is looked for: what may hold another
/// comes before it.
static PARTS: LazyLock<Vec<(Regex, Instead)>> = LazyLock::new(|| {
    use Instead::{Made, This};
    const PATTERNS: [(&str, Instead); 12] = [
        (r#"(?i)\bhttps?://[^\s"'<>\u{201c}\u{201d}]+"#, Made(url)),
        (r"(?i)\b[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}\b", This("<id>")),
        (r"[\w.+%-]+@[\w-]+(\.[\w-]+)+", This("<email>")),
        (r#""([^"\n]{1,200})"|\u{201c}([^\u{201d}\n]{1,200})\u{201d}|`([^`\n]{1,200})`"#, Made(quoted)),
        (r"(?P<before>^|[^\w'])'(?P<value>[^'\n]{1,200})'", Made(quoted)),
        (
            r"\b\d{4}-\d\d-\d\d([T ]\d\d:\d\d(:\d\d([.,]\d+)?)?( ?(Z|UTC|GMT|[+-]\d\d:?\d\d))?)?",
            This("<time>"),
        ),
        (
            r"(?i)\b((mon|tue|wed|thu|fri|sat|sun)[a-z]*,? )?\d{1,2}[ -](jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ -]\d{2,4}([ ,]+\d\d:\d\d(:\d\d)?)?( (utc|gmt|[+-]\d{4}))?",
            This("<time>"),
        ),
        (r"\b\d\d:\d\d(:\d\d([.,]\d+)?)?\b", Made(time_of_day)),
        (r"(?i)\[?([0-9a-f.]*:[0-9a-f.:]*:[0-9a-f.]*)(%\w+)?(\](:\d+)?)?", Made(address6)),
        (r"\b\d{1,3}(\.\d{1,3}){3}(:\d+)?\b", This("<address>")),
        (r"\w+(-\w+)*", Made(word)),
        (r"\d+([.,]\d+)*", This("<n>")),
    ];
    PATTERNS.into_iter().filter_map(|(pattern, instead)| Some((Regex::new(pattern).ok()?, instead))).collect()
});

/// `09:05:12`, where it is no part of something longer such as an address.
fn time_of_day(found: &Captures<'_>, text: &str) -> Option<String> {
    let at = found.get(0)?;
    let alone = |letter: Option<char>| letter != Some(':');
    (alone(text[..at.start()].chars().next_back()) && alone(text[at.end()..].chars().next()))
        .then(|| "<time>".to_owned())
}

/// An address of IP version 6, with or without brackets, zone and port.
fn address6(found: &Captures<'_>, text: &str) -> Option<String> {
    let at = found.get(0)?;
    let within_a_word = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
    if within_a_word(text[..at.start()].chars().next_back()) || within_a_word(text[at.end()..].chars().next())
    {
        return None;
    }
    // A sentence may end with it.
    let digits = found.get(1)?.as_str();
    let bare = digits.trim_end_matches('.');
    let end = &digits[bare.len()..];
    if bare.parse::<Ipv6Addr>().is_ok() {
        return Some(format!("<address>{end}"));
    }
    let bare = bare.strip_suffix(':')?;
    bare.parse::<Ipv6Addr>().is_ok().then(|| format!("<address>:{end}"))
}

/// The host and those parts of the path that are words; the rest differs.
fn url(found: &Captures<'_>, _: &str) -> Option<String> {
    let whole = found.get(0)?.as_str();
    let (url, end) = whole.split_at(whole.trim_end_matches(['.', ',', ';', ':', ')', ']']).len());
    let (scheme, rest) = url.split_once("://")?;
    let (place, query) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], "?<query>"),
        None => (rest, ""),
    };
    let (host, path) = place.find('/').map_or((place, ""), |at| place.split_at(at));
    let part = |part: &str| {
        let plain =
            part.len() <= 32 && part.chars().all(|c| c.is_ascii_lowercase() || matches!(c, '-' | '_'));
        // The version of an interface is no id.
        let version =
            part.strip_prefix('v').is_some_and(|n| n.len() == 1 && n.as_bytes()[0].is_ascii_digit());
        if plain {
            part
        } else if version {
            "<version>"
        } else {
            "<id>"
        }
        .to_owned()
    };
    let path: Vec<String> = path.split('/').map(part).collect();
    Some(format!("{scheme}://{host}{}{query}{end}", path.join("/")))
}

/// A quoted value differs; a quoted name, such as a field's, makes the cause.
fn quoted(found: &Captures<'_>, _: &str) -> Option<String> {
    let before = found.name("before").map_or("", |before| before.as_str());
    let value = found.iter().skip(1).flatten().find(|group| {
        found.name("before").is_none_or(|before| before.range() != group.range() || before.is_empty())
            && !group.is_empty()
    })?;
    let name = value.as_str().chars().all(|c| c.is_ascii_lowercase() || matches!(c, '_' | '.' | '/'));
    (!name).then(|| format!("{before}<value>"))
}

/// Words that hold digits as ids do: several parts of which one has a digit, many digits of base 16,
/// or a mixture of letters and digits.
fn word(found: &Captures<'_>, text: &str) -> Option<String> {
    let at = found.get(0)?;
    let word = at.as_str();
    let digits = word.chars().filter(char::is_ascii_digit).count();
    let letters = word.chars().filter(|c| c.is_alphabetic()).count();
    // A placeholder of ours is no word of theirs.
    if text[..at.start()].ends_with('<') {
        return None;
    }
    let parts = word.contains(['-', '_']) && digits > 0 && letters > 0;
    let hexadecimal = word.len() >= 16 && word.chars().all(|c| c.is_ascii_hexdigit());
    let mixed = word.len() >= 6 && digits >= 2 && letters > 0;
    (parts || hexadecimal || mixed).then(|| "<id>".to_owned())
}

/// Drops what differs between two failures of one cause: ids, times, addresses, numbers, quoted
/// values, the varying parts of a URL. A three-digit HTTP status at the beginning stays.
pub fn normalise(error: &str) -> String {
    let end = error.char_indices().nth(LOOKED_AT).map_or(error.len(), |(end, _)| end);
    let error = &error[..end];
    let (head, rest) = match error.split_at_checked(3) {
        Some((head, rest))
            if head.bytes().all(|b| b.is_ascii_digit())
                && !rest.starts_with(|c: char| c.is_ascii_digit()) =>
        {
            (head, rest)
        }
        _ => ("", error),
    };
    let mut text = rest.to_owned();
    for (pattern, instead) in PARTS.iter() {
        let whole = text.clone();
        let replaced = pattern.replace_all(&text, |found: &Captures<'_>| {
            match instead {
                Instead::This(word) => Some((*word).to_owned()),
                Instead::Made(make) => make(found, &whole),
            }
            .unwrap_or_else(|| found[0].to_owned())
        });
        text = replaced.into_owned();
    }
    let words = text.split_whitespace();
    let words: Vec<&str> = Some(head).filter(|head| !head.is_empty()).into_iter().chain(words).collect();
    let mut text = words.join(" ");
    if let Some((end, _)) = text.char_indices().nth(LONGEST) {
        text.truncate(end);
    }
    text
}

#[cfg(test)]
mod tests;
