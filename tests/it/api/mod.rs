//! The HTTP API.

mod bad_input;
mod corrections;
