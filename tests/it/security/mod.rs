//! What an auditor asks for, row by row: each file is named after what it is about. Rows that are
//! proved elsewhere: text from outside is never markup, `desk::harmless`; signed webhooks,
//! `api::hooks` and `domain::webhook`; layers that cannot send, `layers`.

mod audit;
mod audit_watch;
mod csp_and_headers;
mod csrf;
mod erasure;
mod errors;
mod hostile_input;
mod inbound_limits;
mod output;
mod passkeys;
mod passwords;
mod private_values;
mod reset;
mod roles;
mod second_factor;
mod secrets_at_rest;
mod sessions;
mod sign_in_throttling;
mod sso;
mod ssrf;
mod step_up;
mod step_up_and_two_people;
