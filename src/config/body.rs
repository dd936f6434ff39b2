//! A JSON body made from the values of an operation.

use jsonptr::Pointer;
use serde_json::{Map, Number, Value};
use toml::de::DeValue;

use super::reader::Item;
use super::scope::Scope;
use super::template::{Place, Template, TypedExpression};

/// The body of a step's request, as the file describes it.
#[derive(Clone, Debug)]
pub struct BodyTemplate(Node);

#[derive(Clone, Debug)]
enum Node {
    Constant(Value),
    Text(Template),
    Typed(TypedExpression),
    Array(Vec<Node>),
    Object(Vec<(String, Node)>),
}

impl BodyTemplate {
    /// Reads it and notes what is wrong with it.
    pub(super) fn read(item: &Item<'_>, scope: &Scope<'_>) -> Option<Self> {
        read(item, scope).map(Self)
    }

    /// Whether it writes something else than the key at a pointer, or something in the way to it.
    /// What values bring is not known yet.
    pub(super) fn occupies(&self, pointer: &str) -> bool {
        let Ok(pointer) = Pointer::parse(pointer) else { return false };
        let mut node = &self.0;
        for token in pointer.tokens() {
            let name = token.decoded();
            node = match node {
                Node::Typed(_) => return false,
                Node::Object(members) => match members.iter().find(|(known, _)| *known == name) {
                    Some((_, inner)) => inner,
                    None => return false,
                },
                Node::Constant(_) | Node::Text(_) | Node::Array(_) => return true,
            };
        }
        !matches!(node, Node::Typed(expression) if expression.facts() == ["key"])
    }

    /// The dotted names it reads, such as `payload.order_id`.
    pub fn facts(&self) -> Vec<String> {
        facts(&self.0)
    }

    /// The JSON for these values, its members in the order of the file.
    pub(super) fn render(&self, values: &minijinja::Value) -> Result<Value, String> {
        render(&self.0, values)
    }
}

fn read(item: &Item<'_>, scope: &Scope<'_>) -> Option<Node> {
    Some(match item.value.get_ref() {
        DeValue::String(_) => {
            let text = item.text()?;
            match scope.expression(&text, item) {
                Some(expression) => Node::Typed(expression),
                None => Node::Text(scope.parse(Place::Body, &text, item)?),
            }
        }
        DeValue::Array(_) => Node::Array(item.list().iter().filter_map(|item| read(item, scope)).collect()),
        DeValue::Table(_) => {
            let members = item.table()?.entries();
            let member = |(name, item): (String, Item<'_>)| Some((name, read(&item, scope)?));
            Node::Object(members.into_iter().filter_map(member).collect())
        }
        _ => Node::Constant(scalar(item)?),
    })
}

/// A JSON value without templates.
pub(super) fn constant(item: &Item<'_>) -> Option<Value> {
    match item.value.get_ref() {
        DeValue::String(_) => item.text().map(Value::String),
        DeValue::Array(_) => item.list().iter().map(constant).collect(),
        DeValue::Table(_) => {
            let members = item.table()?.entries();
            let member = |(name, item): (String, Item<'_>)| Some((name, constant(&item)?));
            members.into_iter().map(member).collect::<Option<Map<_, _>>>().map(Value::Object)
        }
        _ => scalar(item),
    }
}

fn scalar(item: &Item<'_>) -> Option<Value> {
    let number = match item.value.get_ref() {
        DeValue::Boolean(truth) => return Some(Value::Bool(*truth)),
        DeValue::Datetime(moment) => return Some(Value::String(moment.to_string())),
        DeValue::Integer(_) => item.integer().map(Number::from),
        DeValue::Float(float) => float.as_str().parse().ok().and_then(Number::from_f64),
        _ => None,
    };
    if number.is_none() {
        item.mistake("JSON has no such number");
    }
    number.map(Value::Number)
}

fn facts(node: &Node) -> Vec<String> {
    match node {
        Node::Constant(_) => Vec::new(),
        Node::Text(template) => template.facts().to_vec(),
        Node::Typed(expression) => expression.facts().to_vec(),
        Node::Array(nodes) => nodes.iter().flat_map(facts).collect(),
        Node::Object(members) => members.iter().flat_map(|(_, node)| facts(node)).collect(),
    }
}

fn render(node: &Node, values: &minijinja::Value) -> Result<Value, String> {
    Ok(match node {
        Node::Constant(value) => value.clone(),
        Node::Text(template) => Value::String(template.render(values)?),
        Node::Typed(expression) => expression.render(values)?,
        Node::Array(nodes) => {
            Value::Array(nodes.iter().map(|node| render(node, values)).collect::<Result<_, _>>()?)
        }
        Node::Object(members) => {
            let member = |(name, node): &(String, Node)| Ok((name.clone(), render(node, values)?));
            Value::Object(members.iter().map(member).collect::<Result<_, String>>()?)
        }
    })
}
