//! Everything that is known of one operation: the thread of evidence that pages, the API and the
//! command line tell from.

use serde::Serialize;
use uuid::Uuid;

use crate::domain::attempt::{Cause, Outcome};
use crate::domain::classify::Symptom;
use crate::domain::contract::Contract;
use crate::domain::dead_letter::Resolution;
use crate::domain::operation::StepState;
use crate::domain::time::Timestamp;
use crate::domain::verdict::KnownResult;
use crate::domain::words::Settles;
use crate::store::attempts::{self, AttemptRow};
use crate::store::audit::{self, AuditRow};
use crate::store::dead_letters::{self, DeadLetterRow};
use crate::store::events::{self, EventKind, EventRow};
use crate::store::operations::{self, OperationRow, RequestRow, SearchRow, StepRow};
use crate::store::{StoreError, Tx};

/// One operation with all that belongs to it.
#[derive(Clone, Debug)]
pub struct Thread {
    /// Itself.
    pub operation: OperationRow,
    /// Its steps, in order.
    pub steps: Vec<StepRow>,
    /// What people search it by.
    pub search: Vec<SearchRow>,
    /// Its payload, unless erased.
    pub payload: Option<String>,
    /// What was made to be sent.
    pub requests: Vec<RequestRow>,
    /// Every attempt, oldest first.
    pub attempts: Vec<AttemptRow>,
    /// What else happened, oldest first.
    pub events: Vec<EventRow>,
    /// What people did, oldest first.
    pub audit: Vec<AuditRow>,
    /// Its episodes, newest first.
    pub letters: Vec<DeadLetterRow>,
}

/// What the destination knows, as far as we hold it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Knowledge {
    /// The effect is there.
    DoneThere(KnownResult),
    /// A person says that the effect is there.
    Recorded(KnownResult),
    /// It answered, and the effect is not there.
    NotThere(KnownResult),
    /// Something was sent and nobody knows what became of it.
    CannotTell(KnownResult),
    /// Nothing that was sent can have arrived.
    NeverReached,
}

impl Knowledge {
    /// The effect counts as being there.
    pub fn is_done(&self) -> bool {
        matches!(self, Self::DoneThere(_) | Self::Recorded(_))
    }
}

/// A send that a person had made in spite of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overridden<'a> {
    /// Who.
    pub by: &'a str,
    /// What was sent before it was unaccounted for: it may have happened as well.
    pub twice: bool,
}

/// One entry of the thread, in the API's shape.
#[derive(Clone, Debug, Serialize)]
pub struct Entry {
    /// When.
    pub at: Timestamp,
    /// `received`, `attempt`, `dead_letter`, an event's kind, or an action.
    pub kind: String,
    /// Who or what.
    pub actor: String,
    /// For people.
    pub text: String,
    /// The attempt, where it is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub attempt: Option<Uuid>,
}

/// The operation that a text names: by its id or key, or by a dead letter's id.
pub async fn find(tx: &mut Tx, text: &str) -> Result<Option<Uuid>, StoreError> {
    if let Ok(id) = text.parse::<Uuid>() {
        if operations::by_id(tx, id).await?.is_some() {
            return Ok(Some(id));
        }
        if let Some(letter) = dead_letters::by_id(tx, id).await? {
            return Ok(Some(letter.operation_id));
        }
    }
    Ok(operations::by_key(tx, text).await?.map(|row| row.id))
}

impl Thread {
    /// Reads it. Absent when there is no such operation.
    pub async fn load(tx: &mut Tx, id: Uuid) -> Result<Option<Self>, StoreError> {
        let Some(operation) = operations::by_id(tx, id).await? else { return Ok(None) };
        Ok(Some(Self {
            operation,
            steps: operations::steps(tx, &[id]).await?,
            search: operations::search_values(tx, &[id]).await?,
            payload: operations::payload(tx, id).await?,
            requests: operations::requests(tx, id).await?,
            attempts: attempts::of_operation(tx, id).await?,
            events: events::of_operation(tx, id).await?,
            audit: audit::of_operation(tx, id).await?,
            letters: dead_letters::of_operation(tx, id).await?,
        }))
    }

    /// The step that is under way or failed: the first that is not completed, or the last one.
    pub fn current_step(&self) -> Option<&StepRow> {
        self.steps.iter().find(|step| !step.state.is_over()).or(self.steps.last())
    }

    /// The episode that waits for a person or is being replayed.
    pub fn live_letter(&self) -> Option<&DeadLetterRow> {
        self.letters.iter().find(|letter| letter.closed_at.is_none())
    }

    /// What people did, oldest first; a note is told by its event.
    pub fn acts(&self) -> impl Iterator<Item = &AuditRow> {
        self.audit.iter().filter(|row| row.action != "note")
    }

    /// Whether a person opened this episode, in the place of one that was closed.
    pub fn reopened(&self, letter: &DeadLetterRow) -> bool {
        self.audit.iter().any(|row| row.action == "reopen" && row.dead_letter_id == Some(letter.id))
    }

    /// The request that a step's attempts send, or would send next.
    pub fn request(&self, position: i64, generation: i64) -> Option<&RequestRow> {
        self.requests.iter().find(|row| row.position == position && row.generation == generation)
    }

    /// What the destination knows of the current step.
    pub fn knowledge(&self) -> Knowledge {
        self.current_step().map_or(Knowledge::NeverReached, |step| self.knowledge_of(step))
    }

    /// What the destination knows of a step.
    pub fn knowledge_of(&self, step: &StepRow) -> Knowledge {
        let tries: Vec<&AttemptRow> =
            self.attempts.iter().filter(|attempt| attempt.position == step.position).collect();
        if let Some(done) = tries.iter().rev().find(|attempt| attempt.outcome == Outcome::Done) {
            let how = match done.asked {
                Some(_) => "It was asked and has it.".to_owned(),
                None => format!("It answered attempt {}.", done.number),
            };
            return Knowledge::DoneThere(KnownResult {
                reference: step.reference.clone(),
                ..learned(done, how)
            });
        }
        if let Some(letter) = self.letters.iter().find(|letter| {
            letter.position == step.position && letter.resolution == Some(Resolution::CompletedAtDestination)
        }) {
            let by = letter.closed_by.as_deref().unwrap_or("somebody");
            return Knowledge::Recorded(KnownResult {
                at: letter.closed_at.unwrap_or(letter.opened_at),
                how: format!("{by} recorded it as done."),
                answer: letter.reason.clone(),
                reference: letter.reference.clone(),
            });
        }
        if let Some(late) = self.events.iter().rev().find(|event| {
            event.kind == EventKind::LateDone && event.position.is_none_or(|at| at == step.position)
        }) {
            return Knowledge::DoneThere(KnownResult {
                at: late.at,
                how: "Its answer came after the attempt's lease had run out.".to_owned(),
                answer: Some(late.detail.clone()),
                reference: None,
            });
        }
        let sends = || tries.iter().rev().filter(|attempt| attempt.asked.is_none());
        if let Some(attempt) = sends().find(|attempt| attempt.outcome == Outcome::Running) {
            return Knowledge::CannotTell(learned(
                attempt,
                format!("Attempt {} is under way.", attempt.number),
            ));
        }
        // Whether something is unaccounted for is for the step to say, as the gate reads it: an absence
        // that was proved settles the sends before it, and a question that brought nothing unsettles none.
        if step.state == StepState::Uncertain
            && let Some(attempt) = sends().find(|attempt| attempt.outcome == Outcome::Uncertain)
        {
            let how = format!("Attempt {} was sent and no clear answer came back.", attempt.number);
            return Knowledge::CannotTell(learned(attempt, how));
        }
        let absent = |attempt: &AttemptRow| attempt.symptom == Some(Symptom::Absent);
        let last =
            tries.iter().rev().find(|row| absent(row) || (row.asked.is_none() && row.status.is_some()));
        match last {
            Some(asked) if asked.asked.is_some() => {
                Knowledge::NotThere(learned(asked, "It was asked and does not have it.".to_owned()))
            }
            Some(refused) => {
                let how = format!("It answered attempt {} and did not do it.", refused.number);
                Knowledge::NotThere(learned(refused, how))
            }
            None => Knowledge::NeverReached,
        }
    }

    /// What a step's destination can do about a doubt at a moment: what titles, cards, buttons and
    /// lists go by.
    pub fn settles(&self, step: &StepRow, contract: Option<&Contract>, now: Timestamp) -> Settles {
        let first = self.request(step.position, step.generation).map(|request| request.first_sent_at);
        Settles::of(self.knowledge_of(step).is_done(), contract.map(|contract| contract.class_at(first, now)))
    }

    /// The send of a dead letter's step that a person had made in spite of a check, if one was made.
    pub fn overridden(&self, letter: &DeadLetterRow) -> Option<Overridden<'_>> {
        let position = letter.position;
        let of_step = || self.attempts.iter().filter(move |attempt| attempt.position == position);
        let sent = |attempt: &AttemptRow| {
            attempt.asked.is_none() && !matches!(attempt.outcome, Outcome::NotSent | Outcome::Skipped)
        };
        let theirs = of_step().rev().find(|attempt| {
            attempt.cause == Cause::Override
                && sent(attempt)
                && attempt.started_at >= letter.opened_at
                && letter.closed_at.is_none_or(|closed| attempt.started_at <= closed)
        })?;
        let id = theirs.id;
        let before = || of_step().take_while(move |attempt| attempt.id != id);
        // An absence settles what was sent under the key that was asked about.
        let settled = |doubt: &AttemptRow| {
            before().skip_while(|attempt| attempt.id != doubt.id).any(|attempt| {
                attempt.symptom == Some(Symptom::Absent) && attempt.generation == doubt.generation
            })
        };
        let mut doubts = before().filter(|attempt| sent(attempt) && attempt.outcome == Outcome::Uncertain);
        Some(Overridden { by: &theirs.requested_by, twice: doubts.any(|doubt| !settled(doubt)) })
    }

    /// The known result in a verdict's shape; absent when nothing is known of an effect.
    pub fn known_result(&self) -> Option<KnownResult> {
        match self.knowledge() {
            Knowledge::DoneThere(result)
            | Knowledge::Recorded(result)
            | Knowledge::NotThere(result)
            | Knowledge::CannotTell(result) => Some(result),
            Knowledge::NeverReached => None,
        }
    }

    /// The attempt that did the current step.
    pub fn done_by(&self) -> Option<Uuid> {
        self.attempts.iter().rev().find(|attempt| attempt.outcome == Outcome::Done).map(|attempt| attempt.id)
    }

    /// A step's name.
    pub fn step_name(&self, position: i64) -> &str {
        self.steps.iter().find(|step| step.position == position).map_or("", |step| &step.name)
    }

    /// The whole thread in time order.
    pub fn entries(&self) -> Vec<Entry> {
        let mut entries = vec![Entry {
            at: self.operation.received_at,
            kind: "received".to_owned(),
            actor: self.operation.submitted_by.clone(),
            text: format!("Accepted under the key {}", self.operation.key),
            attempt: None,
        }];
        entries.extend(self.attempts.iter().map(|attempt| Entry {
            at: attempt.started_at,
            kind: "attempt".to_owned(),
            actor: attempt.requested_by.clone(),
            text: format!(
                "{}, {}: {}{}",
                self.step_name(attempt.position),
                match attempt.asked {
                    Some(_) => "the destination was asked".to_owned(),
                    None => format!("attempt {}", attempt.number),
                },
                match (&attempt.asked, attempt.symptom.and_then(Symptom::finding)) {
                    (Some(_), Some(finding)) => finding.as_str(),
                    _ => attempt.outcome.as_str(),
                },
                attempt.error.as_ref().map(|error| format!(" ({error})")).unwrap_or_default()
            ),
            attempt: Some(attempt.id),
        }));
        entries.extend(self.events.iter().map(|event| Entry {
            at: event.at,
            kind: event.kind.as_str().to_owned(),
            actor: event.actor.clone(),
            text: event.detail.clone(),
            attempt: None,
        }));
        let opened = self.letters.iter().filter(|letter| !self.reopened(letter));
        entries.extend(opened.map(|letter| Entry {
            at: letter.opened_at,
            kind: "dead_letter".to_owned(),
            actor: "engine".to_owned(),
            text: format!("Put before a person: {} ({})", letter.why, letter.certainty),
            attempt: None,
        }));
        entries.extend(self.acts().map(|row| Entry {
            at: row.at,
            kind: row.action.clone(),
            actor: row.actor.clone(),
            text: format!(
                "{}{}{}",
                row.result,
                if row.detail.is_empty() { String::new() } else { format!(": {}", row.detail) },
                row.reason.as_ref().map(|reason| format!(" \u{2014} {reason}")).unwrap_or_default()
            ),
            attempt: None,
        }));
        entries.sort_by_key(|entry| entry.at);
        entries
    }
}

fn learned(attempt: &AttemptRow, how: String) -> KnownResult {
    KnownResult {
        at: attempt.ended_at.unwrap_or(attempt.started_at),
        how,
        answer: match (&attempt.answer_body, &attempt.error) {
            (Some(body), _) if !body.is_empty() => Some(body.clone()),
            (_, error) => error.clone(),
        },
        reference: attempt.reference.clone(),
    }
}
