//! A contract's own rules: when one covers an answer, and what it makes of it.

use serde_json::Value;

use super::waits::{limit_told, wait_told};
use super::{Action, Answer, Classified, Symptom};
use crate::domain::attempt::Outcome;
use crate::domain::contract::{BodyMatch, BodyTest, Rule, RuleOutcome};
use crate::domain::time::Timestamp;

pub(super) fn covers(rule: &Rule, status: u16) -> bool {
    rule.status.is_none_or(|matcher| matcher.covers(status))
}

pub(super) fn holds(condition: &BodyMatch, body: &Value) -> bool {
    values_at(body, &condition.pointer).into_iter().any(|found| match &condition.test {
        BodyTest::Equals(wanted) => found == wanted,
        BodyTest::Matches(pattern) => match found {
            Value::String(text) => pattern.is_match(text),
            other => pattern.is_match(&other.to_string()),
        },
    })
}

/// What stands at a pointer in which `*` is every item of an array or member of an object.
fn values_at<'v>(body: &'v Value, pointer: &str) -> Vec<&'v Value> {
    let Some((before, after)) = pointer
        .match_indices("/*")
        .find(|(at, star)| matches!(pointer.as_bytes().get(at + star.len()), None | Some(b'/')))
        .map(|(at, star)| (&pointer[..at], &pointer[at + star.len()..]))
    else {
        return body.pointer(pointer).into_iter().collect();
    };
    let each = |value: &'v Value| values_at(value, after);
    match body.pointer(before) {
        Some(Value::Array(items)) => items.iter().flat_map(each).collect(),
        Some(Value::Object(members)) => members.values().flat_map(each).collect(),
        _ => Vec::new(),
    }
}

pub(super) fn by_rule(rule: &Rule, answer: &Answer, body: Option<&Value>, now: Timestamp) -> Classified {
    let meaning = of_rule(rule.outcome, answer.complete);
    let wait = match meaning.outcome {
        Outcome::Throttled => limit_told(answer, now),
        _ => wait_told(answer, now),
    };
    let named = |pointer: &String| values_at(body?, pointer).into_iter().find_map(text_of);
    let reference = rule.reference.as_ref().and_then(named);
    Classified { reference, ..meaning.after(wait.or(rule.wait)) }
}

/// What a word of a rule, or of a program that carries steps out, means.
pub(super) fn of_rule(outcome: RuleOutcome, complete: bool) -> Classified {
    use RuleOutcome as R;
    use Symptom as S;
    let (outcome, symptom, action) = match outcome {
        R::Done | R::Accepted if !complete => (Outcome::Done, S::ResultLost, Action::Complete),
        R::Done => (Outcome::Done, S::Done, Action::Complete),
        R::Accepted => (Outcome::Done, S::Accepted, Action::Complete),
        R::NotProcessed => (Outcome::NotSent, S::NotProcessed, Action::Retry),
        R::Throttled => (Outcome::Throttled, S::Throttled, Action::Wait),
        R::Rejected => (Outcome::Rejected, S::Rejected, Action::DeadLetter),
        R::Uncertain => (Outcome::Uncertain, S::ServerError, Action::FindOut),
        R::InFlight => (Outcome::Uncertain, S::InFlight, Action::Wait),
        R::KeyConflict => (Outcome::KeyConflict, S::KeyConflict, Action::DeadLetter),
    };
    Classified::new(outcome, symptom, action)
}

/// A reference as text: strings as they are, numbers as they are written.
pub fn text_of(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) => Some(number.to_string()),
        _ => None,
    }
}
