//! Whole files in, configurations or mistakes out.

mod audit;
mod auth;
mod carriers;
mod guarantees;
mod mistakes;
mod mistakes_in_types;
mod presets;
mod requests;
mod secrets;
mod sources;
mod values;

use std::path::Path;

use super::{Config, ConfigError};

/// A destination and a type that hold no mistake.
const BASE: &str = r#"
[destinations.crm]
base_url = "https://crm.example.com/api/"
key = { header = "Idempotency-Key", window = "24h" }

[operations.ticket]
key = "ticket:{{ payload.order_id }}"

[[operations.ticket.steps]]
name = "create"
destination = "crm"
method = "POST"
path = "/tickets"
"#;

fn none(_: &str) -> Option<String> {
    None
}

fn read(text: &str) -> Result<Config, ConfigError> {
    Config::read(Path::new("dlo.toml"), text, &none)
}

/// A configuration whose type `ticket` has one step, described by `step` besides its name,
/// destination and method.
fn with_step(step: &str) -> Config {
    read(&format!(
        "[destinations.crm]\nbase_url = \"https://crm.example.com/api/\"\n\
         headers = {{ Authorization = \"Bearer hush\" }}\nkey = {{ header = \"Idempotency-Key\" }}\n\
         [operations.ticket]\n[[operations.ticket.steps]]\nname = \"create\"\ndestination = \"crm\"\n{step}"
    ))
    .unwrap()
}

/// Each text and the whole of what is said about it.
fn says(cases: &[(&str, &[&str])]) {
    for (text, wanted) in cases {
        let said = read(text).map_or_else(|error| error.to_string(), |_| "no mistake".to_owned());
        assert_eq!(said.lines().collect::<Vec<_>>(), *wanted, "{text}");
    }
}
