//! Where something from outside can enter: every route of the source, with what its address, its
//! query, its form or its body may hold, found by walking the desk as a reader would.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use axum::http::Method;
use dead_letter_office::domain::actor::Scope;
use regex::Regex;
use scraper::{Html, Selector};

use crate::support::desk::{Desk, Person};
use crate::support::routes::routes;

/// Who may ask a route.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Door {
    /// Anybody.
    Open,
    /// A person with a session.
    Desk,
    /// A program with a token.
    Api,
}

/// A route with an address that leads somewhere, and its places.
#[derive(Clone, Debug)]
pub(super) struct Route {
    pub(super) method: Method,
    pub(super) pattern: String,
    /// With something real in each placeholder, where the desk shows such an address.
    pub(super) path: String,
    pub(super) door: Door,
    /// The `Authorization` of the token that gets furthest.
    pub(super) token: String,
    pub(super) query: BTreeSet<String>,
    /// A form's fields with the values that its page gives them.
    pub(super) form: Vec<(String, String)>,
    /// Members of a JSON body.
    pub(super) members: BTreeSet<String>,
    /// It checks a password, which costs as much as a hundred other requests.
    pub(super) slow: bool,
}

impl Route {
    pub(super) fn name(&self) -> String {
        format!("{} {}", self.method, self.pattern)
    }

    /// The address with a text in the place of its n-th placeholder.
    pub(super) fn with(&self, nth: usize, text: &str) -> String {
        let mut seen = 0;
        let parts = self.pattern.split('/').zip(self.path.split('/')).map(|(wanted, there)| {
            let holds = wanted.starts_with('{');
            seen += usize::from(holds);
            if holds && seen == nth + 1 { text } else { there }
        });
        parts.collect::<Vec<_>>().join("/")
    }

    pub(super) fn placeholders(&self) -> usize {
        self.pattern.matches('{').count()
    }
}

/// What a value has to be so that nothing is wrong with it: one that no page suggests.
pub(super) fn usual(name: &str) -> &'static str {
    match name {
        "type" => "keyed",
        "payload" | "filter" | "result" => "{}",
        "ids" | "types" => "[]",
        "accept_duplicate" | "retry" => "true",
        "limit" | "canary" | "per_minute" | "fence" => "1",
        "action" => "lookup",
        "resolution" => "not_needed",
        "mode" => "same_key",
        "role" => "viewer",
        "scope" => "read",
        "lease" => "30s",
        "wait" => "0s",
        "from" | "to" => "2026-11-29",
        "until" => "2026-12-01T09:00",
        "zone" => "Europe/Berlin",
        "format" => "csv",
        _ => "a usual word",
    }
}

/// Every route of the source.
pub(super) async fn found(desk: &Desk, boss: &mut Person<'_>) -> Vec<Route> {
    let mut tokens = Vec::new();
    for scope in Scope::ALL {
        tokens.push(desk.token_named(&format!("sweep {scope}"), *scope).await);
    }
    let seen = Seen::walk(boss).await;
    let every_field = fields_of_templates();
    let mut all = Vec::new();
    for (method, pattern) in routes() {
        let method: Method = method.to_uppercase().parse().expect("a method");
        let mut route = Route {
            path: seen.path(&pattern),
            door: door(&pattern),
            token: String::new(),
            query: seen.query.get(&pattern).cloned().unwrap_or_default(),
            form: Vec::new(),
            members: BTreeSet::new(),
            slow: false,
            method,
            pattern,
        };
        if route.method == Method::GET {
            route.query.insert("unheard_of".to_owned());
        }
        match route.door {
            Door::Api => asked_of_a_program(desk, &tokens, &mut route).await,
            Door::Desk | Door::Open if route.method == Method::POST => {
                let shown = seen.forms.get(&route.pattern);
                let secret =
                    |(name, kind): &(String, String)| name.contains("password") || kind == "password";
                route.slow = seen.kinds.get(&route.pattern).is_some_and(|kinds| kinds.iter().any(secret))
                    || route.pattern == "/login";
                // A form that no page shows now is sent every name that any form has.
                route.form = shown.cloned().unwrap_or_else(|| {
                    every_field.iter().map(|name| (name.clone(), usual(name).to_owned())).collect()
                });
                for (name, value) in &mut route.form {
                    if value.trim().is_empty() {
                        usual(name).clone_into(value);
                    }
                }
                route.form.retain(|(name, _)| name != "csrf");
            }
            Door::Desk | Door::Open => {}
        }
        all.push(route);
    }
    all
}

fn door(pattern: &str) -> Door {
    if pattern.starts_with("/api/") {
        Door::Api
    } else if ["/hooks/", "/login", "/setup/", "/static/", "/healthz", "/readyz"]
        .iter()
        .any(|start| pattern.starts_with(start))
    {
        Door::Open
    } else {
        Door::Desk
    }
}

/// A call says itself what it takes: its refusals name the parameters and members that it knows.
async fn asked_of_a_program(desk: &Desk, tokens: &[String], route: &mut Route) {
    let names = Regex::new("`([a-z_]+)`").expect("a pattern");
    for token in tokens {
        let (path, body) = match route.method {
            Method::GET => (format!("{}?unheard_of=1", route.path), ""),
            _ => (route.path.clone(), r#"{"unheard_of":1}"#),
        };
        let reply = desk.call(route.method.clone(), &path, token, body).await;
        if reply.status == 403 {
            continue;
        }
        token.clone_into(&mut route.token);
        // In JSON the marks around names are as they are.
        let text = &reply.text;
        if let Some((_, known)) = text.split_once("known are ") {
            let end = known.find(['.', '"']).unwrap_or(known.len());
            route.query.extend(known[..end].split(", ").map(str::to_owned));
        }
        route.members.extend(names.captures_iter(text).map(|name| name[1].to_owned()));
        route.members.remove("unheard_of");
    }
}

/// What the pages show.
#[derive(Default)]
struct Seen {
    paths: BTreeSet<String>,
    query: BTreeMap<String, BTreeSet<String>>,
    forms: BTreeMap<String, Vec<(String, String)>>,
    /// The name and type of each field.
    kinds: BTreeMap<String, Vec<(String, String)>>,
}

impl Seen {
    /// Follows links from the first page, each kind of address a few times.
    async fn walk(boss: &mut Person<'_>) -> Self {
        let patterns: Vec<String> = routes().into_iter().map(|(_, pattern)| pattern).collect();
        let mut seen = Self::default();
        let mut left: VecDeque<String> =
            patterns.iter().filter(|path| !path.contains('{')).cloned().collect();
        let mut visits: BTreeMap<String, usize> = BTreeMap::new();
        let mut visited = BTreeSet::new();
        while let Some(address) = left.pop_front() {
            let (path, query) = address.split_once('?').unwrap_or((&address, ""));
            let Some(pattern) = matching(&patterns, path) else { continue };
            seen.paths.insert(path.to_owned());
            let names = url::form_urlencoded::parse(query.as_bytes()).map(|(name, _)| name.into_owned());
            let known = seen.query.entry(pattern.clone()).or_default();
            let before = known.len();
            known.extend(names);
            let new = known.len() > before;
            let often = visits.entry(pattern.clone()).or_default();
            // Files and the news, which never end.
            if pattern == "/live" || pattern.starts_with("/static") || (*often >= 4 && !new) {
                continue;
            }
            if !visited.insert(address.clone()) {
                continue;
            }
            *often += 1;
            let reply = boss.get(&address).await;
            if !reply.header("content-type").starts_with("text/html") {
                continue;
            }
            left.extend(seen.page(&patterns, path, &reply.text));
        }
        seen
    }

    /// Notes a page's forms; its links.
    fn page(&mut self, patterns: &[String], path: &str, text: &str) -> Vec<String> {
        let page = Html::parse_document(text);
        let select = |text: &str| Selector::parse(text).expect("a selector");
        let (all_forms, all_fields, all_options) =
            (select("form"), select("[name]"), select("option[value]"));
        let all_links = select("a[href]");
        for form in page.select(&all_forms) {
            let action = form.value().attr("action").unwrap_or(path);
            let Some(pattern) = matching(patterns, action) else { continue };
            let fields = form.select(&all_fields).map(|field| {
                let of = |name: &str| field.value().attr(name).unwrap_or_default().to_owned();
                let options = field.select(&all_options).filter_map(|one| one.value().attr("value"));
                let value = match field.value().name() {
                    "textarea" => field.text().collect(),
                    "select" => options.last().unwrap_or_default().to_owned(),
                    _ => of("value"),
                };
                (of("name"), of("type"), value)
            });
            let fields: Vec<(String, String, String)> = fields.collect();
            if form.value().attr("method").is_some_and(|method| method.eq_ignore_ascii_case("post")) {
                self.paths.insert(action.to_owned());
                let known = self.forms.entry(pattern.clone()).or_default();
                for (name, kind, value) in fields {
                    if !known.iter().any(|(other, _)| *other == name) {
                        self.kinds.entry(pattern.clone()).or_default().push((name.clone(), kind));
                        known.push((name, value));
                    }
                }
            } else {
                self.query.entry(pattern).or_default().extend(fields.into_iter().map(|(name, ..)| name));
            }
        }
        let links = page.select(&all_links).filter_map(|link| link.value().attr("href"));
        links.filter(|href| href.starts_with('/')).map(str::to_owned).collect()
    }

    /// An address of this pattern that was met; else one that is of the right form.
    fn path(&self, pattern: &str) -> String {
        let met = self
            .paths
            .iter()
            .find(|path| !path.contains('{') && matching(&[pattern.to_owned()], path).is_some());
        if let Some(met) = met {
            return met.clone();
        }
        // What stands under the same address: /operations/{id} knows the id of /operations/{id}/ask.
        let mut stem = pattern;
        while let Some((shorter, _)) = stem.rsplit_once('/') {
            stem = shorter;
            let met = self.paths.iter().find(|path| matching(&[stem.to_owned()], path).is_some());
            if let Some(met) = met.filter(|_| stem.contains('{')) {
                return filled(&format!("{met}{}", &pattern[stem.len()..]));
            }
            let met = self.paths.iter().find(|path| path.starts_with(&format!("{stem}/")));
            if let Some(met) = met.filter(|_| stem.starts_with("/api/") && !stem.is_empty()) {
                return filled(&format!("{met}{}", &pattern[stem.len()..]));
            }
        }
        // A call's address is its page's behind /api/v1.
        match pattern.strip_prefix("/api/v1") {
            Some(page) if pattern.contains('{') => format!("/api/v1{}", self.path(page)),
            _ => filled(pattern),
        }
    }
}

/// Something in each placeholder that no page shows.
fn filled(pattern: &str) -> String {
    pattern
        .replace("{source}", "stripe")
        .replace("{name}", "plain")
        .split('/')
        .map(|part| if part.starts_with('{') { "0192f000-0000-7000-8000-000000000001" } else { part })
        .collect::<Vec<_>>()
        .join("/")
}

/// The most exact of the patterns that an address is of.
fn matching(patterns: &[String], path: &str) -> Option<String> {
    let fits = |pattern: &&String| {
        let (wanted, there): (Vec<&str>, Vec<&str>) =
            (pattern.split('/').collect(), path.split('/').collect());
        wanted.len() == there.len()
            && wanted
                .iter()
                .zip(&there)
                .all(|(wanted, there)| wanted == there || (wanted.starts_with('{') && !there.is_empty()))
    };
    patterns.iter().filter(fits).min_by_key(|pattern| pattern.matches('{').count()).cloned()
}

/// The names of all fields that any template has.
fn fields_of_templates() -> BTreeSet<String> {
    let name = Regex::new(r#"name="([a-z_/]+)""#).expect("a pattern");
    let text = super::markup::templates();
    name.captures_iter(&text).map(|found| found[1].to_owned()).collect()
}
