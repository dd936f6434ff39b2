//! The HTTP API.

mod audit;
mod bad_input;
mod claims;
mod corrections;
mod hooks;
mod refused_hooks;
