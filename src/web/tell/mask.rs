//! Hides what a type marks as private: in the payload by its place, and everywhere else by its
//! value, since requests, addresses and answers repeat it.

use std::collections::HashMap;

use regex::{Captures, Regex};
use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::pretty::{self, Laid};
use crate::config::Config;
use crate::domain::hide::pattern;
use crate::store::{StoreError, Tx, operations};

pub use crate::domain::words::HIDDEN;

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
    /// The business ids that are private.
    ids: Vec<String>,
    values: Vec<String>,
    pattern: Option<Regex>,
    /// The values are not known, so that no foreign text may be shown as it is.
    blind: bool,
}

impl Mask {
    /// Of a payload, by the pointers of its type. Without the payload nothing is known of the
    /// values: they went with it.
    pub fn new(pointers: &[String], payload: Option<&str>) -> Self {
        // Only what the pointers name is read: the rest of a huge payload is passed over.
        let document: Option<&RawValue> =
            payload.filter(|_| !pointers.is_empty()).and_then(|text| serde_json::from_str(text).ok());
        let mut values = Vec::new();
        for pointer in pointers {
            let mut found = Vec::new();
            if let Some(document) = document {
                pretty::reach(document, pointer, &mut found);
            }
            for value in found.iter().filter_map(|raw| serde_json::from_str::<Value>(raw.get()).ok()) {
                collect(&value, &mut values);
            }
        }
        Self {
            pointers: pointers.to_vec(),
            blind: payload.is_none() && !pointers.is_empty(),
            ..Self::default()
        }
        .knowing(values)
    }

    /// The same, with more values to be hidden wherever they are.
    fn knowing(mut self, values: impl IntoIterator<Item = String>) -> Self {
        self.values.extend(values);
        self.values.sort_by(|a, b| b.len().cmp(&a.len()).then_with(|| a.cmp(b)));
        self.values.dedup();
        self.pattern = pattern(&self.values);
        self
    }

    /// Of a type's operation; a type that is no longer configured has no pointers.
    pub fn of(config: &Config, kind: &str, payload: Option<&str>) -> Self {
        let Some(kind) = config.operations.get(kind) else { return Self::default() };
        let ids = kind.private_ids().into_iter().map(str::to_owned).collect();
        Self { ids, ..Self::new(&kind.mask, payload) }
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
        // Of a payload that is too large to be read here, the private business ids are known all the same.
        let unread: Vec<Uuid> = ids.into_iter().filter(|id| !payloads.contains_key(id)).collect();
        let values = operations::search_values(tx, &unread).await?;
        let mask = |(id, kind): &(Uuid, &str)| {
            let mask = Self::of(config, kind, payloads.get(id).map(String::as_str));
            let mut known = Vec::new();
            for row in values.iter().filter(|row| row.operation_id == *id && mask.hides_id(&row.name)) {
                collect(&Value::from(row.value.as_str()), &mut known);
            }
            (*id, if known.is_empty() { mask } else { mask.knowing(known) })
        };
        Ok(rows.iter().map(mask).collect())
    }

    /// The private values are not known although there are some.
    pub fn is_blind(&self) -> bool {
        self.blind
    }

    /// There is something that must not be shown.
    pub fn hides_something(&self) -> bool {
        !self.pointers.is_empty()
    }

    /// A business id, hidden whatever its value where its name is that of a private one.
    pub fn id(&self, name: &str, value: &str) -> String {
        if self.hides_id(name) { HIDDEN.to_owned() } else { self.text(value) }
    }

    fn hides_id(&self, name: &str) -> bool {
        self.ids.iter().any(|id| id == name)
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
        self.body_within(text, usize::MAX).text
    }

    /// The same, of a body that may be too large to be shown whole.
    pub fn body_within(&self, text: &str, most: usize) -> Laid {
        let by_value = Self { pointers: Vec::new(), ..self.clone() };
        pretty::json(text, &by_value, most).unwrap_or_else(|| {
            let (text, whole) = beginning(text, most);
            Laid { text: self.cut_text(text), hidden: 0, whole }
        })
    }

    /// A document that holds the payload as its member `payload` and the operation as `operation`,
    /// also in each of so many `dead_letters`, laid out; absent when it is no JSON.
    pub fn document(&self, text: &str, letters: usize) -> Option<String> {
        let mut pointers: Vec<String> =
            self.pointers.iter().map(|pointer| format!("/payload{pointer}")).collect();
        for id in &self.ids {
            let id = id.replace('~', "~0").replace('/', "~1");
            pointers.push(format!("/operation/search/{id}"));
            pointers.extend((0..letters).map(|n| format!("/dead_letters/{n}/operation/search/{id}")));
        }
        let mask = Self { pointers, ..self.clone() };
        pretty::json(text, &mask, usize::MAX).map(|laid| laid.text)
    }

    /// The payload laid out, as far as there is room.
    pub fn payload(&self, text: &str, most: usize) -> Laid {
        pretty::json(text, self, most).unwrap_or_else(|| {
            let (text, whole) = beginning(text, most);
            Laid { text: self.cut_text(text), hidden: 0, whole }
        })
    }
}

/// A text up to `most` bytes, and whether that is all of it.
fn beginning(text: &str, most: usize) -> (&str, bool) {
    let end = (0..=most.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    (&text[..end], end == text.len())
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
        let Laid { text: shown, hidden, .. } = mask.payload(payload, usize::MAX);
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
        assert_eq!(mask.payload(payload, usize::MAX).hidden, 4);
        assert_eq!(mask.text("ab 1234 4111111111111111 secret-one"), format!("ab 1234 {HIDDEN} {HIDDEN}"));
    }

    #[test]
    fn what_is_too_large_to_look_for_hides_everything() {
        let payload = format!(r#"{{"note":"{}"}}"#, "secret ".repeat(20_000));
        let mask = mask(&["/note"], &payload);
        assert_eq!(mask.text("the answer says secret"), HIDDEN);
        assert_eq!(mask.payload(&payload, 100).hidden, 1);
    }

    #[test]
    fn a_text_that_is_cut_within_a_value_does_not_show_its_beginning() {
        let mask = mask(&["/email"], r#"{"email":"anna@example.com"}"#);
        let said = format!("{} anna@example.com", "x".repeat(50));
        let laid = mask.body_within(&said, 58);
        assert!(!laid.whole && laid.text.ends_with(&format!(" {HIDDEN}")), "{}", laid.text);
    }

    #[test]
    fn without_the_payload_nothing_is_known_to_hide() {
        let pointers = ["/email".to_owned()];
        assert!(Mask::new(&pointers, None).is_blind());
        assert!(!Mask::new(&[], None).is_blind());
        assert!(!Mask::new(&pointers, Some("{}")).is_blind());
    }
}
