//! The HTTP API.

mod audit;
mod bad_input;
mod bulk;
mod claims;
mod corrections;
mod filters;
mod hooks;
mod refused_hooks;
