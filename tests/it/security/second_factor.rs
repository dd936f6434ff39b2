//! MFA: codes of an app, recovery codes, the half-open door, and a fresh sign-in with both factors.

use std::time::Duration;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::{Actor, Role};
use dead_letter_office::domain::filter::{AuditFilter, Page};
use dead_letter_office::store::audit;

use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD, Person, Reply};
use crate::support::phone::Phone;
use crate::support::routes::routes;
use crate::support::tables::{business, everything};

on_both!(
    mfa_a_code_is_asked_for_after_the_password,
    mfa_a_step_is_used_once_and_the_clocks_may_differ_by_one,
    mfa_an_app_counts_from_its_first_code_on,
    mfa_half_a_sign_in_opens_nothing,
    mfa_half_a_sign_in_lapses_and_ends_with_the_others,
    mfa_wrong_codes_are_slowed_down_and_on_record,
    mfa_a_recovery_code_works_once,
    mfa_a_reset_link_does_not_go_around_it,
    mfa_a_role_can_demand_it,
    mfa_a_fresh_sign_in_takes_both_factors,
    mfa_an_admin_removes_what_was_lost,
    mfa_no_secret_can_be_read_in_the_database,
);

const MINUTE: Duration = Duration::from_mins(1);

/// What the audit says about signing in and second factors, oldest first: action, result, detail.
async fn on_record(desk: &Desk, person: &str) -> Vec<(String, String, String)> {
    let filter = AuditFilter::default();
    let mut tx = desk.app.engine.db().read().await.unwrap();
    let page = Page { limit: 500, cursor: None };
    let mut rows = audit::list(&mut tx, &filter, page).await.unwrap().items;
    rows.reverse();
    rows.into_iter()
        .map(|entry| entry.row)
        .filter(|row| row.actor == person)
        .map(|row| (row.action, row.result, row.detail))
        .collect()
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

async fn mfa_an_app_counts_from_its_first_code_on(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    let place = "/account/second-factor/app";
    olga.post(place, &[]).await.location();
    let first = olga.get(place).await.expect(200);
    assert_eq!(first.all("svg.qr path").len(), 1);
    let wrong = olga.post(&format!("{place}/confirm"), &[("code", "000000")]).await.expect(422);
    assert!(wrong.words().contains("not the code that stands now"), "{}", wrong.words());
    let other = desk.nobody().sign_in("operator", PASSWORD).await;
    assert_eq!(other.location(), "/", "it counts for nothing yet");
    olga.post(place, &[]).await.location();
    let old = Phone::shown(&first);
    let code = old.code(desk.app.engine.ambient().now());
    olga.post(&format!("{place}/confirm"), &[("code", &code)]).await.expect(422);

    let new = Phone::shown(&olga.get(place).await.expect(200));
    desk.app.clock.advance(4 * MINUTE);
    olga.get(place).await.expect(200);
    desk.app.clock.advance(MINUTE);
    let hidden = olga.get(place).await;
    assert_eq!(hidden.location(), "/confirm?next=%2Faccount%2Fsecond-factor%2Fapp", "a screen left unlocked");
    desk.app.clock.advance(10 * MINUTE);
    let code = new.code(desk.app.engine.ambient().now());
    let late = olga.post(&format!("{place}/confirm"), &[("code", &code)]).await;
    assert_eq!(late.location(), "/account/second-factor");
    assert!(olga.get("/account/second-factor").await.words().contains("it waited too long"));

    olga.sign_in("operator", PASSWORD).await;
    olga.sets_up_app().await;
    let twice = olga.post(place, &[]).await.expect(409);
    assert!(twice.words().contains("turn it off before you set up another"), "{}", twice.words());
    assert_eq!(olga.get(place).await.location(), "/account/second-factor", "the secret is not shown again");
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
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    desk.add("boss", Role::Admin).await;
    for end in 0..2 {
        olga.sign_in("operator", PASSWORD).await;
        match end {
            0 => accounts::set_role(db, ambient, "operator", Role::Viewer, &by).await.unwrap(),
            _ => accounts::disable(db, ambient, "operator", &by).await.unwrap(),
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

async fn mfa_a_recovery_code_works_once(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, codes) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    let mut olga = desk.nobody();
    olga.sign_in("operator", PASSWORD).await;
    assert_eq!(olga.gives(&codes[3].to_uppercase().replace('-', " ")).await.location(), "/");
    let page = olga.get("/").await.expect(200);
    assert!(page.words().contains("You used a recovery code; 9 are left."), "{}", page.words());
    let rows = on_record(&desk, "operator").await;
    let told: Vec<_> = rows.iter().rev().take(2).map(|row| (row.0.as_str(), row.2.as_str())).collect();
    assert_eq!(told, [("recovery_code_used", "9 are left"), ("sign_in", "with a recovery code")]);
    let factor = olga.get("/account/second-factor").await.expect(200);
    assert!(factor.words().contains("9 of 10 are left."), "{}", factor.words());

    let mut again = desk.nobody();
    again.sign_in("operator", PASSWORD).await;
    again.gives(&codes[3]).await.expect(422);
    let page = olga.post("/account/second-factor/codes", &[]).await.expect(200);
    let new: Vec<String> = page.all(".codes li").into_iter().map(|(code, _)| code).collect();
    assert_eq!(new.len(), 10);
    assert!(new.iter().all(|code| !codes.contains(code)));
    again.gives(&codes[4]).await.expect(422);
    assert_eq!(again.gives(&new[0]).await.location(), "/");

    desk.app.clock.advance(MINUTE);
    let mut other = desk.nobody();
    other.sign_in("operator", PASSWORD).await;
    other.gives(&phone.code(desk.app.engine.ambient().now())).await.location();
    // Without a factor there is nothing that they could stand in for.
    other.post("/account/second-factor/app/off", &[]).await.location();
    let page = other.get("/account/second-factor").await.expect(200);
    assert!(!page.words().contains("Recovery codes"), "{}", page.words());
    other.post("/account/second-factor/codes", &[]).await.expect(409);
    let dump = everything(&desk.app).await;
    assert!(!dump.iter().any(|(table, _)| table == "recovery_codes" || table == "totps"));
    assert_eq!(desk.nobody().sign_in("operator", PASSWORD).await.location(), "/");
}

async fn mfa_a_reset_link_does_not_go_around_it(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let (phone, _) = desk.signed_in(Role::Operator).await.sets_up_app().await;
    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    let actor = Actor::Cli { user: "root".into() };
    let by = By { actor: &actor, origin: "cli" };
    let link = accounts::make_link(db, ambient, Some("operator"), &by).await.unwrap();
    desk.app.clock.advance(MINUTE);
    let mut thief = desk.nobody();
    let path = format!("/setup/{link}");
    let chosen = "a new password of mine";
    assert!(thief.post_bare(&path, &[("password", chosen)]).await.location().starts_with("/login?set"));
    assert_eq!(thief.sign_in("operator", chosen).await.location(), "/login/second");
    assert!(!thief.is_in().await);
    assert_eq!(thief.gives(&phone.code(desk.app.engine.ambient().now())).await.location(), "/");
}

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

async fn mfa_an_admin_removes_what_was_lost(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.sets_up_app().await;
    let mut boss = desk.signed_in(Role::Admin).await;
    let page = boss.get("/people").await.expect(200);
    assert!(page.words().contains("With a second factor"), "{}", page.words());
    let action = {
        let parsed = scraper::Html::parse_document(&page.text);
        let form = scraper::Selector::parse("form[action$=\"/second-factor\"]").unwrap();
        let forms: Vec<_> = parsed.select(&form).filter_map(|form| form.value().attr("action")).collect();
        assert_eq!(forms.len(), 1, "only of whom has one");
        forms[0].to_owned()
    };
    olga.post(&action, &[]).await.expect(403);
    assert_eq!(boss.post(&action, &[]).await.location(), "/people");
    assert!(!olga.is_in().await);
    assert_eq!(olga.sign_in("operator", PASSWORD).await.location(), "/");
    boss.post(&action, &[]).await.expect(404);
    assert_eq!(last(&on_record(&desk, "admin").await), ("second_factor_remove", "done", "operator"));

    let (db, ambient) = (desk.app.engine.db(), desk.app.engine.ambient());
    olga.sets_up_app().await;
    let actor = crate::support::app::person("otto", Role::Approver);
    let refused = accounts::remove_factors(db, ambient, "operator", &By { actor: &actor, origin: "x" }).await;
    assert!(matches!(refused, Err(accounts::AccountError::Forbidden(_))), "below the pages too");
}

async fn mfa_no_secret_can_be_read_in_the_database(db: TestDatabase) {
    let desk = Desk::start(db).await;
    let mut olga = desk.signed_in(Role::Operator).await;
    olga.post("/account/second-factor/app", &[]).await.location();
    let page = olga.get("/account/second-factor/app").await.expect(200);
    let text = page.first(".handout .code").replace(' ', "");
    let bytes = totp_rs::Secret::try_from_base32(&text).unwrap();
    let hex: String = bytes.as_bytes().iter().map(|byte| format!("{byte:02x}")).collect();
    let phone = Phone::shown(&page);
    let code = phone.code(desk.app.engine.ambient().now());
    let done = olga.post("/account/second-factor/app/confirm", &[("code", &code)]).await.expect(200);
    let codes = done.all(".codes li");
    let dump: String =
        everything(&desk.app).await.into_iter().map(|(table, row)| format!("{table} {row}\n")).collect();
    let dump = dump.to_lowercase();
    assert!(dump.contains("totps") && dump.contains("recovery_codes"), "both are stored");
    let mut planted = vec![text.to_lowercase(), hex, code];
    planted.extend(codes.iter().flat_map(|(code, _)| [code.clone(), code.replace('-', "")]));
    for secret in planted {
        assert!(!dump.contains(&secret), "{secret} can be read");
    }
}
