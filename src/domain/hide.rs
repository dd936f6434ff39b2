//! Finds known values in text from anywhere, however they are written there.

use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Regex, RegexBuilder};

/// How much is looked for at once, in bytes of the values.
const MOST_SOUGHT: usize = 64 * 1024;

/// What finds each value as it is and as addresses, JSON and HTML write it, in any case of letters;
/// absent without values. Where there is too much to look for, it finds the whole text rather than
/// none of it.
///
/// The values come longest first, so that no part of one is left behind a shorter one.
pub fn pattern(values: &[String]) -> Option<Regex> {
    if values.is_empty() {
        return None;
    }
    let forms: Vec<String> = values.iter().map(|value| value.chars().map(letter).collect()).collect();
    if values.iter().map(String::len).sum::<usize>() > MOST_SOUGHT {
        return Regex::new("(?s).+").ok();
    }
    RegexBuilder::new(&forms.join("|"))
        .case_insensitive(true)
        .size_limit(64 << 20)
        .build()
        .or_else(|_| Regex::new("(?s).+"))
        .ok()
}

/// Every way to write a letter: letters and digits stay themselves everywhere.
fn letter(letter: char) -> String {
    let plain = regex::escape(letter.encode_utf8(&mut [0; 4]));
    if letter.is_ascii_alphanumeric() {
        return plain;
    }
    let bytes = utf8_percent_encode(letter.encode_utf8(&mut [0; 4]), NON_ALPHANUMERIC).to_string();
    let units = letter.encode_utf16(&mut [0; 2]).iter().fold(String::new(), |mut units, unit| {
        // Writing to a String cannot fail.
        let _ = write!(units, r"\\u{unit:04x}");
        units
    });
    let code = u32::from(letter);
    let more = match letter {
        ' ' => r"|\+",
        '"' => "|\\\\\"|&quot;",
        '\\' => r"|\\\\",
        '/' => r"|\\/",
        '&' => "|&amp;",
        '<' => "|&lt;",
        '>' => "|&gt;",
        '\'' => "|&apos;",
        '\n' => r"|\\n",
        '\t' => r"|\\t",
        '\r' => r"|\\r",
        _ => "",
    };
    format!("(?:{plain}|{bytes}|{units}|&#0*{code};|&#x0*{code:x};{more})")
}
