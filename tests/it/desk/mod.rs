//! The desk's pages, doors and forms, on both databases.

mod bulk;
mod audit_export;
mod cards;
mod causes;
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
mod live;
mod overrides;
mod people;
mod rights;
mod sessions;
mod sizes;
mod ticks;
mod triage;
mod types;
mod views;
mod zones;
