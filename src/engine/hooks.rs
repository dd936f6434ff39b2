//! Webhooks: a delivery is proven, read, mapped and handed in like any other submission.

use std::sync::Arc;

use serde_json::value::RawValue;
use uuid::Uuid;

use super::accept::{Accepted, Intake, Submission, SubmitError};
use super::tally::Tally;
use crate::config::{Config, EventCondition, EventPlace, Mapping, Source};
use crate::domain::ambient::Ambient;
use crate::domain::classify::text_of;
use crate::domain::webhook::{
    BadEvent, Event, Headers, HookOutcome, Unmatched, Unproven, operation_key, raw_at,
};
use crate::store::Db;

/// A delivery that is shown to be its source's own.
#[derive(Clone, Copy, Debug)]
pub struct Proven<'a> {
    source: &'a Source,
    headers: &'a Headers,
    body: &'a [u8],
}

/// The way in for webhooks. Cheap to clone.
#[derive(Clone)]
pub struct Hooks {
    config: Arc<Config>,
    ambient: Ambient,
    intake: Intake,
    tally: Tally,
}

/// What became of a delivery that was taken.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Received {
    /// It is a new operation.
    Accepted(Uuid),
    /// It repeats this one; nothing was done.
    Duplicate(Uuid),
    /// No mapping is for it; nothing was done.
    Ignored,
}

/// Why a delivery was refused. But for its count, and a reused key in the history of the operation
/// that has it, nothing of it is stored.
#[derive(Clone, Debug, thiserror::Error)]
pub enum HookError {
    /// No such source is configured; not counted, since anybody may ask for any name.
    #[error("there is no source of this name")]
    UnknownSource,
    /// It is not shown to be the source's own.
    #[error(transparent)]
    Unproven(#[from] Unproven),
    /// It is proven, and no event that can be read.
    #[error(transparent)]
    BadEvent(#[from] BadEvent),
    /// No mapping is for it, and the source says to refuse such events.
    #[error("no mapping of this source is for this event")]
    Unmatched,
    /// It could not become an operation.
    #[error(transparent)]
    Submit(#[from] SubmitError),
}

impl HookError {
    /// As it is counted; absent when it is not.
    fn outcome(&self) -> Option<HookOutcome> {
        Some(match self {
            Self::UnknownSource | Self::Submit(SubmitError::Unavailable) => return None,
            Self::Unproven(Unproven::Missing(_) | Unproven::Form { .. }) => HookOutcome::Unsigned,
            Self::Unproven(Unproven::NoMatch) => HookOutcome::BadSignature,
            Self::Unproven(Unproven::Stale) => HookOutcome::Stale,
            Self::Unmatched => HookOutcome::Unmatched,
            Self::Submit(SubmitError::KeyReused { .. }) => HookOutcome::KeyReused,
            Self::BadEvent(_) | Self::Submit(_) => HookOutcome::Malformed,
        })
    }
}

impl Hooks {
    /// Over the way in for all operations.
    pub(super) fn new(db: Db, config: Arc<Config>, ambient: Ambient, intake: Intake) -> Self {
        Self { config, ambient, intake, tally: Tally::start(db) }
    }

    /// Checks what a delivery is proved by. Asks no database, so that it can come first: whatever
    /// else was sent from the same address keeps no proven delivery out.
    pub fn prove<'a>(
        &'a self,
        source: &str,
        headers: &'a Headers,
        body: &'a [u8],
    ) -> Result<Proven<'a>, HookError> {
        let source = self.source(source)?;
        source.proof.check(headers, body, self.ambient.now())?;
        Ok(Proven { source, headers, body })
    }

    /// Counts a delivery from `address` that was not proven.
    pub async fn unproven(&self, source: &str, error: &HookError, address: &str) {
        if let Some(outcome) = error.outcome() {
            self.tally.record(source, outcome, self.ambient.now(), address).await;
        }
    }

    /// Takes a delivery that came from `address`; returns when what became of it is durable.
    pub async fn receive(&self, proven: Proven<'_>, address: &str) -> Result<Received, HookError> {
        let source = proven.source;
        let received = self.take(proven).await;
        let (now, tally) = (self.ambient.now(), &self.tally);
        match &received {
            Ok(Received::Accepted(_)) => tally.count(&source.name, HookOutcome::Accepted, now, address),
            Ok(Received::Duplicate(_)) => tally.count(&source.name, HookOutcome::Duplicate, now, address),
            Ok(Received::Ignored) => tally.record(&source.name, HookOutcome::Ignored, now, address).await,
            Err(error) => {
                if let Some(outcome) = error.outcome() {
                    tally.record(&source.name, outcome, now, address).await;
                }
            }
        }
        received
    }

    /// Counts a delivery whose body was not read, since it is too large.
    pub async fn too_large(&self, source: &str, address: &str) -> Result<(), HookError> {
        let source = self.source(source)?;
        self.tally.record(&source.name, HookOutcome::TooLarge, self.ambient.now(), address).await;
        Ok(())
    }

    fn source(&self, name: &str) -> Result<&Source, HookError> {
        self.config.sources.get(name).ok_or(HookError::UnknownSource)
    }

    async fn take(&self, Proven { source, headers, body }: Proven<'_>) -> Result<Received, HookError> {
        let event = Event::read(source.proof.scheme, &source.id, headers, body)?;
        let Some(mapping) = source.events.iter().find(|mapping| mapping.covers(&event, headers)) else {
            return match source.unmatched {
                Unmatched::Ignore => Ok(Received::Ignored),
                Unmatched::Refuse => Err(HookError::Unmatched),
            };
        };
        let submission = self.submission(source, mapping, &event)?;
        Ok(match self.intake.submit(submission).await? {
            Accepted::Created(new) => Received::Accepted(new.id),
            Accepted::Duplicate(id) => Received::Duplicate(id),
        })
    }

    fn submission(&self, source: &Source, mapping: &Mapping, event: &Event) -> Result<Submission, HookError> {
        // A type that makes its key of business facts knows better than the sender what is one fact:
        // two events about it are one operation. Otherwise the event is the fact.
        let derives = self.config.operations.get(&mapping.operation).is_some_and(|kind| kind.key.is_some());
        Ok(Submission {
            kind: mapping.operation.clone(),
            payload: part(event, &mapping.payload)?.to_owned(),
            key: (!derives).then(|| operation_key(&source.name, &event.id)),
            correlation_id: mapping
                .correlation_id
                .as_deref()
                .and_then(|pointer| event.value.pointer(pointer).and_then(text_of)),
            source: Some(source.name.clone()),
            by: format!("source:{}", source.name),
        })
    }
}

impl Mapping {
    fn covers(&self, event: &Event, headers: &Headers) -> bool {
        self.only.as_ref().is_none_or(|only| only.holds(event, headers))
    }
}

impl EventCondition {
    fn holds(&self, event: &Event, headers: &Headers) -> bool {
        match &self.place {
            EventPlace::Pointer(pointer) => {
                event.value.pointer(pointer).is_some_and(|found| self.equals.contains(found))
            }
            EventPlace::Header(name) => headers.one(name).is_some_and(|found| {
                self.equals.iter().any(|wanted| text_of(wanted).as_deref() == Some(found))
            }),
        }
    }
}

fn part<'e>(event: &'e Event, pointer: &str) -> Result<&'e RawValue, BadEvent> {
    raw_at(&event.document, pointer).ok_or_else(|| BadEvent(format!("the event has nothing at {pointer}")))
}
