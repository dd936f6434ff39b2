//! What a start puts on record: that it has other settings or another secret key than the last one;
//! and how a chain begins where there are entries already.

use std::collections::BTreeSet;

use crate::config::Config;
use crate::domain::ambient::Ambient;
use crate::store::audit::{self, AuditRow};
use crate::store::settings::Digests;
use crate::store::{Commit, Db, StoreError, chain, settings};

/// Settings that one entry names at most.
const NAMED: usize = 40;

/// Puts it on record where anything changed.
pub async fn started(
    db: &Db,
    config: &Config,
    ambient: &Ambient,
    actor: &str,
    origin: &str,
) -> Result<(), StoreError> {
    let keyring = db.keyring()?;
    let key = keyring.current();
    let entry = |action: &str, subject: &str, detail: String| AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: actor.to_owned(),
        action: action.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some(subject.to_owned()),
        reason: None,
        result: "done".to_owned(),
        detail,
        origin: origin.to_owned(),
    };
    let mut tx = db.begin().await?;
    let before = chain::head(&mut tx).await?.map(|head| head.key_id);
    if let Some(before) = before.filter(|before| *before != key.id()) {
        let detail = format!("from {before} to {}; older entries are verified with the older key", key.id());
        audit::insert(&mut tx, &entry("key_change", "secret key", detail)).await?;
    }
    let now = config.stated.digests(key);
    let detail = match settings::seen(&mut tx).await? {
        None => Some(format!("{} settings, seen for the first time", now.len())),
        Some((key_id, before)) => match keyring.named(&key_id) {
            Some(then) => difference(&before, &config.stated.digests(then)),
            None => Some(format!(
                "{} settings; what changed cannot be told without the secret key {key_id}",
                now.len()
            )),
        },
    };
    settings::replace(&mut tx, &key.id(), &now).await?;
    if let Some(detail) = detail {
        audit::insert(&mut tx, &entry("config_change", "settings", detail)).await?;
    }
    tx.commit(Commit::Action).await
}

/// Begins the chain of an audit that has entries and none, on somebody's word; how many entries it
/// vouches for from now on.
pub async fn adopt(
    db: &Db,
    ambient: &Ambient,
    actor: &str,
    origin: &str,
    reason: &str,
) -> Result<i64, StoreError> {
    let by = AuditRow {
        id: ambient.id(),
        at: ambient.now(),
        actor: actor.to_owned(),
        action: chain::BEGIN.to_owned(),
        operation_id: None,
        dead_letter_id: None,
        subject: Some("audit".to_owned()),
        reason: Some(reason.to_owned()),
        result: "done".to_owned(),
        detail: String::new(),
        origin: origin.to_owned(),
    };
    let mut tx = db.begin().await?;
    let count = chain::adopt(&mut tx, by).await?;
    tx.commit(Commit::Action).await?;
    Ok(count)
}

/// What differs, by name; absent when nothing does.
fn difference(before: &Digests, now: &Digests) -> Option<String> {
    let names: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
    let told: Vec<String> = names
        .into_iter()
        .filter_map(|name| match (before.get(name), now.get(name)) {
            (Some(old), Some(new)) if old == new => None,
            (Some(_), Some(_)) => Some(format!("{name} changed")),
            (None, _) => Some(format!("{name} is new")),
            (_, None) => Some(format!("{name} is gone")),
        })
        .collect();
    let more = told.len().saturating_sub(NAMED);
    let mut text = told.iter().take(NAMED).map(String::as_str).collect::<Vec<_>>().join(", ");
    if more > 0 {
        text = format!("{text}, and {more} more");
    }
    (!told.is_empty()).then_some(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_named_and_counted() {
        let settings = |pairs: &[(&str, u8)]| -> Digests {
            pairs.iter().map(|(name, value)| ((*name).to_owned(), vec![*value])).collect()
        };
        let before = settings(&[("a", 1), ("b", 1), ("c", 1)]);
        assert_eq!(difference(&before, &before), None);
        assert_eq!(
            difference(&before, &settings(&[("a", 1), ("b", 2), ("d", 1)])).as_deref(),
            Some("b changed, c is gone, d is new")
        );
        let many: Vec<String> = (0..50).map(|n| format!("n{n:02}")).collect();
        let many: Vec<(&str, u8)> = many.iter().map(|name| (name.as_str(), 1)).collect();
        let told = difference(&Digests::new(), &settings(&many)).unwrap();
        assert!(told.starts_with("n00 is new, ") && told.ends_with("n39 is new, and 10 more"), "{told}");
    }
}
