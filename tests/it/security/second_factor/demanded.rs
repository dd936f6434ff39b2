//! Where a second factor, or a fresh sign-in with all there is, stands before anything else.

use dead_letter_office::domain::actor::Role;

use super::{MINUTE, last, on_record};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::routes::routes;
use crate::support::tables::business;

on_both!(mfa_a_role_can_demand_it, mfa_a_fresh_sign_in_takes_both_factors,);

async fn mfa_a_role_can_demand_it(db: TestDatabase) {
    let mut desk = Desk::configured(db, "[auth]\nsecond_factor = [\"approver\"]\n").await;
    let (_, letter) = desk.dead_letter("plain", "order-1").await;
    assert!(desk.signed_in(Role::Admin).await.is_in().await, "of other roles it is not demanded");
    let mut anton = desk.signed_in(Role::Approver).await;
    let before = business(&desk.app).await;
    let mut asked = 0;
    for (method, path) in routes() {
        let open =
            ["/api/", "/hooks/", "/static/", "/setup/", "/account/second-factor", "/confirm", "/logout"];
        let doors = ["/healthz", "/readyz", "/login/second"];
        if open.iter().any(|start| path.starts_with(start)) || doors.contains(&&*path) {
            continue;
        }
        if (method, path.as_str()) == ("post", "/login") {
            continue;
        }
        let path = path.replace("{id}", &letter.to_string()).replace("{name}", "plain");
        let reply = if method == "get" { anton.get(&path).await } else { anton.post_bare(&path, &[]).await };
        assert_eq!(reply.location(), "/account/second-factor", "{method} {path}");
        asked += 1;
    }
    assert!(asked > 50, "{asked}");
    assert_eq!(business(&desk.app).await, before);
    let page = anton.get("/account/second-factor").await.expect(200);
    assert!(page.words().contains("Your role needs one"), "{}", page.words());
    let (_, codes) = anton.sets_up_app().await;
    assert!(anton.is_in().await);
    assert!(!anton.get("/account/second-factor").await.words().contains("Your role needs one"));
    anton.post("/account/second-factor/app/off", &[]).await.location();
    assert_eq!(
        anton.get("/").await.location(),
        "/account/second-factor",
        "nor can it be turned off for good"
    );
    assert_eq!(codes.len(), 10);
}

async fn mfa_a_fresh_sign_in_takes_both_factors(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let (phone, codes) = olga.sets_up_app().await;
    desk.app.clock.advance(5 * MINUTE);
    let page = olga.get("/confirm?next=%2Faudit").await.expect(200);
    assert_eq!(page.field("next"), "/audit");
    let code = phone.code(desk.app.engine.ambient().now());
    let tries: [(&[(&str, &str)], &str); 4] = [
        (&[("password", PASSWORD)], "Give a code too."),
        (&[("code", &code)], "this needs a fresh sign-in"),
        (&[("password", "not it"), ("code", &code)], "That is not your password."),
        (&[("password", PASSWORD), ("code", "000000")], "That code is not right"),
    ];
    for (fields, words) in tries {
        let reply = olga.post("/confirm", fields).await.expect(422);
        assert!(reply.words().contains(words), "{fields:?}: {}", reply.words());
        assert!(
            !reply.text.contains(PASSWORD) && !reply.text.contains(&code),
            "what is secret is not sent back"
        );
    }
    let fields = [("password", PASSWORD), ("code", &*code), ("next", "/audit")];
    assert_eq!(olga.post("/confirm", &fields).await.location(), "/audit");
    assert_eq!(last(&on_record(&desk, "operator").await), ("confirm", "done", "with an authenticator app"));
    for next in ["//evil.example", "https://evil.example", "/\\evil.example", ""] {
        assert_eq!(olga.post("/confirm", &[("next", next)]).await.location(), "/", "{next}");
    }

    desk.app.clock.advance(5 * MINUTE);
    let fields = [("password", PASSWORD), ("code", codes[0].as_str())];
    olga.post("/account/second-factor/app/off", &fields).await.location();
    let page = olga.get("/account/second-factor").await.expect(200);
    let words = page.words();
    assert!(
        words.contains("You used a recovery code; 9 are left.") && words.contains("is turned off"),
        "{words}"
    );
}
