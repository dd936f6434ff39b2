//! What a provider tells of somebody.

use openidconnect::AdditionalClaims;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What it tells besides the claims that the standard names.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Others {
    #[serde(flatten)]
    all: Map<String, Value>,
}

impl AdditionalClaims for Others {}

/// Everything that it tells.
#[derive(Debug)]
pub(super) struct Told {
    /// Whom it means.
    pub(super) subject: String,
    /// All claims, as an object.
    pub(super) all: Value,
}

impl Told {
    /// From a token's claims.
    pub(super) fn of(subject: &str, claims: &impl Serialize) -> Result<Self, serde_json::Error> {
        Ok(Self { subject: subject.to_owned(), all: serde_json::to_value(claims)? })
    }

    /// With more of the same person; what is told already stays.
    pub(super) fn with(mut self, more: impl Serialize) -> Result<Self, serde_json::Error> {
        if let (Some(all), Value::Object(more)) = (self.all.as_object_mut(), serde_json::to_value(more)?) {
            for (name, value) in more {
                all.entry(name).or_insert(value);
            }
        }
        Ok(self)
    }

    /// What to call them: the name they sign in with there, or their address, or their name.
    pub(super) fn name(&self) -> String {
        let names = ["preferred_username", "email", "name"].map(|claim| self.all.get(claim)?.as_str());
        let name = names.into_iter().flatten().find(|name| !name.trim().is_empty());
        name.unwrap_or(&self.subject).to_owned()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::Told;

    #[test]
    fn a_person_is_called_what_they_sign_in_with_there() {
        let told = |claims| Told { subject: "s-1".to_owned(), all: claims }.name();
        assert_eq!(told(json!({"preferred_username": "anna", "email": "a@example.com"})), "anna");
        assert_eq!(told(json!({"preferred_username": " ", "email": "a@example.com"})), "a@example.com");
        assert_eq!(told(json!({"name": "Anna K", "email": null})), "Anna K");
        assert_eq!(told(json!({"name": ["x"]})), "s-1");
    }

    #[test]
    fn what_the_token_says_is_not_overruled() {
        let told = Told { subject: "s-1".to_owned(), all: json!({"groups": ["a"]}) };
        let told = told.with(json!({"groups": ["b"], "email": "a@example.com"})).unwrap();
        assert_eq!(told.all, json!({"groups": ["a"], "email": "a@example.com"}));
    }
}
