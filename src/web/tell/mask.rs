//! Hides what a type marks as private: in the payload by its place, and everywhere else by its
//! value, since requests, addresses and answers repeat it.

use std::collections::HashMap;
use std::fmt::Write as _;

use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use regex::{Captures, Regex, RegexBuilder};
use serde_json::Value;
use uuid::Uuid;

use super::pretty;
use crate::config::Config;
use crate::store::{StoreError, Tx, operations};

/// What stands in a hidden value's place. It tells nothing of the value, not even its length.
pub const HIDDEN: &str = "\u{2022}\u{2022}\u{2022}";

/// Shorter texts are hidden in their place only: elsewhere they would hide half the page.
const SHORTEST: usize = 3;
/// Numbers are hidden elsewhere from this length on: a shorter one is as well a status or a count.
const SHORTEST_NUMBER: usize = 6;
/// The largest payload that a list reads for the values that its rows must not show.
const MOST_READ: i64 = 64 * 1024;

/// The private values of one operation.
#[derive(Clone, Debug, Default)]
pub struct Mask {
    pointers: Vec<String>,
    values: Vec<String>,
    pattern: Option<Regex>,
    /// The values are not known, so that no foreign text may be shown as it is.
    blind: bool,
}

impl Mask {
    /// Of a payload, by the pointers of its type. Without the payload nothing is known of the
    /// values: they went with it.
    pub fn new(pointers: &[String], payload: Option<&str>) -> Self {
        let document: Value = payload.and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
        let mut values = Vec::new();
        for pointer in pointers {
            if let Some(value) = document.pointer(pointer) {
                collect(value, &mut values);
            }
        }
        values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        values.dedup();
        Self {
            pointers: pointers.to_vec(),
            pattern: pattern(&values),
            blind: payload.is_none() && !pointers.is_empty(),
            values,
        }
    }

    /// Of a type's operation; a type that is no longer configured has no pointers.
    pub fn of(config: &Config, kind: &str, payload: Option<&str>) -> Self {
        Self::new(config.operations.get(kind).map_or(&[], |kind| kind.mask.as_slice()), payload)
    }

    /// Of a list's operations, by id and type.
    pub async fn of_list(
        tx: &mut Tx,
        config: &Config,
        rows: &[(Uuid, &str)],
    ) -> Result<HashMap<Uuid, Self>, StoreError> {
        let masks = |kind: &str| config.operations.get(kind).is_some_and(|kind| !kind.mask.is_empty());
        let ids: Vec<Uuid> = rows.iter().filter(|(_, kind)| masks(kind)).map(|(id, _)| *id).collect();
        let payloads: HashMap<Uuid, String> =
            operations::payloads(tx, &ids, MOST_READ).await?.into_iter().collect();
        let mask =
            |(id, kind): &(Uuid, &str)| (*id, Self::of(config, kind, payloads.get(id).map(String::as_str)));
        Ok(rows.iter().map(mask).collect())
    }

    /// The private values are not known although there are some.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// Whether the value at this place is hidden, as a whole or as part of one that is.
    pub(super) fn hides(&self, path: &str) -> bool {
        self.pointers.iter().any(|pointer| pointer == path)
    }

    /// Whether something inside the value at this place is hidden.
    pub(super) fn hides_within(&self, path: &str) -> bool {
        self.pointers
            .iter()
            .any(|pointer| pointer.strip_prefix(path).is_some_and(|rest| rest.starts_with('/')))
    }

    /// Text from anywhere, without the values.
    pub fn text(&self, text: &str) -> String {
        match &self.pattern {
            Some(pattern) => pattern.replace_all(text, |_: &Captures<'_>| HIDDEN).into_owned(),
            None => text.to_owned(),
        }
    }

    /// Text that was cut at its end, perhaps within a value.
    pub fn cut_text(&self, text: &str) -> String {
        let text = self.text(text);
        let begun = self.values.iter().filter_map(|value| {
            let ends = value.char_indices().map(|(at, _)| at).filter(|at| *at >= SHORTEST);
            ends.filter(|end| text.ends_with(&value[..*end])).max()
        });
        match begun.max() {
            Some(length) => format!("{}{HIDDEN}", &text[..text.len() - length]),
            None => text,
        }
    }

    /// A body: laid out when it is JSON, without the values in either case. Places mean nothing in
    /// it: they are the payload's.
    pub fn body(&self, text: &str) -> String {
        let anywhere = Self { pointers: Vec::new(), ..self.clone() };
        pretty::json(text, &anywhere).map_or_else(|| self.cut_text(text), |(laid_out, _)| laid_out)
    }

    /// The payload laid out, and how many values in it are hidden.
    pub fn payload(&self, text: &str) -> (String, usize) {
        pretty::json(text, self).unwrap_or_else(|| (self.text(text), 0))
    }
}

/// Every text and long number in a hidden value.
fn collect(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) if text.trim().chars().count() >= SHORTEST => into.push(text.trim().to_owned()),
        Value::Number(number) if number.to_string().len() >= SHORTEST_NUMBER => into.push(number.to_string()),
        Value::Array(items) => items.iter().for_each(|item| collect(item, into)),
        Value::Object(members) => members.values().for_each(|member| collect(member, into)),
        _ => {}
    }
}

/// Finds each value as it is and as addresses, JSON and HTML write it, in any case of letters.
fn pattern(values: &[String]) -> Option<Regex> {
    if values.is_empty() {
        return None;
    }
    // The values come longest first, so that no part of one is left behind a shorter one.
    let forms: Vec<String> = values.iter().map(|value| value.chars().map(letter).collect()).collect();
    // A payload is bounded and so is this. Should it be too large all the same, the whole text is
    // hidden rather than none of it.
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

#[cfg(test)]
mod tests {
    use super::*;

    fn mask(pointers: &[&str], payload: &str) -> Mask {
        let pointers: Vec<String> = pointers.iter().map(|p| (*p).to_owned()).collect();
        Mask::new(&pointers, Some(payload))
    }

    #[test]
    fn a_value_is_hidden_in_its_place_and_wherever_it_is_repeated() {
        let payload = r#"{"email":"anna.b+x@example.com","id":7,"who":{"name":"Jo \"X\" & Co","age":41}}"#;
        let mask = mask(&["/email", "/who", "/absent"], payload);
        let (shown, hidden) = mask.payload(payload);
        assert_eq!(hidden, 2);
        assert!(!shown.contains("anna") && !shown.contains("Jo") && !shown.contains("41"), "{shown}");
        assert!(shown.contains("\"id\": 7"));
        for text in [
            "422 Anna.B+X@Example.COM is unknown",
            "https://crm.example/?q=anna.b%2Bx%40example.com",
            "https://crm.example/?q=anna.b%2bx@example.com anna.b+x%40example.com",
            r#"{"said":"Jo \"X\" & Co"}"#,
            "<p>Jo &quot;X&quot; &amp; Co</p>",
            "?n=Jo+%22X%22+%26+Co&m=Jo%20%22X%22%20%26%20Co",
        ] {
            let shown = mask.text(text).to_lowercase();
            assert!(!shown.contains("anna.b") && !shown.contains("jo"), "{text} became {shown}");
        }
        assert_eq!(mask.text("41 times"), "41 times");
    }

    #[test]
    fn answers_that_escape_or_cut_a_value_do_not_show_it() {
        let mask = mask(&["/email"], r#"{"email":"änna@example.com"}"#);
        assert_eq!(
            mask.body(r#"{"e":"\u00e4nna\u0040example.com"}"#),
            format!("{{\n  \"e\": \"{HIDDEN}\"\n}}")
        );
        assert_eq!(mask.body(r#"{"e":"änna@exam"#), format!("{{\"e\":\"{HIDDEN}"));
        assert_eq!(mask.body("no such customer"), "no such customer");
    }

    #[test]
    fn short_values_hide_in_their_place_only() {
        let payload = r#"{"code":"ab","pin":1234,"card":4111111111111111,"list":["secret-one",null]}"#;
        let mask = mask(&["/code", "/pin", "/card", "/list"], payload);
        assert_eq!(mask.payload(payload).1, 4);
        assert_eq!(mask.text("ab 1234 4111111111111111 secret-one"), format!("ab 1234 {HIDDEN} {HIDDEN}"));
    }

    #[test]
    fn without_the_payload_nothing_is_known_to_hide() {
        let pointers = ["/email".to_owned()];
        assert!(Mask::new(&pointers, None).is_blind());
        assert!(!Mask::new(&[], None).is_blind());
        assert!(!Mask::new(&pointers, Some("{}")).is_blind());
    }
}
