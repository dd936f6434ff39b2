//! `when`: whether a step is to be carried out at all.

use super::reader::Item;
use super::scope::Scope;
use super::template::TypedExpression;

/// An expression over the values that a step's templates may name.
#[derive(Clone, Debug)]
pub struct Condition(TypedExpression);

impl Condition {
    /// Reads it, with or without braces around it, and notes what is wrong with it.
    pub(super) fn read(item: &Item<'_>, scope: &Scope<'_>) -> Option<Self> {
        let text = item.text()?;
        let text = text.trim();
        let braced = if text.starts_with("{{") { text.to_owned() } else { format!("{{{{ {text} }}}}") };
        let expression = scope.expression(&braced, item);
        if expression.is_none() {
            item.mistake("must be one expression, such as \"payload.amount > 0\"");
        }
        expression.map(Self)
    }

    /// Whether it holds for these values; or why that cannot be told.
    pub(super) fn holds(&self, values: &minijinja::Value) -> Result<bool, String> {
        match self.0.render(values)? {
            serde_json::Value::Bool(holds) => Ok(holds),
            other => Err(format!("it came to {other}, which is neither true nor false")),
        }
    }
}
