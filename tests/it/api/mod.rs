//! The HTTP API.

mod bad_input;
mod claims;
mod hooks;
mod refused_hooks;
