//! Acceptance, the gate and the worker, on both databases.

mod effects;
