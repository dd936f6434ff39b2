//! Erasing what is known of one subject: a customer, by the business id that operations are searched
//! by. What became of each operation stays: its attempts, their outcomes, the references elsewhere
//! and who acted. What it was about goes, in small steps.
//!
//! An operation that is still tried or waits for a person is not touched, since nobody could settle
//! it any more: it is named, and erased once it is settled and the subject is erased again.

use serde_json::Value;
use uuid::Uuid;

use super::actions::{ActionError, Request, permitted, reason, take};
use crate::config::Config;
use crate::domain::actor::Right;
use crate::domain::key::hex;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::erasure::{self, Written};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::retention::{self, Task};
use crate::store::{Commit, Tx, actions, operations};

/// Operations that one step erases at most.
const STEP: usize = 50;
/// Entries of the audit that one step reads at most.
const ENTRIES: usize = 500;
/// Unsettled operations that are named.
const NAMED: usize = 20;
/// A shorter text may stand anywhere by chance, and is looked for as a whole only.
const TELLING: usize = 4;

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
    loop {
        // A transaction that may write: whoever is busy with one of them is seen.
        let mut tx = gate.db().begin().await?;
        let found = erasure::of_subject(&mut tx, (&subject.name, &subject.value), after, STEP).await?;
        let over = retention::over(&mut tx, Task::Forget, &found).await?;
        tx.undo().await?;
        let Some(last) = found.last() else { return Ok(survey) };
        after = *last;
        survey.settled += over.len();
        survey.unsettled += found.len() - over.len();
        let room = NAMED.saturating_sub(survey.named.len());
        survey.named.extend(found.iter().filter(|id| !over.contains(id)).take(room));
    }
}

/// Erases a subject. The same action again returns the first answer.
pub async fn erase(gate: &Gate, subject: &Subject, request: &Request<'_>) -> Result<String, ActionError> {
    permitted(request.actor, Right::Erase)?;
    let why = reason(request.reason)?;
    let about = about(gate, subject)?;
    let erasing = Erasing { gate, subject, request, about, why };
    if let Some(earlier) = erasing.begin().await? {
        return Ok(earlier);
    }
    let mut quoted = vec![subject.value.clone()];
    let mut erased = Erased::default();
    let mut after = Uuid::nil();
    while let Some(last) = erasing.step(after, &mut quoted, &mut erased).await? {
        after = last;
    }
    erasing.texts(&quoted, &mut erased).await?;
    erasing.words(&quoted, &mut erased).await?;
    erasing.end(&erased).await
}

/// Names the subject in the audit and tells nothing of it: only who has the secret key, and the
/// subject in mind, can tell that it is this one.
fn about(gate: &Gate, subject: &Subject) -> Result<String, ActionError> {
    let key = gate.db().keyring()?.current().derive("erased subjects");
    let key = ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key);
    let text = format!("{}\0{}", subject.name, subject.value);
    Ok(format!("erasure:{}", hex(&ring::hmac::sign(&key, text.as_bytes()).as_ref()[..8])))
}

struct Erasing<'e> {
    gate: &'e Gate,
    subject: &'e Subject,
    request: &'e Request<'e>,
    about: String,
    why: String,
}

impl Erasing<'_> {
    fn actor(&self) -> String {
        self.request.actor.to_string()
    }

    fn entry(&self, action: &str, detail: String, reason: Option<String>) -> AuditRow {
        AuditRow {
            id: self.gate.ambient().id(),
            at: self.gate.ambient().now(),
            actor: self.actor(),
            action: action.to_owned(),
            operation_id: None,
            dead_letter_id: None,
            subject: Some(self.about.clone()),
            reason,
            result: "done".to_owned(),
            detail,
            origin: self.request.origin.to_owned(),
        }
    }

    /// Takes the action, and writes down that somebody erases; the answer when it was taken before.
    async fn begin(&self) -> Result<Option<String>, ActionError> {
        let mut tx = self.gate.db().begin().await?;
        let now = self.gate.ambient().now();
        let taken = take(&mut tx, &self.actor(), self.request.action_id, &self.about, now).await?;
        if let Some(earlier) = taken {
            tx.undo().await?;
            return Ok(Some(if earlier.is_empty() { "it was begun before".to_owned() } else { earlier }));
        }
        let detail = format!("everything under one {}", self.subject.name);
        audit::insert(&mut tx, &self.entry("erase", detail, Some(self.why.clone()))).await?;
        tx.commit(Commit::Action).await?;
        Ok(None)
    }

    /// Erases the next operations; the last one that was looked at.
    async fn step(
        &self,
        after: Uuid,
        quoted: &mut Vec<String>,
        erased: &mut Erased,
    ) -> Result<Option<Uuid>, ActionError> {
        let mut tx = self.gate.db().begin().await?;
        let subject = (self.subject.name.as_str(), self.subject.value.as_str());
        let found = erasure::of_subject(&mut tx, subject, after, STEP).await?;
        let Some(last) = found.last().copied() else { return Ok(None) };
        let over = retention::over(&mut tx, Task::Forget, &found).await?;
        erased.left += found.len() - over.len();
        let rows = operations::by_ids(&mut tx, &over).await?;
        for row in &rows {
            self.remember(&mut tx, row, quoted).await?;
        }
        let keys: Vec<(Uuid, String)> = rows
            .iter()
            .filter(|row| !row.key.starts_with("erased:"))
            .map(|row| (row.id, row.key.clone()))
            .collect();
        let words = audit::worded(&mut tx, &over).await?;
        retention::erase(&mut tx, &over, &[]).await?;
        erasure::erase(&mut tx, &keys).await?;
        let now = self.gate.ambient().now();
        let told = over.iter().map(|id| EventRow {
            id: self.gate.ambient().id(),
            operation_id: *id,
            position: None,
            at: now,
            kind: EventKind::Erased,
            actor: self.actor(),
            detail: format!("What it was about was erased by {}: {}", self.actor(), self.why),
        });
        events::insert(&mut tx, &told.collect::<Vec<_>>()).await?;
        if !words.is_empty() {
            let detail = format!("what people wrote about {} operations that were erased", over.len());
            erased.entries +=
                audit::erase_words(&mut tx, &words, &self.entry("erase_words", detail, None)).await?;
        }
        erased.operations += over.len();
        tx.commit(Commit::Action).await?;
        Ok(Some(last))
    }

    /// Notes what else is personal in an operation: its masked values, which people may have quoted.
    async fn remember(
        &self,
        tx: &mut Tx,
        row: &operations::OperationRow,
        quoted: &mut Vec<String>,
    ) -> Result<(), ActionError> {
        let Some(kind) = self.gate.config().operations.get(&row.kind) else { return Ok(()) };
        let Some(text) = operations::payload(tx, row.id).await? else { return Ok(()) };
        let Ok(payload) = serde_json::from_str::<Value>(&text) else { return Ok(()) };
        for value in kind.mask.iter().filter_map(|pointer| payload.pointer(pointer)) {
            gather(value, quoted);
        }
        Ok(())
    }

    /// Takes away what people wrote elsewhere and that quotes the subject.
    async fn texts(&self, quoted: &[String], erased: &mut Erased) -> Result<(), ActionError> {
        for of in Written::ALL {
            let mut tx = self.gate.db().begin().await?;
            for one in erasure::texts(&mut tx, of).await? {
                if quotes(&one.text, quoted) {
                    erasure::take_away(&mut tx, of, &one.id).await?;
                    erased.texts += 1;
                }
            }
            tx.commit(Commit::Action).await?;
        }
        Ok(())
    }

    /// Erases the words of entries that quote the subject, whatever they are about.
    async fn words(&self, quoted: &[String], erased: &mut Erased) -> Result<(), ActionError> {
        let mut after = Uuid::nil();
        loop {
            let mut tx = self.gate.db().begin().await?;
            let entries = erasure::audit_words(&mut tx, after, ENTRIES).await?;
            let Some((last, ..)) = entries.last() else { return Ok(()) };
            after = *last;
            let guilty = entries.iter().filter(|(_, reason, detail)| {
                quotes(detail, quoted) || reason.as_ref().is_some_and(|reason| quotes(reason, quoted))
            });
            let ids: Vec<Uuid> = guilty.map(|(id, ..)| *id).collect();
            if ids.is_empty() {
                continue;
            }
            let entry = self.entry("erase_words", "what quoted somebody who was erased".to_owned(), None);
            erased.entries += audit::erase_words(&mut tx, &ids, &entry).await?;
            tx.commit(Commit::Action).await?;
        }
    }

    async fn end(&self, erased: &Erased) -> Result<String, ActionError> {
        let answer = erased.to_string();
        let mut tx = self.gate.db().begin().await?;
        audit::insert(&mut tx, &self.entry("erased", answer.clone(), None)).await?;
        actions::answer(&mut tx, &self.actor(), self.request.action_id, None, &answer).await?;
        tx.commit(Commit::Action).await?;
        Ok(answer)
    }
}

/// The texts and numbers in a value.
fn gather(value: &Value, into: &mut Vec<String>) {
    match value {
        Value::String(text) if text.chars().count() >= TELLING && !into.contains(text) => {
            into.push(text.clone());
        }
        Value::Number(number)
            if number.to_string().len() >= TELLING && !into.contains(&number.to_string()) =>
        {
            into.push(number.to_string());
        }
        Value::Array(items) => items.iter().for_each(|item| gather(item, into)),
        Value::Object(members) => members.values().for_each(|member| gather(member, into)),
        _ => {}
    }
}

/// Whether a text, or the query string that it is, holds one of these as a word of its own.
fn quotes(text: &str, quoted: &[String]) -> bool {
    let decoded =
        percent_encoding::percent_decode_str(&text.replace('+', " ")).decode_utf8_lossy().to_lowercase();
    let plain = text.to_lowercase();
    quoted.iter().map(|wanted| wanted.to_lowercase()).any(|wanted| {
        [&plain, &decoded].iter().any(|text| {
            text.match_indices(wanted.as_str()).any(|(at, found)| {
                let inside = |letter: Option<char>| letter.is_some_and(char::is_alphanumeric);
                !inside(text[..at].chars().next_back()) && !inside(text[at + found.len()..].chars().next())
            })
        })
    })
}

#[cfg(test)]
mod tests {
    use super::quotes;

    #[test]
    fn a_value_is_found_as_a_word_however_it_is_written() {
        let wanted = ["4711".to_owned(), "anna@example.com".to_owned()];
        for text in [
            "customer 4711 called",
            "4711",
            "search=4711&status=open",
            "ANNA@example.com",
            "anna%40example.com",
        ] {
            assert!(quotes(text, &wanted), "{text}");
        }
        for text in ["47112", "order 14711x", "hanna@example.com", ""] {
            assert!(!quotes(text, &wanted), "{text}");
        }
    }
}
