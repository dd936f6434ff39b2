//! The lives that are led.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Instant;

use super::life::Life;
use super::node::Base;
use super::world::World;

/// Turns of one life.
const TURNS: usize = 32;

/// Says which life a panic ended, and what had happened in it.
struct Chronicler {
    seed: u64,
    world: Arc<World>,
    aloud: bool,
}

impl Drop for Chronicler {
    fn drop(&mut self) {
        if thread::panicking() || self.aloud {
            for line in self.world.chronicle() {
                eprintln!("{line}");
            }
        }
        if thread::panicking() {
            eprintln!("This was seed {}: DLO_SIM_SEED={} leads that life again.", self.seed, self.seed);
        }
    }
}

/// Leads one life; what happened in it.
fn lead(seed: u64, sqlite: bool, aloud: bool) -> Vec<String> {
    let world = Arc::new(World::new(seed));
    let chronicler = Chronicler { seed, world: Arc::clone(&world), aloud };
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(async {
        let base = Base::new(sqlite).await;
        Life::begin(base, Arc::clone(&world), seed).await.lead(TURNS).await;
    });
    drop(chronicler);
    world.chronicle()
}

fn asked(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(text.parse().unwrap_or_else(|_| panic!("{name} is a number")))
}

/// Leads the lives of all seeds from zero, two at a time.
fn lead_all(count: u64, sqlite: bool) {
    if let Some(seed) = asked("DLO_SIM_SEED") {
        lead(seed, sqlite, true);
        return;
    }
    let (next, began) = (AtomicU64::new(0), Instant::now());
    thread::scope(|scope| {
        let leader = || {
            loop {
                let seed = next.fetch_add(1, Ordering::Relaxed);
                if seed >= count {
                    return;
                }
                lead(seed, sqlite, false);
            }
        };
        let leaders = [scope.spawn(leader), scope.spawn(leader)];
        for leader in leaders {
            if let Err(panic) = leader.join() {
                std::panic::resume_unwind(panic);
            }
        }
    });
    let minutes = began.elapsed().as_secs_f64() / 60.0;
    eprintln!("{count} lives, {:.0} a minute", count as f64 / minutes);
}

#[test]
fn every_promise_is_kept_on_sqlite() {
    lead_all(asked("DLO_SIM_SEEDS").unwrap_or(200), true);
}

#[test]
fn every_promise_is_kept_on_postgres() {
    lead_all(asked("DLO_SIM_SEEDS").map_or(12, |count| count / 50), false);
}

/// A seed that did not lead the same life again would be of no use to whoever looks for the cause.
#[test]
fn a_seed_leads_the_same_life_again() {
    for seed in [3, 7, 11] {
        let (first, second) = (lead(seed, true, false), lead(seed, true, false));
        let differs = first.iter().zip(&second).find(|(first, second)| first != second);
        assert_eq!(differs, None, "seed {seed}");
        assert_eq!(first.len(), second.len(), "seed {seed}");
    }
}
