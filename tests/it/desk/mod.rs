//! The desk's doors and forms, on both databases.

mod csrf;
mod doors;
mod forms;
mod headers;
mod overrides;
mod people;
mod rights;
mod sessions;
