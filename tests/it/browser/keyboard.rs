//! The desk without a mouse.

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;
use dead_letter_office::domain::operation::OperationState;
use fantoccini::Locator;
use fantoccini::key::Key;

use super::scene::Scene;
use super::stage::plain;
use crate::support::browser::{Browser, Setup};
use crate::support::desk::PASSWORD;
use crate::support::keyboard::Stop;
use crate::support::served::Served;

/// More stops than any page has.
const FAR: usize = 400;

/// Goes forward until the keyboard is at what is called so; every stop on the way can be seen.
async fn tab_to(browser: &Browser, name: &str) -> Stop {
    let mut passed = Vec::new();
    for _ in 0..FAR {
        browser.press(Key::Tab).await;
        let Some(stop) = browser.stop().await else { continue };
        assert_eq!(stop.hidden, None, "“{}” on the way to “{name}”", stop.name);
        if stop.name.starts_with(name) {
            return stop;
        }
        passed.push(stop.name);
    }
    panic!("no “{name}” among {passed:?}");
}

/// Past the rail by the link that is there for it.
async fn skip_to_content(browser: &Browser) {
    browser.press(Key::Tab).await;
    let first = browser.stop().await.expect("the first stop");
    assert_eq!((first.name.as_str(), first.hidden), ("Skip to content", None));
    browser.press(Key::Enter).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dead_letter_is_replayed_by_the_keyboard_alone() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    let (operation, _) = served.dead_letter("keyed", "order-1", Behaviour::status(422)).await;
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&served.url).await;
    tab_to(&browser, "Name").await;
    browser.type_text("olga").await;
    tab_to(&browser, "Password").await;
    browser.type_text(PASSWORD).await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("What went wrong, by cause").await;

    skip_to_content(&browser).await;
    tab_to(&browser, "Keyed refused").await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("Those that wait").await;
    skip_to_content(&browser).await;
    tab_to(&browser, "Keyed refused").await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("What Keyed knows").await;
    skip_to_content(&browser).await;
    tab_to(&browser, "Replay: Keyed did not do it").await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("What will be sent").await;
    skip_to_content(&browser).await;
    tab_to(&browser, "Reason").await;
    browser.type_text("They know C-7 now").await;
    tab_to(&browser, "Replay: Keyed did not do it").await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("All checks passed").await;
    let done = |state| matches!(state, OperationState::Completed).then_some(());
    served.wait_for(operation, |thread| done(thread.operation.state())).await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());
}

/// Forward through every page and out of it again: each stop can be seen, and they come in the
/// order in which the page is read.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_holds_the_keyboard_or_hides_it() {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup::default()).await;
    scene.sign_in(&browser).await;
    let mut wrong = Vec::new();
    for page in &scene.pages {
        browser.goto(&scene.url(page)).await;
        // Not the menus, which lie over what stands behind them.
        let open =
            "for (const part of document.querySelectorAll('main details:not(.menu)')) part.open = true";
        browser.evaluate(open, Vec::new()).await;
        let mut last = None;
        let mut stays = 0;
        loop {
            browser.press(Key::Tab).await;
            let Some(stop) = browser.stop().await else { break };
            // A date has several stops of its own, day, month, year, calendar, and marks them itself.
            stays = if last == Some(stop.index) { stays + 1 } else { 0 };
            if let Some(why) = stop.hidden.filter(|_| stays == 0) {
                wrong.push(format!("{}: “{}”: {why}", page.name, stop.name));
            }
            if stays > 8 {
                wrong.push(format!("{}: “{}” holds the keyboard", page.name, stop.name));
                break;
            }
            // The last stop leads to the first: the page is left.
            if last.is_some_and(|last| stop.index < last) {
                let first = browser.client.find(Locator::Css("a")).await.unwrap().text().await.unwrap();
                if stop.name != first {
                    wrong.push(format!("{}: “{}” comes too late", page.name, stop.name));
                }
                break;
            }
            last = Some(stop.index);
        }
        assert!(last.is_some(), "{} has no stop", page.name);
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Wherever a menu or a dialog is opened by a key, Escape closes it and the keyboard is back where
/// it was.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_menu_gives_the_keyboard_back() {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup::default()).await;
    scene.sign_in(&browser).await;
    browser.goto(&scene.at("dead-letter")).await;
    skip_to_content(&browser).await;
    let menu = tab_to(&browser, "More").await;
    browser.press(Key::Enter).await;
    tab_to(&browser, "Send again anyway").await;
    browser.press(Key::Escape).await;
    let after = browser.stop().await.expect("a stop");
    assert_eq!((after.index, after.hidden), (menu.index, None));
    browser.press_with(Key::Shift, Key::Tab).await;
    assert!(browser.stop().await.expect("a stop").index < menu.index);
}

/// A dialog has a name, takes the keyboard and gives it back.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_dialog_takes_the_keyboard_and_gives_it_back() {
    let served = Served::start().await;
    served.add("olga", Role::Operator).await;
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&served.url).await;
    super::desk::sign_in(&browser, "olga").await;
    let opener = tab_to(&browser, "Keys").await;
    browser.press(Key::Enter).await;
    browser.wait_for_text("Row before").await;
    let tree = browser.tree().await;
    let dialogs: Vec<&str> = tree.of("dialog").map(|node| node.name.as_str()).collect();
    assert_eq!(dialogs, ["Keys"]);
    let focused = tree.focused().expect("something has the keyboard");
    assert!(focused.inside.iter().any(|role| role == "dialog"), "{focused:?}");
    browser.press(Key::Escape).await;
    let after = browser.stop().await.expect("a stop");
    assert_eq!((after.name, after.hidden), (opener.name, None));
}
