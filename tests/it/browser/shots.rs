//! Pictures of every page, in `target/shots`, for whoever looks at the desk as a whole:
//! `tests/run shots`. They are taken without script, which shows that pages need none, and by the
//! way the console is watched for what the content security policy refuses.

use std::path::Path;

use fantoccini::Locator;

use super::scene::{Page, Scene};
use super::stage::plain;
use crate::support::browser::{Browser, Setup};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shots_of_every_page() {
    let scene = Scene::start(plain).await;
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/shots");
    let browser = Browser::open(Setup { script: false, ..Setup::default() }).await;
    let mut signed_in = false;
    for pages in [&scene.doors, &scene.pages] {
        if signed_in {
            scene.sign_in(&browser).await;
        }
        signed_in = true;
        for (suffix, dark, width) in [("", false, 1280), ("-dark", true, 1280), ("-400", false, 400)] {
            browser.set_dark(dark).await;
            browser.set_width(width).await;
            for page in pages {
                browser.goto(&scene.url(page)).await;
                if suffix.is_empty() {
                    assert_eq!(
                        browser.client.find_all(Locator::Css("h1")).await.unwrap().len(),
                        1,
                        "{}",
                        page.name
                    );
                }
                browser.screenshot(&folder.join(format!("{}{suffix}.png", page.name))).await;
            }
        }
    }
    // A page that is not there is the one answer that the console calls an error.
    let errors = browser.console_errors().await;
    assert!(errors.iter().all(|error| error.contains("/nothing/here")), "{errors:?}");
}

/// With script: nothing that it does or that pages load breaks the policy.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn no_page_makes_the_console_complain() {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup::default()).await;
    let mut wrong = Vec::new();
    let mut complaints = async |page: &Page| {
        browser.goto(&scene.url(page)).await;
        let expected = |error: &String| page.name == "nothing" && error.contains("404");
        let errors = browser.console_errors().await;
        wrong.extend(
            errors
                .into_iter()
                .filter(|error| !expected(error))
                .map(|error| format!("{}: {error}", page.name)),
        );
    };
    for page in &scene.doors {
        complaints(page).await;
    }
    scene.sign_in(&browser).await;
    for page in &scene.pages {
        complaints(page).await;
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
