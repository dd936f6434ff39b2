//! What stands in the tables, for tests that say that nothing was changed.

use super::app::TestApp;

/// Every row of every table.
pub(crate) async fn everything(app: &TestApp) -> Vec<(String, String)> {
    let mut rows = app.raw().await.dump().await;
    rows.sort();
    rows
}

/// The same without what a refused try may write: a session's and a token's last use, and how often
/// somebody tried.
pub(crate) async fn business(app: &TestApp) -> Vec<(String, String)> {
    let mut rows = everything(app).await;
    rows.retain(|(table, _)| !["sessions", "tokens", "tries"].contains(&table.as_str()));
    rows
}
