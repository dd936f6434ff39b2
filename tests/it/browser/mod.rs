//! What only a browser can tell: pages as people see them, with and without scripts.

mod desk;
mod harness;
mod keys;
mod shots;
