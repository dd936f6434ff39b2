//! The harness itself, on a page that has one of everything.

use std::fs;

use axum::{
    Router,
    extract::RawQuery,
    http::{StatusCode, header},
    response::Html,
    routing::get,
};
use tokio::net::TcpListener;

use crate::support::browser::{Browser, Setup};

const PAGE: &str = r#"<!doctype html><title>One of everything</title>
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>
  .narrow, .dark, .hidden { display: none }
  @media (max-width: 500px) { .narrow { display: block } }
  @media (prefers-color-scheme: dark) { .dark { display: block } body { background: #111; color: #eee } }
  .tall { height: 3000px }
</style>
<p id="script">script is off</p>
<script>document.getElementById("script").textContent = "script is on"</script>
<p class="narrow">a narrow page</p>
<p class="dark">a dark page</p>
<form action="/sent">
  <label for="note">Note <small>optional</small></label> <input id="note" name="note" value="before">
  <label>Reason <select name="reason"><option value="a">First<option value="b">Second</select></label>
  <label><input type="checkbox" name="sure"> I'm  sure</label>
  <button class="hidden">Send</button>
  <button>Send <b>it</b></button>
  <button>Send</button>
</form>
<div class="tall"></div>"#;

async fn serve() -> String {
    let breach =
        ([(header::CONTENT_SECURITY_POLICY, "default-src 'self'")], Html("<p style='color: red'>breach</p>"));
    let router = Router::new()
        .route("/", get(async || Html(PAGE)))
        .route("/sent", get(async |RawQuery(query)| format!("sent {}", query.unwrap_or_default())))
        .route("/breach", get(async || breach))
        .route("/favicon.ico", get(async || StatusCode::NO_CONTENT));
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, router).await });
    url
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn acts_on_what_is_visible() {
    let site = serve().await;
    let browser = Browser::open(Setup::default()).await;
    browser.goto(&site).await;
    assert_eq!(browser.text("#script").await, "script is on");
    assert!(!browser.text("body").await.contains("page"), "neither narrow nor dark");

    browser.fill_label("Note", "after").await;
    browser.fill_label("Reason", "Second").await;
    browser.fill_label("I'm sure", "").await;
    browser.click_text("button", "Send").await;
    browser.wait_for_text("sent note=after&reason=b&sure=on").await;
    assert_eq!(browser.console_errors().await, Vec::<String>::new());

    browser.goto(&format!("{site}/breach")).await;
    let errors = browser.console_errors().await;
    assert!(errors.len() == 1 && errors[0].contains("Content Security Policy"), "{errors:?}");
    assert_eq!(browser.console_errors().await, Vec::<String>::new(), "each is told once");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn works_without_script_in_the_dark_on_a_phone() {
    let site = serve().await;
    let browser = Browser::open(Setup { script: false, dark: true, width: 400 }).await;
    browser.goto(&site).await;
    assert_eq!(browser.text("#script").await, "script is off");
    browser.wait_for_text("a narrow page").await;
    browser.wait_for_text("a dark page").await;

    let folder = tempfile::tempdir().unwrap();
    let picture = folder.path().join("made/when/missing.png");
    browser.screenshot(&picture).await;
    let (width, height) = png_size(&fs::read(&picture).unwrap());
    assert_eq!(width, 400);
    assert!(height > 3000, "{height} pixels are not the whole page");

    browser.fill_label("Note", "it's dark").await;
    browser.click_text("button", "Send it").await;
    browser.wait_for_text("sent note=it%27s+dark&reason=a").await;

    browser.set_dark(false).await;
    browser.set_width(1000).await;
    browser.goto(&site).await;
    assert!(!browser.text("body").await.contains("page"), "neither narrow nor dark");
}

/// Width and height stand first in a PNG's first chunk.
fn png_size(png: &[u8]) -> (u32, u32) {
    assert!(png.starts_with(b"\x89PNG"));
    let number = |at: usize| u32::from_be_bytes(png[at..at + 4].try_into().unwrap());
    (number(16), number(20))
}
