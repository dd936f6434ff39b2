//! Lays JSON out for reading. Every digit, and every member's place, stays as its sender wrote it.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::mask::{HIDDEN, Mask};
use crate::domain::key::MAX_DEPTH;

/// A text as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Laid {
    /// It, or its beginning.
    pub text: String,
    /// How many values in it are hidden.
    pub hidden: usize,
    /// It has an end: nothing was left out behind it.
    pub whole: bool,
}

/// Lays a text out up to about `most` bytes, so that a huge one costs no more than finding its
/// members. Absent when the text is no JSON.
pub(super) fn json(text: &str, mask: &Mask, most: usize) -> Option<Laid> {
    let value: &RawValue = serde_json::from_str(text).ok()?;
    let room = text.len().saturating_mul(2).min(most);
    let mut page = Page { text: String::with_capacity(room), mask, hidden: 0, most };
    let whole = match page.value(value, "", 0) {
        Ok(()) => true,
        Err(Stop::Full) => false,
        Err(Stop::NoJson) => return None,
    };
    Some(Laid { text: page.text, hidden: page.hidden, whole })
}

/// What is found at a place in a document: several values where a member is there more than once.
pub(super) fn reach<'a>(value: &'a RawValue, path: &str, found: &mut Vec<&'a RawValue>) {
    let Some(rest) = path.strip_prefix('/') else {
        found.push(value);
        return;
    };
    let (part, rest) = rest.find('/').map_or((rest, ""), |end| rest.split_at(end));
    let name = part.replace("~1", "/").replace("~0", "~");
    let text = value.get();
    match text.as_bytes().first() {
        Some(b'{') => {
            let Ok(members) = serde_json::from_str::<Members<'a>>(text) else { return };
            for (_, member) in members.0.into_iter().filter(|(known, _)| *known == name) {
                reach(member, rest, found);
            }
        }
        Some(b'[') => {
            let Ok(items) = serde_json::from_str::<Vec<&'a RawValue>>(text) else { return };
            if let Some(item) = name.parse::<usize>().ok().and_then(|index| items.get(index)) {
                reach(item, rest, found);
            }
        }
        _ => {}
    }
}

/// Why laying out ended early.
enum Stop {
    /// The page has enough.
    Full,
    /// The text is no JSON after all.
    NoJson,
}

impl From<serde_json::Error> for Stop {
    fn from(_: serde_json::Error) -> Self {
        Self::NoJson
    }
}

struct Page<'m> {
    text: String,
    mask: &'m Mask,
    hidden: usize,
    most: usize,
}

impl Page<'_> {
    fn value(&mut self, value: &RawValue, path: &str, depth: usize) -> Result<(), Stop> {
        if self.text.len() > self.most {
            return Err(Stop::Full);
        }
        let text = value.get();
        if self.mask.hides(path) && text != "null" {
            self.hidden += 1;
            for part in ["\"", HIDDEN, "\""] {
                self.text.push_str(part);
            }
            return Ok(());
        }
        match text.as_bytes().first() {
            // Deeper than anything that is accepted: an answer, which may do as it likes.
            Some(b'{' | b'[') if depth >= MAX_DEPTH => {
                let masked = self.mask.text(text);
                self.text.push_str(&masked);
            }
            Some(b'{') => {
                let members: Members<'_> = serde_json::from_str(text)?;
                let count = members.0.len();
                self.text.push('{');
                for (index, (name, member)) in members.0.into_iter().enumerate() {
                    self.line(depth + 1);
                    self.string(&name)?;
                    self.text.push_str(": ");
                    let name = name.replace('~', "~0").replace('/', "~1");
                    self.value(member, &format!("{path}/{name}"), depth + 1)?;
                    self.comma(index, count);
                }
                self.close('}', count, depth);
            }
            Some(b'[') => {
                let items: Vec<&RawValue> = serde_json::from_str(text)?;
                let count = items.len();
                self.text.push('[');
                for (index, item) in items.into_iter().enumerate() {
                    self.line(depth + 1);
                    self.value(item, &format!("{path}/{index}"), depth + 1)?;
                    self.comma(index, count);
                }
                self.close(']', count, depth);
            }
            Some(b'"') => self.string(&serde_json::from_str::<String>(text)?)?,
            _ => {
                let masked = self.mask.text(text);
                self.text.push_str(&masked);
            }
        }
        Ok(())
    }

    fn string(&mut self, text: &str) -> Result<(), Stop> {
        self.text.push_str(&serde_json::to_string(&self.mask.text(text))?);
        Ok(())
    }

    fn line(&mut self, depth: usize) {
        self.text.push('\n');
        self.text.extend(std::iter::repeat_n("  ", depth));
    }

    fn comma(&mut self, index: usize, count: usize) {
        if index + 1 < count {
            self.text.push(',');
        }
    }

    fn close(&mut self, bracket: char, count: usize, depth: usize) {
        if count > 0 {
            self.line(depth);
        }
        self.text.push(bracket);
    }
}

/// An object's members in the order in which they were written, each as often as it was.
pub(super) struct Members<'a>(pub(super) Vec<(String, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Each;

        impl<'de> Visitor<'de> for Each {
            type Value = Vec<(String, &'de RawValue)>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = Vec::new();
                while let Some(member) = map.next_entry()? {
                    members.push(member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Each).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digits_and_order_stay_as_written() {
        let text = r#"{"z":1.10,"a":[12345678901234567890123,{},[]],"z":"é\u00e9"}"#;
        let laid = json(text, &Mask::default(), usize::MAX).unwrap();
        let wanted = "{\n  \"z\": 1.10,\n  \"a\": [\n    12345678901234567890123,\n    {},\n    []\n  ],\n  \"z\": \"éé\"\n}";
        assert_eq!(laid, Laid { text: wanted.to_owned(), hidden: 0, whole: true });
        assert!(json("<html>", &Mask::default(), usize::MAX).is_none());
    }

    #[test]
    fn laying_out_stops_when_there_is_enough() {
        let text = format!("[{}]", vec!["{\"a\":1}"; 100_000].join(","));
        let laid = json(&text, &Mask::default(), 5_000).unwrap();
        assert!(!laid.whole && (5_000..5_200).contains(&laid.text.len()), "{}", laid.text.len());
    }

    #[test]
    fn every_value_at_a_place_is_found() {
        let text = r#"{"a":{"b/c":1},"l":[0,{"x":"y"}],"a":{"b/c":2}}"#;
        let value: &RawValue = serde_json::from_str(text).unwrap();
        for (path, wanted) in [
            ("/a/b~1c", vec!["1", "2"]),
            ("/l/1/x", vec!["\"y\""]),
            ("/l/7", vec![]),
            ("/none/x", vec![]),
            ("", vec![text]),
        ] {
            let mut found = Vec::new();
            reach(value, path, &mut found);
            assert_eq!(found.iter().map(|value| value.get()).collect::<Vec<_>>(), wanted, "{path}");
        }
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(json(&deep, &Mask::default(), usize::MAX).unwrap().text.matches('[').count(), 120);
    }
}
