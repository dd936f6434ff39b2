//! Which names a template may use where it stands.

use std::sync::LazyLock;

use regex::Regex;

use super::reader::Item;
use super::template::{Place, Template, TypedExpression};
use super::words::suggest;

/// The fields of `operation`.
const OPERATION: &[&str] = &["id", "key", "type", "correlation_id", "source"];

/// What a template may name.
pub(super) struct Scope<'s> {
    /// The first parts of names.
    pub(super) roots: &'static [&'static str],
    /// Earlier steps, each with the names that it saves.
    pub(super) earlier: &'s [(String, Vec<String>)],
}

impl Scope<'static> {
    /// For a key: business facts only.
    pub(super) const PAYLOAD: Self = Self { roots: &["payload"], earlier: &[] };
    /// For a lookup, which belongs to no step.
    pub(super) const LOOKUP: Self =
        Self { roots: &["payload", "key", "operation", "received_at"], earlier: &[] };
}

impl<'s> Scope<'s> {
    /// For a step after these.
    pub(super) fn step(earlier: &'s [(String, Vec<String>)]) -> Self {
        Self { roots: &["payload", "key", "operation", "received_at", "steps"], earlier }
    }

    /// Reads a template and notes what is wrong with it.
    pub(super) fn template(&self, place: Place, item: &Item<'_>) -> Option<Template> {
        let text = item.text()?;
        self.parse(place, &text, item)
    }

    pub(super) fn parse(&self, place: Place, text: &str, item: &Item<'_>) -> Option<Template> {
        match Template::parse(place, text) {
            Ok(template) => self.check(template.source(), template.facts(), item).then_some(template),
            Err(error) => {
                item.mistake(format!("this template cannot be read: {error}"));
                None
            }
        }
    }

    /// Reads a text that is one single expression; absent when it is not.
    pub(super) fn expression(&self, text: &str, item: &Item<'_>) -> Option<TypedExpression> {
        let expression = TypedExpression::parse(text)?;
        if let Err(error) = expression.check() {
            item.mistake(format!("this template cannot be read: {error}"));
        }
        self.check(expression.source(), expression.facts(), item);
        Some(expression)
    }

    fn check(&self, source: &str, facts: &[String], item: &Item<'_>) -> bool {
        let mut right = true;
        let mut wrong = |problem: String| {
            item.mistake(problem);
            right = false;
        };
        for fact in facts {
            let mut parts = fact.split('.');
            let root = parts.next().unwrap_or_default();
            match (root, parts.next()) {
                _ if !self.roots.contains(&root) => {
                    wrong(format!("a template here knows no \"{root}\"; it may name {}", list(self.roots)));
                }
                ("operation", Some(field)) if !OPERATION.contains(&field) => {
                    wrong(format!("an operation has no \"{field}\"; {}", suggest(field, OPERATION)));
                }
                ("steps", Some(step)) => self.check_step(step, parts.next(), &mut wrong),
                _ => {}
            }
        }
        if self.roots.contains(&"steps") {
            for found in SUBSCRIPTS.captures_iter(source) {
                if let Some(step) = found.get(1).or(found.get(2)) {
                    self.check_step(step.as_str(), found.get(3).map(|saved| saved.as_str()), &mut wrong);
                }
            }
        }
        right
    }

    fn check_step(&self, step: &str, saved: Option<&str>, wrong: &mut dyn FnMut(String)) {
        let Some((_, names)) = self.earlier.iter().find(|(name, _)| name == step) else {
            let names: Vec<&str> = self.earlier.iter().map(|(name, _)| name.as_str()).collect();
            return wrong(format!("no earlier step is called \"{step}\"; {}", suggest(step, &names)));
        };
        if let Some(saved) = saved
            && !names.iter().any(|name| name == saved)
        {
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            wrong(format!("the step \"{step}\" saves no \"{saved}\"; {}", suggest(saved, &names)));
        }
    }
}

/// `steps["create ticket"].ticket_id`: the way to name a step whose name is no identifier.
static SUBSCRIPTS: LazyLock<Subscripts> = LazyLock::new(Subscripts::new);

struct Subscripts(Option<Regex>);

impl Subscripts {
    fn new() -> Self {
        Self(Regex::new(r#"\bsteps\[\s*(?:"([^"]*)"|'([^']*)')\s*\](?:\.([A-Za-z_]\w*))?"#).ok())
    }

    fn captures_iter<'h>(&'h self, text: &'h str) -> impl Iterator<Item = regex::Captures<'h>> {
        self.0.iter().flat_map(move |pattern| pattern.captures_iter(text))
    }
}

/// `a, b and c`.
pub(super) fn list(words: &[&str]) -> String {
    match words.split_last() {
        None => String::new(),
        Some((only, [])) => (*only).to_owned(),
        Some((last, others)) => format!("{} and {last}", others.join(", ")),
    }
}
