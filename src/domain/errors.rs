//! Errors in full, for logs and records.

use std::error::Error;
use std::iter::successors;

/// An error with its causes, the outermost first.
pub fn with_causes(error: &dyn Error) -> String {
    let causes = successors(error.source(), |cause| (*cause).source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
