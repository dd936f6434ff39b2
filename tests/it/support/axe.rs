//! axe-core: the common rules of whether a page can be used by everybody.

use std::fs;
use std::sync::LazyLock;

use serde_json::{Value, json};

use super::browser::Browser;

static AXE: LazyLock<String> = LazyLock::new(|| {
    let path = super::provided("DLO_TEST_AXE");
    fs::read_to_string(&path).unwrap_or_else(|error| {
        panic!("DLO_TEST_AXE is {path}, which must be axe-core's axe.min.js: {error}")
    })
});

/// Which rules a page is held to.
#[derive(Clone, Copy)]
pub(crate) enum Rules {
    /// WCAG 2.2 up to AA, and axe-core's own best practice.
    All,
    /// What another set of colours can change.
    Colours,
}

impl Browser {
    /// What breaks the rules on the present page: rule, element and reason.
    pub(crate) async fn violations(&self, rules: Rules) -> Vec<String> {
        let which = match rules {
            Rules::All => json!({
                "type": "tag",
                "values": ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"],
            }),
            Rules::Colours => json!({ "type": "rule", "values": ["color-contrast", "link-in-text-block"] }),
        };
        let options = json!({ "runOnly": which, "resultTypes": ["violations"], "preload": false });
        // As the script's own text: evaluating a text that comes as an argument is what the policy
        // forbids.
        if self.evaluate("return window.axe === undefined", Vec::new()).await == true {
            self.evaluate(&AXE, Vec::new()).await;
        }
        let script = "return axe.run(document, arguments[0])";
        let result = self.evaluate(script, vec![options]).await;
        let broken = result["violations"].as_array().unwrap_or_else(|| panic!("axe-core says {result}"));
        let nodes = broken.iter().flat_map(|rule| {
            let nodes = rule["nodes"].as_array().into_iter().flatten();
            nodes.map(move |node| {
                format!("{}: {} {}", text(&rule["id"]), node["html"], text(&node["failureSummary"]))
            })
        });
        nodes.collect()
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
