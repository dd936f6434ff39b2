//! Whether a message is its source's own.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::{hmac, signature};
use subtle::ConstantTimeEq as _;

use super::secret::{Secret, hash};
use super::{Headers, Scheme};
use crate::domain::key::hex;
use crate::domain::time::Timestamp;

/// Signatures of one message that are looked at: each costs a check against every secret.
const MOST_SIGNATURES: usize = 16;

/// What proves a source's messages.
#[derive(Clone, Debug)]
pub struct Proof {
    /// How.
    pub scheme: Scheme,
    /// The header that holds it, in lower case.
    pub header: String,
    /// Any of them may match: several while they are rotated. Never empty.
    pub secrets: Vec<Secret>,
    /// How far a message's date may be from now, to both sides; for schemes that date messages.
    pub tolerance: Duration,
}

/// Why a message is not taken for its source's own: in words that help an honest sender and teach
/// nobody to forge.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unproven {
    /// A header is not there.
    #[error("the header {0} is missing, or there more than once")]
    Missing(String),
    /// A header cannot be read.
    #[error("the header {header} is not of the form {form}")]
    Form {
        /// Which.
        header: String,
        /// What it should look like.
        form: &'static str,
    },
    /// No secret made this signature.
    #[error("no secret of this source matches")]
    NoMatch,
    /// Its signature is right, and its date is not.
    #[error(
        "the message is signed, and its timestamp is too far from the time here: it is a replay, it came late, \
         or the clocks differ"
    )]
    Stale,
}

impl Proof {
    /// Checks a message. The date is looked at last: only one that the source really signed is called
    /// late, so that a count of late ones means replays or clocks, and not noise.
    pub fn check(&self, headers: &Headers, body: &[u8], now: Timestamp) -> Result<(), Unproven> {
        let proof = self.needed(headers, &self.header)?;
        let signed_at = match self.scheme {
            Scheme::StandardWebhooks => Some(self.standard(headers, proof, body)?),
            Scheme::Stripe => Some(self.stripe(proof, body)?),
            Scheme::Github => {
                let form = || self.form("sha256=<64 hexadecimal digits>");
                let given = proof.strip_prefix("sha256=").ok_or_else(form)?;
                self.shared(&[body], |tag| same(given, &hex(tag)))?;
                None
            }
            Scheme::Bearer => {
                let form = || self.form("Bearer <token>");
                let (scheme, token) = proof.split_once(' ').ok_or_else(form)?;
                if !scheme.eq_ignore_ascii_case("bearer") {
                    return Err(form());
                }
                let given = hash(token.trim().as_bytes());
                self.any(|secret| matches!(secret, Secret::Token(hash) if hash.ct_eq(&given).into()))?;
                None
            }
        };
        match signed_at {
            Some(at) if now.since(at).max(at.since(now)) > self.tolerance => Err(Unproven::Stale),
            _ => Ok(()),
        }
    }

    fn standard(&self, headers: &Headers, proof: &str, body: &[u8]) -> Result<Timestamp, Unproven> {
        let id = self.needed(headers, "webhook-id")?;
        let stamp = self.needed(headers, "webhook-timestamp")?;
        let at = moment(stamp).ok_or_else(|| Unproven::Form {
            header: "webhook-timestamp".to_owned(),
            form: "whole seconds since 1970",
        })?;
        let given: Vec<(&str, &str)> =
            proof.split(' ').filter_map(|one| one.split_once(',')).take(MOST_SIGNATURES).collect();
        if given.is_empty() {
            return Err(self.form("v1,<base64> or v1a,<base64>"));
        }
        let signed = [id.as_bytes(), b".", stamp.as_bytes(), b".", body];
        let of = |wanted: &'static str| given.iter().filter(move |(version, _)| *version == wanted);
        self.any(|secret| match secret {
            Secret::Shared(key) => {
                let tag = STANDARD.encode(tag(key, &signed));
                of("v1").any(|(_, text)| same(text, &tag))
            }
            Secret::Public(key) => {
                let key = signature::UnparsedPublicKey::new(&signature::ED25519, key);
                let message = signed.concat();
                of("v1a").any(|(_, text)| {
                    STANDARD.decode(text).is_ok_and(|signature| key.verify(&message, &signature).is_ok())
                })
            }
            Secret::Token(_) => false,
        })?;
        Ok(at)
    }

    fn stripe(&self, proof: &str, body: &[u8]) -> Result<Timestamp, Unproven> {
        let form = || self.form("t=<seconds since 1970>,v1=<64 hexadecimal digits>");
        let parts: Vec<(&str, &str)> = proof
            .split(',')
            .filter_map(|part| part.trim().split_once('='))
            .take(2 * MOST_SIGNATURES)
            .collect();
        let of = |wanted: &'static str| parts.iter().filter(move |(name, _)| *name == wanted);
        let mut stamps = of("t");
        let (Some((_, stamp)), None) = (stamps.next(), stamps.next()) else { return Err(form()) };
        let at = moment(stamp).ok_or_else(form)?;
        if of("v1").next().is_none() {
            return Err(form());
        }
        self.shared(&[stamp.as_bytes(), b".", body], |tag| {
            let tag = hex(tag);
            of("v1").any(|(_, text)| same(text, &tag))
        })?;
        Ok(at)
    }

    /// Whether a shared secret's tag over these parts is one that was given.
    fn shared(&self, parts: &[&[u8]], given: impl Fn(&[u8]) -> bool) -> Result<(), Unproven> {
        self.any(|secret| matches!(secret, Secret::Shared(key) if given(tag(key, parts).as_ref())))
    }

    fn any(&self, matches: impl Fn(&Secret) -> bool) -> Result<(), Unproven> {
        if self.secrets.iter().any(matches) { Ok(()) } else { Err(Unproven::NoMatch) }
    }

    #[allow(clippy::unused_self, reason = "reads beside the other steps of one check")]
    fn needed<'h>(&self, headers: &'h Headers, name: &str) -> Result<&'h str, Unproven> {
        headers.one(name).ok_or_else(|| Unproven::Missing(name.to_owned()))
    }

    fn form(&self, form: &'static str) -> Unproven {
        Unproven::Form { header: self.header.clone(), form }
    }
}

fn tag(key: &hmac::Key, parts: &[&[u8]]) -> hmac::Tag {
    let mut context = hmac::Context::with_key(key);
    for part in parts {
        context.update(part);
    }
    context.sign()
}

/// Compares texts as they are written, in a time that says nothing of where they differ. A second
/// spelling of the same bytes is refused: no sender needs it.
fn same(given: &str, wanted: &str) -> bool {
    given.as_bytes().ct_eq(wanted.as_bytes()).into()
}

/// Seconds since 1970, in digits only.
fn moment(text: &str) -> Option<Timestamp> {
    let digits = (1..=12).contains(&text.len()) && text.bytes().all(|byte| byte.is_ascii_digit());
    let seconds: i64 = digits.then(|| text.parse().ok()).flatten()?;
    seconds.checked_mul(1_000_000).map(Timestamp::from_micros)
}
