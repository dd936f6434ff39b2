//! The product's HTTP API as its clients see it: an answer, or none.

use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use anyhow::{Context as _, Result, bail};
use reqwest::Method;
use serde_json::{Value, json};

/// How long after an outage of the database the API may still say that it is not there: a pool's
/// patience, and the server's own recovery.
const AFTER_OUTAGE: Duration = Duration::from_secs(15);

/// Whoever signs in at the desk.
pub(crate) const PERSON: &str = "rig";
/// Theirs.
pub(crate) const PASSWORD: &str = "kept-in-the-rig";

/// What became of one call.
#[derive(Clone, Debug)]
pub(crate) enum Reply {
    Answered(u16, Value),
    /// Refused, cut or not in time: whether it was done is not known.
    Unanswered,
}

impl Reply {
    pub(crate) fn status(&self) -> Option<u16> {
        match self {
            Self::Answered(status, _) => Some(*status),
            Self::Unanswered => None,
        }
    }
}

/// Bearer tokens.
#[derive(Clone, Debug)]
pub(crate) struct Tokens {
    pub(crate) submit: String,
    pub(crate) operators: [String; 2],
}

/// A client of all nodes.
pub(crate) struct Api {
    pub(crate) http: reqwest::Client,
    nodes: Vec<String>,
    tokens: Tokens,
    outages: Mutex<Vec<(Instant, Option<Instant>)>>,
    wrong: Mutex<Vec<String>>,
}

impl Api {
    pub(crate) fn new(nodes: Vec<String>, tokens: Tokens) -> Result<Self> {
        Ok(Self {
            http: client()?,
            nodes,
            tokens,
            outages: Mutex::new(Vec::new()),
            wrong: Mutex::new(Vec::new()),
        })
    }

    /// Submits once.
    pub(crate) async fn submit(&self, node: usize, kind: &str, key: &str) -> Reply {
        let body = json!({"type": kind, "key": key, "payload": {"order": key, "note": "Ünïcode, \"quoted\" \\ 10.50"}});
        self.call(Method::POST, node, "/api/v1/operations", &self.tokens.submit, None, Some(body)).await
    }

    /// An operator's action on a dead letter, under an action id.
    pub(crate) async fn act(
        &self,
        node: usize,
        operator: usize,
        letter: &str,
        verb: &str,
        action: &str,
        body: Value,
    ) -> Reply {
        let path = format!("/api/v1/dead-letters/{letter}/{verb}");
        let token = &self.tokens.operators[operator];
        self.call(Method::POST, node, &path, token, Some(action), Some(body)).await
    }

    /// An operator's question what a destination knows of an operation.
    pub(crate) async fn ask(&self, node: usize, operation: &str, action: &str) -> Reply {
        let path = format!("/api/v1/operations/{operation}/lookup");
        self.call(Method::POST, node, &path, &self.tokens.operators[0], Some(action), None).await
    }

    /// Signs a person in at the desk's door; whether it opened.
    pub(crate) async fn sign_in(&self, node: usize) -> bool {
        let call = self
            .http
            .post(format!("{}/login", self.nodes[node]))
            .header("sec-fetch-site", "same-origin")
            .header("content-type", "application/x-www-form-urlencoded")
            .body(format!("name={PERSON}&password={PASSWORD}"));
        call.send().await.is_ok_and(|answer| answer.status().is_redirection())
    }

    /// A webhook that proves nothing: it is refused, and that is counted before it is answered.
    pub(crate) async fn forged_delivery(&self, node: usize) {
        self.call(Method::POST, node, "/hooks/rig", "forged", None, Some(json!({"id": "1"}))).await;
    }

    pub(crate) async fn get(&self, node: usize, path: &str) -> Reply {
        self.call(Method::GET, node, path, &self.tokens.operators[0], None, None).await
    }

    /// Every item of a list, page by page, oldest pages last. `path` has a query.
    pub(crate) async fn all(&self, path: &str) -> Result<Vec<Value>> {
        let mut items = Vec::new();
        let mut cursor = String::new();
        loop {
            let page = format!("{path}&limit=200{cursor}");
            let Reply::Answered(200, mut body) = self.get(0, &page).await else {
                bail!("{page} was not answered");
            };
            items.append(body["items"].as_array_mut().context("items")?);
            let Some(next) = body["next"].as_str() else { return Ok(items) };
            cursor = format!("&cursor={next}");
        }
    }

    async fn call(
        &self,
        method: Method,
        node: usize,
        path: &str,
        token: &str,
        action: Option<&str>,
        body: Option<Value>,
    ) -> Reply {
        let url = format!("{}{path}", self.nodes[node % self.nodes.len()]);
        let mut call = self.http.request(method, url).header("authorization", format!("Bearer {token}"));
        if let Some(action) = action {
            call = call.header("idempotency-key", action);
        }
        if let Some(body) = body {
            call = call.header("content-type", "application/json").body(body.to_string());
        }
        let Ok(answer) = call.send().await else { return Reply::Unanswered };
        let status = answer.status().as_u16();
        let Ok(text) = answer.text().await else { return Reply::Unanswered };
        let body: Value = serde_json::from_str(&text).unwrap_or(Value::String(text));
        let excused = status == 503 && self.in_outage();
        if status >= 500 && !excused {
            self.complain(format!("{path} was answered {status}: {body}"));
        }
        Reply::Answered(status, body)
    }

    /// Puts on record what no client should see.
    pub(crate) fn complain(&self, text: String) {
        eprintln!("    ! {text}");
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).push(text);
    }

    /// All that was put on record.
    pub(crate) fn complaints(&self) -> Vec<String> {
        self.wrong.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The database is taken away, or given back.
    pub(crate) fn outage(&self, begins: bool) {
        let mut outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        match outages.last_mut() {
            Some((_, end)) if !begins => *end = Some(Instant::now()),
            _ => outages.push((Instant::now(), None)),
        }
    }

    fn in_outage(&self) -> bool {
        let outages = self.outages.lock().unwrap_or_else(PoisonError::into_inner);
        outages.iter().any(|(_, end)| end.is_none_or(|end| end.elapsed() < AFTER_OUTAGE))
    }
}

/// A client that waits a while and follows nothing.
pub(crate) fn client() -> Result<reqwest::Client> {
    Ok(reqwest::Client::builder()
        .no_proxy()
        .redirect(reqwest::redirect::Policy::none())
        .connect_timeout(Duration::from_millis(500))
        .timeout(Duration::from_secs(4))
        .build()?)
}
