//! `[operations.TYPE]`: a kind of operation and its steps.

use std::collections::BTreeMap;
use std::time::Duration;

use hyper::header::HeaderValue;
use url::Url;

use super::body::BodyTemplate;
use super::condition::Condition;
use super::credentials;
use super::destination::{Destination, check_path, header_name};
use super::key;
use super::preset;
use super::reader::{Item, Table};
use super::rules::{pointer, pointer_of, word};
use super::scope::Scope;
use super::server::{RetryOverride, read_retry};
use super::template::{Place, Template};
use super::words::{NAME_RULE, is_name, suggest};
use crate::domain::name::speaks_of_a_secret;
use crate::domain::operation::Severity;
use crate::domain::retry::RetryPolicy;

/// A configured kind of operation.
#[derive(Clone, Debug)]
pub struct OperationType {
    /// As the file calls it: 1 to 64 letters, digits, `-` or `_`.
    pub name: String,
    /// Makes the operation key from the payload; absent when the caller must send one.
    pub key: Option<Template>,
    /// How much a failure matters.
    pub severity: Severity,
    /// The team whose business it is.
    pub owner: Option<String>,
    /// What to read when it fails; http or https.
    pub runbook: Option<Url>,
    /// What people search by: a name and a JSON pointer into the payload.
    pub search: Vec<(String, String)>,
    /// JSON pointers to what is shown masked.
    pub mask: Vec<String>,
    /// After this, payload and answers are erased; absent when they are kept.
    pub retain: Option<Duration>,
    /// An override waits for a second person's word.
    pub override_approval: bool,
    /// Resolved: the type's words over its first destination's over the file's over the built-in.
    pub retry: RetryPolicy,
    /// In order; never empty.
    pub steps: Vec<StepType>,
}

/// One call to one destination.
#[derive(Clone, Debug)]
pub struct StepType {
    /// Unique within the type; 1 to 64 characters.
    pub name: String,
    /// A configured destination's name.
    pub destination: String,
    /// In capitals.
    pub method: String,
    /// Path and query behind the destination's `base_url`; begins with `/`.
    pub path: Template,
    /// Stored with the step: no credentials.
    pub headers: Vec<(String, Template)>,
    /// Absent: the payload as it was sent.
    pub body: Option<BodyTemplate>,
    /// What later steps and people use: a name and a JSON pointer into the answer.
    pub save: Vec<(String, String)>,
    /// JSON pointer to the id over there.
    pub reference: Option<String>,
    /// What this step brings about, in one line.
    pub effect: Option<String>,
    /// When it does not hold, the step is passed over.
    pub when: Option<Condition>,
    /// When it comes to nothing, the operation goes on without it.
    pub optional: bool,
    /// Who carries it out.
    pub runner: Runner,
}

text_enum! {
    /// Who carries a step out.
    pub enum Runner {
        /// The engine sends its request.
        Engine = "engine",
        /// A program of the user's own takes it through the API and says what became of it.
        Worker = "worker",
    }
}

impl StepType {
    /// Whether a program of the user's own carries it out.
    pub fn is_pulled(&self) -> bool {
        self.runner == Runner::Worker
    }

    /// Who takes the step's rows of work: the destination's name, or the type's for programs.
    pub fn lane(&self, kind: &str) -> String {
        match self.runner {
            Runner::Engine => self.destination.clone(),
            Runner::Worker => worker_lane(kind),
        }
    }
}

/// Stands for a method in the stored request of a step that a program carries out.
pub const WORKER_METHOD: &str = "WORK";

/// The lane of a type's steps that other programs carry out. No destination has such a name.
pub fn worker_lane(kind: &str) -> String {
    format!("worker:{kind}")
}

/// What the rest of the file says about every type.
pub(super) struct Known<'k> {
    pub(super) destinations: &'k BTreeMap<String, Destination>,
    /// With those that hold mistakes.
    pub(super) names: &'k [String],
    pub(super) retry: &'k RetryPolicy,
}

pub(super) fn read_all(table: Option<Table<'_>>, known: &Known<'_>) -> BTreeMap<String, OperationType> {
    let Some(table) = table else { return BTreeMap::new() };
    let read = |(name, item): (String, Item<'_>)| {
        if !is_name(&name) {
            item.mistake(NAME_RULE);
        }
        let operation = read(&name, &item.table()?, known);
        Some((name, operation))
    };
    table.entries().into_iter().filter_map(read).collect()
}

fn read(name: &str, table: &Table<'_>, known: &Known<'_>) -> OperationType {
    let key = table.get("key").and_then(|item| Scope::PAYLOAD.template(Place::Key, &item));
    if key.as_ref().is_some_and(|key| key.facts().is_empty()) {
        table.mistake("key", "names nothing of the payload, so that every operation would have this one key");
    }
    let severity = table.text("severity").and_then(|text| word(table, "severity", &text));
    let runbook = table.text("runbook").and_then(|text| {
        let url = Url::parse(&text).ok().filter(|url| matches!(url.scheme(), "http" | "https"));
        if url.is_none() {
            table.mistake("runbook", "must be an address such as \"https://wiki.example.com/tickets\"");
        }
        url
    });
    let retain = table.duration("retain").filter(|span| {
        if span.is_zero() {
            table.mistake("retain", "must be longer than 0s");
        }
        !span.is_zero()
    });
    let override_approval = table.flag("override_approval").unwrap_or_default();
    let owner = table.text("owner");
    let search = pointers(table, "search");
    let mask = table.list("mask").iter().filter_map(pointer_of).collect();
    let retry = read_retry(table.table("retry"));
    let steps = read_steps(table, known);
    table.finish();
    let retry = resolved(&retry, &steps, known);
    OperationType {
        name: name.to_owned(),
        key,
        severity: severity.unwrap_or(Severity::Normal),
        owner,
        runbook,
        search,
        mask,
        retain,
        override_approval,
        retry,
        steps,
    }
}

fn resolved(own: &RetryOverride, steps: &[StepType], known: &Known<'_>) -> RetryPolicy {
    let first = steps.first().and_then(|step| known.destinations.get(&step.destination));
    match first.and_then(|destination| destination.retry.as_ref()) {
        Some(theirs) => own.over(&theirs.over(known.retry)),
        None => own.over(known.retry),
    }
}

fn read_steps(table: &Table<'_>, known: &Known<'_>) -> Vec<StepType> {
    let tables = table.tables("steps");
    if tables.is_empty() {
        table.mistake("steps", format!("is missing; write at least one [[{}]]", table.at("steps")));
    }
    let mut steps = Vec::new();
    let mut earlier: Vec<(String, Vec<String>)> = Vec::new();
    for table in tables {
        let name = table.required("name", "what this step does, such as \"create ticket\"");
        if let Some(name) = &name {
            if name.trim().is_empty() || name.chars().count() > 64 || name.chars().any(char::is_control) {
                table.mistake("name", "must have 1 to 64 characters, none of them a control character");
            }
            if earlier.iter().any(|(other, _)| other == name) {
                table.mistake("name", format!("another step of this type is called \"{name}\" already"));
            }
        }
        let save = pointers(&table, "save");
        let saved = save.iter().map(|(name, _)| name.clone()).collect();
        let step = read_step(&table, name.clone(), save, &earlier, known);
        earlier.extend(name.map(|name| (name, saved)));
        steps.extend(step);
    }
    steps
}

fn read_step(
    table: &Table<'_>,
    name: Option<String>,
    save: Vec<(String, String)>,
    earlier: &[(String, Vec<String>)],
    known: &Known<'_>,
) -> Option<StepType> {
    let scope = Scope::step(earlier);
    let destination = table.required("destination", "the name of a destination").filter(|destination| {
        let there = known.names.contains(destination);
        if !there {
            let names: Vec<&str> = known.names.iter().map(String::as_str).collect();
            let hint = suggest(destination, &names);
            table.mistake("destination", format!("no destination is called \"{destination}\"; {hint}"));
        }
        there
    });
    let runner = table.text("runner").and_then(|text| word(table, "runner", &text)).unwrap_or(Runner::Engine);
    let common = Common {
        destination,
        save,
        reference: pointer(table, "reference"),
        effect: table.text("effect"),
        when: table.get("when").and_then(|item| Condition::read(&item, &scope)),
        optional: table.flag("optional").unwrap_or(false),
        body: table.get("body").and_then(|item| BodyTemplate::read(&item, &scope)),
    };
    let call = match runner {
        Runner::Engine => read_call(table, &common, &scope, known),
        Runner::Worker => {
            for own in ["method", "path", "headers"] {
                if table.has(own) {
                    table.mistake(own, "a program carries this step out and makes its own calls; remove it");
                }
            }
            Some(Call::worker())
        }
    };
    table.finish();
    let Call { method, path, headers } = call?;
    let Common { destination, save, reference, effect, when, optional, body } = common;
    let (name, destination) = (name?, destination?);
    Some(StepType {
        name,
        destination,
        method,
        path,
        headers,
        body,
        save,
        reference,
        effect,
        when,
        optional,
        runner,
    })
}

/// What every step has, whoever carries it out.
struct Common {
    destination: Option<String>,
    save: Vec<(String, String)>,
    reference: Option<String>,
    effect: Option<String>,
    when: Option<Condition>,
    optional: bool,
    body: Option<BodyTemplate>,
}

/// What the engine calls.
struct Call {
    method: String,
    path: Template,
    headers: Vec<(String, Template)>,
}

impl Call {
    /// Stands where a program makes its own calls.
    fn worker() -> Self {
        Self { method: WORKER_METHOD.to_owned(), path: Template::constant(""), headers: Vec::new() }
    }
}

fn read_call(table: &Table<'_>, common: &Common, scope: &Scope<'_>, known: &Known<'_>) -> Option<Call> {
    let theirs = common.destination.as_ref().and_then(|name| known.destinations.get(name));
    if let Some(theirs) = theirs.filter(|theirs| theirs.base_url.is_none()) {
        table.mistake(
            "destination",
            format!("\"{}\" has no base_url to send to; write one, or runner = \"worker\" here", theirs.name),
        );
    }
    let method = table.required("method", "a method such as \"POST\"").and_then(|text| {
        let method = text.to_ascii_uppercase();
        let methods = ["POST", "PUT", "PATCH", "DELETE", "GET", "HEAD"];
        let fits = methods.contains(&method.as_str());
        if !fits {
            table.mistake("method", format!("must be one of {}", methods.join(", ")));
        }
        fits.then_some(method)
    });
    let path = table.get("path");
    if path.is_none() {
        table.mistake("path", "is missing; write a path such as \"/tickets\"");
    }
    let path = path.and_then(|item| {
        let template = scope.template(Place::Path, &item)?;
        check_path(template.source(), &item);
        credentials::none_in_path(&item);
        if let Some(theirs) = theirs {
            credentials::check_step(&theirs.query, template.source(), &item);
        }
        Some(template)
    });
    let headers = table.get("headers").map(|item| read_headers(&item, scope, theirs)).unwrap_or_default();
    if common.body.is_some() && matches!(method.as_deref(), Some("GET" | "HEAD")) {
        table.mistake("body", "a GET or HEAD has no body; remove it");
    }
    if let (Some(theirs), Some(method), Some(path)) = (theirs, &method, &path) {
        if let Some(key) = &theirs.contract.key {
            key::check_step(table, &key.carrier, method, path, common.body.as_ref());
        }
        preset::check_step(table, theirs, method, path);
    }
    Some(Call { method: method?, path: path?, headers })
}

fn read_headers(
    item: &Item<'_>,
    scope: &Scope<'_>,
    destination: Option<&Destination>,
) -> Vec<(String, Template)> {
    let Some(table) = item.table() else { return Vec::new() };
    let read = |(name, item): (String, Item<'_>)| {
        let template = scope.template(Place::Header, &item)?;
        let is = |other: &str| name.eq_ignore_ascii_case(other);
        if let Err(problem) = header_name(&name) {
            item.mistake(problem);
        } else if ["authorization", "cookie", "proxy-authorization"].into_iter().any(is)
            || (item.takes_values() && speaks_of_a_secret(&name))
        {
            item.mistake("a step's headers are stored; write credentials under the destination's headers");
        } else if let Some(theirs) = destination {
            if theirs.contract.key.as_ref().and_then(|key| key.carrier.header_name()).is_some_and(is) {
                item.mistake("this header takes the step's key; remove it");
            } else if theirs.headers.iter().any(|theirs| is(&theirs.name)) {
                item.mistake(format!("the destination \"{}\" sets this header already", theirs.name));
            }
        }
        if template.facts().is_empty() && HeaderValue::from_str(template.source()).is_err() {
            item.mistake("this value cannot be sent in a header: it holds a control character or a letter outside ASCII");
        }
        Some((name, template))
    };
    table.entries().into_iter().filter_map(read).collect()
}

/// A table of names and JSON pointers.
fn pointers(table: &Table<'_>, key: &'static str) -> Vec<(String, String)> {
    let Some(table) = table.table(key) else { return Vec::new() };
    let read = |(name, item): (String, Item<'_>)| {
        if !is_name(&name) {
            item.mistake(NAME_RULE);
        }
        pointer_of(&item).map(|pointer| (name, pointer))
    };
    table.entries().into_iter().filter_map(read).collect()
}
