//! The HTTP API.

mod audit;
mod bad_input;
mod bulk;
mod claims;
mod corrections;
mod hooks;
mod refused_hooks;
