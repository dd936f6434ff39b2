//! Whether everybody can use the pages: the common rules, and what the pages tell assistive
//! technology.

use std::collections::BTreeMap;

use super::scene::{Page, Scene};
use super::stage::plain;
use crate::support::axe::Rules;
use crate::support::browser::{Browser, Setup};
use crate::support::tree::{Node, Tree};

/// What each page breaks, by its name.
#[derive(Default)]
struct Broken(Vec<String>);

impl Broken {
    fn add(&mut self, page: &str, how: &str, found: impl IntoIterator<Item = String>) {
        self.0.extend(found.into_iter().map(|what| format!("{page}{how}: {what}")));
    }
}

impl Drop for Broken {
    fn drop(&mut self) {
        assert!(self.0.is_empty() || std::thread::panicking(), "{}", self.0.join("\n"));
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_keep_the_common_rules_by_day() {
    keep_the_rules(false, Rules::All).await;
}

/// By night for what night changes.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_keep_the_common_rules_by_night() {
    keep_the_rules(true, Rules::Colours).await;
}

async fn keep_the_rules(dark: bool, rules: Rules) {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup { dark, ..Setup::default() }).await;
    let mut broken = Broken::default();
    for page in &scene.doors {
        keeps_the_rules(&browser, &scene, page, rules, &mut broken).await;
    }
    scene.sign_in(&browser).await;
    for page in &scene.pages {
        keeps_the_rules(&browser, &scene, page, rules, &mut broken).await;
    }
}

/// Narrow as it comes, wide with everything open.
async fn keeps_the_rules(browser: &Browser, scene: &Scene, page: &Page, rules: Rules, broken: &mut Broken) {
    browser.set_width(400).await;
    browser.goto(&scene.url(page)).await;
    broken.add(page.name, ", narrow", browser.violations(rules).await);
    browser.set_width(1280).await;
    browser.open_everything().await;
    broken.add(page.name, "", browser.violations(rules).await);
    broken.add(page.name, ", hidden by a style", browser.hidden_words().await);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_tell_what_they_are() {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup::default()).await;
    let mut broken = Broken::default();
    for page in &scene.doors {
        browser.goto(&scene.url(page)).await;
        let tree = browser.tree().await;
        broken.add(page.name, "", order(&tree));
        broken.add(page.name, "", names(&tree));
    }
    scene.sign_in(&browser).await;
    for page in &scene.pages {
        browser.goto(&scene.url(page)).await;
        let here =
            browser.client.find_all(fantoccini::Locator::Css("nav [aria-current=page]")).await.unwrap().len();
        browser.open_everything().await;
        let tree = browser.tree().await;
        broken.add(page.name, "", order(&tree));
        broken.add(page.name, "", names(&tree));
        broken.add(page.name, "", landmarks(&tree));
        // The own account stands in the rail beside those ways.
        if here != usize::from(!page.name.starts_with("account")) {
            broken.add(page.name, "", [format!("{here} entries of the rail are the present page")]);
        }
    }
}

/// One title, and headings that go down one level at a time.
fn order(tree: &Tree) -> Vec<String> {
    let headings: Vec<&Node> = tree.of("heading").collect();
    let titles = headings.iter().filter(|heading| heading.level == Some(1)).count();
    let mut wrong = Vec::new();
    if titles != 1 {
        wrong.push(format!("{titles} titles"));
    }
    let mut before = 0;
    for heading in headings {
        let level = heading.level.unwrap_or(0);
        if before != 0 && level > before + 1 {
            wrong.push(format!("level {level} follows level {before}: {}", heading.name));
        }
        if heading.name.is_empty() {
            wrong.push(format!("a heading of level {level} without words"));
        }
        before = level;
    }
    wrong
}

/// Everything that can be used is called something, and what leads to two places is called two
/// things; but in a table the row and the column belong to the name.
fn names(tree: &Tree) -> Vec<String> {
    const USED: [&str; 10] = [
        "link",
        "button",
        "textbox",
        "searchbox",
        "combobox",
        "checkbox",
        "radio",
        "DisclosureTriangle",
        "Date",
        "dialog",
    ];
    let mut wrong = Vec::new();
    let mut places: BTreeMap<(&Option<String>, &str), &str> = BTreeMap::new();
    let mut fields: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    // A date has buttons of the browser's own.
    let ours = |node: &&Node| {
        USED.contains(&node.role.as_str()) && node.inside.first().is_none_or(|it| it != "Date")
    };
    for node in tree.0.iter().filter(ours) {
        if node.name.trim().is_empty() {
            wrong.push(format!("a {} is called nothing", node.role));
        }
        match &node.url {
            Some(url) => {
                let known = places.entry((&node.cell, &node.name)).or_insert(url);
                if known != url {
                    wrong.push(format!("“{}” leads to {known} and to {url}", node.name));
                }
            }
            None => *fields.entry((&node.role, &node.name)).or_default() += 1,
        }
    }
    let twice = fields.into_iter().filter(|(_, count)| *count > 1);
    wrong.extend(twice.map(|((role, name), count)| format!("{count} of {role} are called “{name}”")));
    wrong
}

fn landmarks(tree: &Tree) -> Vec<String> {
    let wanted = [("banner", 1), ("main", 1), ("search", 1)];
    let mut wrong: Vec<String> = wanted
        .iter()
        .filter(|(role, count)| tree.of(role).count() != *count)
        .map(|(role, _)| format!("{} of {role}", tree.of(role).count()))
        .collect();
    let ways: Vec<&str> = tree.of("navigation").map(|node| node.name.as_str()).collect();
    if !ways.contains(&"Desk") {
        wrong.push(format!("the ways through the desk are not among {ways:?}"));
    }
    wrong
}

/// What the server has to say after a form is where the keyboard is, and is read out.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_answer_is_where_the_keyboard_is() {
    let scene = Scene::start(plain).await;
    let browser = Browser::open(Setup::default()).await;
    let mut broken = Broken::default();

    browser.goto(&scene.served.url).await;
    browser.fill_label("Name", "anna.k").await;
    browser.fill_label("Password", "not her password").await;
    browser.click_text("button", "Sign in").await;
    broken.add("login", ", refused", answered(&browser, "alert", "do not belong together").await);
    scene.sign_in(&browser).await;

    browser.goto(&scene.at("resolve")).await;
    browser.fill_label("Reason", " ").await;
    browser.click_text("button", "Record as completed").await;
    broken.add("resolve", ", with problems", answered(&browser, "alert", "Nothing was changed yet").await);

    browser.goto(&scene.at("override")).await;
    browser.fill_label("Reason", " ").await;
    browser.client.find(fantoccini::Locator::Css("#mode-same")).await.unwrap().click().await.unwrap();
    browser.client.find(fantoccini::Locator::Css("#accept")).await.unwrap().click().await.unwrap();
    browser.click_text("button", "Send again anyway").await;
    broken.add("override", ", with problems", answered(&browser, "alert", "Nothing was changed yet").await);

    browser.goto(&scene.at("people")).await;
    browser.fill_label("Name", "carla").await;
    browser.click_text("button", "Add and make a link").await;
    broken.add("people", ", with a link", answered(&browser, "status", "A link for carla").await);

    browser.goto(&scene.at("replay")).await;
    browser.fill_label("Reason", "They know C-7 now").await;
    browser.click_text("button", "Replay: Keyed did not do it").await;
    broken.add("replay", ", queued", answered(&browser, "status", "All checks passed").await);

    browser.goto(&scene.at("account")).await;
    browser.click_text("button", "Sign out").await;
    broken.add("login", ", after leaving", answered(&browser, "status", "You are signed out").await);
}

async fn answered(browser: &Browser, role: &str, words: &str) -> Vec<String> {
    browser.wait_for_text(words).await;
    let mut wrong = browser.violations(Rules::All).await;
    let tree = browser.tree().await;
    wrong.extend(order(&tree));
    if tree.focused().is_none_or(|node| node.role != role) {
        wrong.push(format!("the keyboard is at {:?}, not at a {role}", tree.focused()));
    }
    wrong
}
