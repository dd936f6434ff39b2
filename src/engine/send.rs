//! The only outbound request to a destination. It takes a permit and gives back a settlement.

use std::collections::HashMap;
use std::error::Error as StdError;
use std::io;
use std::time::Duration;

use bytes::{Bytes, BytesMut};
use reqwest::header::{HeaderMap, HeaderName, HeaderValue};
use reqwest::{Method, Response};

use super::credentials::{Credentials, Echoes};
use super::guard::{self, AddressError, Client, Terms};
use crate::config::{Config, Destination};
use crate::domain::ambient::Ambient;
use crate::domain::attempt::StoredRequest;
use crate::domain::classify::{Answer, Event, Symptom};
use crate::gate::{Permit, Settlement};

/// How much of an answer is read. Rules look at bodies, so this is more than is kept.
const MOST_READ: usize = 1024 * 1024;

/// The clients, one a destination.
#[derive(Debug)]
pub struct Sender {
    lines: HashMap<String, Line>,
    ambient: Ambient,
}

#[derive(Debug)]
struct Line {
    client: Client,
    credentials: Credentials,
    timeout: Duration,
}

/// A destination that no client can be made for.
#[derive(Debug, thiserror::Error)]
#[error("destination {name}: {source}")]
pub struct SenderError {
    name: String,
    source: Box<dyn StdError + Send + Sync>,
}

impl Sender {
    /// Clients for every configured destination.
    pub fn new(config: &Config, ambient: Ambient) -> Result<Self, SenderError> {
        let echoes = Echoes::of(config);
        let lines = config
            .destinations
            .values()
            .map(|destination| {
                let line = Line::new(destination, &echoes, config.server.allow_private_destinations)
                    .map_err(|source| SenderError { name: destination.name.clone(), source })?;
                Ok((destination.name.clone(), line))
            })
            .collect::<Result<_, _>>()?;
        Ok(Self { lines, ambient })
    }

    /// Sends once, and says what happened.
    pub async fn send(&self, permit: Permit) -> Settlement {
        let event = match (self.lines.get(permit.destination()), permit.time_left()) {
            (None, _) => {
                let text = format!("the destination {} is not configured on this node", permit.destination());
                Event::NoAnswer(Symptom::NotBuilt, text)
            }
            // A frozen process must not send into a lease that somebody else may have taken over.
            (Some(_), None) => Event::NoAnswer(
                Symptom::LostBeforeSending,
                "the worker was held up until its lease was nearly over".to_owned(),
            ),
            (Some(line), Some(_)) => line.exchange(permit.request()).await,
        };
        permit.ended(event, self.ambient.now())
    }
}

impl Line {
    fn new(
        destination: &Destination,
        echoes: &Echoes,
        allow_private: bool,
    ) -> Result<Self, Box<dyn StdError + Send + Sync>> {
        let contract = &destination.contract;
        let repeats_are_safe = contract.naturally_idempotent
            || contract.key.as_ref().is_some_and(|key| key.window > contract.margin());
        let client = guard::client(Terms {
            allow_private,
            connect_timeout: destination.connect_timeout,
            timeout: destination.timeout,
            // A fresh connection does not have the race of an idle one.
            reuse: repeats_are_safe,
        })?;
        let credentials = Credentials::new(destination, echoes)?;
        Ok(Self { client, credentials, timeout: destination.timeout })
    }

    async fn exchange(&self, request: &StoredRequest) -> Event {
        self.credentials.taken_out(self.sent(request).await)
    }

    async fn sent(&self, request: &StoredRequest) -> Event {
        let (method, url, headers) = match self.parts(request) {
            Ok(parts) => parts,
            Err(text) => return Event::NoAnswer(Symptom::NotBuilt, text),
        };
        let mut call = match self.client.request(method, url) {
            Ok(call) => call.headers(headers),
            Err(error) => return Event::NoAnswer(Symptom::AddressRefused, error.to_string()),
        };
        if let Some(body) = &request.body {
            call = call.body(body.clone());
        }
        match call.send().await {
            Ok(response) => Event::Answered(read(response).await),
            Err(error) => self.explain(&error),
        }
    }

    fn parts(&self, request: &StoredRequest) -> Result<(Method, url::Url, HeaderMap), String> {
        let method = Method::from_bytes(request.method.as_bytes()).map_err(|error| error.to_string())?;
        let mut headers = HeaderMap::with_capacity(request.headers.len() + 4);
        for (name, value) in &request.headers {
            let name = HeaderName::from_bytes(name.as_bytes()).map_err(|error| error.to_string())?;
            let value = HeaderValue::from_str(value)
                .map_err(|_| format!("the header {name} cannot be sent as it is"))?;
            headers.append(name, value);
        }
        self.credentials.add_to(&mut headers);
        Ok((method, self.credentials.address(&request.url)?, headers))
    }

    /// What a failure without a status line shows. Only what proves that nothing was sent may say
    /// so; all else is uncertain.
    fn explain(&self, error: &reqwest::Error) -> Event {
        let symptom = symptom(error);
        let text = match symptom {
            Symptom::TimedOut => format!("no answer within {} s", self.timeout.as_secs_f64()),
            _ => root_cause(error),
        };
        Event::NoAnswer(symptom, text)
    }
}

async fn read(mut response: Response) -> Answer {
    let status = response.status().as_u16();
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| {
            (name.as_str().to_owned(), String::from_utf8_lossy(value.as_bytes()).into_owned())
        })
        .collect();
    let mut first = Bytes::new();
    let mut all: Option<BytesMut> = None;
    let complete = loop {
        let read = all.as_ref().map_or(first.len(), BytesMut::len);
        match response.chunk().await {
            Ok(Some(chunk)) if read + chunk.len() > MOST_READ => break false,
            // Most answers are one chunk, which is then kept without a copy.
            Ok(Some(chunk)) if read == 0 => first = chunk,
            Ok(Some(chunk)) => {
                all.get_or_insert_with(|| BytesMut::from(&first[..])).extend_from_slice(&chunk);
            }
            Ok(None) => break true,
            Err(_) => break false,
        }
    };
    Answer { status, headers, body: all.map_or(first, BytesMut::freeze), complete }
}

fn symptom(error: &reqwest::Error) -> Symptom {
    if find::<AddressError>(error).is_some() {
        return Symptom::AddressRefused;
    }
    if error.is_builder() {
        return Symptom::NotBuilt;
    }
    if error.is_connect() {
        return connect_symptom(error);
    }
    if let Some(reset) = find::<h2::Error>(error) {
        return match reset.reason() {
            Some(h2::Reason::REFUSED_STREAM) => Symptom::StreamRefused,
            _ => Symptom::StreamReset,
        };
    }
    if matches!(find::<rustls::Error>(error), Some(rustls::Error::AlertReceived(_))) {
        return Symptom::TlsAlert;
    }
    match find::<hyper::Error>(error) {
        Some(cause) if cause.is_canceled() => Symptom::NeverWritten,
        Some(cause) if cause.is_parse() => Symptom::Unparseable,
        _ if error.is_timeout() => Symptom::TimedOut,
        _ => Symptom::Closed,
    }
}

fn connect_symptom(error: &reqwest::Error) -> Symptom {
    if error.is_dns() {
        return Symptom::Dns;
    }
    match find::<rustls::Error>(error) {
        Some(rustls::Error::InvalidCertificate(_) | rustls::Error::PeerIncompatible(_)) => {
            Symptom::TlsRefused
        }
        Some(_) => Symptom::TlsCut,
        None => match find::<io::Error>(error).map(io::Error::kind) {
            // The TCP connection stood: the handshake was cut.
            Some(io::ErrorKind::UnexpectedEof) => Symptom::TlsCut,
            _ => Symptom::Connect,
        },
    }
}

/// The first cause of a type, also one that an IO error wraps, which its own `source` passes over.
fn find<'a, E: StdError + 'static>(error: &'a (dyn StdError + 'static)) -> Option<&'a E> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref::<E>() {
            return Some(found);
        }
        next = match cause.downcast_ref::<io::Error>().and_then(io::Error::get_ref) {
            Some(wrapped) => Some(wrapped),
            None => cause.source(),
        };
    }
    None
}

/// The innermost cause's own words: the outer ones say "error sending request", which all do.
fn root_cause(error: &(dyn StdError + 'static)) -> String {
    let mut last: &(dyn StdError + 'static) = error;
    while let Some(cause) = last.source() {
        last = cause;
    }
    last.to_string()
}
