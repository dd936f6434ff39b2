//! The statements, on both databases: what lists show, and what is kept beside the ledger.

mod lists;
mod migrations;
mod records;
