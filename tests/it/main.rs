//! Every test that needs more than the library: a database, a browser, a process.
//!
//! `tests/run` installs and starts what they need; without it they fail rather than pass unasked.

#![allow(
    clippy::pedantic,
    reason = "tests read from top to bottom, as prose; the product's code keeps these lints"
)]
#![allow(clippy::type_complexity, reason = "a table of cases is a type of its own, used once")]

mod support;

mod accounts;
mod api;
mod browser;
mod databases;
mod desk;
mod engine;
mod layers;
mod ledger;
mod process;
mod security;
mod sim;
mod store;
