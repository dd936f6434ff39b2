//! Whether a page holds only markup of ours: every `<` in it begins an element that our templates
//! have, with attributes that they have, in quotes, and every address in it stays here.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::LazyLock;
use std::{fs, io};

use regex::Regex;

static TAG: LazyLock<Regex> = LazyLock::new(|| {
    Regex::new(
        r#"<(?:!doctype html|/([a-z][a-z0-9]*)|([a-z][a-z0-9]*)((?:\s+[a-zA-Z][a-zA-Z0-9-]*(?:="[^"<>]*")?)*)\s*/?)>"#,
    )
    .expect("a pattern")
});
static ATTRIBUTE: LazyLock<Regex> =
    LazyLock::new(|| Regex::new(r#"([a-zA-Z][a-zA-Z0-9-]*)(?:="([^"]*)")?"#).expect("a pattern"));

/// The names of our own elements and attributes.
pub(super) struct Ours {
    elements: BTreeSet<String>,
    attributes: BTreeSet<String>,
}

impl Ours {
    /// From the templates.
    pub(super) fn read() -> Self {
        let text = templates();
        let of = |pattern: &str| -> BTreeSet<String> {
            let pattern = Regex::new(pattern).expect("a pattern");
            pattern.captures_iter(&text).map(|found| found[1].to_owned()).collect()
        };
        // An attribute may stand within a condition, and may be without a value; more words than those of
        // attributes are found, and none that runs or loads something may be among them.
        let attributes = of(r#"[\s"}]([a-zA-Z][a-zA-Z0-9-]*)"#);
        let ours = Self { elements: of("<([a-z][a-z0-9]*)"), attributes };
        for never in ["onclick", "onerror", "onload", "onfocus", "onmouseover", "srcdoc"] {
            assert!(!ours.attributes.contains(never), "{never} is in a template");
        }
        ours
    }

    /// What in a page is not ours.
    pub(super) fn strange(&self, page: &str) -> Option<String> {
        let mut tags = TAG.captures_iter(page);
        for (at, _) in page.match_indices('<') {
            let around = || page[at..].chars().take(80).collect::<String>();
            let tag = tags.next().filter(|tag| tag.get(0).is_some_and(|whole| whole.start() == at));
            let Some(tag) = tag else { return Some(format!("no tag of ours: {}", around())) };
            let name = tag.get(1).or(tag.get(2)).map_or("", |name| name.as_str());
            if !name.is_empty() && !self.elements.contains(name) {
                return Some(format!("no element of ours: {}", around()));
            }
            for attribute in ATTRIBUTE.captures_iter(tag.get(3).map_or("", |all| all.as_str())) {
                let value = attribute.get(2).map_or("", |value| value.as_str());
                let runs = attribute[1].starts_with("on") || &attribute[1] == "style";
                let known = !runs && self.attributes.contains(&attribute[1]);
                let leads = matches!(&attribute[1], "href" | "src" | "action" | "formaction");
                if !known || (leads && !stays(value)) {
                    return Some(format!("no attribute of ours: {} in {}", &attribute[0], around()));
                }
            }
            if name == "script" && tag.get(2).is_some() && !tag[0].contains(" src=\"/static/") {
                return Some(format!("a script that is no file: {}", around()));
            }
        }
        None
    }
}

/// Whether an address in a page or a header is one of ours, or one that a person wrote into the file.
pub(super) fn stays(address: &str) -> bool {
    let own = address.starts_with('/') && !address.starts_with("//") && !address.starts_with("/\\");
    let within = address.is_empty() || address.starts_with('#') || address.starts_with('?');
    (own || within || address.starts_with("http://127.0.0.1") || address.starts_with("https://wiki.example"))
        && !address.contains(char::is_control)
}

/// All of them, as one text.
pub(super) fn templates() -> String {
    let mut text = String::new();
    gather(&Path::new(env!("CARGO_MANIFEST_DIR")).join("templates"), &mut text).expect("the templates");
    text
}

fn gather(folder: &Path, text: &mut String) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            gather(&path, text)?;
        } else {
            text.push_str(&fs::read_to_string(&path)?);
        }
    }
    Ok(())
}

#[test]
fn what_is_not_ours_is_seen() {
    let ours = Ours::read();
    assert_eq!(ours.strange(r#"<p class="x"><a href="/operations">all</a></p>"#), None);
    for page in [
        "<x-hostile>",
        "<p onclick=\"x\">",
        "<p class=x>",
        "<p class=\"\"><img src=x onerror=alert(1)>",
        "<a href=\"javascript:alert(1)\">",
        "<a href=\"//evil.example\">",
        "<script>alert(1)</script>",
        "a < b",
        "<!-- x -->",
        "<form action=\"https://evil.example\">",
    ] {
        assert!(ours.strange(page).is_some(), "{page}");
    }
}
