//! What is taken from a payload when an operation is accepted: its key, and what people search by.

use minijinja::context;
use minijinja::value::Serde;
use serde_json::Value;

use super::operation::OperationType;
use crate::domain::classify::text_of;
use crate::domain::key::{KeyError, OperationKey};

/// The longest searched value, in characters; the rest is cut.
pub const MAX_SEARCH_VALUE: usize = 200;

/// Why a payload gives no key.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyFailure {
    /// A fact is not in the payload or is of no use; names it in plain words, such as
    /// `payload.order_id is missing`.
    #[error("no key can be made: {0}")]
    Fact(String),
    /// The facts are there, and what they make up is no key.
    #[error("no key can be made from this payload: {0}")]
    Key(#[from] KeyError),
}

impl OperationType {
    /// The operation key of a payload; absent when the type leaves the key to the caller.
    pub fn derive_key(&self, payload: &Value) -> Result<Option<OperationKey>, KeyFailure> {
        let Some(template) = &self.key else { return Ok(None) };
        let values = context! { payload => Serde(payload) };
        let text = template.render(&values).map_err(KeyFailure::Fact)?;
        Ok(Some(OperationKey::new(text)?))
    }

    /// The names in `search` whose values are shown masked.
    pub fn private_ids(&self) -> Vec<&str> {
        let masked = |pointer: &str| {
            self.mask.iter().any(|mask| {
                pointer
                    .strip_prefix(mask.as_str())
                    .is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
            })
        };
        self.search.iter().filter(|(_, pointer)| masked(pointer)).map(|(name, _)| name.as_str()).collect()
    }

    /// What people search this operation by: name and value, without those the payload lacks.
    pub fn search_values(&self, payload: &Value) -> Vec<(String, String)> {
        let found = |(name, pointer): &(String, String)| {
            let mut text = match payload.pointer(pointer)? {
                Value::Bool(truth) => truth.to_string(),
                // PostgreSQL cannot store a NUL, and one value must not fail the commit it shares.
                other => text_of(other)?.replace('\0', "\u{fffd}"),
            };
            if let Some((end, _)) = text.char_indices().nth(MAX_SEARCH_VALUE) {
                text.truncate(end);
            }
            Some((name.clone(), text))
        };
        self.search.iter().filter_map(found).collect()
    }
}
