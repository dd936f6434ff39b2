//! A morning at the desk.

use std::time::{Duration, Instant};

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;
use fantoccini::Locator;

use crate::support::browser::{Browser, Setup};
use crate::support::desk::PASSWORD;
use crate::support::served::Served;

pub(super) async fn sign_in(browser: &Browser, name: &str) {
    browser.fill_label("Name", name).await;
    browser.fill_label("Password", PASSWORD).await;
    browser.click_text("button", "Sign in").await;
    browser.wait_for_text("Dead letters").await;
}

async fn click(browser: &Browser, css: &str) {
    let found = browser.client.find(Locator::Css(css)).await.unwrap_or_else(|error| panic!("{css}: {error}"));
    found.click().await.unwrap_or_else(|error| panic!("{css}: {error}"));
}

/// Looks at a page again and again until it says so.
async fn see(browser: &Browser, url: &str, text: &str) {
    let start = Instant::now();
    loop {
        browser.goto(url).await;
        let page = browser.text("body").await;
        if page.contains(text) {
            return;
        }
        assert!(start.elapsed() < Duration::from_secs(15), "{text} did not come:\n{page}");
        tokio::time::sleep(Duration::from_millis(100)).await;
    }
}

/// From the sign-in to the confirmed effect, by what is visible.
async fn replays_a_dead_letter(script: bool) {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    let (operation, letter) = served.dead_letter("keyed", "order-1", Behaviour::status(422)).await;
    let browser = Browser::open(Setup { script, ..Setup::default() }).await;
    browser.goto(&served.url).await;
    sign_in(&browser, "olga").await;
    click(&browser, "nav a[href='/dead-letters']").await;
    browser.wait_for_text("order-1").await;
    click(&browser, "table.letters td.main a").await;
    browser.wait_for_text("What Keyed knows").await;
    browser.wait_for_text("Not there").await;
    browser.click_text("a", "Replay: Keyed did not do it").await;
    browser.wait_for_text("What will be sent").await;
    browser.fill_label("Reason", "The data is right there now").await;
    browser.click_text("button", "Replay: Keyed did not do it").await;
    browser.wait_for_text("All checks passed: it will be sent with its own key.").await;
    let page = format!("{}/dead-letters/{letter}", served.url);
    see(&browser, &page, "Replayed and confirmed").await;
    browser.wait_for_text("The data is right there now").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
    assert_eq!(served.thread(operation).await.operation.state(), OperationState::Completed);
    assert_eq!(served.destination.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_replayed() {
    replays_a_dead_letter(true).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_replayed_without_script() {
    replays_a_dead_letter(false).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_operator_sees_what_an_override_needs_and_an_approver_overrides() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    served.add("anton", Role::Approver).await;
    let doubt = Behaviour::CloseAfterRead { effect: false };
    let (operation, letter) = served.dead_letter("plain", "order-1", doubt).await;
    let page = format!("{}/dead-letters/{letter}", served.url);
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&page).await;
    sign_in(&browser, "olga").await;
    browser.wait_for_text("May have completed").await;
    browser.click_text("summary", "More").await;
    browser.wait_for_text("which approvers have. You are operator.").await;
    let locked =
        browser.client.find(Locator::XPath("//button[contains(., 'Send again anyway')]")).await.unwrap();
    assert!(locked.attr("disabled").await.unwrap().is_some());

    browser.goto(&format!("{}/account", served.url)).await;
    browser.click_text("button", "Sign out").await;
    browser.wait_for_text("Ask an administrator").await;
    browser.goto(&page).await;
    sign_in(&browser, "anton").await;
    browser.wait_for_text("May have completed").await;
    browser.click_text("summary", "More").await;
    browser.click_text("a", "Send again anyway\u{2026}").await;
    browser.wait_for_text("What a duplicate would mean").await;
    click(&browser, "#mode-new").await;
    browser.fill_label("Reason", "The customer waits").await;
    let short = operation.simple().to_string()[24..].to_owned();
    browser.fill_label(&format!("Type {short} to confirm which operation you mean"), &short).await;
    click(&browser, "#accept").await;
    browser.click_text("button", "Send again anyway").await;
    browser.wait_for_text("It will be sent under a new key, as a second effect.").await;
    see(&browser, &page, "Replayed and confirmed").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
    assert_eq!(served.destination.effects().len(), 1);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_setup_link_makes_the_first_admin() {
    let served = Served::start().await;
    let browser = Browser::open(Setup { script: false, dark: true, width: 400 }).await;
    browser.goto(&served.first_link().await).await;
    browser.fill_label("Name", "ada").await;
    browser.fill_label("Password", PASSWORD).await;
    browser.click_text("button", "Make the account").await;
    browser.wait_for_text("People").await;
    browser.goto(&format!("{}/people", served.url)).await;
    browser.wait_for_text("1 account").await;
    browser.fill_label("Name", "olga").await;
    browser.click_text("button", "Add and make a link").await;
    browser.wait_for_text("A link for olga").await;
    let link = browser.text(".handout .code").await;
    browser.goto(&format!("{}/account", served.url)).await;
    browser.click_text("button", "Sign out").await;
    browser.wait_for_text("Ask an administrator").await;
    browser.goto(&link).await;
    browser.fill_label("Password", "olga's own password").await;
    browser.click_text("button", "Set the password").await;
    browser.wait_for_text("Your password is set. Sign in with it.").await;
    browser.fill_label("Name", "olga").await;
    browser.fill_label("Password", "olga's own password").await;
    browser.click_text("button", "Sign in").await;
    browser.wait_for_text("Dead letters").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

/// Over plain http to a host of another name than localhost, browsers say less about where a form
/// comes from.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_desk_in_the_house_network_takes_its_own_forms() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&served.url.replace("127.0.0.1", "desk.test")).await;
    sign_in(&browser, "olga").await;
    browser.goto(&format!("{}/account", served.url.replace("127.0.0.1", "desk.test"))).await;
    browser.click_text("button", "Sign out").await;
    browser.wait_for_text("Ask an administrator").await;
}
