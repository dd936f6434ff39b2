//! What people say of a cause: a note for whoever comes next, and who has it.

use uuid::Uuid;

use super::actions::{ActionError, Request, permitted, take};
use crate::domain::actor::Right;
use crate::gate::Gate;
use crate::store::audit::{self, AuditRow};
use crate::store::{Commit, accounts, actions, causes};

/// The longest note, in characters.
pub const MAX_NOTE: usize = 2_000;

/// What an audit entry about a cause has as its subject.
pub fn subject(cause: &str) -> String {
    format!("cause:{cause}")
}

/// A change of what is said of a cause.
enum Change<'a> {
    Note(Option<&'a str>),
    Assign(Option<&'a str>),
}

/// Writes what is to be known of a cause, in the place of what was written before; an empty text
/// takes it away. The audit keeps every version.
pub async fn note(gate: &Gate, cause: &str, text: &str, request: &Request<'_>) -> Result<(), ActionError> {
    let text = text.trim().replace('\0', "\u{fffd}");
    let length = text.chars().count();
    if length > MAX_NOTE {
        return Err(ActionError::Invalid(format!(
            "the note has {length} characters; at most {MAX_NOTE} are kept"
        )));
    }
    change(gate, cause, &Change::Note(Some(text.as_str()).filter(|text| !text.is_empty())), request).await
}

/// Gives a cause to a person who can sign in, or to nobody.
pub async fn assign(
    gate: &Gate,
    cause: &str,
    to: Option<&str>,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    change(gate, cause, &Change::Assign(to), request).await
}

async fn change(
    gate: &Gate,
    cause: &str,
    change: &Change<'_>,
    request: &Request<'_>,
) -> Result<(), ActionError> {
    permitted(request.actor, Right::Resolve)?;
    let actor = request.actor.to_string();
    let now = gate.ambient().now();
    let (action, result, detail) = match change {
        Change::Note(Some(text)) => ("cause_note", "written", (*text).to_owned()),
        Change::Note(None) => ("cause_note", "removed", String::new()),
        Change::Assign(Some(name)) => ("cause_assign", "assigned", format!("to {name}")),
        Change::Assign(None) => ("cause_assign", "unassigned", "to nobody".to_owned()),
    };
    let mut tx = gate.db().begin().await?;
    if take(&mut tx, &actor, request.action_id, &format!("{action} {cause}"), now).await?.is_some() {
        return Ok(());
    }
    if !causes::exists(&mut tx, cause).await? {
        return Err(ActionError::NotFound);
    }
    match change {
        Change::Note(text) => causes::set_note(&mut tx, cause, *text, now).await?,
        Change::Assign(to) => {
            if let Some(name) = to {
                let user = accounts::user_by_name(&mut tx, name).await?;
                if user.is_none_or(|user| user.disabled_at.is_some()) {
                    return Err(ActionError::Invalid(format!("nobody called {name} can sign in")));
                }
            }
            causes::assign(&mut tx, cause, *to, now).await?;
        }
    }
    let entry = AuditRow {
        id: gate.ambient().id(),
        at: now,
        actor: actor.clone(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some(subject(cause)),
        reason: None,
        result: result.to_owned(),
        detail,
        origin: request.origin.to_owned(),
    };
    audit::insert(&mut tx, &entry).await?;
    actions::answer(&mut tx, &actor, request.action_id, None::<Uuid>, action).await?;
    tx.commit(Commit::Action).await?;
    Ok(())
}
