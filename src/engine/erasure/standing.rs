//! How far an erasure is, for whoever asked for it and comes back later.

use std::fmt;
use std::time::Duration;

use super::super::actions::ActionError;
use crate::domain::actor::Actor;
use crate::domain::time::Timestamp;
use crate::gate::Gate;
use crate::store::actions::{self, Answered};

/// Before what names a subject.
pub(super) const SUBJECT: &str = "erasure:";

/// An erasure that says nothing for so long was ended with its process.
const SILENT: Duration = Duration::from_mins(3);
/// How often it says something at least, however long it finds nothing.
pub(super) const SAYS: Duration = Duration::from_secs(10);

/// How an erasure stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Standing {
    /// It goes on; what went so far, where that is known.
    GoingOn(String),
    /// It is at its end; what went.
    Ended(String),
    /// It ended before its end; what went until then. To erase the subject again goes on with it.
    BrokeOff(String),
}

const GOING_ON: &str = "so far: ";
const BROKE_OFF: &str = "broke off: ";

impl Standing {
    /// As it is stored.
    pub(super) fn stored(&self) -> String {
        match self {
            Self::GoingOn(erased) => format!("{GOING_ON}{erased}"),
            Self::Ended(erased) => erased.clone(),
            Self::BrokeOff(erased) => format!("{BROKE_OFF}{erased}"),
        }
    }

    fn read(row: &Answered, now: Timestamp) -> Self {
        if let Some(erased) = row.answer.strip_prefix(BROKE_OFF) {
            Self::BrokeOff(erased.to_owned())
        } else if let Some(erased) = row.answer.strip_prefix(GOING_ON) {
            if now.since(row.at) > SILENT {
                Self::BrokeOff(erased.to_owned())
            } else {
                Self::GoingOn(erased.to_owned())
            }
        } else {
            Self::Ended(row.answer.clone())
        }
    }
}

impl fmt::Display for Standing {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Ended(erased) => f.write_str(erased),
            Self::GoingOn(erased) if erased.is_empty() => f.write_str("it goes on"),
            Self::GoingOn(erased) => write!(f, "it goes on; so far {erased}"),
            Self::BrokeOff(erased) => {
                write!(f, "it broke off, and erasing again goes on with it; until then {erased}")
            }
        }
    }
}

/// How the erasure that an action asked for stands; absent when it asked for none.
pub(super) async fn of(
    gate: &Gate,
    actor: &str,
    action_id: &str,
    about: &str,
) -> Result<Option<Standing>, ActionError> {
    let mut tx = gate.db().read().await?;
    match actions::find(&mut tx, actor, action_id).await? {
        None => Ok(None),
        Some(row) if row.subject == about => Ok(Some(Standing::read(&row, gate.ambient().now()))),
        Some(_) => Err(ActionError::IdReused),
    }
}

/// How the erasures stand that somebody asked for last, newest first, with when each was heard of.
pub async fn lately(
    gate: &Gate,
    actor: &Actor,
    most: i64,
) -> Result<Vec<(Timestamp, Standing)>, ActionError> {
    let mut tx = gate.db().read().await?;
    let rows = actions::lately(&mut tx, &actor.to_string(), SUBJECT, most).await?;
    let now = gate.ambient().now();
    Ok(rows.iter().map(|row| (row.at, Standing::read(row, now))).collect())
}
