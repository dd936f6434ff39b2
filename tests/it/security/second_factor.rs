//! MFA: codes of an app, recovery codes, the half-open door, and a fresh sign-in with both factors.

mod coming_and_going;
mod demanded;
mod sign_in;

use std::time::Duration;

use crate::support::desk::{Desk, Person, Reply};

const MINUTE: Duration = Duration::from_mins(1);

/// What the audit says about signing in and second factors, oldest first: action, result, detail.
async fn on_record(desk: &Desk, person: &str) -> Vec<(String, String, String)> {
    let rows = desk.app.on_record().await.into_iter();
    rows.filter(|row| row.actor == person).map(|row| (row.action, row.result, row.detail)).collect()
}

fn last(rows: &[(String, String, String)]) -> (&str, &str, &str) {
    let (action, result, detail) = rows.last().expect("something is on record");
    (action, result, detail)
}

impl Person<'_> {
    async fn gives(&mut self, code: &str) -> Reply {
        self.post_bare("/login/second", &[("code", code)]).await
    }
}
