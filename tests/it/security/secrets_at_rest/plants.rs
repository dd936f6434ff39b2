//! Secrets that can be told apart from everything else, to be looked for.

use std::fmt::Write as _;

/// What is planted, and where.
pub(super) struct Plants(Vec<(&'static str, String)>);

impl Plants {
    pub(super) fn new() -> Self {
        let names = [
            "a variable",
            "a file",
            "a stored secret in a parameter",
            "a stored secret in an address",
            "a webhook secret",
            "a password",
            "a secret key",
            "a database password",
        ];
        let plant = |name| (name, format!("Planted{:016x}", rand::random::<u64>()));
        Self(names.into_iter().map(plant).collect())
    }

    pub(super) fn of(&self, name: &str) -> &str {
        let found = self.0.iter().find(|(known, _)| *known == name);
        &found.unwrap_or_else(|| panic!("{name} was planted")).1
    }

    pub(super) fn add(&mut self, name: &'static str, secret: &str) {
        assert!(secret.len() > 15, "{name}: {secret}");
        self.0.push((name, secret.to_owned()));
    }

    /// Looks for each, as text and in hexadecimal.
    pub(super) fn found_in(&self, place: &str, text: &str) {
        let lower = text.to_lowercase();
        for (name, secret) in &self.0 {
            let hex = secret.bytes().fold(String::new(), |mut hex, byte| {
                let _ = write!(hex, "{byte:02x}");
                hex
            });
            let at = text.find(secret.as_str()).or_else(|| lower.find(&hex));
            if let Some(at) = at {
                let from =
                    (0..=at.saturating_sub(300)).rev().find(|n| text.is_char_boundary(*n)).unwrap_or(0);
                panic!("{name} stands in {place}: {}", text[from..].chars().take(700).collect::<String>());
            }
        }
    }
}
