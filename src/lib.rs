//! Dead Letter Office: carries out operations on other people's systems under idempotency keys,
//! tells *failed* from *may have happened*, keeps what fails as dead letters, and gives support
//! staff a desk to settle them.
//!
//! # The house
//!
//! Each layer imports only what stands left of it; a test reads the imports.
//!
//! ```text
//! domain <- store <- gate <- engine <- web, cli
//! ```
//!
//! * [`domain`]: values and decisions, without IO, clock or chance.
//! * [`config`]: `dlo.toml`, validated whole; beside the domain.
//! * [`store`]: the database and every statement but the ledger's writes.
//! * [`gate`]: the key check that every send passes, and the ledger.
//! * [`engine`]: acceptance, the worker, the one outbound request, people's actions.
//! * [`accounts`]: people, one-time links and tokens.
//! * [`web`]: the desk and the HTTP API.
//! * [`cli`]: the command line; nothing imports it.
//! * [`demo`]: a shop that meets every failure, and the destination that fails it; for tests too.
//! * [`drill`]: the promises shown at work at a destination, with a dated report.
//! * [`telemetry`]: what the process tells its operator.

// First, since its macro for words serves the others.
#[macro_use]
pub mod domain;

pub mod accounts;
pub mod cli;
pub mod config;
pub mod demo;
pub mod drill;
pub mod engine;
pub mod gate;
pub mod store;
pub mod telemetry;
pub mod web;
