//! Text that wants to be more than text, in every field of every page.

use super::scene::{Page, Scene};
use crate::support::browser::{Browser, Setup};

/// Closes what it stands in, opens markup, turns the reading direction, sits in several scripts, and then goes
/// on without a place to break. Without what no keyboard types into a name: colons and characters
/// beyond the basic plane.
const HOSTILE: &str = "\"><img src=x onerror=alert(1)><x-a>\u{202e}'</script><script>alert(2)</script>\
    <iframe srcdoc=x></iframe>{{7*7}}\u{2066}\u{200f}\u{5e9}\u{5dc}\u{5d5}\u{5dd} \u{645}\u{631}\u{62d}\u{628}\u{627}\
    \u{feff}\u{2400}\u{fffd}\u{2028}\u{301}\u{301}\u{301}\u{301}\u{301}";

fn hostile(what: &str, most: usize) -> String {
    let begin = format!("=1+{what}{HOSTILE}");
    // Names and the like are short; what has room is filled with what cannot be broken.
    let fill = if most > 300 { "\u{1f469}\u{200d}\u{1f467}\u{1f3f4}\0\u{1}\u{1b}[31m\u{7f}\t" } else { "" };
    begin.chars().chain(fill.chars()).chain("W".repeat(most).chars()).take(most).collect()
}

/// What got out of its place on the present page.
const ESCAPED: &str = r#"
const found = [];
const strays = document.querySelectorAll("img, iframe, object, embed, style, base, x-a, x-hostile, [srcdoc]");
for (const stray of strays) found.push(stray.outerHTML.slice(0, 200));
for (const script of document.scripts) {
  if (script.text || !script.src.startsWith(`${location.origin}/static/`)) found.push(script.outerHTML.slice(0, 200));
}
for (const element of document.querySelectorAll("*")) {
  for (const { name } of element.attributes) {
    if (name.startsWith("on") || name === "style") found.push(`${element.tagName} with ${name}`);
  }
}
for (const link of document.links) {
  if (!/^https?:$/.test(link.protocol)) found.push(`a link to ${link.href.slice(0, 200)}`);
  const away = link.host !== location.host && !["wiki.example.com"].includes(link.hostname);
  if (away) found.push(`a link out to ${link.href.slice(0, 200)}`);
}
for (const form of document.forms) {
  // Not form.action: a field of that name would stand before it.
  const action = new URL(form.getAttribute("action") ?? "", location.href);
  if (action.origin !== location.origin) found.push(`a form to ${action.href.slice(0, 200)}`);
}
const over = document.scrollingElement.scrollWidth - innerWidth;
if (over > 0) {
  const scrolls = (it) => it && (getComputedStyle(it).overflowX !== "visible" || scrolls(it.parentElement));
  const wide = [...document.querySelectorAll("main *, main")].filter(
    (it) => it.getBoundingClientRect().right > innerWidth + 1 && !scrolls(it.parentElement),
  );
  found.push(`${over} px wider than the screen, such as ${wide.slice(0, 3).map((it) => it.outerHTML.slice(0, 120)).join(" and ")}`);
}
return found;
"#;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hostile_text_stays_text_on_every_page() {
    let scene = Scene::start(hostile).await;
    let browser = Browser::open(Setup { width: 320, ..Setup::default() }).await;
    let mut wrong = Vec::new();
    for page in &scene.doors {
        look(&browser, &scene, page, &mut wrong).await;
    }
    scene.sign_in(&browser).await;
    for page in &scene.pages {
        look(&browser, &scene, page, &mut wrong).await;
    }
    // What is typed comes back with what is wrong with it, and as the reason of what was done.
    browser.goto(&scene.at("resolve")).await;
    browser.fill_label("Reference at the destination", &hostile("TCK-99", 250)).await;
    browser.fill_label("Reason", &hostile("Found by hand", 300)).await;
    browser.click_text("button", "Record as completed").await;
    browser.wait_for_text("Nothing was changed yet").await;
    wrong.extend(escaped(&browser).await.into_iter().map(|what| format!("resolve, with problems: {what}")));
    browser.goto(&scene.at("replay")).await;
    browser.fill_label("Reason", &hostile("They know C-7 now", 300)).await;
    browser.click_text("button", "Replay: Keyed did not do it").await;
    browser.wait_for_text("All checks passed").await;
    wrong.extend(escaped(&browser).await.into_iter().map(|what| format!("replay, queued: {what}")));
    let errors = browser.console_errors().await;
    // Pages that say no are answered so on purpose.
    wrong.extend(
        errors.into_iter().filter(|error| !error.contains("the server responded with a status of 4")),
    );
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// A dialog that hostile text opens would make the browser refuse every further command.
async fn look(browser: &Browser, scene: &Scene, page: &Page, wrong: &mut Vec<String>) {
    browser.goto(&scene.url(page)).await;
    let mut found = escaped(browser).await;
    browser.open_everything().await;
    found.extend(escaped(browser).await);
    found.dedup();
    wrong.extend(found.into_iter().map(|what| format!("{}: {what}", page.name)));
}

async fn escaped(browser: &Browser) -> Vec<String> {
    serde_json::from_value(browser.evaluate(ESCAPED, Vec::new()).await).expect("a list")
}
