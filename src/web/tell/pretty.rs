//! Lays JSON out for reading. Every digit, and every member's place, stays as its sender wrote it.

use serde::Deserialize;
use serde::de::{MapAccess, Visitor};
use serde_json::value::RawValue;

use super::mask::{HIDDEN, Mask};
use crate::domain::key::MAX_DEPTH;

/// The laid-out text and how many values are hidden in it; absent when the text is no JSON.
pub(super) fn json(text: &str, mask: &Mask) -> Option<(String, usize)> {
    let value: &RawValue = serde_json::from_str(text).ok()?;
    let mut page = Page { text: String::with_capacity(text.len() * 2), mask, hidden: 0 };
    page.value(value, "", 0).ok()?;
    Some((page.text, page.hidden))
}

struct Page<'m> {
    text: String,
    mask: &'m Mask,
    hidden: usize,
}

impl Page<'_> {
    fn value(&mut self, value: &RawValue, path: &str, depth: usize) -> Result<(), serde_json::Error> {
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

    fn string(&mut self, text: &str) -> Result<(), serde_json::Error> {
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
        let (shown, hidden) = json(text, &Mask::default()).unwrap();
        let wanted = "{\n  \"z\": 1.10,\n  \"a\": [\n    12345678901234567890123,\n    {},\n    []\n  ],\n  \"z\": \"éé\"\n}";
        assert_eq!((shown.as_str(), hidden), (wanted, 0));
        assert!(json("<html>", &Mask::default()).is_none());
    }

    #[test]
    fn depth_is_bounded() {
        let deep = format!("{}{}", "[".repeat(120), "]".repeat(120));
        assert_eq!(json(&deep, &Mask::default()).unwrap().0.matches('[').count(), 120);
    }
}
