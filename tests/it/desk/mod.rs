//! The desk's pages, doors and forms, on both databases.

mod bulk;
mod cards;
mod causes;
mod csrf;
mod doors;
mod erased;
mod forms;
mod harmless;
mod headers;
mod lists;
mod live;
mod overrides;
mod people;
mod rights;
mod sessions;
mod ticks;
mod triage;
mod views;
