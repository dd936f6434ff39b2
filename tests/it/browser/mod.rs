//! What only a browser can tell: pages as people see them, with and without scripts.

mod access;
mod desk;
mod harness;
mod hostile;
mod keyboard;
mod keys;
mod passkeys;
mod scene;
mod shots;
mod stage;
mod tasks;
