//! The HTTP API.

mod bad_input;
