//! The seeded simulation: the real acceptance, gate and worker of several nodes on one database,
//! against a destination that misbehaves within its contract, on a clock that jumps, with nodes that
//! are killed at any await and frozen in mid-send.
//!
//! A life is led by its seed alone. A usual run leads a fixed set; `DLO_SIM_SEED=n` leads one again
//! and prints what happened in it, `DLO_SIM_SEEDS=n` leads so many.

mod destination;
mod faults;
mod judge;
mod life;
mod node;
mod people;
mod tests;
mod world;
