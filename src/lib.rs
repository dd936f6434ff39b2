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
//! * [`web`]: the desk's pages.

pub mod domain;
pub mod web;
