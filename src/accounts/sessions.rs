//! Where people are signed in, and the end of it.

use uuid::Uuid;

use super::record::note;
use super::{AccountError, By, known, permitted};
use crate::domain::actor::{Actor, Right};
use crate::domain::ambient::Ambient;
use crate::store::accounts::UserRow;
use crate::store::sessions::{self, SessionRow};
use crate::store::{Commit, Db};

/// A person's sessions, the last used first.
pub async fn sessions(db: &Db, ambient: &Ambient, user: Uuid) -> Result<Vec<SessionRow>, AccountError> {
    let mut tx = db.read().await?;
    Ok(sessions::of_user(&mut tx, user, ambient.now()).await?)
}

/// Ends one session: of one's own, or of anybody's for those who manage people. The one that ended;
/// absent when it had ended before.
pub async fn end_session(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    id: Uuid,
    by: &By<'_>,
) -> Result<Option<SessionRow>, AccountError> {
    theirs(&user.name, by)?;
    let mut tx = db.begin().await?;
    let Some(ended) = sessions::delete_one(&mut tx, user.id, id).await? else { return Ok(None) };
    let detail = format!("{}: {}, from {}", user.name, ended.agent, ended.address);
    note(&mut tx, ambient, by, "session_end", &detail).await?;
    tx.commit(Commit::Account).await?;
    Ok(Some(ended))
}

/// Ends all of a person's sessions: of one's own, or of anybody's for those who manage people.
pub async fn sign_out_everywhere(
    db: &Db,
    ambient: &Ambient,
    name: &str,
    by: &By<'_>,
) -> Result<(), AccountError> {
    theirs(name, by)?;
    let detail = if is_own(name, by) { "everywhere".to_owned() } else { format!("{name}, everywhere") };
    let mut tx = db.begin().await?;
    let user = known(&mut tx, name).await?;
    sessions::delete_of_user(&mut tx, user.id).await?;
    note(&mut tx, ambient, by, "sign_out", &detail).await?;
    Ok(tx.commit(Commit::Account).await?)
}

/// Ends the session in which somebody signs out.
pub async fn sign_out(
    db: &Db,
    ambient: &Ambient,
    user: &UserRow,
    id: Uuid,
    by: &By<'_>,
) -> Result<(), AccountError> {
    let mut tx = db.begin().await?;
    if sessions::delete_one(&mut tx, user.id, id).await?.is_some() {
        note(&mut tx, ambient, by, "sign_out", "").await?;
        tx.commit(Commit::Account).await?;
    }
    Ok(())
}

fn theirs(name: &str, by: &By<'_>) -> Result<(), AccountError> {
    if is_own(name, by) { Ok(()) } else { permitted(by, Right::ManagePeople) }
}

fn is_own(name: &str, by: &By<'_>) -> bool {
    matches!(by.actor, Actor::Person { name: own, .. } if own == name)
}
