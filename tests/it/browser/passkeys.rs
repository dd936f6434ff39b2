//! MFA in a browser that has an authenticator of its own, as phones and laptops do.

use dead_letter_office::domain::actor::Role;
use serde_json::json;

use super::desk::sign_in;
use crate::support::axe::Rules;
use crate::support::browser::{Browser, Setup};
use crate::support::desk::PASSWORD;
use crate::support::served::Served;

/// A device that unlocks at once, for as long as it is told to; its id.
async fn with_device(browser: &Browser) -> String {
    browser.devtools("WebAuthn.enable", json!({})).await;
    let options = json!({
        "protocol": "ctap2", "transport": "internal", "hasUserVerification": true, "hasResidentKey": true,
        "isUserVerified": true, "automaticPresenceSimulation": true,
    });
    let added = browser.devtools("WebAuthn.addVirtualAuthenticator", json!({ "options": options })).await;
    added["authenticatorId"].as_str().expect("an id").to_owned()
}

/// By day and by night, wide and narrow.
async fn keeps_the_rules(browser: &Browser, page: &str) {
    for (dark, width) in [(false, 1280), (true, 1280), (false, 400), (true, 400)] {
        browser.set_dark(dark).await;
        browser.set_width(width).await;
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("target/shots");
        let suffix = format!("{}{}", if dark { "-dark" } else { "" }, if width == 400 { "-400" } else { "" });
        browser.screenshot(&folder.join(format!("{page}{suffix}.png"))).await;
        assert_eq!(browser.violations(Rules::All).await, Vec::<String>::new(), "{page} {dark} {width}");
    }
    browser.set_dark(false).await;
    browser.set_width(1280).await;
}

async fn leaves(browser: &Browser, served: &Served) {
    browser.goto(&format!("{}/account", served.url)).await;
    browser.click_text("button", "Sign out").await;
    browser.wait_for_text("You are signed out").await;
}

async fn gives_the_password(browser: &Browser) {
    browser.fill_label("Name", "olga").await;
    browser.fill_label("Password", PASSWORD).await;
    browser.click_text("button", "Sign in").await;
    browser.wait_for_text("Your second factor").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mfa_a_passkey_is_made_shown_and_refused() {
    let served = Served::named().await;
    served.add("olga", Role::Operator).await;
    let browser = Browser::open(Setup::default()).await;
    let device = with_device(&browser).await;
    browser.goto(&served.url).await;
    sign_in(&browser, "olga").await;
    browser.goto(&format!("{}/account/second-factor", served.url)).await;
    keeps_the_rules(&browser, "second-factor-none").await;
    browser.fill_label("Name of the new passkey", "work laptop").await;
    browser.click_text("button", "Add a passkey").await;
    browser.wait_for_text("The passkey work laptop is yours").await;
    browser.wait_for_text("Print or copy them now").await;
    keeps_the_rules(&browser, "recovery-codes").await;
    browser.click_text("a", "I have kept them").await;
    browser.wait_for_text("10 of 10 are left.").await;
    keeps_the_rules(&browser, "second-factor-passkey").await;

    // The same device again: the browser itself says no.
    browser.fill_label("Name of the new passkey", "twice").await;
    browser.click_text("button", "Add a passkey").await;
    browser.wait_for_text("This device holds a passkey of yours for this desk already.").await;
    keeps_the_rules(&browser, "passkey-asked").await;
    browser.click_text("a", "Cancel").await;
    browser.wait_for_text("10 of 10 are left.").await;

    leaves(&browser, &served).await;
    gives_the_password(&browser).await;
    keeps_the_rules(&browser, "login-second").await;
    let locked = |open: bool| json!({ "authenticatorId": device, "isUserVerified": open });
    browser.devtools("WebAuthn.setUserVerified", locked(false)).await;
    browser.click_text("button", "Use a passkey").await;
    browser.wait_for_text("No passkey was shown.").await;
    browser.devtools("WebAuthn.setUserVerified", locked(true)).await;
    browser.click_text("button", "Ask for it again").await;
    browser.wait_for_text("Dead letters").await;
    browser.goto(&format!("{}/audit", served.url)).await;
    browser.wait_for_text("with the passkey work laptop").await;

    browser.goto(&format!("{}/confirm?next=%2Faudit", served.url)).await;
    keeps_the_rules(&browser, "confirm").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn mfa_an_app_is_set_up_and_asked_for_without_script() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    let browser = Browser::open(Setup { script: false, ..Setup::default() }).await;
    browser.goto(&served.url).await;
    sign_in(&browser, "olga").await;
    browser.goto(&format!("{}/account", served.url)).await;
    browser.click_text("a", "Set one up").await;
    browser.wait_for_text("Passkeys need a name in the desk\u{2019}s address").await;
    browser.click_text("button", "Set up an app").await;
    let secret = browser.text(".handout .code").await.replace(' ', "");
    let totp = totp_rs::Builder::new()
        .with_secret(totp_rs::Secret::try_from_base32(&secret).unwrap())
        .build()
        .unwrap();
    browser.fill_label("Code", &totp.generate_current().to_string()).await;
    browser.click_text("button", "Confirm the app").await;
    browser.wait_for_text("Your app is set up").await;
    let codes = browser.text(".codes").await;
    leaves(&browser, &served).await;
    gives_the_password(&browser).await;
    browser.fill_label("Code", "000000").await;
    browser.click_text("button", "Sign in").await;
    browser.wait_for_text("That code is not right").await;
    browser.fill_label("Code", codes.lines().next().expect("a code")).await;
    browser.click_text("button", "Sign in").await;
    browser.wait_for_text("You used a recovery code; 9 are left.").await;
}
