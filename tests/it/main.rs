//! Every test that needs more than the library: a database, a browser, a process.
//!
//! `tests/run` installs and starts what they need; without it they fail rather than pass unasked.

mod support;

mod accounts;
mod api;
mod browser;
mod databases;
mod desk;
mod engine;
mod layers;
mod process;
mod store;
