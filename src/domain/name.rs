//! What may name a destination, a type, a saved value or a stored secret: it stands in addresses,
//! metrics and templates.

/// Whether a text is such a name: 1 to 64 ASCII letters, digits, `-` or `_`.
pub fn is_name(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-'))
}

/// What [`is_name`] wants, for people.
pub const NAME_RULE: &str = "a name has 1 to 64 letters, digits, \"-\" or \"_\"";

/// Whether a header or a parameter of this name probably holds a credential.
pub fn speaks_of_a_secret(name: &str) -> bool {
    const WORDS: [&str; 7] = ["auth", "token", "key", "secret", "cookie", "password", "signature"];
    let name = name.to_ascii_lowercase();
    WORDS.iter().any(|word| name.contains(word))
}
