//! What a source's messages are proved with.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use sha2::{Digest as _, Sha256};

use super::Scheme;

/// The fewest characters of a secret, and bytes of one in base64: an empty or short one can be
/// guessed, and lets anybody in.
pub const MIN_SECRET: usize = 16;

/// One secret or public key. Debug shows nothing of it.
#[derive(Clone)]
pub enum Secret {
    /// Shared with the sender: HMAC-SHA256.
    Shared(hmac::Key),
    /// The sender's public key: Ed25519.
    Public([u8; 32]),
    /// SHA-256 of a bearer token.
    Token([u8; 32]),
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Shared(_) => "Shared(redacted)",
            Self::Public(_) => "Public",
            Self::Token(_) => "Token(redacted)",
        })
    }
}

impl Secret {
    /// Reads a secret as its scheme writes it; else what is wrong, which repeats nothing of it.
    pub fn read(scheme: Scheme, text: &str) -> Result<Self, String> {
        match scheme {
            Scheme::StandardWebhooks => standard(text),
            Scheme::Stripe | Scheme::Github => long_enough(text.as_bytes(), "characters").map(shared),
            Scheme::Bearer => long_enough(text.as_bytes(), "characters").map(|text| Self::Token(hash(text))),
        }
    }
}

/// `whsec_` and `whpk_`, each with base64 behind it.
fn standard(text: &str) -> Result<Secret, String> {
    let decode = |text: &str| STANDARD.decode(text).map_err(|_| "is not base64 behind its prefix".to_owned());
    if let Some(rest) = text.strip_prefix("whsec_") {
        let bytes = decode(rest)?;
        return long_enough(&bytes, "bytes").map(shared);
    }
    if let Some(rest) = text.strip_prefix("whpk_") {
        let key = <[u8; 32]>::try_from(decode(rest)?);
        return key.map(Secret::Public).map_err(|_| "a public key has 32 bytes behind \"whpk_\"".to_owned());
    }
    if text.starts_with("whsk_") {
        return Err("is the sender's private key, which nobody else should have; write the public one, \
                    which begins with \"whpk_\""
            .to_owned());
    }
    Err("must begin with \"whsec_\" (shared, v1) or \"whpk_\" (public key, v1a)".to_owned())
}

fn shared(bytes: &[u8]) -> Secret {
    Secret::Shared(hmac::Key::new(hmac::HMAC_SHA256, bytes))
}

fn long_enough<'b>(bytes: &'b [u8], what: &str) -> Result<&'b [u8], String> {
    if bytes.len() < MIN_SECRET {
        return Err(format!("has fewer than {MIN_SECRET} {what}; it could be guessed"));
    }
    Ok(bytes)
}

/// What a bearer token is compared by.
pub(super) fn hash(token: &[u8]) -> [u8; 32] {
    Sha256::digest(token).into()
}
