//! How many connections may be open. Every address may take a share of what is free, so that the
//! more are taken, the less each further one gets: a flood from a few addresses is refused more and
//! more, and always leaves room for somebody else.

use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::domain::network::network;

/// An address may hold this share of what it and nobody else has: one in so many.
const SHARE: usize = 2;
/// As many as an address may always hold while there are any: a browser opens six.
const ALWAYS: usize = 6;

/// The places there are.
#[derive(Clone, Debug)]
pub(super) struct Room {
    most: usize,
    taken: Arc<Mutex<Taken>>,
}

#[derive(Debug, Default)]
struct Taken {
    all: usize,
    by_address: HashMap<IpAddr, usize>,
}

/// One connection's place; given back when it is dropped.
#[derive(Debug)]
pub(super) struct Seat {
    room: Room,
    address: IpAddr,
}

impl Room {
    pub(super) fn new(most: usize) -> Self {
        Self { most, taken: Arc::default() }
    }

    /// A place for a connection from an address; `None` when it has its share. A proxy, whose
    /// address is that of many, has no share.
    pub(super) fn take(&self, address: IpAddr, is_proxy: bool) -> Option<Seat> {
        let address = network(address);
        let mut taken = self.lock();
        let held = taken.by_address.get(&address).copied().unwrap_or(0);
        let free = self.most.saturating_sub(taken.all);
        let share = ((free + held) / SHARE).max(ALWAYS);
        if free == 0 || (!is_proxy && held >= share) {
            return None;
        }
        taken.all += 1;
        *taken.by_address.entry(address).or_default() += 1;
        drop(taken);
        Some(Seat { room: self.clone(), address })
    }

    fn lock(&self) -> MutexGuard<'_, Taken> {
        self.taken.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        let mut taken = self.room.lock();
        taken.all -= 1;
        if let Some(held) = taken.by_address.get_mut(&self.address) {
            *held -= 1;
            if *held == 0 {
                taken.by_address.remove(&self.address);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn fill(room: &Room, address: &str) -> Vec<Seat> {
        let address = address.parse().unwrap();
        std::iter::from_fn(|| room.take(address, false)).collect()
    }

    #[test]
    fn each_further_address_gets_less_and_somebody_else_always_gets_in() {
        let room = Room::new(512);
        let mut held = Vec::new();
        let mut counts = Vec::new();
        for n in 0..40 {
            let seats = fill(&room, &format!("192.0.2.{n}"));
            counts.push(seats.len());
            held.extend(seats);
        }
        assert_eq!(counts[..6], [256, 128, 64, 32, 16, 8]);
        assert!(counts.windows(2).all(|two| two[0] >= two[1]), "{counts:?}");
        assert_eq!(held.len(), 512, "what there is, and no more");
        drop(held.drain(..10));
        assert_eq!(fill(&room, "198.51.100.1").len(), 6);
        drop(held);
        assert_eq!(fill(&room, "198.51.100.1").len(), 256, "all were given back");
        assert!(room.lock().by_address.is_empty());
    }

    #[test]
    fn one_holder_of_a_v6_network_is_one_address_and_a_proxy_is_many() {
        let room = Room::new(100);
        let _first = fill(&room, "2001:db8:1:2::1");
        assert!(fill(&room, "2001:db8:1:2:ffff::9").is_empty());
        assert!(!fill(&room, "2001:db8:1:3::1").is_empty());
        let room = Room::new(100);
        let proxy: IpAddr = "10.0.0.1".parse().unwrap();
        let seats: Vec<Seat> = std::iter::from_fn(|| room.take(proxy, true)).take(200).collect();
        assert_eq!(seats.len(), 100);
        let room = Room::new(100);
        let _first = fill(&room, "192.0.2.1");
        assert!(fill(&room, "::ffff:192.0.2.1").is_empty(), "the same one");
    }
}
