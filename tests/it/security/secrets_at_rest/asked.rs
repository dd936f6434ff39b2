//! Whoever asks the server something, and keeps what it answers.

use reqwest::redirect::Policy;
use reqwest::{Client, Method, RequestBuilder, StatusCode};

use super::plants::Plants;
use super::shop::Shop;
use crate::process::{answer, wait_until};

/// Of programs: one that operates, one that submits.
pub(super) struct Tokens {
    pub(super) operates: String,
    pub(super) submits: String,
}

/// What is asked of the server, and everything that it answers.
pub(super) struct Asked {
    url: String,
    http: Client,
    tokens: Tokens,
    cookie: String,
    pub(super) answers: Vec<(String, String)>,
}

impl Asked {
    pub(super) fn at(url: String, tokens: Tokens) -> Self {
        let http = Client::builder().redirect(Policy::none()).build().unwrap();
        Self { url, http, tokens, cookie: String::new(), answers: Vec::new() }
    }

    async fn keep(&mut self, what: &str, call: RequestBuilder) -> StatusCode {
        let reply = call.send().await.unwrap();
        let status = reply.status();
        self.answers.push((what.to_owned(), reply.text().await.unwrap()));
        status
    }

    fn login(&self, name: &str, password: &str) -> RequestBuilder {
        self.http
            .post(format!("{}/login", self.url))
            .header("content-type", "application/x-www-form-urlencoded")
            .header("sec-fetch-site", "same-origin")
            .body(format!("name={name}&password={password}"))
    }

    pub(super) async fn signs_in(&mut self, plants: &mut Plants) {
        let reply = self.login("olga", plants.of("a password")).send().await.unwrap();
        assert_eq!(reply.status(), 303);
        let set = reply.headers()["set-cookie"].to_str().unwrap();
        set.split(';').next().unwrap_or_default().clone_into(&mut self.cookie);
        plants.add("a session", self.cookie.split_once('=').expect("a cookie").1);
    }

    /// Operations of both types, each to its end.
    pub(super) async fn submits(&mut self, shop: &Shop) {
        for key in ["ticket:0", "letter:0", "ticket:1", "letter:1", "ticket:2", "letter:2"] {
            let (kind, n) = key.split_once(':').expect("a type and a number");
            let body = format!(r#"{{"type":"{kind}","payload":{{"order_id":"{n}"}}}}"#);
            let call = self.http.post(format!("{}/api/v1/operations", self.url));
            let call = call.bearer_auth(&self.tokens.submits).body(body);
            assert_eq!(self.keep("a submission", call).await, 201);
            wait_until(&format!("{key} comes to an end"), || {
                let shown = answer(shop.command(&["show", key, "--json"]), "").out;
                shown.contains(r#""state": "completed""#) || shown.contains(r#""dead_letter": ""#)
            });
        }
    }

    pub(super) async fn programs(&mut self, letters: &[(String, String)]) {
        let (letter, operation) = &letters[0];
        let get = |path: String| (Method::GET, path, "");
        let mut calls = vec![
            (
                Method::POST,
                format!("/api/v1/dead-letters/{letter}/override"),
                r#"{"reason":"they agreed","mode":"new_effect","accept_duplicate":true}"#,
            ),
            (Method::POST, format!("/api/v1/operations/{operation}/lookup"), ""),
            (Method::POST, "/api/v1/operations".to_owned(), "{"),
        ];
        calls.extend(["operations", "dead-letters", "audit"].map(|list| get(format!("/api/v1/{list}"))));
        for (_, id) in letters {
            calls.extend(
                ["", "/attempts", "/events"].map(|more| get(format!("/api/v1/operations/{id}{more}"))),
            );
        }
        for (method, path, body) in calls {
            let call = self.http.request(method, format!("{}{path}", self.url));
            let call = call.bearer_auth(&self.tokens.operates).body(body);
            self.keep(&path, call).await;
        }
    }

    /// A delivery that proves nothing; and a password in the field of the name, which the form gives back
    /// to whoever typed it.
    pub(super) async fn mistaken(&mut self, plants: &Plants) {
        let hook = self.http.post(format!("{}/hooks/shop", self.url));
        let hook = hook.header("x-hub-signature-256", "sha256=00").body("{}");
        self.keep("a webhook", hook).await;
        let password = plants.of("a password");
        let wrong = self.login(password, &format!("{password}x")).send().await.unwrap();
        assert_eq!(wrong.status(), 422);
    }

    pub(super) async fn page(&mut self, path: &str) -> StatusCode {
        let call = self.http.get(format!("{}{path}", self.url)).header("cookie", &self.cookie);
        self.keep(path, call).await
    }

    pub(super) async fn pages(&mut self, letters: &[(String, String)]) {
        let mut pages: Vec<String> = [
            "/",
            "/dead-letters",
            "/operations",
            "/destinations",
            "/destinations/crm",
            "/destinations/plain",
            "/types/ticket",
            "/audit",
            "/status",
            "/people",
            "/account",
            "/bulk",
            "/approvals",
        ]
        .map(str::to_owned)
        .to_vec();
        for (letter, operation) in letters {
            pages.push(format!("/operations/{operation}"));
            let forms = ["", "/replay", "/override", "/resolve"];
            pages.extend(forms.map(|form| format!("/dead-letters/{letter}{form}")));
        }
        for page in &pages {
            assert_eq!(self.page(page).await, 200, "{page}");
        }
    }
}
