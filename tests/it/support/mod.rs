//! What tests stand on. No assertions about the product live here.

pub(crate) mod app;
pub(crate) mod axe;
pub(crate) mod browser;
pub(crate) mod databases;
pub(crate) mod desk;
pub(crate) mod hooks;
pub(crate) mod keyboard;
pub(crate) mod ledger;
pub(crate) mod phone;
pub(crate) mod provider;
pub(crate) mod routes;
pub(crate) mod served;
pub(crate) mod tables;
pub(crate) mod tree;
pub(crate) mod two_people;
mod verbs;
pub(crate) mod wire;

/// A setting that `tests/run` provides. Its absence fails the test: skipped tests pass unnoticed.
fn provided(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with tests/run"))
}
