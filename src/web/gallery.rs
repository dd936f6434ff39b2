//! Every page with realistic and with hostile content, written to `target/gallery` to be looked
//! at, and held to what must be true of any page whatever it shows.

mod acts;
mod admins;
mod bulk;
mod evidence;
mod factors;
mod handling;
mod lists;
mod places;
mod samples;
mod search;

use std::fs;
use std::path::Path;

use askama::Template;
use scraper::{Html, Selector};

use super::assets;
use samples::Words;

/// All pages, by name.
fn pages(words: &Words) -> Vec<(String, String)> {
    let mut pages = Vec::new();
    let mut add = |name: &str, page: &dyn askama::DynTemplate| {
        pages.push((name.to_owned(), page.dyn_render().unwrap()));
    };
    add("login", &acts::login(words));
    add("setup", &acts::setup(words, None));
    add("setup-password", &acts::setup(words, words.some("olga")));
    add("triage", &lists::triage(words));
    add("triage-quiet", &lists::triage_quiet(words));
    add("dead-letters", &lists::dead_letters(words, 14));
    add("dead-letters-none", &lists::dead_letters(words, 0));
    add("dead-letters-locked", &lists::dead_letters_locked(words));
    add("cause", &lists::cause_page(words, true));
    add("cause-over", &lists::cause_page(words, false));
    add("dead-letter", &evidence::dead_letter(words));
    add("dead-letter-asked", &evidence::dead_letter_asked(words));
    add("dead-letter-closed", &evidence::dead_letter_closed(words));
    add("operation", &evidence::operation(words));
    add("replay", &acts::replay(words, false));
    add("replay-blocked", &acts::replay(words, true));
    add("resolve", &acts::resolve_form(words));
    add("override", &acts::override_page(words));
    add("correct", &handling::correct(words));
    add("correct-json", &handling::correct_json(words));
    add("correct-shut", &handling::correct_shut(words));
    add("correct-compare", &handling::compare(words));
    add("approvals", &handling::approvals(words, true));
    add("approvals-none", &handling::approvals(words, false));
    for (number, page) in (1..).zip(handling::approval(words)) {
        let number: i32 = number;
        add(&format!("approval-{number}"), &page);
    }
    for verdict in acts::verdicts(words) {
        add(&format!("verdict-{}", verdict.verdict.kind), &verdict);
    }
    add("bulk", &bulk::list(words, 5));
    add("bulk-none", &bulk::list(words, 0));
    add("bulk-new", &bulk::form(words, None));
    add("bulk-new-shut", &bulk::form(words, words.some("Choose a filter first.")));
    add("bulk-preview", &bulk::preview(words));
    add("bulk-running", &bulk::running(words));
    add("operations", &search::operations(words, true));
    add("operations-none", &search::operations(words, false));
    add("audit", &search::audit(words));
    add("status", &search::status(words, true));
    add("status-none", &search::status(words, false));
    add("destinations", &places::destinations(words, true));
    add("destinations-none", &places::destinations(words, false));
    add("destination", &places::destination(words, true));
    add("destination-none", &places::destination(words, false));
    add("type", &places::operation_type(words));
    add("account", &acts::account(words));
    add("second", &factors::second(words));
    add("factors", &factors::factors(words, true));
    add("factors-none", &factors::factors(words, false));
    add("factor-app", &factors::app(words));
    add("factor-codes", &factors::codes(words));
    add("passkey", &factors::passkey(words));
    add("confirm", &factors::confirm(words, true));
    add("confirm-provider", &factors::confirm(words, false));
    add("people", &admins::people(words));
    add("person", &admins::person(words, true));
    add("person-nowhere", &admins::person(words, false));
    add("tokens", &admins::tokens(words, true));
    add("tokens-none", &admins::tokens(words, false));
    for (name, page) in ["erase-nobody", "erase", "erase-found"].iter().zip(admins::erase(words)) {
        add(name, &page);
    }
    add("error", &acts::error(words, true));
    add("error-outside", &acts::error(words, false));
    pages
}

fn all<'a>(page: &'a Html, selector: &str) -> Vec<scraper::ElementRef<'a>> {
    page.select(&Selector::parse(selector).unwrap()).collect()
}

/// What must be true of a page whatever it shows.
fn hold(name: &str, html: &str) {
    let page = Html::parse_document(html);
    assert!(page.errors.is_empty(), "{name} is not well-formed: {:?}", page.errors);

    // Nothing from outside became markup, and the strict content policy finds nothing to refuse.
    let scripts = all(&page, "script");
    let ours = [assets::js(), assets::passkeys_js()];
    assert!(scripts.len() <= ours.len(), "{name}: a script got in");
    for (script, ours) in scripts.iter().zip(ours) {
        assert_eq!(script.value().attr("src"), Some(ours), "{name}");
        assert_eq!(script.text().count(), 0, "{name}: an inline script");
    }
    for element in all(&page, "*") {
        let tag = element.value().name();
        assert!(
            !["style", "img", "iframe", "object", "base", "embed", "x-hostile"].contains(&tag),
            "{name}: <{tag}>"
        );
        for (attribute, value) in element.value().attrs() {
            assert!(
                !attribute.starts_with("on") && attribute != "style",
                "{name}: {tag} {attribute}={value}"
            );
            if ["href", "src", "action", "formaction"].contains(&attribute) {
                let known = ["/", "#", "https://", "http://"].iter().any(|start| value.starts_with(start));
                assert!(known && !value.starts_with("//"), "{name}: {tag} {attribute}={value}");
            }
        }
    }

    // One name for one place, and a name for every control.
    let mut ids: Vec<&str> = all(&page, "[id]").iter().filter_map(|e| e.value().attr("id")).collect();
    let count = ids.len();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), count, "{name}: an id is there twice");
    for element in all(&page, "[aria-describedby], [aria-labelledby], label[for], use") {
        let named = ["aria-describedby", "aria-labelledby", "for", "href"];
        let named = named.iter().find_map(|attribute| element.value().attr(attribute)).unwrap_or_default();
        for id in named.split_whitespace() {
            let id = id.trim_start_matches('#');
            assert!(ids.contains(&id), "{name}: nothing is called {id}");
        }
    }
    for control in all(&page, "input:not([type=hidden]), select, textarea") {
        let labelled = control.value().attr("aria-label").is_some()
            || control.value().attr("aria-labelledby").is_some()
            || control.ancestors().any(|a| a.value().as_element().is_some_and(|e| e.name() == "label"))
            || control
                .value()
                .attr("id")
                .is_some_and(|id| !all(&page, &format!("label[for='{id}']")).is_empty());
        assert!(labelled, "{name}: a control without a label: {}", control.html());
    }
    assert_eq!(all(&page, "h1").len(), 1, "{name}: one page, one title");

    // No post without its token; no act without its id.
    for form in all(&page, "form[method=post]") {
        let fields = form.html();
        assert!(fields.contains("name=\"csrf\""), "{name}: a form without a token");
        let act = form
            .value()
            .attr("action")
            .is_some_and(|a| a.starts_with("/dead-letters") || a.starts_with("/bulk"));
        assert!(!act || fields.contains("name=\"action_id\""), "{name}: an act without an id");
    }
}

#[test]
fn every_page_holds_with_realistic_and_with_hostile_content() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/gallery");
    fs::create_dir_all(folder.join("static")).unwrap();
    for asset in assets::all() {
        fs::write(folder.join(&asset.url[1..]), asset.bytes).unwrap();
    }
    for (suffix, words) in [("", Words::real()), ("-hostile", Words::hostile())] {
        for (name, html) in pages(&words) {
            // A file has no root, so the assets are linked from beside it.
            let beside = html.replace("\"/static/", "\"static/");
            fs::write(folder.join(format!("{name}{suffix}.html")), beside).unwrap();
            hold(&format!("{name}{suffix}"), &html);
        }
    }
}

#[test]
fn a_full_list_stays_light() {
    for page in [lists::dead_letters(&Words::real(), 50), lists::dead_letters_long(50)] {
        let html = page.render().unwrap();
        assert_eq!(all(&Html::parse_document(&html), "tbody tr").len(), 50);
        assert!(html.len() <= 60 * 1024, "{} bytes", html.len());
    }
}
