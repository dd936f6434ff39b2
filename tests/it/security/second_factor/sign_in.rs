//! The code behind the password, and what half a sign-in opens: nothing.

use std::time::Duration;

use dead_letter_office::accounts;
use dead_letter_office::domain::actor::Role;

use super::{MINUTE, last, on_record};
use crate::support::app::by_root;
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Reply};
use crate::support::routes::routes;
use crate::support::tables::everything;

on_both!(
    mfa_a_code_is_asked_for_after_the_password,
    mfa_a_step_is_used_once_and_the_clocks_may_differ_by_one,
    mfa_half_a_sign_in_opens_nothing,
    mfa_half_a_sign_in_lapses_and_ends_with_the_others,
    mfa_wrong_codes_are_slowed_down_and_on_record,
);

async fn mfa_a_code_is_asked_for_after_the_password(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, codes) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    assert_eq!(codes.len(), 10);
    desk.app.clock.advance(MINUTE);
    let mut olga = desk.nobody();
    let fields = [("name", "operator"), ("password", PASSWORD), ("next", "/audit")];
    assert_eq!(olga.post_bare("/login", &fields).await.location(), "/login/second");
    let half = olga.cookie.clone();
    assert_eq!(last(&on_record(&desk, "operator").await), ("password_right", "done", ""));
    let page = olga.get("/login/second").await.expect(200);
    assert!(page.words().contains("Your password was right, operator ."), "{}", page.words());
    let code = phone.code(desk.app.engine.ambient().now());
    let spaced = format!(" {} {}", &code[..3], &code[3..]);
    assert_eq!(olga.gives(&spaced).await.location(), "/audit");
    assert_ne!(olga.cookie, half, "a session under a new id");
    assert!(olga.is_in().await);
    let wanted = ("sign_in", "done", "with an authenticator app");
    assert_eq!(last(&on_record(&desk, "operator").await), wanted);
    let mut thief = desk.nobody();
    thief.cookie = half;
    assert!(!thief.is_in().await);
    assert_eq!(thief.gives(&code).await.location(), "/login?lapsed=1", "the half is gone");
}

async fn mfa_a_step_is_used_once_and_the_clocks_may_differ_by_one(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, _) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    let set_up = phone.code(desk.app.engine.ambient().now());
    let mut olga = desk.nobody();
    olga.sign_in("operator", PASSWORD).await;
    let reply = olga.gives(&set_up).await.expect(422);
    assert!(reply.words().contains("was used before"), "{}", reply.words());
    let refused = ("second_factor_failed", "refused", "the code was used before");
    assert_eq!(last(&on_record(&desk, "operator").await), refused, "it confirmed the app");

    desk.app.clock.advance(5 * MINUTE);
    let now = desk.app.engine.ambient().now();
    let at = |steps: i64| {
        let span = Duration::from_secs(30 * steps.unsigned_abs());
        phone.code(if steps < 0 { now.minus(span) } else { now.plus(span) })
    };
    let mut tries = Vec::new();
    for steps in [-2, 2, -1, -1, 0, 1, 0, -1, 1] {
        let mut olga = desk.nobody();
        olga.sign_in("operator", PASSWORD).await;
        tries.push((steps, olga.gives(&at(steps)).await.status.as_u16()));
    }
    let wanted =
        [(-2, 422), (2, 422), (-1, 303), (-1, 422), (0, 303), (1, 303), (0, 422), (-1, 422), (1, 422)];
    assert_eq!(tries, wanted);
}

async fn mfa_half_a_sign_in_opens_nothing(db: TestDatabase) {
    let mut desk = Desk::start(db).await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    let (phone, _) = desk.signed_in(Role::Admin).await.sets_up_app().await;
    desk.app.clock.advance(MINUTE);
    let mut half = desk.nobody();
    half.sign_in("admin", PASSWORD).await;
    let cookie = half.cookie.clone().expect("a session");
    let before = everything(&desk.app).await;
    let for_people =
        |path: &str| !["/api/", "/hooks/", "/static/", "/login"].iter().any(|start| path.starts_with(start));
    let mut asked = 0;
    for (method, path) in routes().into_iter().filter(|(_, path)| for_people(path)) {
        let path =
            path.replace("{id}", &letter.to_string()).replace("{token}", "x").replace("{name}", "plain");
        let mut nobody = desk.nobody();
        half.cookie = Some(cookie.clone());
        let (theirs, nobodys) = match method {
            "get" => (half.get(&path).await, nobody.get(&path).await),
            _ => (half.post_bare(&path, &[]).await, nobody.post_bare(&path, &[]).await),
        };
        let answer = |reply: &Reply| (reply.status, reply.header("location").to_owned());
        assert_eq!(answer(&theirs), answer(&nobodys), "{method} {path}");
        asked += 1;
    }
    assert!(asked > 50, "{asked}");
    assert_eq!(everything(&desk.app).await, before);
    half.cookie = Some(cookie);
    assert_eq!(
        half.gives(&phone.code(desk.app.engine.ambient().now())).await.location(),
        "/",
        "it was one all the time"
    );
}

async fn mfa_half_a_sign_in_lapses_and_ends_with_the_others(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, _) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    desk.app.clock.advance(MINUTE);
    let mut olga = desk.nobody();
    olga.sign_in("operator", PASSWORD).await;
    desk.app.clock.advance(5 * MINUTE - Duration::from_secs(1));
    olga.get("/login/second").await.expect(200);
    desk.app.clock.advance(Duration::from_secs(1));
    assert_eq!(olga.get("/login/second").await.location(), "/login?lapsed=1");
    let late = olga.gives(&phone.code(desk.app.engine.ambient().now())).await;
    assert_eq!(late.location(), "/login?lapsed=1");
    let door = olga.get("/login?lapsed=1").await.expect(200);
    assert!(door.words().contains("has to follow within 5 minutes"), "{}", door.words());

    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    desk.add("boss", Role::Admin).await;
    for end in 0..2 {
        olga.sign_in("operator", PASSWORD).await;
        match end {
            0 => accounts::set_role(db, ambient, "operator", Role::Viewer, &by_root()).await.unwrap(),
            _ => accounts::disable(db, ambient, "operator", &by_root()).await.unwrap(),
        }
        let code = phone.code(desk.app.engine.ambient().now());
        assert_eq!(olga.gives(&code).await.location(), "/login?lapsed=1", "end {end}");
    }
}

async fn mfa_wrong_codes_are_slowed_down_and_on_record(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, codes) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    desk.app.clock.advance(MINUTE);
    let (mut statuses, mut olga) = (Vec::new(), desk.nobody());
    for wrong in ["000000", "", "12345", "aaaa-aaaa-aaaa-aaaa", "1234567", "000001"] {
        // Whoever knows the password begins no count anew by it.
        olga.sign_in("operator", PASSWORD).await;
        statuses.push(olga.gives(wrong).await.status.as_u16());
    }
    assert_eq!(statuses, [422, 422, 422, 422, 422, 429]);
    let right = phone.code(desk.app.engine.ambient().now());
    let reply = olga.gives(&right).await.expect(429);
    assert!(reply.words().contains("There were too many tries. Wait 1 s"), "{}", reply.words());
    assert_eq!(reply.header("retry-after"), "1");
    assert_eq!(olga.gives(&codes[0]).await.status.as_u16(), 429, "nor a recovery code");
    let rows = on_record(&desk, "operator").await;
    let failed = rows.iter().filter(|row| row.0 == "second_factor_failed");
    assert_eq!(failed.map(|row| row.1.as_str()).collect::<Vec<_>>(), ["refused"; 5]);
    desk.app.clock.advance(Duration::from_secs(1));
    assert_eq!(olga.gives(&right).await.location(), "/");
}
