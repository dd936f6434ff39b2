//! Acceptance, the gate and the worker, on both databases.

mod accept;
mod answers;
mod approvals;
mod bulk;
mod caps;
mod carriers;
mod corrections;
mod doubt;
mod effects;
mod handling;
mod hostile;
mod leases;
mod lookups;
mod model;
mod overrides;
mod passed_over;
mod programs;
mod protect;
mod races;
mod refusals;
mod replays;
mod resolutions;
mod retention;
mod steps;
mod throttles;
