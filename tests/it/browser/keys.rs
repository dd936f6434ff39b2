//! What the script adds to a list: keys, ticks in ranges, news that move nothing.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use serde_json::{Value, json};

use super::desk::sign_in;
use crate::support::browser::{Browser, Setup};
use crate::support::served::Served;

/// Somebody who sees a list with this many rows.
async fn at_a_list(rows: usize) -> (Served, Browser) {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    for number in 0..rows {
        served.dead_letter("keyed", &format!("order-{number}"), Behaviour::status(422)).await;
    }
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&served.url).await;
    sign_in(&browser, "olga").await;
    browser.goto(&format!("{}/dead-letters?destination=keyed", served.url)).await;
    (served, browser)
}

async fn press(browser: &Browser, key: &str) {
    let focused = browser.client.active_element().await.expect("something has the focus");
    focused.send_keys(key).await.unwrap_or_else(|error| panic!("{key}: {error}"));
}

async fn run(browser: &Browser, script: &str) -> Value {
    browser.client.execute(script, vec![]).await.unwrap_or_else(|error| panic!("{script}: {error}"))
}

async fn ticked(browser: &Browser) -> Value {
    run(browser, "return document.querySelectorAll('tbody [name=id]:checked').length").await
}

const FOCUS: &str =
    "return document.activeElement.id || document.activeElement.name || document.activeElement.tagName";

#[tokio::test]
async fn keys_move_tick_and_act_and_never_while_somebody_types() {
    let (_served, browser) = at_a_list(3).await;
    for (key, wanted) in [("j", "l1"), ("j", "l2"), ("j", "l3"), ("j", "l3"), ("k", "l2"), ("x", "l2")] {
        press(&browser, key).await;
        assert_eq!(run(&browser, FOCUS).await, wanted, "{key}");
    }
    assert_eq!(ticked(&browser).await, 1);
    assert_eq!(browser.text("[data-ticked]").await, "1 row ticked.");

    press(&browser, "/").await;
    assert_eq!(run(&browser, FOCUS).await, "search");
    press(&browser, "xj?r").await;
    assert_eq!(run(&browser, "return document.activeElement.value").await, "xj?r");
    assert_eq!(ticked(&browser).await, 1);
    run(&browser, "document.activeElement.value = ''; document.activeElement.blur()").await;

    // The sheet of keys, by its visible twin; within it they do nothing.
    browser.click_text("button", "Keys").await;
    browser.wait_for_text("Row before").await;
    press(&browser, "x").await;
    press(&browser, "j").await;
    assert_eq!(run(&browser, "return document.activeElement.closest('dialog') !== null").await, true);
    browser.click_text("button", "Close").await;

    // What is ticked is what the key acts on.
    press(&browser, "e").await;
    browser.wait_for_text("Resolve many").await;
    let place = browser.client.current_url().await.unwrap();
    let sent: Vec<(String, String)> = place.query_pairs().into_owned().collect();
    assert_eq!(place.path(), "/bulk/new");
    assert!(sent.contains(&("action".to_owned(), "resolve".to_owned())), "{sent:?}");
    assert_eq!(sent.iter().filter(|(name, _)| name == "id").count(), 1, "{sent:?}");
}

#[tokio::test]
async fn keys_can_be_switched_off_for_good() {
    let (served, browser) = at_a_list(1).await;
    press(&browser, "?").await;
    browser.fill_label("Use keys on this device", "").await;
    browser.click_text("button", "Close").await;
    browser.goto(&format!("{}/dead-letters", served.url)).await;
    for key in ["j", "?"] {
        press(&browser, key).await;
        assert_eq!(run(&browser, FOCUS).await, "BODY", "{key}");
    }
    browser.click_text("button", "Keys").await;
    browser.fill_label("Use keys on this device", "").await;
    browser.click_text("button", "Close").await;
    run(&browser, "document.activeElement.blur()").await;
    press(&browser, "j").await;
    assert_eq!(run(&browser, FOCUS).await, "l1");
}

#[tokio::test]
async fn rows_are_ticked_one_by_one_in_ranges_and_all() {
    let (_served, browser) = at_a_list(4).await;
    let click = |row: usize, shift: bool| {
        let event = json!({ "bubbles": true, "cancelable": true, "shiftKey": shift });
        format!(
            "document.querySelectorAll('tbody [name=id]')[{row}].dispatchEvent(new MouseEvent('click', {event}))"
        )
    };
    run(&browser, &click(0, false)).await;
    run(&browser, &click(2, true)).await;
    assert_eq!(ticked(&browser).await, 3);
    assert_eq!(browser.text("[data-ticked]").await, "3 rows ticked.");
    run(&browser, &click(1, true)).await;
    assert_eq!(ticked(&browser).await, 1, "a range is taken away as it is given");
    run(&browser, "document.querySelector('[data-tick-all]').click()").await;
    assert_eq!(ticked(&browser).await, 4);
    run(&browser, "document.querySelector('[data-tick-all]').click()").await;
    assert_eq!(ticked(&browser).await, 0);
    // Nothing is asked for while nothing is meant.
    browser.click_text("button", "Replay\u{2026}").await;
    assert_eq!(browser.text("[data-ticked]").await, "Nothing is ticked yet: tick rows first.");
    run(&browser, "document.querySelector('[name=all]').click()").await;
    assert_eq!(browser.text("[data-ticked]").await, "All that match are meant.");
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

#[tokio::test]
async fn news_are_said_and_shown_only_when_asked_for() {
    let (served, browser) = at_a_list(1).await;
    const ROWS: &str = "return document.querySelectorAll('tbody tr').length";
    run(&browser, "document.querySelector('tbody [name=id]').click()").await;
    served.dead_letter("keyed", "order-new", Behaviour::status(422)).await;
    browser.wait_for_text("1 new dead letter.").await;
    assert_eq!(run(&browser, ROWS).await, 1, "nothing moved");
    assert_eq!(ticked(&browser).await, 1);
    assert_eq!(
        run(&browser, "return document.title").await,
        "(1 new) Dead letters \u{b7} Dead Letter Office"
    );
    assert!(browser.text(".rail .count").await.starts_with('2'));
    // What was ticked is not lost by a slip.
    browser.click_text("button", "Show").await;
    browser.wait_for_text("Showing it drops what you ticked").await;
    assert_eq!((run(&browser, ROWS).await, ticked(&browser).await), (json!(1), json!(1)));
    browser.click_text("button", "Show all the same").await;
    browser.wait_for_text("order-new").await;
    assert_eq!(run(&browser, ROWS).await, 2);
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}
