//! A real OpenID provider in a process of its own, and a browser's way through its pages.

use std::process::Stdio;
use std::time::Duration;

use dead_letter_office::domain::time::Timestamp;
use reqwest::{Client, Url, header, redirect};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader, Lines};
use tokio::process::{Child, ChildStdin, ChildStdout, Command};

use super::app::install_crypto;

const SCRIPT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/oidc/provider.mjs");
/// The secret that the script's one client has.
pub(crate) const SECRET: &str = "a secret between the desk and the provider";

pub(crate) struct Provider {
    pub(crate) issuer: String,
    process: Child,
    /// It ends when this is closed, whatever becomes of the test.
    _life: ChildStdin,
    /// It notes things now and then, and falls over a closed pipe.
    _said: Lines<BufReader<ChildStdout>>,
    http: Client,
}

/// What a browser keeps of the provider's.
#[derive(Default)]
pub(crate) struct Cookies(Vec<(String, String)>);

impl Provider {
    /// With its clock at this moment; it sends browsers back to `desk` only.
    pub(crate) async fn start(now: Timestamp, desk: &str) -> Self {
        install_crypto();
        let mut process = Command::new("node")
            .args([SCRIPT, &super::provided("DLO_TEST_OIDC"), &millis(now).to_string()])
            .arg(format!("{}/login/oidc/back", desk.trim_end_matches('/')))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .kill_on_drop(true)
            .spawn()
            .expect("node runs the provider");
        let life = process.stdin.take().expect("a pipe");
        let mut lines = BufReader::new(process.stdout.take().expect("a pipe")).lines();
        let issuer = tokio::time::timeout(Duration::from_secs(30), lines.next_line()).await;
        let issuer = issuer.expect("it starts").unwrap().expect("its issuer");
        let http = Client::builder().redirect(redirect::Policy::none()).no_proxy().build().unwrap();
        Self { issuer, process, _life: life, _said: lines, http }
    }

    /// The lines of a configuration that signs in here, with what else stands under `[auth.oidc]`.
    pub(crate) fn lines(&self, more: &str) -> String {
        let issuer = &self.issuer;
        format!(
            "[auth.oidc]\nissuer = \"{issuer}\"\nclient_id = \"desk\"\nclient_secret = \"{SECRET}\"\n{more}\n"
        )
    }

    /// Who there is, and what is said of them.
    pub(crate) async fn people(&self, people: Value) {
        self.order("people", people).await;
    }

    pub(crate) async fn clock(&self, now: Timestamp) {
        self.order("clock", json!(millis(now))).await;
    }

    pub(crate) async fn new_keys(&self) {
        self.order("keys", Value::Null).await;
    }

    /// What is wrong with every token from now on; nothing with `null`.
    pub(crate) async fn tampers(&self, with: Value) {
        self.order("token", with).await;
    }

    async fn order(&self, what: &str, body: Value) {
        let sent = self.http.post(format!("{}/test/{what}", self.issuer)).body(body.to_string()).send();
        assert_eq!(sent.await.unwrap().status(), 204, "{what}");
    }

    pub(crate) async fn stop(&mut self) {
        self.process.kill().await.unwrap();
    }

    /// Goes where the desk sends a browser and signs in as `name` where a form asks for it: where the
    /// browser is sent in the end, from the desk's root, and how often it was asked.
    pub(crate) async fn walk(&self, cookies: &mut Cookies, from: &str, name: &str) -> (String, usize) {
        let mut url: Url = from.parse().unwrap();
        let mut asked = 0;
        for _ in 0..10 {
            if url.path() == "/login/oidc/back" {
                return (format!("{}?{}", url.path(), url.query().unwrap_or_default()), asked);
            }
            let mut answer =
                self.http.get(url.clone()).header(header::COOKIE, cookies.text()).send().await.unwrap();
            cookies.keep(&answer);
            if answer.status() == 200 {
                asked += 1;
                let fields = [("prompt", "login"), ("login", name), ("password", "any")];
                let form = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
                answer = self
                    .http
                    .post(url.clone())
                    .header(header::COOKIE, cookies.text())
                    .header(header::CONTENT_TYPE, "application/x-www-form-urlencoded")
                    .body(form)
                    .send()
                    .await
                    .unwrap();
                cookies.keep(&answer);
            }
            let Some(to) = answer.headers().get(header::LOCATION) else {
                panic!("{} at {url}: {}", answer.status(), answer.text().await.unwrap());
            };
            url = url.join(to.to_str().unwrap()).unwrap();
        }
        panic!("it never comes back from {from}");
    }
}

impl Cookies {
    fn text(&self) -> String {
        self.0.iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>().join("; ")
    }

    fn keep(&mut self, answer: &reqwest::Response) {
        for set in answer.headers().get_all(header::SET_COOKIE) {
            let set = set.to_str().unwrap();
            let (name, rest) = set.split_once('=').unwrap();
            let value = rest.split(';').next().unwrap_or_default();
            self.0.retain(|(known, _)| known != name);
            if !value.is_empty() {
                self.0.push((name.to_owned(), value.to_owned()));
            }
        }
    }
}

fn millis(at: Timestamp) -> i64 {
    at.as_micros() / 1_000
}
