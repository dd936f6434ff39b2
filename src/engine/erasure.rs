//! Erasing what is known of one subject: a customer, by the business id that operations are searched
//! by. What became of each operation stays: its attempts, their outcomes, the references elsewhere
//! and who acted. What it was about goes, in small steps.
//!
//! An operation that is still tried or waits for a person is not touched, since nobody could settle
//! it any more: it is named, and erased once it is settled and the subject is erased again.
//!
//! What to look for is known from the operations themselves. So whatever quotes them goes first and
//! they go last: an erasure that breaks off at any moment is continued by erasing the subject again.

mod gather;
mod quoted;
mod run;
mod standing;

use std::time::Duration;

use tokio::task::JoinHandle;
use uuid::Uuid;

pub use standing::{Standing, lately};

use super::actions::{ActionError, Request, permitted, reason, take};
use crate::config::Config;
use crate::domain::actor::Right;
use crate::domain::key::hex;
use crate::gate::Gate;
use crate::store::audit;
use crate::store::{Commit, actions};
use quoted::Quoted;
use run::Run;

/// Unsettled operations that are named.
const NAMED: usize = 20;

/// Who or what is erased.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Subject {
    /// A name under `search` of a type.
    pub name: String,
    /// Its value.
    pub value: String,
}

impl Subject {
    /// Checks that operations are searched by the name.
    pub fn new(config: &Config, name: &str, value: &str) -> Result<Self, ActionError> {
        let names = names(config);
        if !names.contains(&name) {
            let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
            return Err(ActionError::Invalid(format!(
                "no type is searched by {name:?}; known names are: {known}"
            )));
        }
        let value = value.trim().replace('\0', "\u{fffd}");
        if value.is_empty() {
            return Err(ActionError::Invalid("the value is empty: write whose data is to go".to_owned()));
        }
        Ok(Self { name: name.to_owned(), value })
    }
}

/// The names that operations are searched by, each once.
pub fn names(config: &Config) -> Vec<&str> {
    let all = config.operations.values().flat_map(|kind| &kind.search);
    let mut names: Vec<&str> = all.map(|(name, _)| name.as_str()).collect();
    names.sort_unstable();
    names.dedup();
    names
}

/// What would go and what would stay.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Operations that can be erased.
    pub settled: usize,
    /// Operations that have to be settled first.
    pub unsettled: usize,
    /// The first of those.
    pub named: Vec<Uuid>,
}

impl Survey {
    /// Whether no operation was found at all.
    pub fn is_empty(&self) -> bool {
        self.settled + self.unsettled == 0
    }
}

/// What went and what stayed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Erased {
    /// Operations that were erased.
    pub operations: usize,
    /// Entries of the audit whose words were.
    pub entries: usize,
    /// Notes, kept filters and the like that quoted the subject.
    pub texts: usize,
    /// Operations that stay until they are settled.
    pub left: usize,
}

impl Erased {
    /// Together with what went after it.
    fn with(self, more: Self) -> Self {
        Self {
            operations: self.operations + more.operations,
            entries: self.entries + more.entries,
            texts: self.texts + more.texts,
            left: self.left + more.left,
        }
    }
}

impl std::fmt::Display for Erased {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(
            f,
            "operations erased: {}; audit entries that lost their words: {}; other texts that quoted it: {}; \
             operations that must be settled first: {}",
            self.operations, self.entries, self.texts, self.left
        )
    }
}

/// Looks what is known of a subject.
pub async fn survey(gate: &Gate, subject: &Subject) -> Result<Survey, ActionError> {
    let mut survey = Survey::default();
    let mut after = Uuid::nil();
    while let Some(stretch) = gather::stretch(gate, subject, after).await? {
        after = stretch.last;
        survey.settled += stretch.over.len();
        survey.unsettled += stretch.kept.len();
        let room = NAMED.saturating_sub(survey.named.len());
        survey.named.extend(stretch.kept.into_iter().take(room));
    }
    Ok(survey)
}

/// An erasure that was asked for. It goes on whether somebody waits for it or not.
#[derive(Debug)]
pub enum Erasure {
    /// This action asked for it before.
    Before(Standing),
    /// It is carried out in a task of its own.
    Begun(JoinHandle<Result<Standing, ActionError>>),
}

impl Erasure {
    /// Waits for its end for so long; how it stands then.
    pub async fn within(self, longest: Duration) -> Result<Standing, ActionError> {
        match self {
            Self::Before(standing) => Ok(standing),
            Self::Begun(task) => match tokio::time::timeout(longest, task).await {
                Ok(ended) => ended.map_err(|_| broke_off())?,
                Err(_) => Ok(Standing::GoingOn(String::new())),
            },
        }
    }

    /// Waits for its end; what went.
    pub async fn end(self) -> Result<String, ActionError> {
        let standing = match self {
            Self::Before(standing) => standing,
            Self::Begun(task) => task.await.map_err(|_| broke_off())??,
        };
        Ok(standing.to_string())
    }
}

fn broke_off() -> ActionError {
    ActionError::Busy("the erasure broke off; erase again to go on".to_owned())
}

/// Erases a subject and waits for the end. The same action again returns the first answer.
pub async fn erase(gate: &Gate, subject: &Subject, request: &Request<'_>) -> Result<String, ActionError> {
    begin(gate, subject, request).await?.end().await
}

/// Begins to erase a subject. Nothing of it goes when no operation is found under it, or when the
/// reason, which stays, quotes it.
pub async fn begin(gate: &Gate, subject: &Subject, request: &Request<'_>) -> Result<Erasure, ActionError> {
    permitted(request.actor, Right::Erase)?;
    let why = reason(request.reason)?;
    let about = about(gate, subject)?;
    let actor = request.actor.to_string();
    if let Some(standing) = standing::of(gate, &actor, request.action_id, &about).await? {
        return Ok(Erasure::Before(standing));
    }
    let found = gather::gather(gate, subject).await?;
    if found.settled.is_empty() && found.kept.is_empty() {
        // One that was killed at the very end left the log as it was.
        gate.db().empty_log().await?;
        return Err(ActionError::Invalid(
            "no operation is found under this value, so there is nothing to erase".to_owned(),
        ));
    }
    let quoted = Quoted::new(&found.values)?;
    if quoted.stands_in(&why) {
        return Err(ActionError::Invalid(
            "the reason quotes what is to go, and the reason stays: say why without naming anybody"
                .to_owned(),
        ));
    }
    let run = Run {
        gate: gate.clone(),
        subject: subject.clone(),
        actor,
        action_id: request.action_id.to_owned(),
        origin: request.origin.to_owned(),
        about,
        why,
        found,
        quoted,
    };
    // Whoever asked may be gone from here on: what is on record as begun is carried out.
    Ok(Erasure::Begun(tokio::spawn(run.begin())))
}

/// Names the subject in the audit and tells nothing of it: only who has the secret key, and the
/// subject in mind, can tell that it is this one.
fn about(gate: &Gate, subject: &Subject) -> Result<String, ActionError> {
    let key = gate.db().keyring()?.current().derive("erased subjects");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let text = format!("{}\0{}", subject.name, subject.value);
    let digest = hex(&ring::hmac::sign(&key, text.as_bytes()).as_ref()[..8]);
    Ok(format!("{}{digest}", standing::SUBJECT))
}

impl Run {
    /// Carries it out, unless it was asked for twice at once; how it stands then.
    async fn begin(self) -> Result<Standing, ActionError> {
        if self.take().await? {
            return Ok(Standing::Ended(self.finish().await?));
        }
        let standing = standing::of(&self.gate, &self.actor, &self.action_id, &self.about).await?;
        standing.ok_or_else(broke_off)
    }

    /// Takes the action, and writes down that somebody erases; false when it was taken before.
    async fn take(&self) -> Result<bool, ActionError> {
        let mut tx = self.gate.db().begin().await?;
        let now = self.gate.ambient().now();
        if take(&mut tx, &self.actor, &self.action_id, &self.about, now).await?.is_some() {
            tx.undo().await?;
            return Ok(false);
        }
        let detail = format!("everything under one {}", self.subject.name);
        audit::insert(&mut tx, &self.entry("erase", detail, Some(self.why.clone()))).await?;
        let so_far = Standing::GoingOn(Erased::default().to_string()).stored();
        actions::answer(&mut tx, &self.actor, &self.action_id, None, &so_far).await?;
        tx.commit(Commit::Action).await?;
        Ok(true)
    }
}
