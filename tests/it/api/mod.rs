//! The HTTP API.

mod bad_input;
mod hooks;
mod refused_hooks;
