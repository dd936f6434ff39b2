//! From an operation to the exact bytes of a step's request.

use std::collections::BTreeMap;

use minijinja::context;
use minijinja::value::Serde;
use serde::Serialize;
use serde_json::Value;
use url::Url;
use uuid::Uuid;

use super::destination::Destination;
use super::key;
use super::operation::{Runner, StepType};
use super::template::NOTHING;
use crate::domain::attempt::StoredRequest;
use crate::domain::contract::KeyCarrier;
use crate::domain::time::Timestamp;

/// What a step's templates may name.
#[derive(Clone, Debug)]
pub struct RenderContext<'a> {
    /// The operation's payload.
    pub payload: &'a Value,
    /// The key that the destination will see: a UUID.
    pub key: String,
    /// The operation's own facts.
    pub operation: OperationFacts,
    /// When the operation was accepted.
    pub received_at: Timestamp,
    /// What earlier steps saved: by the step's name, an object of what was saved under which name.
    pub steps: &'a BTreeMap<String, Value>,
}

/// `operation` in a template.
#[derive(Clone, Debug, Serialize)]
pub struct OperationFacts {
    /// A `UUIDv7`.
    pub id: Uuid,
    /// The operation key.
    pub key: String,
    /// The type's name: `operation.type`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The caller's own reference, when one was sent.
    pub correlation_id: Option<String>,
    /// Where the operation came from, when that was sent.
    pub source: Option<String>,
}

/// Why a request could not be built: nothing was sent, and nothing will be until the data or the
/// configuration has changed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the request cannot be built: {part}: {why}")]
pub struct RenderError {
    /// `path`, `body` or a header's name.
    pub part: String,
    /// What stands in the way, such as `payload.order_id is missing`.
    pub why: String,
}

impl RenderContext<'_> {
    fn values(&self) -> minijinja::Value {
        context! {
            payload => Serde(self.payload),
            key => self.key.as_str(),
            operation => Serde(&self.operation),
            received_at => self.received_at.rfc3339(),
            steps => Serde(self.steps),
        }
    }
}

impl StepType {
    /// The request that every attempt at this step sends. `payload_text` is the payload to the
    /// byte: it is the body when the file describes none, with the key put into it where the
    /// destination takes the key in the body. The destination's own headers are not in it, since
    /// they carry credentials.
    pub fn request(
        &self,
        destination: &Destination,
        payload_text: &str,
        context: &RenderContext<'_>,
    ) -> Result<StoredRequest, RenderError> {
        let values = context.values();
        let failed = |part: &str| {
            let part = part.to_owned();
            move |why| RenderError { part, why }
        };
        let mut url = match (self.runner, &destination.base_url) {
            (Runner::Worker, _) => return self.for_worker(destination, payload_text, &values),
            (Runner::Engine, Some(base)) => {
                self.path.render(&values).and_then(|path| joined(base, &path)).map_err(failed("path"))?
            }
            (Runner::Engine, None) => {
                return Err(failed("path")("the destination has no base_url any more".to_owned()));
            }
        };
        let mut headers = Vec::with_capacity(self.headers.len() + 2);
        for (name, template) in &self.headers {
            let value = template.render(&values).and_then(header_value).map_err(failed(name))?;
            headers.push((name.clone(), value));
        }
        let mut body = match &self.body {
            Some(template) => Some(template.render(&values).map_err(failed("body"))?.to_string()),
            None if self.sends_payload() => Some(payload_text.to_owned()),
            None => None,
        };
        let key = context.key.as_str();
        match destination.contract.key.as_ref().map(|promise| &promise.carrier) {
            Some(KeyCarrier::Header { name, quoted }) => {
                let value = if *quoted { format!("\"{key}\"") } else { key.to_owned() };
                headers.push((name.clone(), header_value(value).map_err(failed(name))?));
            }
            Some(KeyCarrier::Query { name }) => {
                key::into_query(&mut url, name, key).map_err(failed("path"))?;
            }
            Some(KeyCarrier::Body { pointer }) => {
                let with_key = |text: String| key::into_body(&text, pointer, key);
                body = body.map(with_key).transpose().map_err(failed("body"))?;
            }
            None => {}
        }
        if body.is_some() && !headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("content-type")) {
            headers.push(("content-type".to_owned(), "application/json".to_owned()));
        }
        Ok(StoredRequest { method: self.method.clone(), url: url.into(), headers, body })
    }

    /// What a program that carries the step out is given: the body. It puts the key where the
    /// destination wants it.
    fn for_worker(
        &self,
        destination: &Destination,
        payload_text: &str,
        values: &minijinja::Value,
    ) -> Result<StoredRequest, RenderError> {
        let body = match &self.body {
            Some(template) => template
                .render(values)
                .map(|body| body.to_string())
                .map_err(|why| RenderError { part: "body".to_owned(), why })?,
            None => payload_text.to_owned(),
        };
        let url = format!("worker:{}", destination.name);
        Ok(StoredRequest { method: self.method.clone(), url, headers: Vec::new(), body: Some(body) })
    }

    /// Whether the step is to be carried out; why that cannot be told.
    pub fn applies(&self, context: &RenderContext<'_>) -> Result<bool, RenderError> {
        let Some(condition) = &self.when else { return Ok(true) };
        condition.holds(&context.values()).map_err(|why| RenderError { part: "when".to_owned(), why })
    }

    /// Whether the payload is the body when no other is described.
    fn sends_payload(&self) -> bool {
        !matches!(self.method.as_str(), "GET" | "HEAD" | "DELETE")
    }
}

/// A question as it is put.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Asking {
    /// What is sent.
    pub request: StoredRequest,
    /// JSON pointers into the answer, and what would stand there of our data.
    pub expected: Vec<(String, String)>,
}

impl Destination {
    /// What asks the destination about a step, and what its answer would show of our data; absent
    /// where it cannot be asked.
    pub fn question(&self, context: &RenderContext<'_>) -> Option<Result<Asking, RenderError>> {
        let (question, base) = (self.question.as_ref()?, self.base_url.as_ref()?);
        let values = context.values();
        let failed = |part: &'static str| move |why| RenderError { part: part.to_owned(), why };
        let url = question.path.render(&values).and_then(|path| joined(base, &path)).map(String::from);
        let compare = question
            .compare
            .iter()
            .map(|(pointer, template)| Ok((pointer.clone(), template.render(&values)?)))
            .collect::<Result<_, String>>();
        Some(url.map_err(failed("lookup.path")).and_then(|url| {
            let request = StoredRequest { method: "GET".to_owned(), url, headers: Vec::new(), body: None };
            Ok(Asking { request, expected: compare.map_err(failed("lookup.compare"))? })
        }))
    }
}

/// The base address and a path behind it; the address of another host, or another path
/// than the one that was written, is refused.
fn joined(base: &Url, path: &str) -> Result<Url, String> {
    let (before, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
    if before.split('/').any(|segment| !segment.is_empty() && segment.chars().all(|c| c == NOTHING)) {
        return Err("a value that makes up a whole part of it is empty".to_owned());
    }
    if before.split('/').any(is_dots) {
        return Err("a part of it is \".\" or \"..\", which would lead elsewhere".to_owned());
    }
    let mut text = format!("{}{before}", base.as_str().trim_end_matches('/'));
    if let Some(query) = query {
        text.push('?');
        text.push_str(query);
    }
    text.retain(|c| c != NOTHING);
    let url = Url::parse(&text).map_err(|error| error.to_string())?;
    let stays = url.origin() == base.origin()
        && url.path().starts_with(base.path().trim_end_matches('/'))
        && url.fragment().is_none()
        && url.username().is_empty()
        && url.password().is_none();
    if stays { Ok(url) } else { Err("it leads away from the destination's base_url".to_owned()) }
}

/// Whether an address's reader would take a segment for a step up or for none.
pub(super) fn is_dots(segment: &str) -> bool {
    let plain: String = segment.to_ascii_lowercase().replace("%2e", ".");
    let plain = plain.replace(NOTHING, "");
    plain == "." || plain == ".."
}

/// Lets through what every client and server agrees on.
fn header_value(value: String) -> Result<String, String> {
    if value.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        Ok(value)
    } else if value.chars().any(char::is_control) {
        Err("its value holds a control character".to_owned())
    } else {
        Err("its value holds a letter that no header can carry; use the filter urlencode".to_owned())
    }
}
