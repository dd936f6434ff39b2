//! Text from outside is text. That a hostile destination's answer is no markup on any page is shown
//! in `desk::harmless`; here is what that rests on.

use std::fs;
use std::path::Path;

use axum::http::Method;
use dead_letter_office::config::Config;
use dead_letter_office::domain::actor::Scope;

use crate::support::app::env;
use crate::support::databases::TestDatabase;
use crate::support::desk::Desk;

fn walk(folder: &Path, found: &mut Vec<(String, String)>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            walk(&path, found);
        } else {
            found.push((path.display().to_string(), fs::read_to_string(&path).unwrap()));
        }
    }
}

#[test]
fn no_template_says_that_its_text_is_markup() {
    let (root, mut found) = (Path::new(env!("CARGO_MANIFEST_DIR")), Vec::new());
    walk(&root.join("templates"), &mut found);
    walk(&root.join("src/web"), &mut found);
    assert!(found.len() > 60, "{}", found.len());
    for (path, text) in &found {
        for word in ["|safe", "| safe", "autoescape", "escape = \"none\"", "MarkupDisplay", "HtmlSafe"] {
            assert!(!text.contains(word), "{path}: {word}");
        }
        // A drill's report is a file that stands alone, and is served nowhere.
        if path.ends_with(".html") && !path.contains("/reports/") {
            for word in
                [" style=", "<style", "javascript:", " onclick", " onload", "<script>", "target=\"_blank\""]
            {
                assert!(!text.contains(word), "{path}: {word}");
            }
        }
    }
}

#[test]
fn links_from_the_file_lead_to_the_web_only() {
    for wrong in
        ["javascript:alert(1)", "data:text/html,x", "file:///etc/passwd", "//wiki.example.com", "wiki"]
    {
        let text = format!(
            "[destinations.crm]\nbase_url = \"https://crm.example.com\"\n[operations.a]\nkey = \"{{{{ payload.id }}}}\"\n\
             runbook = \"{wrong}\"\n[[operations.a.steps]]\nname = \"go\"\ndestination = \"crm\"\nmethod = \"POST\"\n\
             path = \"/x\"\n"
        );
        let mistakes = Config::read(Path::new("dlo.toml"), &text, &env).expect_err(wrong).to_string();
        assert!(mistakes.contains("operations.a.runbook"), "{wrong}: {mistakes}");
    }
}

#[tokio::test]
async fn what_programs_get_is_never_taken_for_a_page() {
    let desk = Desk::start(TestDatabase::sqlite()).await;
    let token = desk.token(Scope::Submit).await;
    let nasty = "<script>alert(1)</script>";
    let query: String = url::form_urlencoded::byte_serialize(nasty.as_bytes()).collect();
    for (method, path, body) in [
        (Method::POST, "/api/v1/operations".to_owned(), format!("{{\"type\":\"{nasty}\",\"payload\":1}}")),
        (Method::POST, "/api/v1/operations/batch".to_owned(), nasty.to_owned()),
        (Method::GET, format!("/api/v1/operations?{query}={query}"), String::new()),
        (Method::GET, format!("/api/v1/operations/{query}"), String::new()),
        (Method::POST, format!("/hooks/{query}"), nasty.to_owned()),
    ] {
        let reply = desk.call(method, &path, &token, body).await;
        let kind = reply.header("content-type");
        let known = ["application/json", "application/problem+json", "application/x-ndjson"];
        assert!(known.contains(&kind), "{path}: {kind}");
        assert_eq!(reply.header("x-content-type-options"), "nosniff", "{path}");
    }
}
