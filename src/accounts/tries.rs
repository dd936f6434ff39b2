//! Slows down whoever guesses: after a few tries each further one has to wait longer. Nobody is shut
//! out for good, and a name that does not exist is treated as one that does. All nodes count
//! together, in the database.
//!
//! Passwords at the door are guessed by anybody, so that they are counted tightly only for a name and
//! a network together: whoever guesses makes themselves wait, and not the one whose name it is. What
//! needs a password first, or a session, is counted by person, wherever they are.

use std::net::IpAddr;
use std::time::Duration;

use ring::hmac;

use super::{AccountError, Purpose};
use crate::domain::address::network;
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::store::tries::{self, TriesRow};
use crate::store::{Commit, Db, StoreError};

/// Tries at one name before the first wait: from one network, or by whoever is through a first door.
const FREE_BY_NAME: i64 = 5;
/// Tries from one address before the first wait: a whole company may share one.
const FREE_BY_ADDRESS: i64 = 50;
/// Tries at one name from everywhere before the first wait: many networks that guess together.
const FREE_EVERYWHERE: i64 = 100;
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// Tries are forgotten after this long without another.
const REMEMBERED: Duration = Duration::from_mins(15);

/// What is tried. Each is counted apart, and apart for each purpose.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A password.
    Password,
    /// A code of a second factor.
    Code,
}

/// One try.
#[derive(Clone, Copy, Debug)]
pub struct Try<'a> {
    /// At what.
    pub what: What,
    /// What for. To confirm somebody needs the session that they are in.
    pub purpose: Purpose,
    /// The account's name as it was typed: perhaps nobody's, perhaps a password.
    pub name: &'a str,
    /// From where.
    pub address: &'a str,
}

/// Counts a try before it is made, so that many at once are many. [`AccountError::Later`] says how
/// long to wait first; such a try is not counted and must not be made.
pub async fn begin(db: &Db, ambient: &Ambient, it: &Try<'_>) -> Result<(), AccountError> {
    let now = ambient.now();
    let keys = it.keys(db)?;
    let mut tx = db.begin().await?;
    let mut wait = Duration::ZERO;
    // Always in this order, so that no two tries wait for each other.
    for counted in &keys {
        let row = tries::lock(&mut tx, &counted.key, now, now.minus(REMEMBERED)).await?;
        wait = wait.max(pause(row, counted.free, now));
    }
    if !wait.is_zero() {
        tx.undo().await?;
        return Err(AccountError::Later(wait));
    }
    for counted in &keys {
        tries::count(&mut tx, &counted.key, now).await?;
    }
    Ok(tx.commit(Commit::Tries).await?)
}

/// Takes a try back that was right, and what the same one tried at its name before. What others
/// tried there counts on.
pub async fn succeeded(db: &Db, it: &Try<'_>) -> Result<(), AccountError> {
    let keys = it.keys(db)?;
    let mut tx = db.begin().await?;
    for counted in &keys {
        if counted.own {
            tries::forget(&mut tx, &counted.key).await?;
        } else {
            tries::take_back(&mut tx, &counted.key).await?;
        }
    }
    Ok(tx.commit(Commit::Tries).await?)
}

/// One of the counts that a try is in.
struct Counted {
    key: Vec<u8>,
    /// Tries before the first wait.
    free: i64,
    /// It counts those who try as this one does, and nobody else.
    own: bool,
}

/// How long to wait before one more try.
fn pause(row: TriesRow, free: i64, now: Timestamp) -> Duration {
    let Ok(over) = u32::try_from(row.count - free) else { return Duration::ZERO };
    let pause = Duration::from_secs(1_u64 << over.min(10)).min(LONGEST);
    row.last_at.plus(pause).since(now)
}

impl Try<'_> {
    /// Where it is counted.
    fn keys(&self, db: &Db) -> Result<Vec<Counted>, StoreError> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &db.keyring()?.current().derive("sign-in tries"));
        let what = match self.what {
            What::Password => "password",
            What::Code => "code",
        };
        let from = match self.address.parse::<IpAddr>() {
            Ok(address) => network(address).to_string(),
            Err(_) => self.address.to_owned(),
        };
        let of = |kind: &str, texts: &[&str], free, own| {
            // No kind begins another, and no address has a space: no two are one.
            let text = format!("{what} {kind} {}", texts.join(" "));
            Counted { key: hmac::sign(&key, text.as_bytes()).as_ref().to_vec(), free, own }
        };
        let by_name = |kind| of(kind, &[self.name], FREE_BY_NAME, true);
        let by_address = || of("address", &[&from], FREE_BY_ADDRESS, false);
        Ok(match (self.purpose, self.what) {
            (Purpose::Confirm, _) => vec![by_name("confirm")],
            (Purpose::SignIn, What::Code) => vec![by_name("name"), by_address()],
            (Purpose::SignIn, What::Password) => vec![
                of("pair", &[&from, self.name], FREE_BY_NAME, true),
                of("name", &[self.name], FREE_EVERYWHERE, false),
                by_address(),
            ],
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn waits_grow_up_to_a_minute_and_end() {
        let last_at = Timestamp::from_micros(0).plus(Duration::from_hours(1));
        let wait = |count| pause(TriesRow { count, last_at }, FREE_BY_NAME, last_at).as_secs();
        let waits: Vec<u64> = [0, 4, 5, 6, 7, 8, 9, 10, 11, 12, 1_000_000].map(wait).into();
        assert_eq!(waits, [0, 0, 1, 2, 4, 8, 16, 32, 60, 60, 60]);
        let later = last_at.plus(LONGEST);
        assert_eq!(pause(TriesRow { count: i64::MAX, last_at }, FREE_BY_NAME, later), Duration::ZERO);
    }
}
