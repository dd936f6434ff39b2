//! Freezing the members of a bulk action. Nothing is done to them yet.

use uuid::Uuid;

use super::word::{Begun, Word};
use super::{MAX_NAME, MOST_CHOSEN, MOST_PER_MINUTE, chosen};
use crate::domain::actor::Right;
use crate::domain::bulk::{BulkAction, BulkState};
use crate::domain::dead_letter::Resolution;
use crate::domain::filter::DeadLetterFilter;
use crate::domain::time::Timestamp;
use crate::engine::actions::{ActionError, Request, permitted, reason};
use crate::gate::Gate;
use crate::store::bulk::{self, BulkRow, members};
use crate::store::{Tx, accounts};

/// What is done to each member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Act {
    /// Tried again, through every check.
    Replay,
    /// Closed like this, without a reference: the reason says why.
    Resolve(Resolution),
    /// Handed to a person, or to nobody.
    Assign(Option<String>),
    /// Its destination is asked what it knows.
    Lookup,
}

impl Act {
    /// In a word.
    pub const fn action(&self) -> BulkAction {
        match self {
            Self::Replay => BulkAction::Replay,
            Self::Resolve(_) => BulkAction::Resolve,
            Self::Assign(_) => BulkAction::Assign,
            Self::Lookup => BulkAction::Lookup,
        }
    }

    /// As it is kept in a row.
    pub fn of(row: &BulkRow) -> Self {
        match row.action {
            BulkAction::Replay => Self::Replay,
            BulkAction::Resolve => Self::Resolve(row.resolution.unwrap_or(Resolution::NotNeeded)),
            BulkAction::Assign => Self::Assign(row.assignee.clone()),
            BulkAction::Lookup => Self::Lookup,
        }
    }
}

/// Which dead letters.
#[derive(Clone, Debug)]
pub enum Members {
    /// All that a filter means at this moment.
    All(DeadLetterFilter),
    /// These, by id.
    Chosen(Vec<Uuid>),
}

/// A bulk action to be. Why it is done is the request's reason.
#[derive(Clone, Debug)]
pub struct New {
    /// What people will call it.
    pub name: String,
    /// What is done.
    pub act: Act,
    /// To which.
    pub members: Members,
    /// So many go first, and a person confirms before the others follow; 0 for none.
    pub canary: i64,
    /// The most members a minute; absent for as many as can be.
    pub per_minute: Option<i64>,
}

impl New {
    /// The row of one that is valid as far as it says by itself.
    fn row(&self, gate: &Gate, request: &Request<'_>) -> Result<BulkRow, ActionError> {
        let name = self.name.trim();
        let fits = (1..=MAX_NAME).contains(&name.chars().count());
        if !fits || name.chars().any(char::is_control) {
            return Err(invalid(format!("a name is one line of 1 to {MAX_NAME} characters")));
        }
        if self.canary < 0 {
            return Err(invalid("a whole number of members goes first, or none".to_owned()));
        }
        if self.per_minute.is_some_and(|speed| !(1..=MOST_PER_MINUTE).contains(&speed)) {
            return Err(invalid(format!("a speed is from 1 to {MOST_PER_MINUTE} members a minute")));
        }
        let filter = match &self.members {
            Members::All(filter) if !chosen::narrows(filter) => {
                let text = "choose a filter first: without one this would be about everything";
                return Err(invalid(text.to_owned()));
            }
            Members::All(filter) => Some(chosen::written(filter)),
            Members::Chosen(ids) if ids.is_empty() => return Err(nothing()),
            Members::Chosen(ids) if ids.len() > MOST_CHOSEN => {
                let text = format!(
                    "{} were chosen one by one; beyond {MOST_CHOSEN}, use a filter that means them",
                    ids.len()
                );
                return Err(invalid(text));
            }
            Members::Chosen(_) => None,
        };
        let (resolution, assignee) = match &self.act {
            Act::Resolve(how) => (Some(*how), None),
            Act::Assign(to) => (None, to.clone()),
            Act::Replay | Act::Lookup => (None, None),
        };
        let ambient = gate.ambient();
        Ok(BulkRow {
            id: ambient.id(),
            name: name.to_owned(),
            action: self.act.action(),
            resolution,
            assignee,
            reason: reason(request.reason)?,
            filter,
            follows: None,
            members: 0,
            canary: self.canary,
            per_minute: self.per_minute,
            state: BulkState::Preview,
            created_at: ambient.now(),
            created_by: request.actor.to_string(),
            started_at: None,
            acts_as: None,
            ended_at: None,
            paused_at: None,
            paused_by: None,
            pause_reason: None,
            next_at: Timestamp::from_micros(0),
            leased_until: None,
            fence: 0,
            followed: 0,
        })
    }
}

fn invalid(text: String) -> ActionError {
    ActionError::Invalid(text)
}

fn nothing() -> ActionError {
    invalid("there is nothing to act on: no dead letter is meant".to_owned())
}

/// Freezes the members of a new bulk action; its id.
pub async fn create(gate: &Gate, new: &New, request: &Request<'_>) -> Result<Uuid, ActionError> {
    may(request, new.act.action())?;
    let row = new.row(gate, request)?;
    let mut word = match Word::begin(gate, request, &format!("bulk_create {}", row.name)).await? {
        Begun::New(word) => word,
        Begun::Before(answer) => return Ok(serde_json::from_str(&answer)?),
    };
    if let Act::Assign(Some(name)) = &new.act {
        let user = accounts::user_by_name(&mut word.tx, name).await?;
        if user.is_none_or(|user| user.disabled_at.is_some()) {
            return Err(invalid(format!("nobody who may sign in is called {name:?}")));
        }
    }
    let frozen = match &new.members {
        Members::All(filter) => members::freeze(&mut word.tx, row.id, filter).await?,
        Members::Chosen(ids) => chosen_ones(&mut word.tx, row.id, ids).await?,
    };
    kept(word, row, frozen).await
}

/// Freezes the members of a bulk action that were refused or failed again into a new one; its id.
pub async fn again(gate: &Gate, of: Uuid, request: &Request<'_>) -> Result<Uuid, ActionError> {
    permitted(request.actor, Right::Bulk)?;
    let mut word = match Word::begin(gate, request, &format!("bulk_again {of}")).await? {
        Begun::New(word) => word,
        Begun::Before(answer) => return Ok(serde_json::from_str(&answer)?),
    };
    let first = bulk::by_id(&mut word.tx, of).await?.ok_or(ActionError::NotFound)?;
    may(request, first.action)?;
    let new = New {
        name: again_name(&first.name),
        act: Act::of(&first),
        // Only the shape counts: the members come from the first one.
        members: Members::Chosen(vec![of]),
        canary: first.canary,
        per_minute: first.per_minute,
    };
    let told = Request { reason: &first.reason, ..request.clone() };
    let row = BulkRow { follows: Some(of), ..new.row(gate, &told)? };
    let frozen = members::freeze_again(&mut word.tx, row.id, of).await?;
    kept(word, row, frozen).await
}

fn may(request: &Request<'_>, action: BulkAction) -> Result<(), ActionError> {
    permitted(request.actor, Right::Bulk)?;
    permitted(request.actor, action.right())
}

fn again_name(first: &str) -> String {
    let kept: String = first.trim_end_matches(" (again)").chars().take(MAX_NAME - 8).collect();
    format!("{kept} (again)")
}

async fn chosen_ones(tx: &mut Tx, bulk: Uuid, ids: &[Uuid]) -> Result<i64, ActionError> {
    let mut ids = ids.to_vec();
    ids.sort_unstable();
    ids.dedup();
    let frozen = members::freeze_chosen(tx, bulk, &ids).await?;
    let missing = i64::try_from(ids.len()).unwrap_or(i64::MAX) - frozen;
    if missing > 0 {
        return Err(invalid(format!("{missing} of the ids are of no dead letter")));
    }
    Ok(frozen)
}

async fn kept(mut word: Word<'_>, row: BulkRow, frozen: i64) -> Result<Uuid, ActionError> {
    if frozen == 0 {
        return Err(nothing());
    }
    // Who waits for all of them waits for nothing that comes after.
    let canary = if row.canary >= frozen { 0 } else { row.canary };
    let row = BulkRow { members: frozen, canary, ..row };
    bulk::insert(&mut word.tx, &row).await?;
    let which = match (&row.filter, row.follows) {
        (Some(filter), _) => format!("filter {filter}"),
        (None, Some(first)) => format!("refused or failed again in bulk:{first}"),
        (None, None) => "chosen one by one".to_owned(),
    };
    let detail = format!("{} of {frozen}: {which}", row.action);
    word.done(row.id, "bulk_create", Some(row.reason), "preview", detail).await?;
    Ok(row.id)
}
