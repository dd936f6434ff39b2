//! A refusal leaves the ledger as it was.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::{Actor, Role, Scope};
use dead_letter_office::domain::dead_letter::Resolution;
use dead_letter_office::domain::verdict::VerdictKind;
use dead_letter_office::engine::actions::OverrideMode;
use uuid::Uuid;

use crate::support::app::{TestApp, person};
use crate::support::databases::{TestDatabase, on_both};

on_both!(an_error_writes_nothing_at_all, a_verdict_that_says_no_is_audited_and_changes_nothing_else);

/// One done, one that failed, one in doubt, one that waits for its next attempt.
async fn one_of_each(app: &mut TestApp) -> [Uuid; 4] {
    let done = app.submit("plain", "done").await;
    app.run_to_the_end().await;
    app.destination.script("/plain", [Behaviour::status(422)]);
    let failed = app.submit("plain", "failed").await;
    app.run_to_the_end().await;
    app.destination.script("/plain", [Behaviour::CloseAfterRead { effect: true }]);
    let doubtful = app.submit("plain", "doubtful").await;
    app.run_to_the_end().await;
    app.destination.script("/plain", [Behaviour::status(421)]);
    let waiting = app.submit("plain", "waiting").await;
    app.run_until_idle().await;
    [done, failed, doubtful, waiting]
}

async fn an_error_writes_nothing_at_all(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let all = one_of_each(&mut app).await;
    let letter = app.letter(all[1]).await.id;
    let before = app.raw().await.dump().await;
    let submitter = Actor::Token { name: "shop".into(), scope: Scope::Submit };
    let vera = person("vera", Role::Viewer);
    let anton = person("anton", Role::Approver);
    for actor in [&submitter, &vera] {
        app.replay_as(actor, all[1], "a").await.unwrap_err();
        app.override_as(actor, all[2], OverrideMode::NewEffect, "a").await.unwrap_err();
        app.resolve_as(actor, letter, Resolution::NotNeeded, None, "a").await.unwrap_err();
    }
    app.replay_as(&anton, Uuid::nil(), "a").await.unwrap_err();
    app.override_as(&anton, Uuid::nil(), OverrideMode::SameKey, "a").await.unwrap_err();
    app.resolve_as(&anton, Uuid::nil(), Resolution::NotNeeded, None, "a").await.unwrap_err();
    for id in ["", "a\nb", "\u{0}", &"x".repeat(201)] {
        app.replay_as(&anton, all[1], id).await.unwrap_err();
        app.resolve_as(&anton, letter, Resolution::NotNeeded, None, id).await.unwrap_err();
    }
    app.try_submit("plain", "failed", "{}").await.unwrap_err();
    let mut after = app.raw().await.dump().await;
    after.retain(|(table, _)| table != "events");
    let mut before = before;
    before.retain(|(table, _)| table != "events");
    assert_eq!(after, before);
    app.run_to_the_end().await;
}

async fn a_verdict_that_says_no_is_audited_and_changes_nothing_else(db: TestDatabase) {
    let mut app = TestApp::start(db).await;
    let [done, failed, doubtful, waiting] = one_of_each(&mut app).await;
    let ledger = async |app: &TestApp| {
        let mut dump = app.raw().await.dump().await;
        dump.retain(|(table, _)| !table.starts_with("audit") && table != "actions");
        dump
    };
    let before = ledger(&app).await;
    let asked = [
        (app.replay(done, "a").await.unwrap(), VerdictKind::AlreadyDone),
        (app.replay(doubtful, "b").await.unwrap(), VerdictKind::NeedsOverride),
        (app.replay(waiting, "c").await.unwrap(), VerdictKind::InFlight),
        (app.override_checks(done, OverrideMode::NewEffect, "d").await, VerdictKind::AlreadyDone),
        (app.override_checks(failed, OverrideMode::SameKey, "e").await, VerdictKind::Refused),
        (app.override_checks(waiting, OverrideMode::NewEffect, "f").await, VerdictKind::InFlight),
    ];
    for (verdict, wanted) in &asked {
        assert_eq!(verdict.verdict, *wanted, "{}", verdict.reason);
    }
    assert_eq!(ledger(&app).await, before);
    let counts = app.raw().await.counts().await;
    assert_eq!((counts["audit"], counts["audit_chain"], counts["actions"]), (6, 6, 6));
    app.run_to_the_end().await;
    assert_eq!(app.destination.effects().len(), 3);
}
