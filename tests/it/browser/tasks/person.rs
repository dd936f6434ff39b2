//! Somebody who answers customers: reads the page, and uses what it shows by what it says. No
//! selector, no address but the first.

use std::cell::Cell;
use std::time::{Duration, Instant};

use fantoccini::Locator;
use fantoccini::elements::{Element, ElementRef};
use fantoccini::key::Key;
use serde_json::{Value, json};

use crate::support::browser::{Browser, Setup};
use crate::support::desk::PASSWORD;
use crate::support::served::Served;

const PATIENCE: Duration = Duration::from_secs(15);

/// Where the page says something that can be used: what has `arguments[0]`, a kind of element, and
/// reads as `arguments[1]`; only in a row that says `arguments[2]`, when that is given. What cannot
/// be seen does not count.
const FIND: &str = r#"
const [kind, words, row] = arguments;
const plain = (text) => text.replace(/\s+/g, " ").trim();
const shown = (element) => {
  if (!element.checkVisibility({ visibilityProperty: true, opacityProperty: true })) return false;
  for (let it = element; it; it = it.parentElement) {
    if (getComputedStyle(it).clipPath === "inset(50%)") return false;
  }
  return true;
};
const read = (element) => {
  const walker = document.createTreeWalker(element, NodeFilter.SHOW_TEXT);
  let text = "";
  while (walker.nextNode()) if (shown(walker.currentNode.parentElement)) text += " " + walker.currentNode.data;
  return plain(text);
};
const said = (element) => {
  if (kind !== "field") return read(element);
  const labels = [...element.labels ?? []].map((label) => {
    // A control inside its own label, and a hint in an element of its own, are not what it is called.
    const copy = [...label.childNodes].filter((node) => node !== element && node.nodeName !== "SELECT");
    return plain(copy.map((node) => (node.nodeType === 3 ? node.data : shown(node) ? read(node) : "")).join(" "));
  });
  return labels.find((label) => label) ?? element.placeholder ?? "";
};
const kinds = {
  use: "a, button, summary",
  field: "input:not([type=hidden]), textarea, select",
};
const rows = [...document.querySelectorAll("tr, li")].filter((it) => shown(it) && read(it).includes(row));
const within = row === null ? [document] : rows.filter((it) => !rows.some((other) => other !== it && it.contains(other)));
if (row !== null && within.length !== 1) return { many: within.map(read), what: "rows" };
const all = within.flatMap((it) => [...it.querySelectorAll(kinds[kind])]).filter(shown);
const exact = all.filter((it) => said(it) === words);
const found = exact.length ? exact : all.filter((it) => said(it).includes(words));
if (found.length !== 1) return { many: (found.length ? found : all).map(said), what: found.length ? "such" : "other things" };
return { one: found[0] };
"#;

const ROWS: &str = r#"
const rows = [...document.querySelectorAll("tbody tr, li")].filter((it) => it.checkVisibility());
return rows.map((it) => it.innerText.replace(/\s+/g, " ").trim()).filter((it) => it.includes(arguments[0]));
"#;

pub(super) struct Person {
    browser: Browser,
    clicks: Cell<u32>,
}

impl Person {
    /// At the desk, signed in, on its first page.
    pub(super) async fn sits_down(served: &Served, name: &str) -> Self {
        let browser = Browser::open(Setup::default()).await;
        browser.goto(&served.url).await;
        let person = Self { browser, clicks: Cell::new(0) };
        person.writes("Name", name).await;
        person.writes("Password", PASSWORD).await;
        person.uses("Sign in").await;
        person.sees(name).await;
        person.clicks.set(0);
        person
    }

    /// Since the first page.
    pub(super) fn clicks(&self) -> u32 {
        self.clicks.get()
    }

    pub(super) async fn reads(&self) -> String {
        self.browser.text("main").await
    }

    /// Waits until the page says so.
    pub(super) async fn sees(&self, words: &str) {
        self.browser.wait_for_text(words).await;
    }

    /// What the rows of a list say, of those that say this.
    pub(super) async fn rows(&self, words: &str) -> Vec<String> {
        let rows = self.browser.evaluate(ROWS, vec![json!(words)]).await;
        serde_json::from_value(rows).expect("texts")
    }

    /// Clicks the link, button or part to open that reads so, or that alone holds these words.
    pub(super) async fn uses(&self, words: &str) {
        self.click(&self.find("use", words, None).await).await;
    }

    /// The same in the row that says something.
    pub(super) async fn uses_in(&self, row: &str, words: &str) {
        self.click(&self.find("use", words, Some(row)).await).await;
    }

    /// Presses the button that stands in the form with a field of this label.
    pub(super) async fn uses_in_form(&self, label: &str, words: &str) {
        let field = self.find("field", label, None).await;
        let button = format!("./ancestor::form//button[normalize-space()='{words}']");
        self.click(&field.find(Locator::XPath(&button)).await.unwrap()).await;
    }

    /// Writes over what is in the field of this label.
    pub(super) async fn writes(&self, label: &str, text: &str) {
        let field = self.find("field", label, None).await;
        field.clear().await.unwrap();
        field.send_keys(text).await.unwrap();
    }

    /// The same and Enter, which is no click.
    pub(super) async fn asks(&self, label: &str, text: &str) {
        self.writes(label, text).await;
        self.browser.press(Key::Enter).await;
    }

    /// Takes an entry of the list of this label.
    pub(super) async fn chooses(&self, label: &str, entry: &str) {
        let field = self.find("field", label, None).await;
        field.select_by_label(entry).await.unwrap_or_else(|error| panic!("{entry}: {error}"));
    }

    /// The text of the file that was fetched.
    pub(super) async fn fetched(&self) -> String {
        self.browser.downloaded().await
    }

    /// Reads the page anew until it says so.
    pub(super) async fn reads_until(&self, words: &str) {
        let start = Instant::now();
        while !self.reads().await.contains(words) {
            assert!(start.elapsed() < PATIENCE, "“{words}” did not come:\n{}", self.reads().await);
            tokio::time::sleep(Duration::from_millis(200)).await;
            self.browser.client.refresh().await.unwrap();
        }
    }

    async fn click(&self, element: &Element) {
        self.clicks.set(self.clicks.get() + 1);
        element.click().await.unwrap_or_else(|error| panic!("a click: {error}"));
    }

    async fn find(&self, kind: &str, words: &str, row: Option<&str>) -> Element {
        let start = Instant::now();
        loop {
            let answer = self.browser.evaluate(FIND, vec![json!(kind), json!(words), json!(row)]).await;
            // The one member of the object that stands for an element holds its id.
            if let Some(id) =
                answer["one"].as_object().and_then(|it| it.values().next()).and_then(Value::as_str)
            {
                return Element::from_element_id(
                    self.browser.client.clone(),
                    ElementRef::from(id.to_owned()),
                );
            }
            let what = answer["what"].as_str().unwrap_or_default();
            assert!(
                start.elapsed() < PATIENCE,
                "no one “{words}” (row: {row:?}) but {what}: {}\non a page that reads\n{}",
                answer["many"],
                self.reads().await
            );
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
