//! `[[destinations.NAME.rules]]`: a destination's own meanings of answers.

use jsonptr::Pointer;
use regex::Regex;
use toml::de::DeValue;

use super::body::constant;
use super::reader::{Item, Table};
use super::words::suggest;
use crate::domain::UnknownWord;
use crate::domain::contract::{BodyMatch, BodyTest, Rule, RuleOutcome, StatusMatch};

pub(super) fn read_rules(tables: &[Table<'_>]) -> Vec<Rule> {
    tables.iter().filter_map(read_rule).collect()
}

fn read_rule(table: &Table<'_>) -> Option<Rule> {
    let status = table.get("status").and_then(|item| read_status(&item));
    let body = table.table("body").and_then(|table| read_body(&table));
    let wanted = format!("one of {}", words::<RuleOutcome>(RuleOutcome::ALL));
    let outcome = table.required("outcome", &wanted).and_then(|text| word(table, "outcome", &text));
    let reference = pointer(table, "reference");
    let wait = table.duration("wait");
    let ends = [RuleOutcome::Done, RuleOutcome::Accepted, RuleOutcome::Rejected, RuleOutcome::KeyConflict];
    if wait.is_some() && outcome.is_some_and(|outcome| ends.contains(&outcome)) {
        table.mistake("wait", "belongs to an outcome after which it is sent again; remove it");
    }
    if !table.has("status") && !table.has("body") {
        table.mistake(
            "status",
            "is missing; write a status, a body or both: this rule would cover every answer",
        );
    }
    table.finish();
    Some(Rule { status, body, outcome: outcome?, reference, wait })
}

fn read_status(item: &Item<'_>) -> Option<StatusMatch> {
    let found = match item.value.get_ref() {
        DeValue::Integer(_) => item
            .integer()
            .and_then(|code| u16::try_from(code).ok())
            .filter(|code| (100..=599).contains(code))
            .map(StatusMatch::Code),
        DeValue::String(text) => match text.as_bytes() {
            [hundred @ b'1'..=b'5', b'x', b'x'] => Some(StatusMatch::Hundred(u16::from(hundred - b'0'))),
            _ => None,
        },
        _ => None,
    };
    if found.is_none() {
        item.mistake("must be a number from 100 to 599 or a class such as \"5xx\"");
    }
    found
}

fn read_body(table: &Table<'_>) -> Option<BodyMatch> {
    let pointer = pointer(table, "pointer");
    if !table.has("pointer") {
        table.mistake("pointer", "is missing; write a JSON pointer such as \"/error/code\"");
    }
    let equals = table.get("equals").and_then(|item| constant(&item)).map(BodyTest::Equals);
    let matches = regular_expression(table, "matches").map(BodyTest::Matches);
    match (table.has("equals"), table.has("matches")) {
        (true, true) => table.mistake("matches", "stands beside equals; write one of the two"),
        (false, false) => table.mistake("equals", "is missing; write equals or matches"),
        _ => {}
    }
    table.finish();
    Some(BodyMatch { pointer: pointer?, test: equals.or(matches)? })
}

/// A regular expression, when the key is there.
pub(super) fn regular_expression(table: &Table<'_>, key: &'static str) -> Option<Regex> {
    Regex::new(&table.text(key)?)
        .map_err(|error| {
            let why = error.to_string();
            let why = why.lines().last().unwrap_or_default().trim_start_matches("error: ");
            table.mistake(key, format!("this is no regular expression: {why}"));
        })
        .ok()
}

/// A JSON pointer, when the key is there.
pub(super) fn pointer(table: &Table<'_>, key: &'static str) -> Option<String> {
    pointer_of(&table.get(key)?)
}

pub(super) fn pointer_of(item: &Item<'_>) -> Option<String> {
    let text = item.text()?;
    if Pointer::parse(&text).is_err() {
        item.mistake("must be a JSON pointer such as \"/order/id\"");
        return None;
    }
    Some(text)
}

/// One of an enum's words.
pub(super) fn word<T: std::str::FromStr<Err = UnknownWord>>(
    table: &Table<'_>,
    key: &str,
    text: &str,
) -> Option<T> {
    text.parse()
        .map_err(|error: UnknownWord| {
            table.mistake(key, format!("unknown word; {}", suggest(text, error.known)));
        })
        .ok()
}

fn words<T: std::fmt::Display>(all: &[T]) -> String {
    all.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
