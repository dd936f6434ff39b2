//! What happens to accounts and at the doors, put on record.

use super::By;
use crate::domain::ambient::Ambient;
use crate::store::audit::{self, AuditRow};
use crate::store::{StoreError, Tx};

/// What somebody did.
pub(super) async fn note(
    tx: &mut Tx,
    ambient: &Ambient,
    by: &By<'_>,
    action: &str,
    detail: &str,
) -> Result<(), StoreError> {
    done(tx, ambient, (&by.actor.to_string(), by.origin), action, detail).await
}

/// The same of whoever has this name and asks from there: at a door nobody is an actor yet.
pub(super) async fn done(
    tx: &mut Tx,
    ambient: &Ambient,
    who: (&str, &str),
    action: &str,
    detail: &str,
) -> Result<(), StoreError> {
    insert(tx, ambient, who, (action, "done"), detail).await
}

/// What they were not let do.
pub(super) async fn refused(
    tx: &mut Tx,
    ambient: &Ambient,
    who: (&str, &str),
    action: &str,
    detail: &str,
) -> Result<(), StoreError> {
    insert(tx, ambient, who, (action, "refused"), detail).await
}

async fn insert(
    tx: &mut Tx,
    ambient: &Ambient,
    (name, origin): (&str, &str),
    (action, result): (&str, &str),
    detail: &str,
) -> Result<(), StoreError> {
    let row = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: name.to_owned(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: None,
        reason: None,
        result: result.to_owned(),
        detail: detail.to_owned(),
        origin: origin.to_owned(),
    };
    audit::insert(tx, &row).await
}
