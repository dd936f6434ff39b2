//! The two layers that read what comes from outside, compiled by themselves: they know neither
//! database nor network, and so the fuzzer's build is short.

#[macro_use]
#[path = "../../src/domain/mod.rs"]
pub mod domain;
#[path = "../../src/config/mod.rs"]
pub mod config;

use std::path::Path;

use config::{Config, ConfigError};

/// The value of every variable of the environment that a file may name.
pub const PLANTED: &str = "planted-in-the-environment-of-the-fuzzer";

/// Reads a text as `dlo.toml`. The secret key is there, so that no file is looked for.
pub fn read(text: &str) -> Result<Config, ConfigError> {
    let env = |name: &str| match name {
        "DLO_SECRET_KEY" => Some("only for the fuzzer ".repeat(2)),
        _ if name.starts_with("DLO_") => None,
        _ => Some(PLANTED.to_owned()),
    };
    Config::read(Path::new("dlo.toml"), text, &env)
}

/// A text as TOML and JSON write it in quotes.
pub fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

/// A message as HTTP shows it: the first line, headers, an empty line, the body.
pub struct Message<'m> {
    pub first: &'m str,
    pub headers: Vec<(&'m str, &'m str)>,
    pub body: &'m str,
}

impl<'m> Message<'m> {
    /// Everything is a message: what is missing is empty.
    pub fn of(text: &'m str) -> Self {
        let (head, body) = text.split_once("\n\n").unwrap_or((text, ""));
        let mut lines = head.lines();
        let first = lines.next().unwrap_or_default();
        let headers = lines.filter_map(|line| line.split_once(": ")).collect();
        Self { first, headers, body }
    }
}
