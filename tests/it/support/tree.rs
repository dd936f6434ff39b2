//! The accessibility tree: the page as assistive technology is told of it.

use std::collections::HashMap;

use serde_json::{Value, json};

use super::browser::Browser;

/// One thing on the page.
#[derive(Clone, Debug)]
pub(crate) struct Node {
    pub(crate) role: String,
    /// What it is called; empty when it is called nothing.
    pub(crate) name: String,
    /// Of a heading.
    pub(crate) level: Option<u64>,
    /// Of a link.
    pub(crate) url: Option<String>,
    pub(crate) focused: bool,
    /// Roles, nearest first.
    pub(crate) inside: Vec<String>,
    /// Tells the table's cell that it is in from others.
    pub(crate) cell: Option<String>,
}

/// In the order in which it is read.
pub(crate) struct Tree(pub(crate) Vec<Node>);

impl Tree {
    pub(crate) fn of<'t>(&'t self, role: &'t str) -> impl Iterator<Item = &'t Node> {
        self.0.iter().filter(move |node| node.role == role)
    }

    /// What has the keyboard.
    pub(crate) fn focused(&self) -> Option<&Node> {
        // The page itself has it as well.
        self.0.iter().rfind(|node| node.focused && node.role != "RootWebArea")
    }
}

impl Browser {
    pub(crate) async fn tree(&self) -> Tree {
        let answer = self.devtools("Accessibility.getFullAXTree", json!({})).await;
        let nodes = answer["nodes"].as_array().expect("the nodes");
        let by_id: HashMap<&str, &Value> = nodes.iter().map(|node| (text(&node["nodeId"]), node)).collect();
        let mut tree = Tree(Vec::new());
        let root = nodes.iter().find(|node| node["parentId"].is_null()).expect("a root");
        read(root, &by_id, &[], None, &mut tree.0);
        tree
    }

    /// Opens every part that can be opened, so that nothing is left out of a look at the page.
    pub(crate) async fn open_everything(&self) {
        let script = "for (const part of document.querySelectorAll('main details')) part.open = true";
        self.evaluate(script, Vec::new()).await;
    }

    /// What the page says and a wide window does not show. What only a narrow table shows has the
    /// class `headed`: a wide one has the table's head instead. The copy of a summary goes when it opens.
    pub(crate) async fn hidden_words(&self) -> Vec<String> {
        let script =
            "const meant = '.headed, thead, [hidden], .vh, script, template, noscript, option, details > summary';
            const words = (part) => [...part.childNodes].some((it) => it.nodeType === 3 && it.data.trim());
            return [...document.querySelectorAll('main *')]
                .filter((part) => words(part) && !part.closest(meant) && !part.checkVisibility())
                .map((part) => part.outerHTML.slice(0, 200));";
        let found = self.evaluate(script, Vec::new()).await;
        serde_json::from_value(found).expect("a list of texts")
    }
}

fn read<'n>(
    node: &'n Value,
    by_id: &HashMap<&str, &'n Value>,
    inside: &[String],
    mut cell: Option<&'n str>,
    found: &mut Vec<Node>,
) {
    let mut inside = inside.to_vec();
    if node["ignored"] != true {
        let property = |name: &str| {
            let all = node["properties"].as_array()?;
            Some(all.iter().find(|each| each["name"] == name)?["value"]["value"].clone())
        };
        let role = text(&node["role"]["value"]).to_owned();
        found.push(Node {
            role: role.clone(),
            name: text(&node["name"]["value"]).to_owned(),
            level: property("level").and_then(|level| level.as_u64()),
            url: property("url").and_then(|url| Some(url.as_str()?.to_owned())),
            focused: property("focused").is_some_and(|focused| focused == true),
            inside: inside.clone(),
            cell: cell.map(str::to_owned),
        });
        if role == "cell" {
            cell = Some(text(&node["nodeId"]));
        }
        inside.insert(0, role);
    }
    for child in node["childIds"].as_array().into_iter().flatten() {
        if let Some(child) = by_id.get(text(child)) {
            read(child, by_id, &inside, cell, found);
        }
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}
