//! The promise that each step really has, in words.

use std::fmt;

use super::Config;
use super::destination::Destination;
use super::preset::Preset;
use super::words::duration_text;
use crate::domain::contract::Class;
use crate::domain::time::Timestamp;
use crate::domain::words;

/// What holds whatever a destination promises.
pub const ALWAYS: [&str; 2] = [
    "Nothing accepted is lost: it is completed, waiting, or in the dead letters with its history.",
    "An override can break this; it is then on record who, when, why and what was known.",
];

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
    let unpromised = || {
        let key = contract.key.as_ref()?;
        let window = duration_text(key.window);
        Some(format!(
            " The key is sent in {}, and with a window of {window} nothing is promised for it.",
            key.carrier
        ))
    };
    match contract.class_at(None, now) {
        Class::Keyed => {
            let window = contract.key.as_ref().map_or_else(String::new, |key| duration_text(key.window));
            let until = contract.resend_until(now).map_or_else(String::new, words::moment);
            let within = format!(
                "{once}, within the key's window of {window} (sent first now: repeated until {until})"
            );
            match lag {
                Some(lag) => format!(
                    "{within}; after it the destination is looked up first, within the lookup's stated lag of {lag}; \
                     outside both we stop and ask."
                ),
                None => format!("{within}; outside it we stop and ask."),
            }
        }
        Class::Idempotent => format!("{once}: repeating the request converges."),
        Class::LookupOnly => format!(
            "{once}, within the lookup's stated lag of {}; outside it we stop and ask.{}",
            lag.unwrap_or_default(),
            unpromised().unwrap_or_default()
        ),
        Class::Neither => format!(
            "Sent once. When the answer is lost we cannot know: a person is told that it may have completed.{}",
            unpromised().unwrap_or_default()
        ),
    }
}

/// What else is to be known of a destination, a sentence or two each: its preset and its limit.
/// Empty when it has neither.
pub fn remarks(destination: &Destination) -> Vec<String> {
    let mut remarks = Vec::new();
    if let Some(preset) = &destination.preset {
        remarks.extend(about(preset, destination));
    }
    let limit = &destination.limit;
    if limit.per_second.is_some() || limit.in_flight.is_some() {
        let requests = |count: String| format!("{count} request{}", if count == "1" { "" } else { "s" });
        let rate = limit.per_second.map(|rate| format!("{} a second", requests(rate.to_string())));
        let width = limit.in_flight.map(|most| format!("{} at a time", requests(most.to_string())));
        let most: Vec<String> = rate.into_iter().chain(width).collect();
        remarks.push(format!(
            "It is given at most {}. What is more waits its turn and uses up no attempt.",
            most.join(" and ")
        ));
    }
    remarks
}

fn about(preset: &Preset, destination: &Destination) -> Vec<String> {
    let contract = &destination.contract;
    let mut remarks = vec![
        format!("{}, as documented on {}: {}.", preset.title, preset.date, preset.source),
        format!("It is about {}.", preset.endpoints),
    ];
    if preset.is_overruled(contract) {
        remarks.push("What is promised about repeats is your file's own word, not the preset's.".to_owned());
    } else if let Some(why) = &preset.unverified {
        remarks.push(format!("The key's window is not verified: it counts as 0. {why}"));
    }
    if let (None, Some(how)) = (&contract.lookup, &preset.lookup) {
        remarks.push(format!("It may be asked, once you describe how. {how}"));
        let example = preset.lookup_example.iter().map(|example| format!("For example: lookup = {example}"));
        remarks.extend(example);
    }
    remarks.extend(preset.quirks.iter().cloned());
    remarks
}
