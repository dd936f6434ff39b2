//! The two things no function may make up for itself: the time and chance.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rand::rngs::StdRng;
use rand::{Rng, RngExt, SeedableRng};
use uuid::Uuid;

use super::time::{Clock, SystemClock, Timestamp};

/// A clock and a source of randomness, shared by a process.
#[derive(Clone)]
pub struct Ambient {
    clock: Arc<dyn Clock>,
    rng: Arc<Mutex<StdRng>>,
    /// Milliseconds and counter of the last id.
    last_id: Arc<Mutex<(u64, u16)>>,
}

impl Ambient {
    /// The machine's clock and its random numbers.
    pub fn system() -> Self {
        Self::new(Arc::new(SystemClock), StdRng::from_rng(&mut rand::rng()))
    }

    /// Any clock, any generator. Tokens come from it too: outside tests it must be seeded by the
    /// operating system.
    pub fn new(clock: Arc<dyn Clock>, rng: StdRng) -> Self {
        Self { clock, rng: Arc::new(Mutex::new(rng)), last_id: Arc::default() }
    }

    /// The present moment.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// An id that sorts by the time it was made: UUIDv7, whose twelve bits behind the millisecond
    /// count on, so that the ids of one process sort in the order in which they were made.
    pub fn id(&self) -> Uuid {
        let now = u64::try_from(self.now().as_micros() / 1_000).unwrap_or(0);
        let mut random = [0; 10];
        self.fill(&mut random);
        let (millis, count) = {
            let mut last = self.last_id.lock().unwrap_or_else(PoisonError::into_inner);
            *last = match *last {
                (millis, count) if now <= millis && count < 0x0fff => (millis, count + 1),
                (millis, _) if now <= millis => (millis + 1, 0),
                _ => (now, 0),
            };
            *last
        };
        random[..2].copy_from_slice(&count.to_be_bytes());
        uuid::Builder::from_unix_timestamp_millis(millis, &random).into_uuid()
    }

    /// A UUID that tells nothing: what a destination sees as our key.
    pub fn opaque(&self) -> Uuid {
        let mut random = [0; 16];
        self.fill(&mut random);
        uuid::Builder::from_random_bytes(random).into_uuid()
    }

    /// 256 random bits, for a token or a session.
    pub fn secret(&self) -> [u8; 32] {
        let mut random = [0; 32];
        self.fill(&mut random);
        random
    }

    /// A span chosen evenly from zero to `most`.
    pub fn up_to(&self, most: Duration) -> Duration {
        let micros = u64::try_from(most.as_micros()).unwrap_or(u64::MAX);
        Duration::from_micros(self.lock().random_range(0..=micros))
    }

    fn fill(&self, bytes: &mut [u8]) {
        self.lock().fill_bytes(bytes);
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, StdRng> {
        self.rng.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for Ambient {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Ambient").field("now", &self.now()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::domain::time::TestClock;

    #[test]
    fn ids_sort_in_the_order_in_which_they_were_made() {
        let clock = Arc::new(TestClock::at(Timestamp::from_micros(1_796_000_000_000_000)));
        let ambient = Ambient::new(clock.clone(), StdRng::seed_from_u64(1));
        let mut made: Vec<Uuid> = (0..10_000).map(|_| ambient.id()).collect();
        clock.advance(Duration::from_mins(1));
        made.push(ambient.id());
        assert!(made.is_sorted_by(|a, b| a < b));
        assert!(made.iter().all(|id| id.get_version_num() == 7));
    }
}
