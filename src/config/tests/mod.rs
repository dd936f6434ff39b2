//! Whole files in, configurations or mistakes out.
