//! The desk's pages, doors and forms, on both databases.

mod approvals;
mod audit_export;
mod bulk;
mod cards;
mod causes;
mod correcting;
mod destination;
mod doors;
mod erased;
mod evidence;
mod forms;
mod handling;
mod harmless;
mod large;
mod lists;
mod live;
mod masks;
mod overrides;
mod people;
mod sizes;
mod ticks;
mod triage;
mod typed;
mod types;
mod views;
mod zones;
