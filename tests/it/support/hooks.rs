//! A sender of webhooks, for each way to prove them.

use axum::body::Body;
use axum::http::Request;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::desk::{Desk, Reply};

/// Shared secrets, and the seed of a sender's own key pair.
pub(crate) const NEW: &[u8] = b"the new secret of the shop";
pub(crate) const OLD: &[u8] = b"the old secret of the shop";
pub(crate) const SEED: &[u8; 32] = b"a seed for the pair of the shop!";

/// Sources of every kind, for types that every test application has.
pub(crate) fn sources() -> String {
    let (new, old) = (STANDARD.encode(NEW), STANDARD.encode(OLD));
    let public = STANDARD.encode(pair().public_key().as_ref());
    let [new_text, old_text] = [NEW, OLD].map(|secret| String::from_utf8(secret.to_vec()).unwrap());
    let texts = format!(r#"secrets = ["{new_text}", "{old_text}"]"#);
    format!(
        r#"
[operations.fact]
key = "invoice:{{{{ payload.order_id }}}}"
[[operations.fact.steps]]
name = "create ticket"
destination = "keyed"
method = "POST"
path = "/tickets"

[sources.standard]
scheme = "standard-webhooks"
secrets = ["whsec_{new}", "whsec_{old}", "whpk_{public}"]
[[sources.standard.events]]
type = {{ pointer = "/type", equals = "invoice.paid" }}
operation = "keyed"
payload = "/data/object"
correlation_id = "/data/object/customer_id"
[[sources.standard.events]]
type = {{ pointer = "/type", equals = ["invoice.sent", "invoice.void"] }}
operation = "fact"
payload = "/data/object"

[sources.stripe]
scheme = "stripe"
{texts}
tolerance = "1m"
[[sources.stripe.events]]
operation = "keyed"

[sources.github]
scheme = "github"
{texts}
unmatched = "refuse"
[[sources.github.events]]
type = {{ header = "X-GitHub-Event", equals = ["issues"] }}
operation = "keyed"

[sources.cloud]
scheme = "bearer"
format = "cloudevents"
{texts}
[[sources.cloud.events]]
type = {{ pointer = "/type", equals = "invoice.paid" }}
operation = "keyed"
payload = "/data"

[sources.signed-cloud]
scheme = "github"
format = "cloudevents"
{texts}
[[sources.signed-cloud.events]]
operation = "keyed"
payload = "/data"
"#
    )
}

fn pair() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(SEED).unwrap()
}

fn tag(secret: &[u8], message: &[u8]) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, secret), message).as_ref().to_vec()
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// One delivery.
#[derive(Clone)]
pub(crate) struct Hook {
    pub(crate) source: &'static str,
    pub(crate) headers: Vec<(&'static str, String)>,
    pub(crate) body: Vec<u8>,
}

impl Hook {
    fn new(source: &'static str, headers: &[(&'static str, &str)], body: &str) -> Self {
        let headers = headers.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        Self { source, headers, body: body.as_bytes().to_vec() }
    }

    /// Standard Webhooks, `v1`; `at` in seconds since 1970.
    pub(crate) fn standard(secret: &[u8], id: &str, at: i64, body: &str) -> Self {
        let signature =
            format!("v1,{}", STANDARD.encode(tag(secret, format!("{id}.{at}.{body}").as_bytes())));
        Self::standard_with(&signature, id, at, body)
    }

    /// Standard Webhooks, `v1a`.
    pub(crate) fn standard_public(id: &str, at: i64, body: &str) -> Self {
        let signature = pair().sign(format!("{id}.{at}.{body}").as_bytes());
        Self::standard_with(&format!("v1a,{}", STANDARD.encode(signature.as_ref())), id, at, body)
    }

    fn standard_with(signature: &str, id: &str, at: i64, body: &str) -> Self {
        let at = at.to_string();
        let headers =
            [("webhook-id", id), ("webhook-timestamp", at.as_str()), ("webhook-signature", signature)];
        Self::new("standard", &headers, body)
    }

    pub(crate) fn stripe(secret: &[u8], at: i64, body: &str) -> Self {
        let signature = hex(&tag(secret, format!("{at}.{body}").as_bytes()));
        Self::new("stripe", &[("stripe-signature", &format!("t={at},v1={signature},v0=00"))], body)
    }

    pub(crate) fn github(secret: &[u8], id: &str, kind: &str, body: &str) -> Self {
        let signature = format!("sha256={}", hex(&tag(secret, body.as_bytes())));
        let headers = [
            ("x-hub-signature-256", signature.as_str()),
            ("x-github-delivery", id),
            ("x-github-event", kind),
        ];
        Self::new("github", &headers, body)
    }

    /// A CloudEvent in the structured mode under a bearer token.
    pub(crate) fn cloud(secret: &[u8], body: &str) -> Self {
        let token = format!("Bearer {}", String::from_utf8_lossy(secret));
        let headers = [("authorization", token.as_str()), ("content-type", "application/cloudevents+json")];
        Self::new("cloud", &headers, body)
    }

    pub(crate) fn with(mut self, name: &'static str, value: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self.headers.push((name, value.to_owned()));
        self
    }

    pub(crate) fn without(mut self, name: &str) -> Self {
        self.headers.retain(|(known, _)| *known != name);
        self
    }

    pub(crate) fn to(mut self, source: &'static str) -> Self {
        self.source = source;
        self
    }

    pub(crate) fn request(&self) -> Request<Body> {
        let mut request = Request::post(format!("/hooks/{}", self.source));
        for (name, value) in &self.headers {
            request = request.header(*name, value);
        }
        request.body(Body::from(self.body.clone())).unwrap()
    }
}

impl Desk {
    pub(crate) async fn deliver(&self, hook: &Hook) -> Reply {
        self.send(hook.request()).await
    }

    /// The clock's reading in seconds since 1970, as senders write it.
    pub(crate) fn seconds(&self) -> i64 {
        self.app.now().as_micros() / 1_000_000
    }
}
