//! Slows down whoever guesses: after a few tries each further one has to wait longer. Nobody is shut
//! out for good, and a name that does not exist is treated as one that does. All nodes count
//! together, in the database.

use std::net::IpAddr;
use std::time::Duration;

use ring::hmac;

use super::AccountError;
use crate::domain::address::network;
use crate::domain::ambient::Ambient;
use crate::domain::time::Timestamp;
use crate::store::tries::{self, TriesRow};
use crate::store::{Commit, Db, StoreError};

/// Tries at one name before the first wait.
const FREE_BY_NAME: i64 = 5;
/// Tries from one address before the first wait: a whole company may share one.
const FREE_BY_ADDRESS: i64 = 50;
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// Tries are forgotten after this long without another.
const REMEMBERED: Duration = Duration::from_mins(15);

/// What is tried. Each is counted apart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum What {
    /// A password, at the door or to confirm who sits there.
    Password,
    /// A code of a second factor.
    Code,
}

/// One try.
#[derive(Clone, Copy, Debug)]
pub struct Try<'a> {
    /// At what.
    pub what: What,
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
    for (key, free) in &keys {
        let row = tries::lock(&mut tx, key, now, now.minus(REMEMBERED)).await?;
        wait = wait.max(pause(row, *free, now));
    }
    if !wait.is_zero() {
        tx.undo().await?;
        return Err(AccountError::Later(wait));
    }
    for (key, _) in &keys {
        tries::count(&mut tx, key, now).await?;
    }
    Ok(tx.commit(Commit::Tries).await?)
}

/// Takes a try back that was right, and what was tried at its name before.
pub async fn succeeded(db: &Db, it: &Try<'_>) -> Result<(), AccountError> {
    let [(name, _), (address, _)] = it.keys(db)?;
    let mut tx = db.begin().await?;
    tries::forget(&mut tx, &name).await?;
    tries::take_back(&mut tx, &address).await?;
    Ok(tx.commit(Commit::Tries).await?)
}

/// How long to wait before one more try.
fn pause(row: TriesRow, free: i64, now: Timestamp) -> Duration {
    let Ok(over) = u32::try_from(row.count - free) else { return Duration::ZERO };
    let pause = Duration::from_secs(1_u64 << over.min(10)).min(LONGEST);
    row.last_at.plus(pause).since(now)
}

impl Try<'_> {
    /// The keys under which it is counted, with how many tries each has before it waits.
    fn keys(&self, db: &Db) -> Result<[(Vec<u8>, i64); 2], StoreError> {
        let key = hmac::Key::new(hmac::HMAC_SHA256, &db.keyring()?.current().derive("sign-in tries"));
        let what = match self.what {
            What::Password => "password",
            What::Code => "code",
        };
        let of = |kind: &str, text: &str| {
            hmac::sign(&key, format!("{what} {kind} {text}").as_bytes()).as_ref().to_vec()
        };
        // Where it comes over no connection, the word that stands for that.
        let address = self
            .address
            .parse()
            .map_or_else(|_| self.address.to_owned(), |address: IpAddr| network(address).to_string());
        Ok([(of("name", self.name), FREE_BY_NAME), (of("address", &address), FREE_BY_ADDRESS)])
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
