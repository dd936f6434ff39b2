//! Slows down whoever guesses passwords: after a few tries each further one has to wait longer.
//! Nobody is shut out for good, and a name that does not exist is treated as one that does.

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use crate::accounts::hash_secret;
use crate::domain::time::Timestamp;

/// Tries at one name before the first wait.
const FREE_BY_NAME: u32 = 5;
/// Tries from one address before the first wait: a whole company may share one.
const FREE_BY_ADDRESS: u32 = 50;
/// The longest wait.
const LONGEST: Duration = Duration::from_mins(1);
/// Tries are forgotten after this long without another.
const REMEMBERED: Duration = Duration::from_mins(15);
/// Names and addresses remembered at once.
const MOST: usize = 20_000;

#[derive(Clone, Copy)]
struct Tries {
    count: u32,
    last: Timestamp,
}

impl Tries {
    fn wait(&self, free: u32, now: Timestamp) -> Duration {
        let Some(over) = self.count.checked_sub(free) else { return Duration::ZERO };
        let pause = Duration::from_secs(1_u64 << over.min(10)).min(LONGEST);
        self.last.plus(pause).since(now)
    }
}

/// The tries of a process. Each process counts its own.
#[derive(Clone, Default)]
pub struct Throttle(Arc<Mutex<HashMap<[u8; 32], Tries>>>);

impl fmt::Debug for Throttle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Throttle")
    }
}

impl Throttle {
    /// Counts a try before it is made, so that many at once are many; or how long to wait first.
    pub fn begin(&self, name: &str, address: &str, now: Timestamp) -> Result<(), Duration> {
        let keys = keys(name, address);
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if known.len() >= MOST {
            known.retain(|_, tries| now.since(tries.last) < REMEMBERED);
        }
        let tries =
            keys.map(|(key, _)| known.get(&key).copied().filter(|tries| now.since(tries.last) < REMEMBERED));
        let waits = tries.iter().zip(&keys).filter_map(|(tries, (_, free))| Some((*tries)?.wait(*free, now)));
        let wait = waits.max().unwrap_or_default();
        if !wait.is_zero() {
            return Err(wait);
        }
        for ((key, _), tries) in keys.into_iter().zip(tries) {
            let count = tries.map_or(0, |tries| tries.count).saturating_add(1);
            if known.len() < MOST || known.contains_key(&key) {
                known.insert(key, Tries { count, last: now });
            }
        }
        Ok(())
    }

    /// Takes a try back that was right.
    pub fn succeeded(&self, name: &str, address: &str) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [(name, _), (address, _)] = keys(name, address);
        known.remove(&name);
        if let Some(tries) = known.get_mut(&address) {
            tries.count = tries.count.saturating_sub(1);
        }
    }
}

fn keys(name: &str, address: &str) -> [([u8; 32], u32); 2] {
    [
        (hash_secret(&format!("name {name}")), FREE_BY_NAME),
        (hash_secret(&format!("address {address}")), FREE_BY_ADDRESS),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: u64) -> Timestamp {
        Timestamp::from_micros(0).plus(Duration::from_secs(seconds))
    }

    #[test]
    fn waits_grow_and_end() {
        let throttle = Throttle::default();
        for _ in 0..FREE_BY_NAME {
            throttle.begin("olga", "::1", at(0)).unwrap();
        }
        let mut now = 0;
        for wait in [1, 2, 4, 8, 16, 32, 60, 60] {
            let told = throttle.begin("olga", "::1", at(now)).unwrap_err();
            assert_eq!(told, Duration::from_secs(wait));
            now += wait;
            throttle.begin("olga", "::1", at(now)).unwrap();
        }
        throttle.begin("otto", "::1", at(now)).unwrap();
        now += REMEMBERED.as_secs();
        for _ in 0..FREE_BY_NAME {
            throttle.begin("olga", "::1", at(now)).unwrap();
        }
    }

    #[test]
    fn one_address_cannot_try_many_names() {
        let throttle = Throttle::default();
        for n in 0..FREE_BY_ADDRESS {
            throttle.begin(&format!("name {n}"), "::1", at(0)).unwrap();
        }
        assert!(throttle.begin("another", "::1", at(0)).is_err());
        assert!(throttle.begin("another", "::2", at(0)).is_ok());
    }

    #[test]
    fn those_who_know_their_password_never_wait() {
        let throttle = Throttle::default();
        for _ in 0..1_000 {
            throttle.begin("olga", "::1", at(0)).unwrap();
            throttle.succeeded("olga", "::1");
        }
    }
}
