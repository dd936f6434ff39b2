//! A webhook delivery: nothing is taken that no secret signed, what was signed is, and one bit more
//! or less makes it a forgery. The first line of the input is the scheme, then headers, an empty
//! line and the body.
#![no_main]

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use dead_letter_office_fuzz::Message;
use dead_letter_office_fuzz::domain::key::{OperationKey, hex};
use dead_letter_office_fuzz::domain::time::Timestamp;
use dead_letter_office_fuzz::domain::webhook::{
    Event, EventId, Headers, Proof, Scheme, Secret, Unproven, operation_key,
};
use libfuzzer_sys::fuzz_target;
use ring::hmac;

const KEY: &str = "a secret that no input holds: 5f0c1b9e";
const SIGNED: i64 = 1_796_000_000;

type Pairs = Vec<(String, String)>;

fn proof(scheme: Scheme) -> Proof {
    let text = match scheme {
        Scheme::StandardWebhooks => format!("whsec_{}", STANDARD.encode(KEY)),
        _ => KEY.to_owned(),
    };
    let secret = Secret::read(scheme, &text).expect("a secret");
    Proof {
        scheme,
        header: scheme.header().to_owned(),
        secrets: vec![secret],
        tolerance: Duration::from_secs(300),
    }
}

/// The headers with which its source would send this body.
fn signed(scheme: Scheme, id: &str, body: &[u8]) -> Pairs {
    let tag = |parts: &[&[u8]]| {
        let key = hmac::Key::new(hmac::HMAC_SHA256, KEY.as_bytes());
        hmac::sign(&key, &parts.concat()).as_ref().to_vec()
    };
    let at = SIGNED.to_string();
    let pair = |name: &str, value: String| (name.to_owned(), value);
    match scheme {
        Scheme::StandardWebhooks => {
            let tag = tag(&[id.as_bytes(), b".", at.as_bytes(), b".", body]);
            let signature = format!("v1,{}", STANDARD.encode(tag));
            vec![
                pair("webhook-signature", signature),
                pair("webhook-id", id.to_owned()),
                pair("webhook-timestamp", at),
            ]
        }
        Scheme::Stripe => {
            let tag = hex(&tag(&[at.as_bytes(), b".", body]));
            vec![pair("stripe-signature", format!("t={at},v1={tag}"))]
        }
        Scheme::Github => vec![pair("x-hub-signature-256", format!("sha256={}", hex(&tag(&[body]))))],
        Scheme::Bearer => vec![pair("authorization", format!("Bearer {KEY}"))],
    }
}

fuzz_target!(|text: &str| {
    let message = Message::of(text);
    let body = message.body.as_bytes();
    let scheme = message.first.parse().unwrap_or(Scheme::StandardWebhooks);
    let proof = proof(scheme);
    let now = Timestamp::from_micros(SIGNED * 1_000_000);

    let given = Headers::new(message.headers.iter().map(|(name, value)| (*name, *value)));
    if !text.contains(KEY) {
        let refused = proof.check(&given, body, now).expect_err("nobody signed this");
        assert!(!refused.to_string().contains(KEY));
        assert_ne!(refused, Unproven::Stale, "only what is signed can be late");
    }

    // The first header's value serves as the id, where a header can hold it.
    let visible = |text: &&str| !text.is_empty() && text.bytes().all(|byte| matches!(byte, b' '..=b'~'));
    let id = message.headers.first().map(|(_, value)| *value).filter(visible).unwrap_or("msg_1");
    let pairs = signed(scheme, id, body);
    let check = |pairs: &Pairs, body: &[u8], now| {
        proof.check(&Headers::new(pairs.iter().map(|(name, value)| (name, value.as_str()))), body, now)
    };
    assert_eq!(check(&pairs, body, now), Ok(()));
    if scheme.is_dated() {
        for off in [Duration::from_secs(301), Duration::from_secs(86_400)] {
            assert_eq!(check(&pairs, body, now.plus(off)), Err(Unproven::Stale));
            assert_eq!(check(&pairs, body, now.minus(off)), Err(Unproven::Stale));
        }
    }
    forged(scheme, &pairs, body, text.len(), |pairs, body| check(pairs, body, now).is_ok());
    read(scheme, &given, body);
});

/// One bit of a header or of the body is another: which is chosen by `choice`.
fn forged(scheme: Scheme, pairs: &Pairs, body: &[u8], choice: usize, taken: impl Fn(&Pairs, &[u8]) -> bool) {
    for place in 0..pairs.len() {
        let value = pairs[place].1.as_bytes();
        for at in [choice % value.len(), value.len() - 1] {
            let mut changed = value.to_vec();
            changed[at] ^= 1 << (choice % 7);
            let Ok(changed) = String::from_utf8(changed) else { continue };
            // Names of schemes have no case, and an authorization's has spaces around its token.
            let same = |a: &str, b: &str| {
                scheme == Scheme::Bearer && a.to_lowercase().trim() == b.to_lowercase().trim()
            };
            if same(&changed, &pairs[place].1) {
                continue;
            }
            let mut other = pairs.clone();
            other[place].1 = changed;
            assert!(!taken(&other, body), "{:?} for {:?}", other[place], pairs[place]);
        }
    }
    // A token speaks for the caller, not for what they send.
    if scheme != Scheme::Bearer {
        let mut other = body.to_vec();
        match body.len() {
            0 => other.push(0),
            length => other[choice % length] ^= 1 << (choice % 8),
        }
        assert!(!taken(pairs, &other));
        assert!(!taken(pairs, &[body, b" "].concat()));
    }
}

fn read(scheme: Scheme, headers: &Headers, body: &[u8]) {
    let ids = [EventId::Header("webhook-id"), EventId::Pointer("/id".into()), EventId::CloudEvent];
    for id in ids {
        match Event::read(scheme, &id, headers, body) {
            Ok(event) => {
                assert!(!event.id.trim().is_empty() && event.value.is_object());
                let key = operation_key("shop", &event.id);
                assert!(OperationKey::new(key.as_str()).is_ok(), "{key:?}");
                // Another event is another operation.
                assert_ne!(key, operation_key("shop", &format!("{} ", event.id)));
                assert_ne!(key, operation_key("shop", &key));
            }
            Err(error) => assert!(!error.to_string().is_empty()),
        }
    }
}
