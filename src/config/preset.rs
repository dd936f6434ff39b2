//! Built-in contracts.

use super::scope::list;
use crate::domain::contract::{Rule, RuleOutcome, StatusMatch};

/// A contract that many destinations keep.
#[derive(Clone, Copy, Debug)]
pub(super) struct Preset {
    pub(super) name: &'static str,
    /// The header that takes the key.
    pub(super) header: Option<&'static str>,
    /// What single statuses mean.
    statuses: &'static [(u16, RuleOutcome)],
}

/// Every built-in contract. A window is never built in: it is what a destination has published.
const PRESETS: &[Preset] = &[
    // draft-ietf-httpapi-idempotency-key-header, section 2.7: a missing key, another request
    // under way, and a key used with other data.
    Preset {
        name: "ietf",
        header: Some("Idempotency-Key"),
        statuses: &[
            (400, RuleOutcome::Rejected),
            (409, RuleOutcome::InFlight),
            (422, RuleOutcome::KeyConflict),
        ],
    },
];

impl Preset {
    pub(super) fn find(name: &str) -> Result<Self, String> {
        PRESETS.iter().find(|preset| preset.name == name).copied().ok_or_else(|| {
            let names: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
            format!("unknown preset; this version has {}", list(&names))
        })
    }

    pub(super) fn rules(&self) -> impl Iterator<Item = Rule> {
        self.statuses.iter().map(|(status, outcome)| Rule {
            status: Some(StatusMatch::Code(*status)),
            body: None,
            outcome: *outcome,
            reference: None,
        })
    }
}
