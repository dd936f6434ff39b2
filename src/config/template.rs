//! Templates: parsed once, checked when the file is read, rendered for every request.
//!
//! A value is encoded by the place it stands in, whatever the template says: `safe` and
//! `autoescape` change nothing, since a payload comes from outside.

use std::fmt::Write as _;
use std::sync::{Arc, LazyLock};

use minijinja::syntax::SyntaxConfig;
use minijinja::value::ValueKind;
use minijinja::{Environment, Error, ErrorKind, Expression, Output, State, UndefinedBehavior, Value};
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};

/// Where a template's text ends up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// An operation key: every value must be there, and be one text, number or truth.
    Key,
    /// A path with its query: values are percent-encoded and cannot add a segment or a parameter.
    Path,
    /// A header's value: no control characters.
    Header,
    /// A string within a JSON body.
    Body,
}

/// Why a template could not be read, in words for whoever wrote it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct TemplateError(pub String);

/// Stands for an empty value in a path until the whole path is seen. No encoded value holds it.
pub(super) const NOTHING: char = '\0';

/// Everything but what RFC 3986 calls unreserved.
const ENCODED: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');

const IS_NULL: &str = "is null";
const IS_EMPTY: &str = "is empty";
const IS_COMPOUND: &str = "is a list or a table";

static KEY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Place::Key));
static PATH: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Place::Path));
static HEADER: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Place::Header));
static BODY: LazyLock<Environment<'static>> = LazyLock::new(|| environment(Place::Body));
/// Lets absent values pass, to find what is wrong with a template whatever it is given.
static PROBE: LazyLock<Environment<'static>> = LazyLock::new(|| {
    let mut environment = environment(Place::Body);
    environment.set_undefined_behavior(UndefinedBehavior::Chainable);
    environment
});

/// A template of text.
#[derive(Clone)]
pub struct Template {
    source: String,
    /// Absent when the text is the same for every operation.
    compiled: Option<Arc<Environment<'static>>>,
    facts: Vec<String>,
}

/// One expression that keeps its JSON type.
#[derive(Clone)]
pub(super) struct TypedExpression {
    source: String,
    compiled: Arc<Expression<'static, 'static>>,
    facts: Vec<String>,
}

impl std::fmt::Debug for Template {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Template({:?})", self.source)
    }
}

impl std::fmt::Debug for TypedExpression {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "TypedExpression({:?})", self.source)
    }
}

/// The name of the only template in its environment; it has no extension that would choose an
/// escaping.
const ONLY: &str = "template";

impl Template {
    /// Parses a text for one place.
    pub fn parse(place: Place, source: &str) -> Result<Self, TemplateError> {
        if !["{{", "{%", "{#"].iter().any(|mark| source.contains(mark)) {
            return Ok(Self::constant(source));
        }
        let base: &Environment<'static> = match place {
            Place::Key => &KEY,
            Place::Path => &PATH,
            Place::Header => &HEADER,
            Place::Body => &BODY,
        };
        let mut own = base.clone();
        own.add_template_owned(ONLY, source.to_owned()).map_err(|error| unreadable(&error))?;
        let names = own.get_template(ONLY).map_err(|error| unreadable(&error))?.undeclared_variables(true);
        if let Err(error) = PROBE.render_str(source, ()) {
            probed(&error)?;
        }
        let facts = in_order(names, source);
        Ok(Self { source: source.to_owned(), compiled: Some(Arc::new(own)), facts })
    }

    /// A text that holds no template.
    pub(super) fn constant(text: &str) -> Self {
        Self { source: text.to_owned(), compiled: None, facts: Vec::new() }
    }

    /// The text as written in the file, its variables replaced.
    pub fn source(&self) -> &str {
        &self.source
    }

    /// The dotted names it reads, such as `payload.order_id`, in the order of the text.
    pub fn facts(&self) -> &[String] {
        &self.facts
    }

    /// The text for these values, or what stands in the way, such as `payload.order_id is missing`.
    pub(super) fn render(&self, values: &Value) -> Result<String, String> {
        let Some(compiled) = &self.compiled else { return Ok(self.source.clone()) };
        compiled
            .get_template(ONLY)
            .and_then(|template| template.render(values))
            .map_err(|error| explain(&error, &self.facts, values))
    }
}

impl TypedExpression {
    /// The expression of a text that is nothing but one `{{ expression }}`.
    pub(super) fn parse(source: &str) -> Option<Self> {
        let inner = source.strip_prefix("{{")?.strip_suffix("}}")?;
        let inner = inner.strip_prefix('-').unwrap_or(inner);
        let inner = inner.strip_suffix('-').unwrap_or(inner);
        let environment: &'static Environment<'static> = &BODY;
        let compiled = environment.compile_expression_owned(inner.trim().to_owned()).ok()?;
        let facts = in_order(compiled.undeclared_variables(true), source);
        Some(Self { source: source.to_owned(), compiled: Arc::new(compiled), facts })
    }

    /// Whether every filter and test it uses exists.
    pub(super) fn check(&self) -> Result<(), TemplateError> {
        PROBE.render_str(&self.source, ()).map_or_else(|error| probed(&error), |_| Ok(()))
    }

    pub(super) fn source(&self) -> &str {
        &self.source
    }

    pub(super) fn facts(&self) -> &[String] {
        &self.facts
    }

    pub(super) fn render(&self, values: &Value) -> Result<serde_json::Value, String> {
        let value = self.compiled.eval(values).map_err(|error| explain(&error, &self.facts, values))?;
        if value.is_undefined() {
            return Err(explain(&Error::from(ErrorKind::UndefinedError), &self.facts, values));
        }
        serde_json::to_value(&value).map_err(|error| format!("this is no JSON: {error}"))
    }
}

/// No loader, no globals, no names but those that are given, nothing undefined.
fn environment(place: Place) -> Environment<'static> {
    let mut environment = Environment::new();
    let globals: Vec<String> = environment.globals().map(|(name, _)| name.to_owned()).collect();
    for name in globals {
        environment.remove_global(&name);
    }
    environment.set_undefined_behavior(UndefinedBehavior::Strict);
    // The text is the same to its last byte; the syntax stays the built-in one.
    if let Ok(syntax) = SyntaxConfig::builder().keep_trailing_newline(true).build() {
        environment.set_syntax(syntax);
    }
    environment.set_formatter(move |out, _: &mut State<'_, '_>, value| write_value(place, out, value));
    if place == Place::Path {
        // Every value is encoded as it is written; encoding it here as well would do so twice.
        environment.add_filter("urlencode", |value: Value| value);
    }
    environment
}

fn write_value(place: Place, out: &mut Output<'_>, value: &Value) -> Result<(), Error> {
    let refuse = |what: &'static str| Err(Error::new(ErrorKind::InvalidOperation, what));
    match value.kind() {
        // What `x if condition` leaves when the condition does not hold.
        ValueKind::Undefined if place != Place::Key => return write_text(place, out, ""),
        ValueKind::Undefined => return refuse(IS_EMPTY),
        // It would be sent as the word "none".
        ValueKind::None => return refuse(IS_NULL),
        ValueKind::Bool | ValueKind::Number | ValueKind::String => {}
        _ if place == Place::Body => {}
        _ => return refuse(IS_COMPOUND),
    }
    match value.as_str() {
        Some("") if place == Place::Key => refuse(IS_EMPTY),
        Some(text) => write_text(place, out, text),
        // As JSON writes them, and not as Python does.
        None if !matches!(value.kind(), ValueKind::Number) => match serde_json::to_string(value) {
            Ok(text) => write_text(place, out, &text),
            Err(_) => refuse("is no JSON"),
        },
        None => write_text(place, out, &value.to_string()),
    }
}

fn write_text(place: Place, out: &mut Output<'_>, text: &str) -> Result<(), Error> {
    let written = match place {
        Place::Path if text.is_empty() => out.write_char(NOTHING),
        Place::Path => write!(out, "{}", utf8_percent_encode(text, ENCODED)),
        _ => out.write_str(text),
    };
    written.map_err(|_| Error::from(ErrorKind::WriteFailure))
}

fn unreadable(error: &Error) -> TemplateError {
    TemplateError(error.detail().map_or_else(|| error.kind().to_string(), str::to_owned))
}

/// What an error says of the template itself; errors that other values would not cause pass.
fn probed(error: &Error) -> Result<(), TemplateError> {
    match error.kind() {
        ErrorKind::UnknownFilter | ErrorKind::UnknownTest | ErrorKind::SyntaxError => Err(unreadable(error)),
        _ => Ok(()),
    }
}

fn in_order(names: std::collections::HashSet<String>, source: &str) -> Vec<String> {
    let mut names: Vec<String> = names.into_iter().collect();
    names.sort_by_key(|name| (source.find(name.as_str()).unwrap_or(usize::MAX), name.clone()));
    names
}

/// Names the values that a failure is about.
fn explain(error: &Error, facts: &[String], values: &Value) -> String {
    let detail = error.detail().unwrap_or_default();
    let (state, guilty): (&str, fn(&Value) -> bool) = match (error.kind(), detail) {
        (ErrorKind::UndefinedError, _) => ("is missing", Value::is_undefined),
        (_, IS_NULL) => (IS_NULL, Value::is_none),
        (_, IS_EMPTY) => (IS_EMPTY, |value| value.as_str() == Some("")),
        (_, IS_COMPOUND) => (IS_COMPOUND, |value| {
            matches!(value.kind(), ValueKind::Map | ValueKind::Seq | ValueKind::Iterable)
        }),
        _ => {
            let kind = error.kind().to_string();
            return if detail.is_empty() { kind } else { format!("{kind}: {detail}") };
        }
    };
    let names: Vec<&str> =
        facts.iter().filter_map(|fact| first(fact, values, guilty)).fold(Vec::new(), |mut names, name| {
            if !names.contains(&name) {
                names.push(name);
            }
            names
        });
    match names.split_last() {
        None => format!("a value that the template names {state}"),
        Some((only, [])) => format!("{only} {state}"),
        Some((last, others)) => {
            format!("{} and {last} {}", others.join(", "), state.replacen("is", "are", 1))
        }
    }
}

/// The part of a dotted name up to where a value is found guilty.
fn first<'a>(fact: &'a str, values: &Value, guilty: fn(&Value) -> bool) -> Option<&'a str> {
    let mut value = values.clone();
    let mut end = 0;
    for part in fact.split('.') {
        value = value.get_attr(part).unwrap_or(Value::UNDEFINED);
        end += part.len() + usize::from(end > 0);
        let last = end == fact.len();
        if (last || value.is_undefined()) && guilty(&value) {
            return Some(&fact[..end]);
        }
    }
    None
}
