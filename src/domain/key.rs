//! Keys and digests: what makes two requests the same request.

use std::collections::BTreeMap;

use serde::de::Error as _;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use uuid::Uuid;

/// The longest operation key, in characters.
pub const MAX_KEY: usize = 255;

/// How deep a payload may nest: deeper ones are attacks on whoever reads them.
pub const MAX_DEPTH: usize = 64;

/// Names one business action; unique among all operations.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize)]
#[serde(transparent)]
pub struct OperationKey(String);

/// Why a text cannot be an operation key.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum KeyError {
    /// Nothing, or only white space.
    #[error("the key is empty")]
    Empty,
    /// More than [`MAX_KEY`] characters.
    #[error("the key has {0} characters; at most {MAX_KEY} are allowed")]
    TooLong(usize),
    /// A character that no log line or header could carry.
    #[error("the key holds a control character")]
    Control,
}

impl OperationKey {
    /// Checks and takes a key as its sender wrote it.
    pub fn new(text: impl Into<String>) -> Result<Self, KeyError> {
        let text = text.into();
        let length = text.chars().count();
        if text.trim().is_empty() {
            Err(KeyError::Empty)
        } else if length > MAX_KEY {
            Err(KeyError::TooLong(length))
        } else if text.chars().any(char::is_control) {
            Err(KeyError::Control)
        } else {
            Ok(Self(text))
        }
    }

    /// The key as text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl std::fmt::Display for OperationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

/// The key a destination sees: a UUID made once for a step and a generation. It tells nothing
/// about the business fact, and its letters fit every known provider.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(transparent)]
pub struct DestinationKey(pub Uuid);

impl std::fmt::Display for DestinationKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// SHA-256 over the payload's canonical text.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct PayloadDigest(pub [u8; 32]);

impl std::fmt::Debug for PayloadDigest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.hex())
    }
}

impl PayloadDigest {
    /// Digest of a JSON text. Members are taken in the order of their names and white space is
    /// dropped; a number counts as it is written, so that `1` and `1.0` differ and no digit is
    /// rounded away.
    pub fn of(payload: &RawValue) -> Result<Self, serde_json::Error> {
        let mut hash = Sha256::new();
        canonical(payload, MAX_DEPTH, &mut hash)?;
        Ok(Self(hash.finalize().into()))
    }

    /// Lower-case hexadecimal.
    pub fn hex(&self) -> String {
        hex(&self.0)
    }
}

/// Bytes in lower-case hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    use std::fmt::Write as _;
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        // Writing to a String cannot fail.
        let _ = write!(text, "{byte:02x}");
        text
    })
}

/// Feeds the canonical text to the hash without building it: each level is read as raw parts, so
/// a number keeps the digits that its sender wrote.
fn canonical(value: &RawValue, depth: usize, hash: &mut Sha256) -> Result<(), serde_json::Error> {
    let text = value.get();
    let below = || {
        depth
            .checked_sub(1)
            .ok_or_else(|| serde_json::Error::custom(format!("nested deeper than {MAX_DEPTH} levels")))
    };
    match text.as_bytes().first() {
        Some(b'{') => {
            let below = below()?;
            let members: UniqueMembers<'_> = serde_json::from_str(text)?;
            hash.update(b"{");
            for (index, (name, member)) in members.0.iter().enumerate() {
                if index > 0 {
                    hash.update(b",");
                }
                hash.update(serde_json::to_string(name)?);
                hash.update(b":");
                canonical(member, below, hash)?;
            }
            hash.update(b"}");
        }
        Some(b'[') => {
            let below = below()?;
            let items: Vec<&RawValue> = serde_json::from_str(text)?;
            hash.update(b"[");
            for (index, item) in items.iter().enumerate() {
                if index > 0 {
                    hash.update(b",");
                }
                canonical(item, below, hash)?;
            }
            hash.update(b"]");
        }
        // The same text may be escaped in several ways: compare what it says.
        Some(b'"') => hash.update(serde_json::to_string(&serde_json::from_str::<String>(text)?)?),
        _ => hash.update(text),
    }
    Ok(())
}

/// An object's members; a name given twice is an error, since readers disagree on which counts.
struct UniqueMembers<'a>(BTreeMap<String, &'a RawValue>);

impl<'de: 'a, 'a> Deserialize<'de> for UniqueMembers<'a> {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Visitor;

        impl<'de> serde::de::Visitor<'de> for Visitor {
            type Value = BTreeMap<String, &'de RawValue>;

            fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: serde::de::MapAccess<'de>>(self, mut map: A) -> Result<Self::Value, A::Error> {
                let mut members = BTreeMap::new();
                while let Some((name, member)) = map.next_entry::<String, &'de RawValue>()? {
                    if members.contains_key(&name) {
                        return Err(A::Error::custom(format!("the member {name:?} is there twice")));
                    }
                    members.insert(name, member);
                }
                Ok(members)
            }
        }

        deserializer.deserialize_map(Visitor).map(Self)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn digest(text: &str) -> Result<PayloadDigest, serde_json::Error> {
        PayloadDigest::of(&serde_json::from_str::<Box<RawValue>>(text)?)
    }

    fn same(a: &str, b: &str) -> bool {
        digest(a).unwrap() == digest(b).unwrap()
    }

    #[test]
    fn order_space_and_escapes_do_not_count() {
        assert!(same(r#"{"a":1,"b":[true,null]}"#, "{ \"b\" : [ true , null ],\n\"a\":1 }"));
        assert!(same(r#"{"é":"\u00e9\/"}"#, r#"{"\u00e9":"é/"}"#));
    }

    #[test]
    fn values_and_digits_count() {
        for (a, b) in [
            (r#"{"a":1}"#, r#"{"a":2}"#),
            (r#"{"a":1}"#, r#"{"a":"1"}"#),
            (r#"{"a":1}"#, r#"{"a":1.0}"#),
            (r#"{"a":12345678901234567890123}"#, r#"{"a":12345678901234567890124}"#),
            (r#"{"a":{"b":1}}"#, r#"{"a":{},"b":1}"#),
            (r#"["a,b"]"#, r#"["a","b"]"#),
            ("[1,2]", "[2,1]"),
        ] {
            assert!(!same(a, b), "{a} and {b}");
        }
    }

    #[test]
    fn a_member_given_twice_is_an_error() {
        assert!(digest(r#"{"a":1,"a":1}"#).is_err());
        assert!(digest(r#"[{"a":1,"\u0061":1}]"#).is_err());
    }

    #[test]
    fn depth_is_bounded() {
        let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
        assert!(digest(&nested(MAX_DEPTH)).is_ok());
        assert!(digest(&nested(MAX_DEPTH + 1)).is_err());
        assert!(digest(&nested(100_000)).is_err());
    }

    #[test]
    fn keys_are_checked() {
        assert_eq!(OperationKey::new(" "), Err(KeyError::Empty));
        assert_eq!(OperationKey::new("a\nb"), Err(KeyError::Control));
        assert_eq!(OperationKey::new("x".repeat(256)), Err(KeyError::TooLong(256)));
        assert_eq!(OperationKey::new("ticket:7:v1").unwrap().as_str(), "ticket:7:v1");
    }
}
