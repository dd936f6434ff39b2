//! The ledger against a small model of it: whatever is submitted, taken, settled, swept, asked,
//! replayed, overridden or resolved, in whatever order, the two agree.

mod agreement;
mod model;
mod system;
