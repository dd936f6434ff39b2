//! The promise that each step really has, in words.

use std::fmt;

use super::Config;
use super::destination::Destination;
use super::words::duration_text;
use crate::domain::contract::Class;
use crate::domain::time::Timestamp;

/// What holds whatever a destination promises.
pub const ALWAYS: [&str; 2] = [
    "Nothing accepted is lost: it is completed, waiting, or in the dead letters with its history.",
    "An override can break this; it is then on record who, when, why and what was known.",
];

/// In this version a lookup's answer is a person's to find.
const NOT_ASKED: &str = "In this version the destination is not asked automatically: what may have happened is put \
                         before a person.";

/// What one step of a type promises.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Guarantee {
    /// The type's name.
    pub operation: String,
    /// The step's name.
    pub step: String,
    /// The destination's name.
    pub destination: String,
    /// The contract class before the first send.
    pub class: Class,
    /// The promise, in sentences.
    pub text: String,
}

impl fmt::Display for Guarantee {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} / {} -> {}: {}", self.operation, self.step, self.destination, self.text)
    }
}

/// One promise for each step of each type, in the order of the types' names. [`ALWAYS`] holds
/// besides.
pub fn guarantees(config: &Config, now: Timestamp) -> Vec<Guarantee> {
    let mut all = Vec::new();
    for operation in config.operations.values() {
        for step in &operation.steps {
            let Some(destination) = config.destinations.get(&step.destination) else { continue };
            all.push(Guarantee {
                operation: operation.name.clone(),
                step: step.name.clone(),
                destination: destination.name.clone(),
                class: destination.contract.class_at(None, now),
                text: promise(destination, now),
            });
        }
    }
    all
}

/// What a destination's contract is worth to an operation that is first sent at `now`.
pub fn promise(destination: &Destination, now: Timestamp) -> String {
    let contract = &destination.contract;
    let once = "One operation has at most one effect here, through crashes, lost answers, races and replays";
    let lag = contract.lookup.as_ref().map(|lookup| duration_text(lookup.max_lag));
    match contract.class_at(None, now) {
        Class::Keyed => {
            let window = contract.key.as_ref().map_or_else(String::new, |key| duration_text(key.window));
            let until = contract.resend_until(now).map_or_else(String::new, Timestamp::rfc3339);
            let within = format!(
                "{once}, within the key's window of {window} (sent first now: repeated until {until}); outside it we \
                 stop and ask."
            );
            match lag {
                Some(_) => format!("{within} {NOT_ASKED}"),
                None => within,
            }
        }
        Class::Idempotent => format!("{once}: repeating the request converges."),
        Class::LookupOnly => format!(
            "{once}, within the lookup's stated lag of {}; outside it we stop and ask. {NOT_ASKED}",
            lag.unwrap_or_default()
        ),
        Class::Neither => {
            let unknown = "Sent once. When the answer is lost we cannot know: a person is told that it may have \
                           completed.";
            match &contract.key {
                Some(key) => format!(
                    "{unknown} The key is sent in {}, and with a window of {} nothing is promised for it.",
                    key.header,
                    duration_text(key.window)
                ),
                None => unknown.to_owned(),
            }
        }
    }
}
