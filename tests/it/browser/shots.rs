//! Pictures of every page, in `target/shots`, for whoever looks at the desk as a whole.

use std::path::Path;

use dead_letter_office::demo::destination::Behaviour;
use dead_letter_office::domain::actor::Role;

use super::desk::sign_in;
use crate::support::browser::{Browser, Setup};
use crate::support::served::Served;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn shots_of_every_page() {
    let served = Served::start().await;
    served.add("anna.k", Role::Admin).await;
    served.add("ben.o", Role::Operator).await;
    let (_, refused) = served.dead_letter("keyed", "order-10443", Behaviour::status(422)).await;
    let doubt = Behaviour::CloseAfterRead { effect: true };
    let (operation, doubtful) = served.dead_letter("plain", "order-10444", doubt).await;
    // One whose destination can be asked, and one that pauses its destination.
    let (_, askable) = served.dead_letter("lookup", "order-10445", Behaviour::status(422)).await;
    served.dead_letter("keyed", "order-10446", Behaviour::status(401)).await;
    let pages = [
        ("triage", "/".to_owned()),
        ("dead-letters", "/dead-letters".to_owned()),
        ("dead-letter", format!("/dead-letters/{doubtful}")),
        ("dead-letter-askable", format!("/dead-letters/{askable}")),
        ("destinations", "/destinations".to_owned()),
        ("status", "/status".to_owned()),
        ("replay", format!("/dead-letters/{refused}/replay")),
        ("replay-blocked", format!("/dead-letters/{doubtful}/replay")),
        ("resolve", format!("/dead-letters/{doubtful}/resolve?resolution=completed_at_destination")),
        ("override", format!("/dead-letters/{doubtful}/override")),
        ("operations", "/operations".to_owned()),
        ("operation", format!("/operations/{operation}")),
        ("audit", "/audit".to_owned()),
        ("people", "/people".to_owned()),
        ("account", "/account".to_owned()),
        ("nothing", "/nothing/here".to_owned()),
    ];
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/shots");
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&served.url).await;
    browser.screenshot(&folder.join("login.png")).await;
    sign_in(&browser, "anna.k").await;
    for (suffix, dark, width) in [("", false, 1280), ("-dark", true, 1280), ("-400", false, 400)] {
        browser.set_dark(dark).await;
        browser.set_width(width).await;
        for (name, path) in &pages {
            browser.goto(&format!("{}{path}", served.url)).await;
            browser.screenshot(&folder.join(format!("{name}{suffix}.png"))).await;
        }
    }
    // A page that is not there is the one answer that the console calls an error.
    let errors = browser.console_errors().await;
    assert!(errors.iter().all(|error| error.contains("/nothing/here")), "{errors:?}");
}
