//! From a payload to an operation as it is stored: what is taken from it, once, when it is accepted.

use serde_json::Value;
use serde_json::value::RawValue;
use uuid::Uuid;

use super::accept::SubmitError;
use crate::config::{Config, OperationType};
use crate::domain::ambient::Ambient;
use crate::domain::key::{DestinationKey, OperationKey, PayloadDigest};
use crate::domain::operation::{NewOperation, NewStep};
use crate::domain::words::HIDDEN;

/// A payload that an operation of its type can be made of.
pub(super) struct Draft<'c> {
    /// Its type.
    pub(super) kind: &'c OperationType,
    /// Of the payload's canonical text.
    pub(super) digest: PayloadDigest,
    payload: Box<RawValue>,
    value: Value,
}

/// Where an operation comes from.
pub(super) struct Origin {
    /// The caller's own.
    pub(super) correlation_id: Option<String>,
    /// The system that it came from.
    pub(super) source: Option<String>,
    /// Who hands it in.
    pub(super) by: String,
    /// The operation that it corrects.
    pub(super) corrects: Option<Uuid>,
}

impl<'c> Draft<'c> {
    /// Reads a payload as one of a configured type's.
    pub(super) fn read(config: &'c Config, kind: &str, payload: Box<RawValue>) -> Result<Self, SubmitError> {
        let kind = known(config, kind)?;
        let malformed = |error: serde_json::Error| SubmitError::Malformed(format!("the payload: {error}"));
        let digest = PayloadDigest::of(&payload).map_err(malformed)?;
        let value = serde_json::from_str(payload.get()).map_err(malformed)?;
        Ok(Self { kind, digest, payload, value })
    }

    /// A text in it has what stands for private values in its place.
    pub(super) fn holds_mask(&self) -> bool {
        fn any(value: &Value) -> bool {
            match value {
                Value::String(text) => text.contains(HIDDEN),
                Value::Array(items) => items.iter().any(any),
                Value::Object(members) => members.values().any(any),
                _ => false,
            }
        }
        !self.kind.mask.is_empty() && any(&self.value)
    }

    /// The key that the type makes of it; absent when the type leaves that to the caller.
    pub(super) fn derived_key(&self) -> Result<Option<OperationKey>, SubmitError> {
        self.kind.derive_key(&self.value).map_err(|failure| SubmitError::KeyMissing(failure.to_string()))
    }

    /// All that is stored of it under a key, with a new id.
    pub(super) fn operation(&self, ambient: &Ambient, key: OperationKey, origin: Origin) -> NewOperation {
        let step = |step: &crate::config::StepType| NewStep {
            name: step.name.clone(),
            destination: step.destination.clone(),
            key: DestinationKey(ambient.opaque()),
            lane: step.lane(&self.kind.name),
        };
        NewOperation {
            steps: self.kind.steps.iter().map(step).collect(),
            id: ambient.id(),
            key,
            kind: self.kind.name.clone(),
            payload: self.payload.clone(),
            digest: self.digest,
            correlation_id: origin.correlation_id,
            source: origin.source,
            severity: self.kind.severity,
            submitted_by: origin.by,
            received_at: ambient.now(),
            search: self.kind.search_values(&self.value),
            corrects: origin.corrects,
        }
    }
}

fn known<'c>(config: &'c Config, name: &str) -> Result<&'c OperationType, SubmitError> {
    config.operations.get(name).ok_or_else(|| SubmitError::UnknownType {
        kind: name.chars().take(100).collect(),
        suggestion: config
            .operations
            .keys()
            .map(|known| (strsim::jaro_winkler(known, name), known))
            .filter(|(likeness, _)| *likeness > 0.8)
            .max_by(|a, b| a.0.total_cmp(&b.0))
            .map(|(_, known)| known.clone()),
    })
}
