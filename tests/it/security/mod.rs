//! What an auditor asks for, row by row: each file is named after what it is about. Rows that are
//! proved elsewhere: text from outside is never markup, `desk::harmless`; signed webhooks,
//! `api::hooks` and `domain::webhook`; layers that cannot send, `layers`.

mod csp_and_headers;
mod csrf;
mod roles;
mod sessions;
mod sso;
