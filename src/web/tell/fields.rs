//! A payload as the fields of a form, or as JSON to be edited, and back. What is not typed anew stays
//! as its sender wrote it; what is private is never filled in, and stays unless it is typed.

use serde_json::value::RawValue;

use super::mask::Mask;
use super::pretty::{self, Members};

/// More fields than this are no form that anybody reads.
const MOST_FIELDS: usize = 60;
/// A text that is longer, or has several lines, gets a larger field.
const LONG: usize = 80;

/// What a field takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A line of text.
    Text,
    /// Lines of text.
    Lines,
    /// Digits, kept as they are typed.
    Number,
    /// Yes or no.
    Bool,
    /// Nothing so far; what is typed becomes text.
    Null,
}

/// A value of the payload.
#[derive(Clone, Debug)]
pub struct Leaf {
    /// Where it stands, as a JSON pointer.
    pub pointer: String,
    /// The names on the way to it: "address.city".
    pub label: String,
    /// What it takes.
    pub kind: Kind,
    /// As it is; empty where it is private.
    pub value: String,
    /// It is private: left empty, it stays as it is.
    pub private: bool,
    raw: String,
}

impl Leaf {
    /// The JSON that stands for what was typed; what is wrong with it.
    fn typed(&self, typed: &str) -> Result<String, String> {
        let text = typed.replace("\r\n", "\n");
        if text == self.value.replace("\r\n", "\n") {
            return Ok(self.raw.clone());
        }
        let trimmed = text.trim();
        match self.kind {
            Kind::Text | Kind::Lines | Kind::Null => Ok(quoted(&text)),
            Kind::Bool if ["true", "false"].contains(&trimmed) => Ok(trimmed.to_owned()),
            Kind::Bool => Err(format!("{}: choose true or false.", self.label)),
            Kind::Number if is_number(trimmed) => Ok(trimmed.to_owned()),
            Kind::Number => Err(format!("{}: a number is needed, such as 12.50.", self.label)),
        }
    }
}

fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

fn is_number(text: &str) -> bool {
    text.starts_with(|first: char| first == '-' || first.is_ascii_digit())
        && serde_json::from_str::<&RawValue>(text).is_ok()
}

enum Node<'a> {
    Object(Vec<(String, Node<'a>)>),
    Value(&'a RawValue),
}

/// Nested objects of plain values, each name once; anything else is no form.
fn parse(raw: &RawValue) -> Option<Node<'_>> {
    match raw.get().as_bytes().first()? {
        b'{' => {
            let members: Members<'_> = serde_json::from_str(raw.get()).ok()?;
            let mut parsed: Vec<(String, Node<'_>)> = Vec::with_capacity(members.0.len());
            for (name, member) in members.0 {
                if parsed.iter().any(|(known, _)| *known == name) {
                    return None;
                }
                parsed.push((name, parse(member)?));
            }
            Some(Node::Object(parsed))
        }
        b'[' => None,
        _ => Some(Node::Value(raw)),
    }
}

/// The fields of a payload; absent where it is not made of nested objects of plain values, so that
/// only JSON shows it.
pub fn leaves(text: &str, mask: &Mask) -> Option<Vec<Leaf>> {
    let Node::Object(members) = parse(serde_json::from_str(text).ok()?)? else { return None };
    let mut found = Vec::new();
    for (name, node) in &members {
        collect(node, &pointer("", name), name, mask, &mut found)?;
    }
    (!found.is_empty() && found.len() <= MOST_FIELDS).then_some(found)
}

fn pointer(path: &str, name: &str) -> String {
    format!("{path}/{}", name.replace('~', "~0").replace('/', "~1"))
}

fn collect(node: &Node<'_>, path: &str, label: &str, mask: &Mask, into: &mut Vec<Leaf>) -> Option<()> {
    match node {
        // What is private as a whole is no field of its own parts.
        Node::Object(members) => {
            if mask.hides(path) && !members.is_empty() {
                return None;
            }
            for (name, node) in members {
                collect(node, &pointer(path, name), &format!("{label}.{name}"), mask, into)?;
            }
        }
        Node::Value(raw) => into.push(leaf(raw, path, label, mask)?),
    }
    Some(())
}

fn leaf(raw: &RawValue, path: &str, label: &str, mask: &Mask) -> Option<Leaf> {
    let raw = raw.get();
    let (kind, value) = match raw.as_bytes().first()? {
        b'"' => {
            let value: String = serde_json::from_str(raw).ok()?;
            // No field of a page keeps these.
            if value.chars().any(|letter| letter.is_control() && letter != '\n' && letter != '\t') {
                return None;
            }
            let long = value.contains('\n') || value.chars().count() > LONG;
            (if long { Kind::Lines } else { Kind::Text }, value)
        }
        b't' | b'f' => (Kind::Bool, raw.to_owned()),
        b'n' => (Kind::Null, String::new()),
        _ => (Kind::Number, raw.to_owned()),
    };
    let private = kind != Kind::Null && (mask.hides(path) || mask.text(&value) != value);
    Some(Leaf {
        pointer: path.to_owned(),
        label: label.to_owned(),
        kind,
        value: if private { String::new() } else { value },
        private,
        raw: raw.to_owned(),
    })
}

/// The payload with what was typed, by pointer; a field that was not sent stays as it is. Or what is
/// wrong, by pointer.
pub fn rebuilt(
    text: &str,
    leaves: &[Leaf],
    typed: impl Fn(&str) -> Option<String>,
) -> Result<String, Vec<(String, String)>> {
    let (mut values, mut wrong) = (Vec::with_capacity(leaves.len()), Vec::new());
    for leaf in leaves {
        match typed(&leaf.pointer).map_or_else(|| Ok(leaf.raw.clone()), |typed| leaf.typed(&typed)) {
            Ok(raw) => values.push((leaf.pointer.as_str(), raw)),
            Err(why) => wrong.push((leaf.pointer.clone(), why)),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    let mut into = String::with_capacity(text.len());
    if let Some(root) = serde_json::from_str(text).ok().and_then(parse) {
        write(&root, "", &values, &mut into);
    }
    Ok(into)
}

fn write(node: &Node<'_>, path: &str, values: &[(&str, String)], into: &mut String) {
    match node {
        Node::Object(members) => {
            into.push('{');
            for (index, (name, node)) in members.iter().enumerate() {
                if index > 0 {
                    into.push(',');
                }
                into.push_str(&quoted(name));
                into.push(':');
                write(node, &pointer(path, name), values, into);
            }
            into.push('}');
        }
        Node::Value(raw) => {
            let new = values.iter().find(|(known, _)| *known == path);
            into.push_str(new.map_or(raw.get(), |(_, raw)| raw));
        }
    }
}

/// The payload laid out as JSON to be edited, without what is private, and how many values that
/// leaves out. Absent where they cannot be left out of it.
pub fn editable(text: &str, mask: &Mask) -> Option<(String, usize)> {
    let root: &RawValue = serde_json::from_str(text).ok()?;
    if !text.trim_start().starts_with('{') {
        let private = mask.hides_within("") || mask.text(text) != text;
        return (!private).then(|| laid(text))?.map(|shown| (shown, 0));
    }
    let (open, left_out) = without_private(root, "", mask)?;
    Some((laid(&open)?, left_out))
}

fn laid(text: &str) -> Option<String> {
    pretty::json(text, &Mask::default(), usize::MAX).map(|laid| laid.text)
}

/// What is to be kept of a member that may be private.
fn is_private(raw: &RawValue, path: &str, mask: &Mask) -> bool {
    let text = raw.get();
    let hidden = text != "null" && mask.hides(path);
    hidden || (!text.starts_with('{') && (mask.hides_within(path) || mask.text(text) != text))
}

fn without_private(raw: &RawValue, path: &str, mask: &Mask) -> Option<(String, usize)> {
    let members: Members<'_> = serde_json::from_str(raw.get()).ok()?;
    let (mut parts, mut left_out) = (Vec::new(), 0);
    for (name, member) in members.0 {
        let path = pointer(path, &name);
        if is_private(member, &path, mask) {
            left_out += 1;
        } else if member.get().starts_with('{') {
            let (inner, count) = without_private(member, &path, mask)?;
            left_out += count;
            parts.push(format!("{}:{inner}", quoted(&name)));
        } else {
            parts.push(format!("{}:{}", quoted(&name), member.get()));
        }
    }
    Some((format!("{{{}}}", parts.join(",")), left_out))
}

/// The JSON that was typed, with what is private as it was wherever nothing was typed for it. Or what
/// is wrong with the JSON.
pub fn completed(typed: &str, text: &str, mask: &Mask) -> Result<String, String> {
    let new: &RawValue = serde_json::from_str(typed).map_err(|error| format!("This is no JSON: {error}."))?;
    let old: Option<&RawValue> = serde_json::from_str(text).ok();
    match old {
        Some(old) if old.get().starts_with('{') => {
            if !new.get().starts_with('{') {
                return Err("A JSON object is needed, which begins with {.".to_owned());
            }
            merged(new, old, "", mask).map_err(|error| error.to_string())
        }
        _ => Ok(new.get().to_owned()),
    }
}

fn merged(new: &RawValue, old: &RawValue, path: &str, mask: &Mask) -> Result<String, serde_json::Error> {
    let (new, old): (Members<'_>, Members<'_>) =
        (serde_json::from_str(new.get())?, serde_json::from_str(old.get())?);
    let mut parts = Vec::with_capacity(new.0.len());
    for (name, member) in &new.0 {
        let before = old.0.iter().find(|(known, _)| known == name).map(|(_, member)| *member);
        let both = |before: &RawValue| before.get().starts_with('{') && member.get().starts_with('{');
        let here = pointer(path, name);
        let inner = match before {
            // What is private as a whole was typed as a whole.
            Some(before) if both(before) && !mask.hides(&here) => merged(member, before, &here, mask)?,
            _ => member.get().to_owned(),
        };
        parts.push(format!("{}:{inner}", quoted(name)));
    }
    for (name, member) in &old.0 {
        let typed = new.0.iter().any(|(known, _)| known == name);
        if !typed && is_private(member, &pointer(path, name), mask) {
            parts.push(format!("{}:{}", quoted(name), member.get()));
        }
    }
    Ok(format!("{{{}}}", parts.join(",")))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = r#"{"order":"A-1","amount":1250.00,"gift":false,"note":null,"who":{"name":"Jo","email":"anna@example.com"}}"#;

    fn mask(text: &str) -> Mask {
        Mask::new(&["/who/email".to_owned()], Some(text))
    }

    fn built(typed: &[(&str, &str)]) -> Result<String, Vec<(String, String)>> {
        let leaves = leaves(TEXT, &mask(TEXT)).unwrap();
        let typed: Vec<(String, String)> =
            typed.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        rebuilt(TEXT, &leaves, |pointer| {
            typed.iter().find(|(name, _)| name == pointer).map(|(_, value)| value.clone())
        })
    }

    #[test]
    fn a_payload_of_plain_values_is_fields_and_what_is_private_is_never_filled_in() {
        let leaves = leaves(TEXT, &mask(TEXT)).unwrap();
        let shown: Vec<(&str, Kind, &str, bool)> =
            leaves.iter().map(|leaf| (&*leaf.label, leaf.kind, &*leaf.value, leaf.private)).collect();
        let wanted = [
            ("order", Kind::Text, "A-1", false),
            ("amount", Kind::Number, "1250.00", false),
            ("gift", Kind::Bool, "false", false),
            ("note", Kind::Null, "", false),
            ("who.name", Kind::Text, "Jo", false),
            ("who.email", Kind::Text, "", true),
        ];
        assert_eq!(shown, wanted);
    }

    #[test]
    fn what_is_not_typed_stays_to_the_digit() {
        assert_eq!(built(&[]).unwrap(), TEXT);
        let same = [("/order", "A-1"), ("/amount", "1250.00"), ("/note", ""), ("/who/email", "")];
        assert_eq!(built(&same).unwrap(), TEXT);
        let typed = [
            ("/amount", " 12345678901234567890.10 "),
            ("/gift", "true"),
            ("/note", "\"x\""),
            ("/who/email", "new@example.com"),
        ];
        let wanted = r#"{"order":"A-1","amount":12345678901234567890.10,"gift":true,"note":"\"x\"","who":{"name":"Jo","email":"new@example.com"}}"#;
        assert_eq!(built(&typed).unwrap(), wanted);
    }

    #[test]
    fn what_does_not_fit_its_field_is_named() {
        let wrong = built(&[("/amount", "twelve"), ("/gift", "")]).unwrap_err();
        let places: Vec<&str> = wrong.iter().map(|(pointer, _)| pointer.as_str()).collect();
        assert_eq!(places, ["/amount", "/gift"]);
        for digits in ["1.", "01", "+1", "0x1", "1e", "NaN", ""] {
            assert!(built(&[("/amount", digits)]).is_err(), "{digits}");
        }
    }

    #[test]
    fn lists_repeated_names_and_control_characters_are_no_form() {
        for text in [r#"{"a":[1]}"#, r#"{"a":1,"a":2}"#, r#"{"a":"\u0000"}"#, "[]", "1", "{}", "{"] {
            assert!(leaves(text, &Mask::default()).is_none(), "{text}");
        }
        let whole = Mask::new(&["/who".to_owned()], Some(TEXT));
        assert!(leaves(TEXT, &whole).is_none(), "what is private as a whole has no fields of its own");
    }

    #[test]
    fn json_leaves_out_what_is_private_and_puts_it_back() {
        let text = r#"{"a":1.10,"who":{"email":"anna@example.com","n":2},"sent":["to anna@example.com"]}"#;
        let mask = mask(text);
        let (shown, left_out) = editable(text, &mask).unwrap();
        assert_eq!(left_out, 2);
        assert!(!shown.contains("anna") && !shown.contains("sent") && shown.contains("1.10"), "{shown}");
        let back = completed(&shown, text, &mask).unwrap();
        let same = r#"{"a":1.10,"who":{"n":2,"email":"anna@example.com"},"sent":["to anna@example.com"]}"#;
        assert_eq!(back, same);
        let typed = r#"{"a":2,"who":{"email":"b@example.com"},"sent":[]}"#;
        assert_eq!(completed(typed, text, &mask).unwrap(), typed);
        let whole = Mask::new(&["/who".to_owned()], Some(text));
        let typed = r#"{"who":{"n":3},"sent":[]}"#;
        assert_eq!(completed(typed, text, &whole).unwrap(), typed);
        assert!(completed("{", text, &mask).unwrap_err().contains("line 1"));
        assert!(completed("[]", text, &mask).is_err());
        // A list at the top has no members to leave out.
        assert!(editable(r#"["anna@example.com"]"#, &mask).is_none());
        assert_eq!(editable("[1]", &Mask::default()).unwrap().1, 0);
    }
}
