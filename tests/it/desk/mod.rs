//! The desk's pages, doors and forms, on both databases.

mod audit_export;
mod cards;
mod csrf;
mod destination;
mod doors;
mod erased;
mod evidence;
mod forms;
mod harmless;
mod headers;
mod large;
mod lists;
mod overrides;
mod people;
mod rights;
mod sessions;
mod sizes;
mod triage;
mod types;
mod zones;
