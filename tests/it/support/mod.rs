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
mod templates;
pub(crate) mod tree;
pub(crate) mod two_people;
mod verbs;
pub(crate) mod wire;

/// A setting that `tests/run` provides. Its absence fails the test: skipped tests pass unnoticed.
fn provided(name: &str) -> String {
    std::env::var(name).unwrap_or_else(|_| panic!("{name} is not set: run the tests with tests/run"))
}

/// Whether this is the inner loop, the runner's default profile: what is drawn by chance is drawn less
/// often there. Every other run is a whole one.
pub(crate) fn in_inner_loop() -> bool {
    std::env::var("NEXTEST_PROFILE").is_ok_and(|profile| profile == "default")
}

/// How many random lives a test leads that leads so many in a whole run: `DLO_TEST_LIVES` asks for more
/// than a usual run has time for.
pub(crate) fn lives(whole: u32) -> u32 {
    match std::env::var("DLO_TEST_LIVES") {
        Ok(count) => count.parse().expect("DLO_TEST_LIVES is a number"),
        Err(_) if in_inner_loop() => whole.div_ceil(4),
        Err(_) => whole,
    }
}
