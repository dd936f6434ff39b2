//! The desk's pages, doors and forms, on both databases.

mod approvals;
mod cards;
mod correcting;
mod csrf;
mod doors;
mod erased;
mod forms;
mod handling;
mod harmless;
mod headers;
mod lists;
mod overrides;
mod people;
mod rights;
mod sessions;
mod triage;
