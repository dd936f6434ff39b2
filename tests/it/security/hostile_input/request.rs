//! A request with strings in some of its places; all else is as it should be.

use axum::body::Body;
use axum::http::{HeaderName, HeaderValue, Method, Request, Uri, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use serde_json::Value;

use super::Sweeper;
use super::places::{Door, Route, usual};

/// A signed-in admin.
#[derive(Clone)]
pub(super) struct Session {
    pub(super) cookie: String,
    pub(super) csrf: String,
}

/// A place of a request.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub(super) enum Place {
    /// The n-th placeholder of the address.
    Path(usize),
    /// A parameter.
    Query(String),
    /// A form's field.
    Field(String),
    /// A member of a JSON body, as a text.
    Member(String),
    /// The same, put there as it is.
    Raw(String),
    /// The whole body.
    Body,
    /// A header that decides how the request is taken.
    Header(&'static str),
}

/// Headers that may hold anything: each request carries strings in all of them.
const CARRIED: [&str; 10] = [
    "x-request-id",
    "user-agent",
    "referer",
    "accept-language",
    "x-forwarded-for",
    "x-forwarded-proto",
    "x-forwarded-host",
    "forwarded",
    "x-real-ip",
    "if-none-match",
];

/// Headers that decide whether and how a request is taken.
pub(super) const DECIDING: [&str; 12] = [
    "cookie",
    "authorization",
    "content-type",
    "origin",
    "host",
    "sec-fetch-site",
    "idempotency-key",
    "accept",
    "accept-encoding",
    "content-encoding",
    "x-http-method-override",
    "range",
];

/// And those that a webhook is proved by.
pub(super) const PROVING: [&str; 9] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-github-event",
    "ce-id",
    "ce-source",
    "ce-specversion",
];

/// One request: who asks, and which string stands where.
#[derive(Clone)]
pub(super) struct Ask {
    pub(super) signed_in: bool,
    pub(super) strings: Vec<(Place, usize)>,
}

impl Sweeper {
    pub(super) fn request(&self, route: &Route, session: &Session, ask: &Ask) -> Option<Request<Body>> {
        let string = |wanted: &Place| {
            ask.strings.iter().find(|(place, _)| place == wanted).map(|(_, at)| self.texts[*at].as_slice())
        };
        let encoded = |bytes: &[u8]| percent_encode(bytes, NON_ALPHANUMERIC).to_string();
        let mut path = route.path.clone();
        for nth in 0..route.placeholders() {
            if let Some(bytes) = string(&Place::Path(nth)) {
                path = route.with(nth, &encoded(bytes));
            }
        }
        let query = route.query.iter().filter_map(|name| {
            string(&Place::Query(name.clone())).map(|bytes| format!("{name}={}", encoded(bytes)))
        });
        let query: Vec<String> = query.collect();
        if !query.is_empty() {
            path = format!("{path}?{}", query.join("&"));
        }
        let (body, kind) = body(route, session, &string, &encoded);
        let mut request = Request::builder().method(&route.method).uri(path.parse::<Uri>().ok()?);
        let headers = request.headers_mut()?;
        let first = ask.strings.first().map_or(0, |(_, at)| *at);
        for (nth, name) in CARRIED.into_iter().enumerate() {
            let carried = &self.texts[(first + nth * 53) % self.strings];
            if let Ok(value) = HeaderValue::from_bytes(carried) {
                headers.insert(HeaderName::from_static(name), value);
            }
        }
        if let Some(kind) = kind {
            headers.insert(header::CONTENT_TYPE, HeaderValue::from_static(kind));
        }
        if ask.signed_in {
            match route.door {
                Door::Desk => headers.insert(header::COOKIE, session.cookie.parse().ok()?),
                Door::Api => headers.insert(header::AUTHORIZATION, route.token.parse().ok()?),
                Door::Open => None,
            };
        }
        for (place, at) in &ask.strings {
            if let Place::Header(name) = place {
                headers
                    .insert(HeaderName::from_static(name), HeaderValue::from_bytes(&self.texts[*at]).ok()?);
            }
        }
        request.body(Body::from(body)).ok()
    }
}

/// The body and its type: a form or JSON in which all that holds no string is as it should be.
fn body<'s>(
    route: &Route,
    session: &Session,
    string: &impl Fn(&Place) -> Option<&'s [u8]>,
    encoded: &impl Fn(&[u8]) -> String,
) -> (Vec<u8>, Option<&'static str>) {
    if route.method != Method::POST {
        return (Vec::new(), None);
    }
    if let Some(bytes) = string(&Place::Body) {
        return (bytes.to_vec(), Some("application/json"));
    }
    if route.door == Door::Api || route.pattern.starts_with("/hooks") {
        let members = route.members.iter().filter_map(|name| {
            let value = match (string(&Place::Member(name.clone())), string(&Place::Raw(name.clone()))) {
                (Some(bytes), _) => Value::from(String::from_utf8_lossy(bytes)).to_string().into_bytes(),
                (None, Some(bytes)) => bytes.to_vec(),
                // Of two that exclude each other.
                (None, None)
                    if name == "filter" || (name == "resolution" && route.members.contains("ids")) =>
                {
                    return None;
                }
                (None, None) => {
                    let usual = usual(name);
                    match serde_json::from_str::<Value>(usual) {
                        Ok(_) => usual.as_bytes().to_vec(),
                        Err(_) => Value::from(usual).to_string().into_bytes(),
                    }
                }
            };
            Some([b"\"", name.as_bytes(), b"\":", &value].concat())
        });
        let body = [b"{", members.collect::<Vec<_>>().join(&b","[..]).as_slice(), b"}"].concat();
        return (body, Some("application/json"));
    }
    let csrf = ("csrf".to_owned(), session.csrf.clone());
    let fields = route.form.iter().chain([&csrf]).map(|(name, value)| {
        let value = string(&Place::Field(name.clone())).unwrap_or(value.as_bytes());
        format!("{}={}", encoded(name.as_bytes()), encoded(value))
    });
    (fields.collect::<Vec<_>>().join("&").into_bytes(), Some("application/x-www-form-urlencoded"))
}
