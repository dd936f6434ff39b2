//! An app is set up, stood in for by recovery codes, and removed; nothing else goes around it.

use std::collections::BTreeMap;

use dead_letter_office::accounts::{self, By};
use dead_letter_office::domain::actor::Role;
use url::Url;

use super::{MINUTE, last, on_record};
use crate::support::app::{by_root, person};
use crate::support::databases::{TestDatabase, on_both};
use crate::support::desk::{Desk, PASSWORD};
use crate::support::phone::{Phone, scanned};
use crate::support::tables::everything;

on_both!(
    mfa_the_picture_says_what_an_app_needs,
    mfa_an_app_counts_from_its_first_code_on,
    mfa_a_recovery_code_works_once,
    mfa_a_reset_link_does_not_go_around_it,
    mfa_an_admin_removes_what_was_lost,
    mfa_no_secret_can_be_read_in_the_database,
);

async fn mfa_the_picture_says_what_an_app_needs(db: TestDatabase) {
    let desk = Desk::reached_at(db, "https://desk.example.com").await;
    for name in ["olga", "Zo\u{eb} O'Neill & partner+desk@example.com/\u{1f4ee}"] {
        desk.add(name, Role::Operator).await;
        let mut person = desk.nobody();
        person.sign_in(name, PASSWORD).await;
        let place = "/account/second-factor/app";
        person.post(place, &[]).await.location();
        let page = person.get(place).await.expect(200);
        let url = Url::parse(&scanned(&page)).unwrap();
        assert_eq!((url.scheme(), url.host_str()), ("otpauth", Some("totp")), "{url}");
        let label = percent_decoded(url.path());
        let issuer = "Dead Letter Office, desk.example.com";
        assert_eq!(label, format!("/{issuer}:{name}"));
        let said: BTreeMap<String, String> = url.query_pairs().into_owned().collect();
        assert_eq!(said["issuer"], issuer);
        assert_eq!(said["secret"], page.first(".handout .code").replace(' ', ""));
        // What is not said is what apps do by themselves.
        for (word, usual) in [("algorithm", "SHA1"), ("digits", "6"), ("period", "30")] {
            assert_eq!(said.get(word).map_or(usual, String::as_str), usual, "{url}");
        }
    }
}

fn percent_decoded(text: &str) -> String {
    url::form_urlencoded::parse(text.replace('+', "%2B").as_bytes()).next().unwrap().0.into_owned()
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
    let link = accounts::make_link(db, ambient, Some("operator"), &by_root()).await.unwrap();
    desk.app.clock.advance(MINUTE);
    let mut thief = desk.nobody();
    let path = format!("/setup/{link}");
    let chosen = "a new password of mine";
    assert!(thief.post_bare(&path, &[("password", chosen)]).await.location().starts_with("/login?set"));
    assert_eq!(thief.sign_in("operator", chosen).await.location(), "/login/second");
    assert!(!thief.is_in().await);
    assert_eq!(thief.gives(&phone.code(desk.app.engine.ambient().now())).await.location(), "/");
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
    let actor = person("otto", Role::Approver);
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
