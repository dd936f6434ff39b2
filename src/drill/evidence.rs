//! What a proof leaves behind for a second person: what was done, what was expected and found, and
//! the records that show it.

use std::collections::BTreeMap;
use std::fmt::Display;

use serde::Serialize;
use uuid::Uuid;

use super::proxy::Passage;
use crate::domain::attempt::{Cause, Outcome};
use crate::domain::contract::Class;
use crate::domain::dead_letter::{Certainty, DeadLetterStatus};
use crate::domain::operation::OperationState;
use crate::domain::time::Timestamp;
use crate::domain::words;
use crate::engine::thread::Thread;

text_enum! {
    /// What came of a proof.
    pub enum CaseVerdict {
        /// Everything was as promised.
        Passed = "passed",
        /// It could not be seen here; the reason is beside it.
        NotRun = "not_run",
        /// Something was not as promised.
        Failed = "failed",
    }
}

/// One thing that was looked at.
#[derive(Clone, Debug, Serialize)]
pub struct Checked {
    /// What.
    pub what: String,
    /// As promised.
    pub expected: String,
    /// As seen.
    pub found: String,
    /// The two agree.
    pub passed: bool,
}

/// One attempt, as the ledger has it.
#[derive(Clone, Debug, Serialize)]
pub struct AttemptEvidence {
    /// From 1 in its step; a question bears the number of the attempt that it is about.
    pub number: i64,
    /// Why it was made.
    pub cause: Cause,
    /// Who asked for it.
    pub by: String,
    /// When it was marked as sending.
    pub started_at: Timestamp,
    /// When it was settled.
    pub ended_at: Option<Timestamp>,
    /// What is known after it.
    pub outcome: Outcome,
    /// The answer's status.
    pub status: Option<i64>,
    /// What went wrong, for people.
    pub error: Option<String>,
    /// The id over there.
    pub reference: Option<String>,
}

/// Something else that happened to an operation.
#[derive(Clone, Debug, Serialize)]
pub struct EventEvidence {
    /// When.
    pub at: Timestamp,
    /// What, in a word.
    pub kind: String,
    /// For people.
    pub text: String,
}

/// A dead letter.
#[derive(Clone, Debug, Serialize)]
pub struct LetterEvidence {
    /// Where it stands.
    pub status: DeadLetterStatus,
    /// What it says of the effect.
    pub certainty: Certainty,
    /// Why it waits for a person.
    pub why: String,
    /// What went wrong, for people.
    pub error: String,
}

/// One operation with its history.
#[derive(Clone, Debug, Serialize)]
pub struct OperationEvidence {
    /// Its id.
    pub id: Uuid,
    /// Its key.
    pub key: String,
    /// What is known of it at the end.
    pub state: OperationState,
    /// The key that the destination saw.
    pub destination_key: String,
    /// Oldest first; passed-over ones too.
    pub attempts: Vec<AttemptEvidence>,
    /// Oldest first.
    pub events: Vec<EventEvidence>,
    /// Newest first.
    pub dead_letters: Vec<LetterEvidence>,
}

impl OperationEvidence {
    pub(super) fn of(thread: &Thread) -> Self {
        let attempts = thread.attempts.iter().map(|row| AttemptEvidence {
            number: row.number,
            cause: row.cause,
            by: row.requested_by.clone(),
            started_at: row.started_at,
            ended_at: row.ended_at,
            outcome: row.outcome,
            status: row.status,
            error: row.error.clone(),
            reference: row.reference.clone(),
        });
        let events = thread.events.iter().map(|row| EventEvidence {
            at: row.at,
            kind: row.kind.to_string(),
            text: row.detail.clone(),
        });
        let dead_letters = thread.letters.iter().map(|row| LetterEvidence {
            status: row.status,
            certainty: row.certainty,
            why: words::park_reason(row.why).to_owned(),
            error: row.error.clone(),
        });
        Self {
            id: thread.operation.id,
            key: thread.operation.key.clone(),
            state: thread.operation.state(),
            destination_key: thread.steps.first().map(|step| step.key.to_string()).unwrap_or_default(),
            attempts: attempts.collect(),
            events: events.collect(),
            dead_letters: dead_letters.collect(),
        }
    }
}

/// How often it really happened at the destination.
#[derive(Clone, Debug, Serialize)]
pub struct Effects {
    /// Absent where it cannot be seen.
    pub count: Option<usize>,
    /// How that was counted, for people.
    pub how: String,
}

impl Effects {
    /// As far as the answers of a destination that is not ours show: two different ids for one
    /// request are two effects.
    pub(super) fn seen(passages: &[Passage]) -> Self {
        let mut same: BTreeMap<(&str, &str, Option<&str>), Vec<&Passage>> = BTreeMap::new();
        for passage in passages.iter().filter(|passage| passage.succeeded()) {
            let request = (passage.path.as_str(), passage.body.as_str(), passage.key.as_deref());
            same.entry(request).or_default().push(passage);
        }
        let mut count = 0;
        for group in same.values() {
            let ids: Option<Vec<&str>> = group.iter().map(|passage| passage.reference.as_deref()).collect();
            count += match (group.len(), ids) {
                (1, _) => 1,
                (_, Some(mut ids)) => {
                    ids.sort_unstable();
                    ids.dedup();
                    ids.len()
                }
                (_, None) => {
                    let how = "A request was answered with success more than once, and its answers name no id \
                               by which one effect could be told from two: write \"reference\" in the step.";
                    return Self { count: None, how: how.to_owned() };
                }
            };
        }
        let how = "By the destination's answers, as the drill saw them pass: one effect for each different id \
                   that it gave, and one where a request was answered with success once.";
        Self { count: Some(count), how: how.to_owned() }
    }
}

/// A proof at one destination.
#[derive(Clone, Debug, Serialize)]
pub struct Case {
    /// The type that was drilled.
    pub operation_type: String,
    /// Its destination.
    pub destination: String,
    /// What that promises.
    pub class: Class,
    /// What came of it.
    pub verdict: CaseVerdict,
    /// Why it failed or was not run.
    pub why: Option<String>,
    /// What was done, in order.
    pub done: Vec<String>,
    /// What was looked at.
    pub checks: Vec<Checked>,
    /// What really happened.
    pub effects: Option<Effects>,
    /// The operations it was done with.
    pub operations: Vec<OperationEvidence>,
    /// Everything that passed between the engine and the destination.
    pub requests: Vec<Passage>,
}

impl Case {
    pub(super) fn new(operation_type: &str, destination: &str, class: Class) -> Self {
        Self {
            operation_type: operation_type.to_owned(),
            destination: destination.to_owned(),
            class,
            verdict: CaseVerdict::NotRun,
            why: None,
            done: Vec::new(),
            checks: Vec::new(),
            effects: None,
            operations: Vec::new(),
            requests: Vec::new(),
        }
    }

    /// Notes what was done.
    pub(super) fn did(&mut self, what: impl Into<String>) {
        self.done.push(what.into());
    }

    /// Compares.
    pub(super) fn expect<T: Display>(&mut self, what: &str, expected: T, found: impl Display) {
        let (expected, found) = (expected.to_string(), found.to_string());
        self.holds(what, expected.clone(), found.clone(), expected == found);
    }

    /// Notes a comparison that is not one of equality.
    pub(super) fn holds(
        &mut self,
        what: &str,
        expected: impl Into<String>,
        found: impl Into<String>,
        passed: bool,
    ) {
        let (expected, found) = (expected.into(), found.into());
        self.checks.push(Checked { what: what.to_owned(), expected, found, passed });
    }

    /// Says what came of it. `broke` is why it could not be done to the end.
    pub(super) fn conclude(&mut self, broke: Option<String>) {
        let missed = self
            .checks
            .iter()
            .find(|check| !check.passed)
            .map(|check| format!("{}: expected {}, found {}.", check.what, check.expected, check.found));
        let uncounted = self.effects.as_ref().filter(|effects| effects.count.is_none());
        (self.verdict, self.why) = match (missed, broke, uncounted) {
            (Some(missed), ..) => (CaseVerdict::Failed, Some(missed)),
            (None, Some(broke), _) => {
                (CaseVerdict::Failed, Some(format!("It could not be done to the end: {broke}.")))
            }
            (None, None, Some(effects)) => (CaseVerdict::NotRun, Some(effects.how.clone())),
            (None, None, None) => (CaseVerdict::Passed, None),
        };
    }
}

#[cfg(test)]
mod tests {
    use super::super::proxy::Fault;
    use super::*;

    fn passed(body: &str, reference: Option<&str>) -> Passage {
        Passage {
            at: Timestamp::from_micros(0),
            method: "POST".into(),
            path: "/charges".into(),
            key: Some("k".into()),
            body: body.into(),
            asks: false,
            fault: Fault::None,
            status: Some(201),
            reference: reference.map(str::to_owned),
            error: None,
        }
    }

    #[test]
    fn effects_are_told_apart_by_the_ids_in_answers() {
        let count = |passages: &[Passage]| Effects::seen(passages).count;
        assert_eq!(count(&[]), Some(0));
        assert_eq!(count(&[passed("a", None)]), Some(1));
        assert_eq!(count(&[passed("a", Some("1")), passed("a", Some("1"))]), Some(1));
        assert_eq!(count(&[passed("a", Some("1")), passed("a", Some("2"))]), Some(2));
        assert_eq!(count(&[passed("a", Some("1")), passed("a", None)]), None);
        assert_eq!(count(&[passed("a", None), passed("b", None)]), Some(2));
        let refused = Passage { fault: Fault::Refuse, ..passed("a", None) };
        let unreached = Passage { error: Some("refused".into()), ..passed("a", None) };
        assert_eq!(count(&[refused, unreached, Passage { status: Some(422), ..passed("a", None) }]), Some(0));
    }

    #[test]
    fn one_thing_that_is_not_as_promised_fails_a_case() {
        let mut case = Case::new("t", "d", Class::Keyed);
        case.expect("effects", 1, 1);
        case.conclude(None);
        assert_eq!(case.verdict, CaseVerdict::Passed);
        case.effects = Some(Effects { count: None, how: "cannot be seen".into() });
        case.conclude(None);
        assert_eq!((case.verdict, case.why.as_deref()), (CaseVerdict::NotRun, Some("cannot be seen")));
        case.conclude(Some("no answer".into()));
        assert_eq!(case.verdict, CaseVerdict::Failed);
        case.expect("effects", 1, 2);
        case.conclude(None);
        assert_eq!(case.why.as_deref(), Some("effects: expected 1, found 2."));
    }
}
