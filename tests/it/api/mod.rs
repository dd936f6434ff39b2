//! The HTTP API.

mod bad_input;
mod corrections;
mod hooks;
mod refused_hooks;
