//! Two payloads side by side: what changed, value by value.

use std::collections::HashMap;

use serde_json::value::RawValue;

use super::mask::{HIDDEN, Mask};
use super::pretty::Members;
use crate::domain::key::MAX_DEPTH;

/// One value of either payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Row {
    /// The names on the way to it: "address.city".
    pub label: String,
    /// As it is; absent where it is new.
    pub old: Option<String>,
    /// As it would be; absent where it is left out.
    pub new: Option<String>,
    /// They differ.
    pub changed: bool,
}

struct Value {
    pointer: String,
    label: String,
    raw: String,
}

/// Every value of the two, in their order. What is private is shown nowhere but where it was typed
/// anew.
pub fn rows(old: &str, new: &str, mask: &Mask) -> Vec<Row> {
    let (old, new) = (values(old), values(new));
    let (before, after) = (by_place(&old), by_place(&new));
    let mut rows: Vec<Row> =
        old.iter().map(|value| row(Some(value), after.get(value.pointer.as_str()).copied(), mask)).collect();
    let added = new.iter().filter(|value| !before.contains_key(value.pointer.as_str()));
    rows.extend(added.map(|value| row(None, Some(value), mask)));
    rows
}

/// The first value at each place.
fn by_place(values: &[Value]) -> HashMap<&str, &Value> {
    let mut found = HashMap::with_capacity(values.len());
    for value in values {
        found.entry(value.pointer.as_str()).or_insert(value);
    }
    found
}

fn row(old: Option<&Value>, new: Option<&Value>, mask: &Mask) -> Row {
    let changed = old.map(|value| &value.raw) != new.map(|value| &value.raw);
    let hidden = |value: &Value| {
        let mut places = value.pointer.match_indices('/').map(|(at, _)| &value.pointer[..at]).skip(1);
        mask.hides(&value.pointer) || places.any(|place| mask.hides(place))
    };
    let old_text =
        old.map(|value| if hidden(value) { HIDDEN.to_owned() } else { mask.text(&plain(&value.raw)) });
    let new_text = new.map(|value| match (changed, hidden(value)) {
        (false, true) => HIDDEN.to_owned(),
        _ => mask.text(&plain(&value.raw)),
    });
    let label = old.or(new).map(|value| value.label.clone()).unwrap_or_default();
    // A number and a text of the same digits look alike: then both are shown as JSON writes them.
    if changed && old_text == new_text {
        let json = |value: Option<&Value>| value.map(|value| mask.text(&value.raw));
        return Row { label, old: json(old), new: json(new), changed };
    }
    Row { label, old: old_text, new: new_text, changed }
}

/// A text without its quotes; everything else as JSON writes it.
fn plain(raw: &str) -> String {
    serde_json::from_str::<String>(raw).unwrap_or_else(|_| raw.to_owned())
}

fn values(text: &str) -> Vec<Value> {
    let mut found = Vec::new();
    if let Ok(raw) = serde_json::from_str::<&RawValue>(text) {
        collect(raw, "", "", 0, &mut found);
    }
    found
}

fn collect(raw: &RawValue, pointer: &str, label: &str, depth: usize, into: &mut Vec<Value>) {
    let text = raw.get();
    let inner: Option<Vec<(String, &RawValue)>> = match text.as_bytes().first() {
        Some(b'{') if depth < MAX_DEPTH => serde_json::from_str::<Members<'_>>(text).ok().map(|all| all.0),
        Some(b'[') if depth < MAX_DEPTH => serde_json::from_str::<Vec<&RawValue>>(text).ok().map(|items| {
            (0..).zip(items).map(|(index, item): (usize, _)| (index.to_string(), item)).collect()
        }),
        _ => None,
    };
    match inner {
        Some(inner) if !inner.is_empty() => {
            for (name, value) in inner {
                let here = format!("{pointer}/{}", name.replace('~', "~0").replace('/', "~1"));
                let label = if label.is_empty() { name } else { format!("{label}.{name}") };
                collect(value, &here, &label, depth + 1, into);
            }
        }
        _ => into.push(Value { pointer: pointer.to_owned(), label: label.to_owned(), raw: text.to_owned() }),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_changed_is_marked_and_what_is_private_stays_hidden() {
        let old = r#"{"id":7,"who":{"email":"anna@example.com","n":"Jo"},"gone":[1],"list":[1,2]}"#;
        let new = r#"{"id":"7","who":{"n":"Jo","email":"anna@example.com"},"list":[1,3],"more":{}}"#;
        let mask = Mask::new(&["/who/email".to_owned()], Some(old));
        let rows: Vec<(String, Option<String>, Option<String>, bool)> =
            rows(old, new, &mask).into_iter().map(|row| (row.label, row.old, row.new, row.changed)).collect();
        let some = |text: &str| Some(text.to_owned());
        let wanted = [
            ("id".to_owned(), some("7"), some("\"7\""), true),
            ("who.email".to_owned(), some(HIDDEN), some(HIDDEN), false),
            ("who.n".to_owned(), some("Jo"), some("Jo"), false),
            ("gone.0".to_owned(), some("1"), None, true),
            ("list.0".to_owned(), some("1"), some("1"), false),
            ("list.1".to_owned(), some("2"), some("3"), true),
            ("more".to_owned(), None, some("{}"), true),
        ];
        assert_eq!(rows, wanted);
        let typed = r#"{"who":{"email":"new@example.com"}}"#;
        let shown = super::rows(r#"{"who":{"email":"anna@example.com"}}"#, typed, &mask);
        assert_eq!(
            (shown[0].old.as_deref(), shown[0].new.as_deref()),
            (Some(HIDDEN), Some("new@example.com"))
        );
    }
}
