//! An operation's states, and the only moves between them.

use serde_json::value::RawValue;
use uuid::Uuid;

use super::key::{DestinationKey, OperationKey, PayloadDigest};
use super::time::Timestamp;

text_enum! {
    /// What is known of an operation. `Running` is never stored: an operation runs while a worker
    /// holds its row of work.
    pub enum OperationState {
        /// Accepted; nothing has happened at the destination as far as is known.
        Pending = "pending",
        /// An attempt is under way.
        Running = "running",
        /// It may have happened.
        Uncertain = "uncertain",
        /// Every step was done.
        Completed = "completed",
        /// It did not happen, and nothing more will be tried without a person.
        Failed = "failed",
    }
}

text_enum! {
    /// What is known of a step.
    pub enum StepState {
        /// Not done, and nothing sent is unaccounted for.
        Pending = "pending",
        /// Something was sent and nobody knows what became of it.
        Uncertain = "uncertain",
        /// Done.
        Completed = "completed",
        /// Not done; it waits for a person.
        Failed = "failed",
        /// Passed over: its condition did not hold, or it is optional and came to nothing.
        Skipped = "skipped",
    }
}

text_enum! {
    /// How much a failure matters to the business.
    pub enum Severity {
        /// Can wait for days.
        Low = "low",
        /// The usual.
        Normal = "normal",
        /// Today.
        High = "high",
        /// Now.
        Critical = "critical",
    }
}

/// Something that moves an operation to another state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OperationEvent {
    /// A step was done; `last` when none is left.
    StepDone {
        /// No step is left.
        last: bool,
    },
    /// The step will be tried again by itself; `doubt` when an earlier send may have happened.
    WillRetry {
        /// An earlier send may have happened.
        doubt: bool,
    },
    /// A dead letter was opened.
    Parked {
        /// A send may have happened.
        doubt: bool,
    },
    /// A person had it tried again.
    Requeued,
}

/// A move that no rule allows: a defect, never a user's mistake.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("an operation that is {from} cannot take {event:?}")]
pub struct IllegalMove {
    /// Where it stood.
    pub from: OperationState,
    /// What was asked of it.
    pub event: OperationEvent,
}

impl OperationState {
    /// The state after an event. `Completed` is final.
    pub fn next(self, event: OperationEvent) -> Result<Self, IllegalMove> {
        use OperationEvent as E;
        match (self, event) {
            (Self::Completed | Self::Running, _) | (Self::Failed, E::WillRetry { .. } | E::Parked { .. }) => {
                Err(IllegalMove { from: self, event })
            }
            (_, E::StepDone { last: true }) => Ok(Self::Completed),
            (_, E::StepDone { last: false })
            | (Self::Pending | Self::Uncertain, E::WillRetry { doubt: false })
            | (Self::Failed | Self::Pending, E::Requeued) => Ok(Self::Pending),
            (Self::Pending | Self::Uncertain, E::WillRetry { doubt: true } | E::Parked { doubt: true })
            | (Self::Uncertain, E::Requeued) => Ok(Self::Uncertain),
            (Self::Pending | Self::Uncertain, E::Parked { doubt: false }) => Ok(Self::Failed),
        }
    }
}

impl StepState {
    /// Whether nothing more is to be done at the step.
    pub fn is_over(self) -> bool {
        matches!(self, Self::Completed | Self::Skipped)
    }

    /// What a step that is not completed is called, from the two facts that count.
    pub fn unfinished(doubt: bool, parked: bool) -> Self {
        match (doubt, parked) {
            (true, _) => Self::Uncertain,
            (false, true) => Self::Failed,
            (false, false) => Self::Pending,
        }
    }
}

/// An operation as accepted: everything that is stored in the one transaction before its sender
/// is answered.
#[derive(Debug, Clone)]
pub struct NewOperation {
    /// A UUID of version 7.
    pub id: Uuid,
    /// Unique among all operations.
    pub key: OperationKey,
    /// A configured type's name.
    pub kind: String,
    /// The payload's text, to the byte.
    pub payload: Box<RawValue>,
    /// Digest of its canonical text.
    pub digest: PayloadDigest,
    /// Ties it to the caller's own records.
    pub correlation_id: Option<String>,
    /// Where it came from.
    pub source: Option<String>,
    /// The type's severity at this moment.
    pub severity: Severity,
    /// Who submitted it.
    pub submitted_by: String,
    /// When.
    pub received_at: Timestamp,
    /// In order; never empty.
    pub steps: Vec<NewStep>,
    /// What people search by: name and value.
    pub search: Vec<(String, String)>,
    /// The operation that it corrects.
    pub corrects: Option<Uuid>,
}

/// A step as accepted.
#[derive(Debug, Clone)]
pub struct NewStep {
    /// Unique within the operation.
    pub name: String,
    /// A configured destination's name.
    pub destination: String,
    /// The key the destination will see.
    pub key: DestinationKey,
    /// Who takes its row of work.
    pub lane: String,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn completed_is_final_and_running_is_never_stored() {
        for event in [
            OperationEvent::StepDone { last: true },
            OperationEvent::WillRetry { doubt: true },
            OperationEvent::Parked { doubt: false },
            OperationEvent::Requeued,
        ] {
            assert!(OperationState::Completed.next(event).is_err());
            for from in OperationState::ALL {
                assert_ne!(from.next(event).ok(), Some(OperationState::Running));
            }
        }
    }

    #[test]
    fn doubt_is_never_forgotten_by_trying_again() {
        let uncertain = OperationState::Uncertain;
        assert_eq!(uncertain.next(OperationEvent::Requeued), Ok(uncertain));
        assert_eq!(uncertain.next(OperationEvent::Parked { doubt: true }), Ok(uncertain));
        assert_eq!(uncertain.next(OperationEvent::WillRetry { doubt: true }), Ok(uncertain));
    }
}
